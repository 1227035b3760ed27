"""Walks a `pyspiel.Game` once, or what is below some of its states, and keeps the tree as flat arrays.

This module and `roots` are the only ones that touch `pyspiel.State`. Everything that iterates works on arrays derived from a
`GameTree`.

Terms:

* A *history* is a sequence of actions from the root, chance included. Histories are numbered in preorder: a parent comes
  before its children, children come in the order of `legal_actions()` or `chance_outcomes()`.
* An *infostate* is what one player cannot tell apart: a pair (player, information-state string). Infostates are numbered in
  the order in which the walk first meets them. The same string for two players names two infostates.

>>> import pyspiel
>>> tree = GameTree.from_game(pyspiel.load_game("kuhn_poker"))
>>> tree.num_histories, tree.num_terminals, tree.num_infostates
(58, 30, 12)
>>> tree.history_actions(5)
(0, 1, 0, 1)
"""

from __future__ import annotations

import array
import dataclasses
import functools
import math
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus import _kernels
from spiel_cfrplus._arrays import Immutable, frozen
from spiel_cfrplus.game_checks import check_game, no_information_states
from spiel_cfrplus.progress import Advance, progress_bar
from spiel_cfrplus.roots import History, checked_roots, infostates_before, replay, root_distribution

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)
NO_PARENT = -1
NO_ACTION = -1
NO_INFOSTATE = -1

