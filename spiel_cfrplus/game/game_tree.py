"""Walks a `pyspiel.Game` once, or what is below some of its states, and keeps the tree as flat arrays.

Only this module, `tree_walk` and `roots` touch `pyspiel.State`. Everything that iterates works on arrays derived from a
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

import dataclasses
import functools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen, sealed
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus._utils.progress import progress_bar
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.parallel_walk import walk_whole_game
from spiel_cfrplus.game.subgames import History, checked_roots, infostates_before, replay, root_distribution
from spiel_cfrplus.game.walk import CHANCE, TERMINAL, WalkRecord, walk_game
from spiel_cfrplus.game.walk_limits import WalkLimits, memory_errors_name
from spiel_cfrplus.kernels import tree as tree_kernels

NO_PARENT = -1
NO_ACTION = -1
NO_INFOSTATE = -1

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
      action: int32 (H,), or int64 where ids do not fit: the action that leads here from the parent; `NO_ACTION` at the root.
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
    def from_game(
        cls,
        game: pyspiel.Game,
        *,
        processes: int = 1,
        max_histories: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> GameTree:
        """Walks the tree of `game`, with one state alive for each ply of the current path.

        Args:
          game: any sequential game with explicit or no chance that has information-state strings.
          processes: how many share the walk, which changes nothing else; more than 1 for games that OpenSpiel can load back by
            their string and that are part of OpenSpiel's own library.
          max_histories: refuse trees with more histories than this.
          time_limit: stop the walk after about this many seconds; looked at every thousand histories.
          progress: show a progress bar on standard error, if that is a terminal.

        Warns:
          LargeGameWarning: the walk has met a million histories, and the game will probably not fit into memory.

        Raises:
          MemoryError: memory ran out.
          TimeoutError: the walk took longer than `time_limit`.
          ValueError: the game is simultaneous, mean-field or has sampled chance; has no information-state strings, or strings
            that change between two calls; has histories of one infostate with different legal actions, a decision without
            legal actions, chance probabilities that are not a distribution, or non-finite returns; or is larger than
            `max_histories`.
        """
        limits = WalkLimits.starting_now(max_histories, time_limit)
        check_game(game)
        record = walk_whole_game(game, processes=processes, limits=limits, progress=progress)
        return cls.from_record(game, ((),), record)

    @classmethod
    def from_record(cls, game: pyspiel.Game, roots: tuple[History, ...], record: WalkRecord) -> GameTree:
        """Derives the tree from what a walk has met.

        Raises:
          MemoryError: memory ran out.
          ValueError: non-finite returns.
        """
        with memory_errors_name(lambda: f"{game}, a tree of {len(record.nodes)} histories"):
            tree = cls._laid_out(game, roots, record)
        _check_returns(tree)
        return tree

    @classmethod
    def _laid_out(cls, game: pyspiel.Game, roots: tuple[History, ...], record: WalkRecord) -> GameTree:
        """The tree of a walk, returns unchecked.

        What leads to a history is an edge: one of the legal actions of an infostate or, numbered after all of these, one of the
        outcomes of a chance history.
        """
        nodes = record.nodes
        actor = nodes.astype(np.int8)
        actor[nodes >= 0] = record.infostate_player[nodes[nodes >= 0]]
        edge_start = np.cumsum(np.concatenate([[0], record.num_legal_actions, record.num_outcomes]), dtype=np.int32)
        edge_action = _narrow(np.concatenate([record.legal_actions, record.outcomes]))
        edge_probability = np.concatenate([np.ones(len(record.legal_actions)), record.outcome_probabilities])
        group = np.where(actor == TERMINAL, np.int32(-1), nodes)
        group[actor == CHANCE] = len(record.infostate_player) + np.arange(len(record.num_outcomes))

        parent = np.full(len(nodes), NO_PARENT, np.int32)
        action = np.full(len(nodes), NO_ACTION, edge_action.dtype)
        chance_probability = np.ones(len(nodes))
        tree_kernels.link_parents(
            group, edge_start, edge_action, edge_probability, np.empty_like(group), parent, action, chance_probability
        )
        del group
        return cls(
            game=game,
            roots=roots,
            parent=sealed(parent),
            action=sealed(action),
            actor=sealed(actor),
            infostate=sealed(np.maximum(nodes, NO_INFOSTATE)),
            chance_probability=sealed(chance_probability),
            terminal=frozen(np.flatnonzero(actor == TERMINAL), np.int32),
            returns=sealed(record.returns),
            infostate_player=sealed(record.infostate_player),
            infostate_keys=record.infostate_keys,
            legal_action_start=frozen(edge_start[: len(record.infostate_player) + 1], np.int32),
            legal_actions=sealed(record.legal_actions),
        )

    @classmethod
    def from_states(
        cls,
        states: pyspiel.State | Sequence[pyspiel.State],
        reach: npt.ArrayLike | None = None,
        *,
        max_histories: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> GameTree:
        """Walks what is below some states of a game; the states themselves are left as they are.

        Args:
          states: one state, or the k roots of a sub-game.
          reach: every player's reach of each, see `roots.root_distribution`.
          max_histories, time_limit, progress: as for `from_game`.

        Raises:
          TypeError, ValueError: no states to start from, or no reach, see `roots`; or as for `from_game`.
          MemoryError, TimeoutError: as for `from_game`.
          ValueError: an infostate lies before a root as well as below one.
        """
        limits = WalkLimits.starting_now(max_histories, time_limit)
        game, roots = checked_roots(states)
        check_game(game)
        probabilities = root_distribution(game, roots, reach).tolist()
        with progress_bar(progress, unit="histories") as advance:
            record = walk_game(game, roots, probabilities, limits=limits, advance=advance)
        tree = cls.from_record(game, roots, record)
        _check_not_cut(tree)
        return tree

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles, unless OpenSpiel could not make the same game again from its pickle.

        Raises:
          ValueError: it could not.
        """
        if not self.can_be_pickled:
            raise ValueError(
                f"{self.game} cannot be pickled: OpenSpiel cannot load it back by its string. Pickle what was computed "
                "instead, such as the arrays of a policy; spiel_cfrplus.CFRSolver, CFRPlusSolver and their relatives can be "
                "saved with solver.save(path) and loaded with game="
            )
        return super().__reduce__()

    @property
    def can_be_pickled(self) -> bool:
        """Whether OpenSpiel could make the same game again from its pickle."""
        try:
            with silent_stderr():
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
        tree_kernels.add_to_parents(self.parent, sizes)
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


def _narrow(actions: np.ndarray) -> np.ndarray:
    """As int32 where all of them fit."""
    fit = len(actions) == 0 or (actions.min() >= np.iinfo(np.int32).min and actions.max() <= np.iinfo(np.int32).max)
    return actions.astype(np.int32) if fit else actions


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
