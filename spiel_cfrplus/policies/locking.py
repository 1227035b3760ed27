"""Locking: games in which the player's distribution over actions is fixed at some infostates.

At a locked infostate, the player's actions become chance moves with the given probabilities, so the infostate is removed. The
result is a game of the same type: solvers accept it, and its NashConv counts deviations at the remaining infostates only. The
construction is exact: a profile of the whole game that plays the locked distributions has the same utilities as its restriction
in the locked game. Perfect recall is preserved, because the histories of a later infostate of the player all follow the same
action at the locked one.

If all infostates of a player are locked, the others compute best responses to it.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> game = lock(pyspiel.load_game("kuhn_poker"), {(0, "0"): {1: 1 / 3}, (0, "2"): {1: 1.0}})  # action 0 is missing
Traceback (most recent call last):
    ...
ValueError: kuhn_poker(): the policy of player 0 is not a probability distribution at infostate '0': [0.0, 0.3333333333333333] \
sums to 0.3333333333333333
>>> game = lock(pyspiel.load_game("kuhn_poker"), {(0, "0"): {0: 2 / 3, 1: 1 / 3}, (0, "2"): {1: 1.0}})
>>> game.num_infostates, game.whole.num_infostates
(10, 12)
>>> solver = CFRPlusSolver(game)
>>> solver.run(1000)
>>> solver.nash_conv() < 1e-3
True
>>> policy = game.whole_profile(solver.average_profile()).to_tabular_policy()  # all 12 infostates
>>> [round(float(p), 3) for p in policy.policy_for_key("0")]
[0.667, 0.333]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus._utils.validation import checked_player
from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk import CHANCE
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy, write_distribution


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LockedGame(SequenceFormGame):
    """A game in which some infostates are locked.

    Attributes:
      whole: the game before locking.
      fixed: a profile of `whole` with the locked distributions, uniform at the other infostates.
    """

    whole: SequenceFormGame
    fixed: StrategyProfile

    def _summary(self) -> str:
        return f"{super()._summary()}, {self.whole.num_infostates - self.num_infostates} infostates locked"

    @property
    def is_whole_game(self) -> bool:
        return self.whole.is_whole_game and self.whole.num_infostates == self.num_infostates

    def whole_profile(self, policy: Any) -> StrategyProfile:
        """The profile of the whole game with the locked distributions, and `policy` at the other infostates.

        Arguments and errors as for `read_policy`.
        """
        return self.fixed.overwritten_by(read_policy(self, policy))


def lock(game: pyspiel.Game | SequenceFormGame, distributions: Mapping[tuple[int, str], Any]) -> LockedGame:
    """Fixes the distribution over actions at some infostates.

    Args:
      game: a game, or the result of `compile_game`, `compile_subgame` or `lock`.
      distributions: maps each infostate to be locked, a pair (player, information-state string), to its distribution: {action:
        probability} or (action, probability) pairs, as in `StrategyProfile.to_dict()`. Omitted legal actions have probability
        0. A sum that differs from 1 within `PROBABILITY_TOLERANCE` is normalized.

    Raises:
      TypeError: `distributions` is not a mapping, or its keys are not such pairs.
      ValueError: an infostate does not exist; its value is not a distribution over its legal actions; or the game cannot be
        compiled.
    """
    if not isinstance(distributions, Mapping):
        raise TypeError(f"expected {{(player, infostate string): {{action: probability}}}}, got {distributions!r}")
    game = compile_game(game)
    points = [_find(game, infostate) for infostate in distributions]
    fixed = _fixed_profile(game, points, list(distributions.values()))
    locked = np.zeros(game.num_infostates, bool)
    for player, point in points:
        locked[np.flatnonzero(game.tree.infostate_player == player)[point]] = True
    compiled = SequenceFormGame.from_tree(with_chance_at(locked, fixed))
    return LockedGame(compiled.tree, compiled.treeplexes, compiled.payoff_sequences, compiled.payoffs, game, fixed)


def _find(game: SequenceFormGame, infostate: Any) -> tuple[int, int]:
    """The player and the decision point of an infostate."""
    match infostate:
        case (player, str(key)):
            player = checked_player(player, game.num_players, game.tree.game)
        case _:
            raise TypeError(f"expected a pair (player, infostate string), got {infostate!r}")
    point = game.treeplexes[player].decision_point_at.get(key)
    if point is None:
        owners = [treeplex.player for treeplex in game.treeplexes if key in treeplex.decision_point_at]
        hint = "".join(f"; it is an infostate of player {owner}" for owner in owners)
        raise ValueError(f"player {player} has no infostate {key!r} in {game!r}{hint}")
    return player, point


def _fixed_profile(game: SequenceFormGame, points: list[tuple[int, int]], distributions: list[Any]) -> StrategyProfile:
    """The uniform profile with the given, normalized distributions at the decision points."""
    probabilities = StrategyProfile.uniform(game).probabilities.copy()
    for (player, point), distribution in zip(points, distributions, strict=True):
        write_distribution(game, player, point, distribution, probabilities[game.player_slices[player]])
    StrategyProfile(game, probabilities)  # raises an error if a distribution is invalid, before it is normalized
    for player, point in points:
        own = probabilities[game.player_slices[player]][slice(*game.treeplexes[player].sequence_start[point : point + 2])]
        own[:] = np.maximum(own, 0) / np.maximum(own, 0).sum()
    return StrategyProfile(game, probabilities)


def _by_legal_action(profile: StrategyProfile) -> np.ndarray:
    """The probability of each of the tree's `legal_actions`."""
    tree = profile.game.tree
    owner = np.repeat(tree.infostate_player, np.diff(tree.legal_action_start))
    probabilities = np.empty(len(owner))
    for player in range(profile.game.num_players):
        probabilities[owner == player] = profile.of_player(player)[1:]
    return probabilities


