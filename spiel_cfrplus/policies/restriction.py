"""Restricted games: the others play a known policy with probability p, and play freely otherwise.

At the start chance decides with probability p that the others play a fixed policy, the *model*. Nobody observes the decision,
so the player has the same infostates in both cases. The player's payoff gradient is (1 - p) times that of the game, plus p
times the gradient against the model; the others' gradients are (1 - p) times those of the game. The result is a game of the
same type: solvers and evaluation accept it.

In a two-player constant-sum game, the player's strategy in an equilibrium of this game is a *restricted Nash response*
(Johanson, Zinkevich and Bowling 2007, "Computing robust counter-strategies"): of all strategies that lose as little against a
best response, it earns most against the model. With p = 0 it is an equilibrium strategy, with p = 1 a best response to the
model.

The tree has two copies of the game below a chance move, first the free one. In the other one the decisions of the others are
chance moves with the probabilities of the model.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game, evaluate
>>> kuhn = compile_game(pyspiel.load_game("kuhn_poker"))
>>> model = {"0b": {0: 1.0}, "1b": {0: 1.0}, "2b": {1: 1.0}, "0p": {0: 1.0}, "1p": {0: 1.0}, "2p": {1: 1.0}}
>>> game = restrict(kuhn, model, 0.25, player=0)
>>> game.num_sequences == kuhn.num_sequences, len(game.tree.terminal) == 2 * len(kuhn.tree.terminal)
(True, True)
>>> evaluate(game, StrategyProfile.uniform(game)).values.round(6)
array([ 0.072917, -0.072917])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus._utils.validation import checked_player, checked_probability
from spiel_cfrplus.game.game_tree import NO_ACTION, NO_INFOSTATE, NO_PARENT, GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk import CHANCE
from spiel_cfrplus.policies.locking import with_chance_at
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RestrictedGame(SequenceFormGame):
    """A game in which all players but one play a model with probability p.

    Attributes:
      whole: the game without the restriction; it has the same treeplexes.
      model: a profile of `whole` with the model at the others' infostates, uniform at the player's.
      p: the probability of the model.
      player: the player who is not restricted.
    """

    whole: SequenceFormGame
    model: StrategyProfile
    p: float
    player: int

    def _summary(self) -> str:
        return f"{self.whole.description}, a model against player {self.player} with probability {self.p:g}"

    def whole_profile(self, policy: Any) -> StrategyProfile:
        """A policy of this game as a profile of the game without the restriction; arguments and errors as for `read_policy`."""
        return StrategyProfile(self.whole, read_policy(self, policy).probabilities)


def restrict(game: pyspiel.Game | SequenceFormGame, model: Any, p: float, player: int) -> RestrictedGame:
    """The game in which the others play `model` with probability `p`, and freely otherwise.

    Args:
      game: a game of any number of players and any payoffs, or a compiled game.
      model: any policy that `read_policy` accepts; only the others' infostates must have entries.
      p: the probability of the model, from 0 to 1.
      player: the player who is not restricted.

    Raises:
      TypeError: `p` is not a number, or as for `read_policy`.
      ValueError: `p` is not from 0 to 1; the player does not exist; or the game or the model is invalid, see `compile_game` and
        `read_policy`.
    """
    p = checked_probability(p, "p")
    game = compile_game(game)
    player = checked_player(player, game.num_players, game.tree.game)
    profile = _of_others(game, model, player)
    compiled = SequenceFormGame.from_tree(_with_model(profile, p, player))
    return RestrictedGame(
        compiled.tree, compiled.treeplexes, compiled.payoff_sequences, compiled.payoffs, game, profile, p, player
    )


def _of_others(game: SequenceFormGame, model: Any, player: int) -> StrategyProfile:
    """The model at the others' infostates, uniform at the player's."""
    is_list = isinstance(model, Sequence) and not isinstance(model, str)
    per_player = list(model) if is_list else [model] * game.num_players
    per_player[player : player + 1] = [StrategyProfile.uniform(game)]
    return read_policy(game, per_player)


def _with_model(model: StrategyProfile, p: float, player: int) -> GameTree:
    """The tree with a chance move before two copies of it: with probability `p`, the others' decisions are chance moves.

    The free copy is first, so that the infostates have the numbers that they have in the tree.
    """
    tree = model.game.tree
    is_other = tree.infostate_player != player
    fixed = with_chance_at(is_other, model)
    number = np.append(np.flatnonzero(~is_other), NO_INFOSTATE)  # of each infostate of `fixed`, and at NO_INFOSTATE, -1
    num_copied = tree.num_histories - _num_removed(tree)
    root = {"parent": [NO_PARENT], "action": [NO_ACTION], "actor": [CHANCE], "infostate": [NO_INFOSTATE]}
    root |= {"chance_probability": [1], "terminal": []}
    first = _copied(tree, 1, 0, 1 - p)
    second = _copied(fixed, 1 + num_copied, len(tree.roots), p)
    second["infostate"] = number[second["infostate"]]
    joined: dict[str, Any] = {
        name: frozen(np.concatenate([top, first[name], second[name]]), getattr(tree, name).dtype) for name, top in root.items()
    }
    returns = frozen(np.concatenate([tree.returns, tree.returns]), np.float64)
    return dataclasses.replace(tree, roots=tree.roots * 2, returns=returns, **joined)


def _num_removed(tree: GameTree) -> int:
    """1 if history 0 is a chance move among several roots, which a chance move before them replaces; otherwise 0."""
    return int(len(tree.roots) > 1)


def _copied(tree: GameTree, start: int, first_root: int, probability: float) -> dict[str, np.ndarray]:
    """The histories of a tree, from position `start` on, as children of a chance move at position 0.

    Args:
      tree: the tree; its root becomes root number `first_root`, its roots become the roots from this number on.
      start: the position of the first history.
      first_root: the number of the first root.
      probability: of reaching this copy.
    """
    removed = _num_removed(tree)
    is_root = tree.parent[removed:] < removed
    action = tree.action[removed:]
    return {
        "parent": np.where(is_root, 0, tree.parent[removed:] + (start - removed)),
        "action": np.where(is_root, first_root + np.maximum(action, 0), action),
        "actor": tree.actor[removed:],
        "infostate": tree.infostate[removed:],
        "chance_probability": tree.chance_probability[removed:] * np.where(is_root, probability, 1.0),
        "terminal": tree.terminal + (start - removed),
    }