# Chance probabilities of a node are computed by the game, often as n times 1/n; this much rounding is accepted in their sum.
_CHANCE_SUM_TOLERANCE = 1e-6
# Regrets, sums of millions of returns, must fit a float64.
_LARGEST_RETURN = 1e300


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GameTree(Immutable):
    """The tree of a game as read-only arrays: H histories, Z terminal histories, I infostates, n players.

    Attributes:
      game: the game that was walked.
      roots: the histories, as tuples of action ids, of the states where the tree starts: the empty one for a whole game. If
        there are several, history 0 is a chance move between them, whose "actions" are their numbers.
      parent: int32 (H,), the parent history; `NO_PARENT` at the root.
      action: int64 (H,), the action id that leads here from the parent; `NO_ACTION` at the root.
      actor: int8 (H,), the player to move, `CHANCE` or `TERMINAL`.
      infostate: int32 (H,), the infostate of a decision history, else `NO_INFOSTATE`.
      chance_probability: float64 (H,), probability of the chance move that leads here; 1 where the parent is not chance.
        (Where play is locked, a player's move is one of chance; see `locking`.)
      terminal: int32 (Z,), the terminal histories, ascending.
      returns: float64 (Z, n), `State.returns()` of each terminal history, in game units.
      infostate_player: int8 (I,), whose infostate it is.
      infostate_keys: tuple of I information-state strings.
      legal_action_start: int32 (I + 1,), infostate i's legal actions are `legal_actions[legal_action_start[i] :
        legal_action_start[i + 1]]`.
      legal_actions: int64, action ids in the order of `State.legal_actions()`.
    """

    game: pyspiel.Game
    roots: tuple[History, ...]
    parent: np.ndarray
    action: np.ndarray
    actor: np.ndarray
    infostate: np.ndarray
    chance_probability: np.ndarray
    terminal: np.ndarray
    returns: np.ndarray
    infostate_player: np.ndarray
    infostate_keys: tuple[str, ...]
    legal_action_start: np.ndarray
    legal_actions: np.ndarray

    def _summary(self) -> str:
        return f"{self.game}{self.below_roots}, {self.num_histories} histories, {self.num_infostates} infostates"

    @property
    def below_roots(self) -> str:
        """Where a sub-game starts, in words for a summary."""
        if self.roots == ((),):
            return ""
        return f" below {list(self.roots[0])}" + f" and {len(self.roots) - 1} others" * (len(self.roots) > 1)

    @classmethod
    def from_game(cls, game: pyspiel.Game, *, max_histories: int | None = None, progress: bool = False) -> GameTree:
        """Walks the tree of `game`, with one state alive for each ply of the current path.

        Args:
          game: any sequential game with explicit or no chance that has information-state strings.
          max_histories: refuse trees with more histories than this.
          progress: show a progress bar on standard error, if that is a terminal.

        Raises:
          ValueError: the game is simultaneous, mean-field or has sampled chance; has no information-state strings, or strings
            that change between two calls; has histories of one infostate with different legal actions, a decision without
            legal actions, chance probabilities that are not a distribution, or non-finite returns; or is larger than
            `max_histories`.
        """
        check_game(game)
        return _TreeBuilder(game, ((),), max_histories).build(np.ones(1), progress)

    @classmethod
    def from_states(
        cls,
        states: pyspiel.State | Sequence[pyspiel.State],
        reach: npt.ArrayLike | None = None,
        *,
        max_histories: int | None = None,
        progress: bool = False,
    ) -> GameTree:
        """Walks what is below some states of a game; the states themselves are left as they are.

        Args:
          states: one state, or the k roots of a sub-game.
          reach: every player's reach of each, see `roots.root_distribution`.
          max_histories, progress: as for `from_game`.

        Raises:
          TypeError, ValueError: no states to start from, or no reach, see `roots`; or as for `from_game`.
          ValueError: an infostate lies before a root as well as below one.
        """
        game, roots = checked_roots(states)
        check_game(game)
        tree = _TreeBuilder(game, roots, max_histories).build(root_distribution(game, roots, reach), progress)
        _check_not_cut(tree)
        return tree

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles, unless OpenSpiel could not make the same game again from its pickle.

        Raises:
          ValueError: it could not.
        """
        if not self.can_be_pickled:
            raise ValueError(
                f"{self.game} cannot be pickled: OpenSpiel cannot load it back by its string. Solvers that are compiled as a "
                "whole can be saved with solver.save(path) and loaded with game= instead"
            )
        return super().__reduce__()

    @property
    def can_be_pickled(self) -> bool:
        """Whether OpenSpiel could make the same game again from its pickle."""
        try:
            pickle.loads(pickle.dumps(self.game))
        except (pyspiel.SpielError, RuntimeError):
            return False
        return True

    @property
    def num_players(self) -> int:
        return self.returns.shape[1]

    @property
    def num_histories(self) -> int:
        return len(self.parent)

    @property
    def num_terminals(self) -> int:
        return len(self.terminal)

    @property
    def num_infostates(self) -> int:
        return len(self.infostate_keys)

    @functools.cached_property
    def subtree_end(self) -> np.ndarray:
        """One past the last history below each history, int64 (H,): the subtree of h is `h : subtree_end[h]`."""
        sizes = np.ones(self.num_histories, np.int64)
        _kernels.add_to_parents(self.parent, sizes)
        return frozen(np.arange(self.num_histories) + sizes, np.int64)

    @functools.cached_property
    def first_history(self) -> np.ndarray:
        """The first history of each infostate, int64 (I,)."""
        decisions = np.flatnonzero(self.infostate != NO_INFOSTATE)
        return decisions[np.unique(self.infostate[decisions], return_index=True)[1]]

    def history_actions(self, history: int) -> tuple[int, ...]:
        """The action ids that lead from the start of the game to `history`, chance moves included."""
        actions = []
        while self.parent[history] != NO_PARENT:
            actions.append(int(self.action[history]))
            history = self.parent[history]
        if len(self.roots) == 1:
            return (*self.roots[0], *reversed(actions))
        return (*self.roots[actions.pop()], *reversed(actions)) if actions else ()

    def states(self, histories: np.ndarray) -> Iterator[tuple[int, pyspiel.State]]:
        """Yields `(history, state)` for ascending `histories`, replaying each shared prefix once.

        The states are the caller's to keep: none is changed afterwards.
        """
        path = [0]
        path_states = [replay(self.game, self.history_actions(0))]
        depth_on_path = {0: 0}
        for history in map(int, histories):
            descent = []
            node = history
            while node not in depth_on_path:
                descent.append(node)
                node = int(self.parent[node])
            keep = depth_on_path[node] + 1
            for left in path[keep:]:
                del depth_on_path[left]
            del path[keep:], path_states[keep:]
            for node in reversed(descent):
                depth_on_path[node] = len(path)
                path.append(node)
                path_states.append(self._child_state(path_states[-1], node))
            yield history, path_states[-1]

    def _child_state(self, state: pyspiel.State, child: int) -> pyspiel.State:
        if len(self.roots) > 1 and self.parent[child] == 0:
            return replay(self.game, self.history_actions(child))
        return state.child(int(self.action[child]))


class _TreeBuilder:
    """Grows the arrays of a `GameTree` during the walk."""

    def __init__(self, game: pyspiel.Game, roots: tuple[History, ...], max_histories: int | None):
        self._game = game
        self._roots = roots
        self._max_histories = math.inf if max_histories is None else max_histories
        self._parent = array.array("i")
        self._action = array.array("q")
        self._actor = array.array("b")
        self._infostate = array.array("i")
        self._chance_probability = array.array("d")
        self._terminal = array.array("i")
        self._returns = array.array("d")
        self._infostate_of_key: list[dict[str, int]] = [{} for _ in range(game.num_players())]
        self._infostate_player = array.array("b")
        self._legal_actions: list[list[int]] = []

    def build(self, root_probabilities: np.ndarray, progress: bool) -> GameTree:
        """Walks what is below the roots, one after the other, whose probabilities are float64 (k,)."""
        with progress_bar(progress, unit="histories") as advance:
            if len(self._roots) == 1:
                self._walk(replay(self._game, self._roots[0]), NO_PARENT, NO_ACTION, 1.0, advance)
            else:
                self._record(NO_PARENT, NO_ACTION, CHANCE, NO_INFOSTATE, 1.0)
                for number, (root, probability) in enumerate(zip(self._roots, root_probabilities.tolist(), strict=True)):
                    self._walk(replay(self._game, root), 0, number, probability, advance)
        return self._finish()

    def _walk(self, root: pyspiel.State, parent: int, action: int, probability: float, advance: Advance) -> None:
        """Visits all histories from `root` on in preorder; at most one state for each ply of the current path is alive."""
        number = len(self._parent)
        # Histories with children still to visit: state, number, edges to them with the next one last.
        open_histories = [(root, number, self._visit(root, parent, action, probability))]
        while open_histories:
            state, history, edges = open_histories[-1]
            if len(edges) > 1:
                action, probability = edges.pop()
                state = state.child(action)
            else:
                # Nobody needs the state after its last child, which may take it over.
                open_histories.pop()
                if not edges:
                    continue
                action, probability = edges[0]
                state.apply_action(action)
            number = len(self._parent)
            edges = self._visit(state, history, action, probability)
            if edges:
                open_histories.append((state, number, edges))
            if number % 1024 == 0:
                advance(1024)

    def _visit(self, state: pyspiel.State, parent: int, action: int, probability: float) -> list[tuple[int, float]]:
        """Records a history and returns its edges, (action, chance probability), the first one last."""
        if len(self._parent) >= self._max_histories:
            raise ValueError(
                f"{self._game} has more than max_histories={self._max_histories} histories "
                f"(counted {len(self._parent) + 1} so far); raise the limit or choose smaller game parameters"
            )
        actor = state.current_player()
        infostate = NO_INFOSTATE
        if 0 <= actor < self._game.num_players():
            infostate, actions = self._visit_decision(state, actor)
            edges = [(legal_action, 1.0) for legal_action in reversed(actions)]
        elif actor == CHANCE:
            edges = self._visit_chance(state)
        else:
            self._visit_end(state, actor)
            edges = []
        self._record(parent, action, actor, infostate, probability)
        return edges

    def _record(self, parent: int, action: int, actor: int, infostate: int, probability: float) -> None:
        self._parent.append(parent)
        self._action.append(action)
        self._actor.append(actor)
        self._infostate.append(infostate)
        self._chance_probability.append(probability)

    def _visit_end(self, state: pyspiel.State, actor: int) -> None:
        if actor != TERMINAL:
            raise ValueError(
                f"{_at(state)} current_player() is {actor}, neither a player, chance nor the end of the game; convert "
                "simultaneous moves with pyspiel.convert_to_turn_based(game)"
            )
        self._terminal.append(len(self._parent))
        returns = state.returns()
        try:
            self._returns.extend(returns)
        except TypeError as error:
            raise ValueError(f"{_at(state)} returns() are {returns!r}, not a list of numbers") from error
        if len(self._returns) != len(self._terminal) * self._game.num_players():
            raise ValueError(f"{_at(state)} returns() are {returns!r}, not one number for each player")

    def _visit_chance(self, state: pyspiel.State) -> list[tuple[int, float]]:
        outcomes = state.chance_outcomes()
        if not outcomes:
            raise ValueError(f"{_at(state)} chance is to move but there are no chance outcomes; mend chance_outcomes()")
        total = math.fsum(probability for _, probability in outcomes)
        if not abs(total - 1) <= _CHANCE_SUM_TOLERANCE or min(probability for _, probability in outcomes) < 0:
            raise ValueError(
                f"{_at(state)} the chance outcomes {outcomes} sum to {total} and are not a probability distribution; mend "
                "chance_outcomes() of the game"
            )
        return outcomes[::-1]

    def _visit_decision(self, state: pyspiel.State, player: int) -> tuple[int, list[int]]:
        """Returns the infostate of a decision history, a new one where needed, and its legal actions."""
        try:
            key = state.information_state_string()
        except (pyspiel.SpielError, NotImplementedError) as error:
            raise no_information_states(self._game, error) from error
        actions = state.legal_actions()
        infostate = self._infostate_of_key[player].get(key)
        if infostate is None:
            self._check_new_infostate(state, player, key, actions)
            infostate = len(self._legal_actions)
            self._infostate_of_key[player][key] = infostate
            self._infostate_player.append(player)
            self._legal_actions.append(actions)
        elif self._legal_actions[infostate] != actions:
            raise ValueError(
                f"{_at(state)} infostate {key!r} of player {player} has the legal actions {actions} here, but "
                f"{self._legal_actions[infostate]} at another history; information_state_string must tell them apart"
            )
        return infostate, actions

    def _check_new_infostate(self, state: pyspiel.State, player: int, key: str, actions: list[int]) -> None:
        # A string that changes makes a new infostate each time, so asking twice here is asking often enough.
        if state.information_state_string() != key:
            raise ValueError(
                f"{_at(state)} information_state_string changes between two calls; it must be a function of the history"
            )
        if len(set(actions)) < len(actions):
            raise ValueError(f"{_at(state)} player {player} has the legal actions {actions}, one of them twice")
        if not actions:
            raise ValueError(
                f"{_at(state)} player {player} is to move but has no legal actions; choose other game parameters, or let the "
                "game skip the player or end"
            )

    def _finish(self) -> GameTree:
        num_players = self._game.num_players()
        keys = [""] * len(self._legal_actions)
        for infostate_of_key in self._infostate_of_key:
            for key, infostate in infostate_of_key.items():
                keys[infostate] = key
        tree = GameTree(
            game=self._game,
            roots=self._roots,
            parent=frozen(self._parent, np.int32),
            action=frozen(self._action, np.int64),
            actor=frozen(self._actor, np.int8),
            infostate=frozen(self._infostate, np.int32),
            chance_probability=frozen(self._chance_probability, np.float64),
            terminal=frozen(self._terminal, np.int32),
            returns=frozen(self._returns, np.float64).reshape(-1, num_players),
            infostate_player=frozen(self._infostate_player, np.int8),
            infostate_keys=tuple(keys),
            legal_action_start=frozen(np.cumsum([0, *map(len, self._legal_actions)]), np.int32),
            legal_actions=frozen([action for actions in self._legal_actions for action in actions], np.int64),
        )
        _check_returns(tree)
        return tree


def _at(state: pyspiel.State) -> str:
    return f"{state.get_game()}, history {state.history()}:"


def _check_not_cut(tree: GameTree) -> None:
    below = set(zip(tree.infostate_player.tolist(), tree.infostate_keys, strict=True))
    cut = infostates_before(tree.game, tree.roots) & below
    if cut:
        player, key = min(cut)
        raise ValueError(
            f"{tree.game}: infostate {key!r} of player {player} lies both before the roots of the sub-game and below them, but "
            "has one policy; start from its first histories instead, or after them"
        )


def _check_returns(tree: GameTree) -> None:
    bad = np.flatnonzero(~(np.abs(tree.returns) <= _LARGEST_RETURN).all(axis=1))
    if len(bad):
        history, returns = list(tree.history_actions(tree.terminal[bad[0]])), tree.returns[bad[0]].tolist()
        raise ValueError(
            f"{tree.game}, history {history}: returns() are {returns}, not finite numbers up to {_LARGEST_RETURN:g}"
        )