def with_chance_at(locked: np.ndarray, profile: StrategyProfile) -> GameTree:
    """The tree of the profile's game with chance moves at the locked infostates.

    Args:
      locked: bool (I,), whether each infostate is locked.
      profile: the probabilities of the chance moves; the distributions at other infostates are not used.
    """
    tree, probabilities = profile.game.tree, _by_legal_action(profile)
    free_decisions = tree.infostate != NO_INFOSTATE
    locked_histories = free_decisions.copy()
    locked_histories[free_decisions] = locked[tree.infostate[free_decisions]]
    free_decisions &= ~locked_histories
    new_number = np.cumsum(~locked) - 1
    infostate = np.full(tree.num_histories, NO_INFOSTATE)
    infostate[free_decisions] = new_number[tree.infostate[free_decisions]]

    # Children are in the order of the legal actions, so the position among the siblings is the position of the action.
    by_parent = 1 + np.argsort(tree.parent[1:], kind="stable")
    parents = tree.parent[by_parent]
    position = np.arange(len(parents)) - np.searchsorted(parents, parents)
    below_locked = locked_histories[parents]
    first_action = tree.legal_action_start[tree.infostate[parents[below_locked]]]
    chance_probability = tree.chance_probability.copy()
    chance_probability[by_parent[below_locked]] = probabilities[first_action + position[below_locked]]

    num_actions = np.diff(tree.legal_action_start)
    return dataclasses.replace(
        tree,
        actor=frozen(np.where(locked_histories, CHANCE, tree.actor), np.int8),
        infostate=frozen(infostate, np.int32),
        chance_probability=frozen(chance_probability, np.float64),
        infostate_player=frozen(tree.infostate_player[~locked], np.int8),
        infostate_keys=tuple(key for key, is_locked in zip(tree.infostate_keys, locked, strict=True) if not is_locked),
        legal_action_start=frozen(np.cumsum([0, *num_actions[~locked]]), np.int32),
        legal_actions=frozen(tree.legal_actions[np.repeat(~locked, num_actions)], np.int64),
    )
