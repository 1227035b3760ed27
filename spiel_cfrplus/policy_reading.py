"""Reads policies that OpenSpiel or its users made into `StrategyProfile`s, and says what is wrong with those that are none.

Tables (`TabularPolicy`, `pyspiel.TabularPolicy`, dictionaries) are looked up once per infostate. Any other policy is asked at
every decision history, as OpenSpiel's evaluators do, and must answer alike at all histories of an infostate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cfrplus.policies import StrategyProfile
from spiel_cfrplus.sequence_form import SequenceFormGame

# Policies from float32 networks miss 1 by this much.
PROBABILITY_TOLERANCE = 1e-6

ActionProbabilities = Mapping[int, float]


def read_policy(game: SequenceFormGame, policy: Any) -> StrategyProfile:
    """The profile that `policy` plays in `game`.

    Args:
      game: the compiled game.
      policy: a `StrategyProfile`; a `TabularPolicy` or any other `open_spiel.python.policy.Policy`; a `pyspiel.Policy`; a
        dictionary from information-state strings to {action: probability} or (action, probability) pairs; or a list of
        these, one for each player, each asked only at its player's infostates.

    Raises:
      TypeError: not a policy.
      ValueError: a profile of another game; the wrong number of policies; an infostate is missing; probabilities there are
        negative, not finite, do not sum to 1 within `PROBABILITY_TOLERANCE` or lie on illegal actions; or they differ between
        two histories of one infostate.
    """
    if isinstance(policy, StrategyProfile):
        if policy.game is not game:
            raise ValueError(f"this profile was made for another compilation ({policy.game.tree.game}) than {game.tree.game}")
        return policy
    per_player = policy if isinstance(policy, Sequence) and not isinstance(policy, str) else [policy] * game.num_players
    if len(per_player) != game.num_players:
        raise ValueError(f"{game.tree.game} has {game.num_players} players, got {len(per_player)} policies")
    parts = [_read_player(game, player, player_policy) for player, player_policy in enumerate(per_player)]
    return StrategyProfile(game, np.concatenate(parts))


def _read_player(game: SequenceFormGame, player: int, policy: Any) -> np.ndarray:
    """The behavioural policy of one player, float64 (S_p,)."""
    if isinstance(policy, StrategyProfile):
        return read_policy(game, policy).of_player(player)
    if isinstance(policy, openspiel_policy.TabularPolicy) and _answers_from_table(policy):
        return _read_rows(game, player, policy)
    if isinstance(policy, pyspiel.TabularPolicy):
        policy = policy.policy_table()
    if isinstance(policy, Mapping):
        return _read_mapping(game, player, policy)
    if isinstance(policy, pyspiel.Policy):
        return _read_at_histories(game, player, lambda state: policy.action_probabilities(state))
    if isinstance(policy, openspiel_policy.Policy):
        return _read_at_histories(game, player, lambda state: policy.action_probabilities(state, player))
    raise TypeError(
        f"expected a StrategyProfile, an OpenSpiel policy, a dictionary, or a list of one of these per player; got {policy!r}"
    )


def _answers_from_table(policy: openspiel_policy.TabularPolicy) -> bool:
    """Whether the array says it all: a subclass may compute its answers."""
    return type(policy).action_probabilities is openspiel_policy.TabularPolicy.action_probabilities


def _read_rows(game: SequenceFormGame, player: int, policy: openspiel_policy.TabularPolicy) -> np.ndarray:
    treeplex = game.treeplexes[player]
    keys = treeplex.infostate_keys if policy.game_type.provides_information_state_string else _table_keys(game, player, policy)
    try:
        rows = np.array([policy.state_lookup[key] for key in keys], np.int64)
    except KeyError as error:
        raise ValueError(_missing(game, player, error.args[0])) from error
    table = policy.action_probability_array
    if treeplex.actions.max() >= table.shape[1]:
        raise ValueError(f"{game.tree.game} has more actions than the {table.shape[1]} columns of the policy's table")
    points = treeplex.decision_point_of[1:]
    probabilities = np.ones(treeplex.num_sequences)
    probabilities[1:] = table[rows[points], treeplex.actions[1:]]
    illegal = np.array(table[rows])
    illegal[points, treeplex.actions[1:]] = 0
    bad_points, bad_actions = np.nonzero(illegal)
    if len(bad_points):
        point, action = int(bad_points[0]), int(bad_actions[0])
        raise ValueError(_illegal(game, player, point, action, illegal[point, action]))
    return _checked(game, player, probabilities)


def _table_keys(game: SequenceFormGame, player: int, policy: openspiel_policy.TabularPolicy) -> list[str]:
    """The table's keys of the player's infostates, for tables that are not keyed by information-state strings."""
    tree = game.tree
    infostates = np.flatnonzero(tree.infostate_player == player)
    histories = tree.first_history[infostates]
    return [policy._state_key(state, player) for _, state in tree.states(histories)]


def _read_mapping(game: SequenceFormGame, player: int, policy: Mapping[str, Any]) -> np.ndarray:
    treeplex = game.treeplexes[player]
    probabilities = np.ones(treeplex.num_sequences)
    for point, key in enumerate(treeplex.infostate_keys):
        if key not in policy:
            raise ValueError(_missing(game, player, key))
        _place(game, player, point, dict(policy[key]), probabilities)
    return _checked(game, player, probabilities)


def _read_at_histories(game: SequenceFormGame, player: int, ask: Callable[[pyspiel.State], ActionProbabilities]) -> np.ndarray:
    tree, keys = game.tree, game.treeplexes[player].infostate_keys
    treeplex = game.treeplexes[player]
    point_of_infostate = np.cumsum(tree.infostate_player == player) - 1
    probabilities = np.ones(treeplex.num_sequences)
    asked_at: dict[int, int] = {}
    for history, state in tree.states(np.flatnonzero(tree.actor == player)):
        point = int(point_of_infostate[tree.infostate[history]])
        try:
            answer = ask(state)
        except (KeyError, pyspiel.SpielError) as error:
            raise ValueError(f"{_missing(game, player, keys[point])} ({error!r})") from error
        own = slice(*treeplex.sequence_start[point : point + 2])
        before = probabilities[own].copy()
        _place(game, player, point, answer, probabilities)
        if point in asked_at and not np.allclose(
            before, probabilities[own], rtol=0, atol=PROBABILITY_TOLERANCE, equal_nan=True
        ):
            raise ValueError(
                f"{tree.game}: the policy of player {player} depends on more than the infostate: at infostate {keys[point]!r} "
                f"it plays {before.tolist()} after history {list(tree.history_actions(asked_at[point]))} and "
                f"{probabilities[own].tolist()} after {list(tree.history_actions(history))}"
            )
        if point not in asked_at:
            asked_at[point] = history
    return _checked(game, player, probabilities)


def _place(game: SequenceFormGame, player: int, point: int, answer: ActionProbabilities, probabilities: np.ndarray) -> None:
    """Writes the answer for a decision point; legal actions it leaves out have probability 0."""
    treeplex = game.treeplexes[player]
    sequences = treeplex.sequences(point)
    legal = [int(action) for action in treeplex.actions[sequences.start : sequences.stop]]
    for action, probability in answer.items():
        if action not in legal and probability != 0:
            raise ValueError(_illegal(game, player, point, action, probability))
    probabilities[sequences.start : sequences.stop] = [answer.get(action, 0.0) for action in legal]


def _checked(game: SequenceFormGame, player: int, probabilities: np.ndarray) -> np.ndarray:
    treeplex = game.treeplexes[player]
    if treeplex.num_decision_points == 0:
        return probabilities
    with np.errstate(invalid="ignore"):  # infinities of both signs
        sums = np.add.reduceat(probabilities, treeplex.sequence_start[:-1])
    least = np.minimum.reduceat(probabilities, treeplex.sequence_start[:-1])
    bad = np.flatnonzero(~((np.abs(sums - 1) <= PROBABILITY_TOLERANCE) & (least >= 0)))
    if len(bad):
        point = int(bad[0])
        answer = probabilities[slice(*treeplex.sequence_start[point : point + 2])].tolist()
        raise ValueError(
            f"{game.tree.game}: the policy of player {player} is not a probability distribution at infostate "
            f"{treeplex.infostate_keys[point]!r}: {answer} sums to {sums[point]}"
        )
    return probabilities


def _missing(game: SequenceFormGame, player: int, key: str) -> str:
    return f"{game.tree.game}: the policy of player {player} has nothing for infostate {key!r}"


def _illegal(game: SequenceFormGame, player: int, point: int, action: int, probability: float) -> str:
    key = game.treeplexes[player].infostate_keys[point]
    return (
        f"{game.tree.game}: the policy of player {player} plays the illegal action {action} with probability {probability} at "
        f"infostate {key!r}"
    )
