"""Games in which some infostates are locked: there the player plays a given distribution, elsewhere as it likes.

At a locked infostate the player's actions are chance moves with the given probabilities. So the infostate is no longer one, and
what is left is a game like any other: solvers solve it, and its NashConv counts deviations at the other infostates only. It
is exact: utilities of the whole game's profiles that play as locked are those of the rest in the locked game. Perfect recall
stays: the histories of a later infostate of the player all come after the same actions at the locked one.

Lock all of a player's infostates and the others learn to exploit it (CFR-BR is this the other way round).

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> game = lock(pyspiel.load_game("kuhn_poker"), {(0, "0"): {1: 1 / 3}, (0, "2"): {1: 1.0}})  # of action 0 the rest
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
>>> policy = game.whole_profile(solver.average_profile()).to_tabular_policy()  # for all 12
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
from spiel_cfrplus.game.game_tree import CHANCE, NO_INFOSTATE, GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import place_answer, read_policy


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LockedGame(SequenceFormGame):
    """A game in which some infostates are locked.

    Attributes:
      whole: the game before.
      fixed: a profile of it, as locked at the locked infostates, uniform elsewhere.
    """

    whole: SequenceFormGame
    fixed: StrategyProfile

    def _summary(self) -> str:
        return f"{super()._summary()}, {self.whole.num_infostates - self.num_infostates} infostates locked"

    @property
    def is_whole_game(self) -> bool:
        return self.whole.is_whole_game and self.whole.num_infostates == self.num_infostates

    def whole_profile(self, policy: Any) -> StrategyProfile:
        """A profile of the whole game: as locked where that is so, elsewhere as `policy` plays in this game.

        Args, errors: see `read_policy`.
        """
        return self.fixed.overwritten_by(read_policy(self, policy))


def lock(game: pyspiel.Game | SequenceFormGame, distributions: Mapping[tuple[int, str], Any]) -> LockedGame:
    """The game in which play is fixed at some infostates.

    Args:
      game: a game, or what `compile_game`, `compile_subgame` or `lock` made of one.
      distributions: for each infostate to be locked, a pair (player, information-state string), the probabilities: {action:
        probability} or (action, probability) pairs, such as `StrategyProfile.to_dict()` has. Legal actions that are left out
        have probability 0. What misses 1 by rounding is normalized.

    Raises:
      TypeError: `distributions` is no mapping, or its keys are no such pairs.
      ValueError: an infostate that there is not; no distribution over its legal actions; or a game that cannot be compiled.
    """
    if not isinstance(distributions, Mapping):
        raise TypeError(f"expected {{(player, infostate string): {{action: probability}}}}, got {distributions!r}")
    game = compile_game(game)
    points = [_find(game, infostate) for infostate in distributions]
    fixed = _fixed_profile(game, points, list(distributions.values()))
    locked = np.zeros(game.num_infostates, bool)
    for player, point in points:
        locked[np.flatnonzero(game.tree.infostate_player == player)[point]] = True
    compiled = SequenceFormGame.from_tree(_with_chance_at(game.tree, locked, _by_legal_action(fixed)))
    return LockedGame(compiled.tree, compiled.treeplexes, compiled.payoff_sequences, compiled.payoffs, game, fixed)


def _find(game: SequenceFormGame, infostate: Any) -> tuple[int, int]:
    """The player and the decision point."""
    match infostate:
        case (player, str(key)):
            player = checked_player(player, game.num_players, game.tree.game)
        case _:
            raise TypeError(f"expected a pair (player, infostate string), got {infostate!r}")
    point = game.treeplexes[player].decision_point_at.get(key)
    if point is None:
        owners = [treeplex.player for treeplex in game.treeplexes if key in treeplex.decision_point_at]
        hint = "".join(f"; it is one of player {owner}" for owner in owners)
        raise ValueError(f"player {player} has no infostate {key!r} in {game!r}{hint}")
    return player, point


def _fixed_profile(game: SequenceFormGame, points: list[tuple[int, int]], answers: list[Any]) -> StrategyProfile:
    """Uniform play, but at the decision points what the answers say, made exact."""
    probabilities = StrategyProfile.uniform(game).probabilities.copy()
    for (player, point), answer in zip(points, answers, strict=True):
        place_answer(game, player, point, answer, probabilities[game.player_slices[player]])
    StrategyProfile(game, probabilities)  # says what is no distribution
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


def _with_chance_at(tree: GameTree, locked: np.ndarray, probabilities: np.ndarray) -> GameTree:
    """The tree with chance moves at the locked infostates, bool (I,); `probabilities` are those of its `legal_actions`."""
    kept_decisions = tree.infostate != NO_INFOSTATE
    locked_histories = kept_decisions.copy()
    locked_histories[kept_decisions] = locked[tree.infostate[kept_decisions]]
    kept_decisions &= ~locked_histories
    renumbered = np.cumsum(~locked) - 1
    infostate = np.full(tree.num_histories, NO_INFOSTATE)
    infostate[kept_decisions] = renumbered[tree.infostate[kept_decisions]]

    # Children come in the order of legal actions, so the place among the siblings is the place among these.
    by_parent = 1 + np.argsort(tree.parent[1:], kind="stable")
    parents = tree.parent[by_parent]
    place = np.arange(len(parents)) - np.searchsorted(parents, parents)
    moved = locked_histories[parents]
    chance_probability = tree.chance_probability.copy()
    chance_probability[by_parent[moved]] = probabilities[tree.legal_action_start[tree.infostate[parents[moved]]] + place[moved]]

    num_actions = np.diff(tree.legal_action_start)
    return dataclasses.replace(
        tree,
        actor=frozen(np.where(locked_histories, CHANCE, tree.actor), np.int8),
        infostate=frozen(infostate, np.int32),
        chance_probability=frozen(chance_probability, np.float64),
        infostate_player=frozen(tree.infostate_player[~locked], np.int8),
        infostate_keys=tuple(key for key, gone in zip(tree.infostate_keys, locked, strict=True) if not gone),
        legal_action_start=frozen(np.cumsum([0, *num_actions[~locked]]), np.int32),
        legal_actions=frozen(tree.legal_actions[np.repeat(~locked, num_actions)], np.int64),
    )
