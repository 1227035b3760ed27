"""The tree of a game or subgame as flat arrays, built by one walk over the `pyspiel` states.

Solvers do not use `pyspiel.State`; they work on arrays derived from a `GameTree`.

Terms:

* A *history* is a sequence of actions from the root, chance included. Histories are numbered in preorder: a parent precedes
  its children, and children are in the order of `legal_actions()` or `chance_outcomes()`.
* An *infostate* is a set of histories that one player cannot distinguish, identified by a pair (player, information-state
  string). Infostates are numbered in the order in which the walk first visits them. The same string for two players identifies
  two infostates.

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
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen, sealed
from spiel_cfrplus._utils.progress import progress_bar
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.parallel_walk import walk_whole_game
from spiel_cfrplus.game.portable_games import Recipe, recipe, required_recipe
from spiel_cfrplus.game.subgames import History, checked_roots, infostates_before, replay, root_distribution
from spiel_cfrplus.game.walk import CHANCE, TERMINAL, WalkRecord
from spiel_cfrplus.game.walk_choice import checked_walk, walk_in_one_process
from spiel_cfrplus.game.walk_limits import WalkLimits, memory_errors_name
from spiel_cfrplus.kernels import tree as tree_kernels

NO_PARENT = -1
NO_ACTION = -1
NO_INFOSTATE = -1

# Regrets are sums of millions of returns; the bound keeps them finite in float64, whose largest value is 1.8e308.
_MAX_RETURN = 1e300


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GameTree(Immutable):
    """The tree of a game as read-only arrays: H histories, Z terminal histories, I infostates, n players.

    Attributes:
      game: the game.
      roots: the histories of the root states, as tuples of action ids; the empty history for a whole game. If there are
        several, history 0 is a chance move among them, and its actions are the positions in `roots`.
      parent: int32 (H,), the parent history; `NO_PARENT` at the root.
      action: int32 (H,), or int64 if some id does not fit: the action taken at the parent; `NO_ACTION` at the root.
      actor: int8 (H,), the player to move, `CHANCE` or `TERMINAL`.
      infostate: int32 (H,), the infostate of a decision history, else `NO_INFOSTATE`.
      chance_probability: float64 (H,), probability of the chance move taken at the parent; 1 if the parent is not chance.
        (A locked player move is a chance move; see `locking`.)
      terminal: int32 (Z,), the terminal histories, ascending.
      returns: float64 (Z, n), `State.returns()` of each terminal history, in game units.
      infostate_player: int8 (I,), the player who acts at each infostate.
      infostate_keys: tuple of I information-state strings.
      legal_action_start: int32 (I + 1,), the legal actions of infostate i are `legal_actions[legal_action_start[i] :
        legal_action_start[i + 1]]`.
      legal_actions: int64, action ids in the order of `State.legal_actions()`.
    """

    game: pyspiel.Game
    roots: tuple[History, ...]
    parent: npt.NDArray[np.int32]
    action: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    actor: npt.NDArray[np.int8]
    infostate: npt.NDArray[np.int32]
    chance_probability: npt.NDArray[np.float64]
    terminal: npt.NDArray[np.int32]
    returns: npt.NDArray[np.float64]
    infostate_player: npt.NDArray[np.int8]
    infostate_keys: tuple[str, ...]
    legal_action_start: npt.NDArray[np.int32]
    legal_actions: npt.NDArray[np.int64]

    def _summary(self) -> str:
        return f"{self.game}{self.below_roots}, {self.num_histories} histories, {self.num_infostates} infostates"

    @property
    def below_roots(self) -> str:
        """The roots of a subgame as part of a summary; empty for a whole game."""
        if self.roots == ((),):
            return ""
        first = f" below {list(self.roots[0])}"
        return first if len(self.roots) == 1 else f"{first} and {len(self.roots) - 1} others"

    @classmethod
    def from_game(
        cls,
        game: pyspiel.Game,
        *,
        processes: int = 1,
        walk: str = "auto",
        max_histories: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> GameTree:
        """Walks the tree of `game`; keeps one state in memory for each ply of the current path.

        Args:
          game: a sequential game that has information-state strings and either no chance moves or explicit ones.
          processes: number of processes for the walk, or of threads if it is native; the result does not depend on it. More
            than 1 requires a game that is part of the OpenSpiel library and that OpenSpiel can load from its string.
          walk: "native" is the walk in C++, which is compiled at its first use and requires such a game, Linux and a C++
            compiler; "python" is the walk in Python; "auto" is native for games of 65,536 histories or more if it has been
            compiled before, and of a million or more if it can be compiled. The result does not depend on it.
          max_histories: the largest number of histories; a larger tree raises an error.
          time_limit: stop the walk after about this many seconds; checked about every thousand histories.
          progress: show a progress bar on standard error, if that is a terminal.

        Warns:
          LargeGameWarning: the walk has visited a million histories, and the game will probably not fit into memory.

        Raises:
          MemoryError: memory ran out.
          TimeoutError: the walk took longer than `time_limit`.
          ValueError: the game is simultaneous or mean-field, or has sampled chance; it has no information-state strings, or
            strings that differ between two calls; it has different legal actions at histories of one infostate, a decision
            without legal actions, chance probabilities that are not a distribution, or non-finite returns; or it has more than
            `max_histories` histories.
        """
        limits = WalkLimits.starting_now(max_histories, time_limit)
        check_game(game)
        record = walk_whole_game(game, processes=processes, walk=walk, limits=limits, progress=progress)
        return cls.from_record(game, ((),), record)

    @classmethod
    def from_record(cls, game: pyspiel.Game, roots: tuple[History, ...], record: WalkRecord) -> GameTree:
        """Builds the tree from the record of a walk.

        Raises:
          MemoryError: memory ran out.
          ValueError: non-finite returns.
        """
        with memory_errors_name(lambda: f"{game}, a tree of {len(record.nodes)} histories"):
            tree = cls._from_unchecked_record(game, roots, record)
        _check_returns(tree)
        return tree

    @classmethod
    def _from_unchecked_record(cls, game: pyspiel.Game, roots: tuple[History, ...], record: WalkRecord) -> GameTree:
        """Builds the tree without checking the returns.

        An edge is a legal action of an infostate or an outcome of a chance history. Edges of infostates are numbered first,
        followed by those of chance histories.
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
        walk: str = "auto",
        max_histories: int | None = None,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> GameTree:
        """Walks the subgame that starts at some states of a game; the states are not modified.

        Args:
          states: one state, or the k roots of a subgame.
          reach: each player's reach of each root, see `subgames.root_distribution`.
          walk, max_histories, time_limit, progress: as for `from_game`.

        Raises:
          TypeError, ValueError: invalid states or reach, see `subgames`; or as for `from_game`.
          MemoryError, TimeoutError: as for `from_game`.
          ValueError: an infostate contains histories both before a root and below one.
        """
        limits, walk = WalkLimits.starting_now(max_histories, time_limit), checked_walk(walk)
        game, roots = checked_roots(states)
        check_game(game)
        probabilities = root_distribution(game, roots, reach).tolist()
        with progress_bar(progress, unit="histories") as advance:
            record = walk_in_one_process(game, roots, probabilities, walk=walk, limits=limits, advance=advance)
        tree = cls.from_record(game, roots, record)
        _check_not_cut(tree)
        return tree

    def __reduce__(self) -> tuple[Any, ...]:
        """Supports pickling of games that another process can make, see `portable_games`.

        Raises:
          ValueError: it cannot.
        """
        restore, (cls, values) = super().__reduce__()
        return _restore_with_game, (required_recipe(self.game), restore, cls, values[1:])

    @property
    def can_be_pickled(self) -> bool:
        """Whether another process can make the game."""
        return recipe(self.game) is not None

    @property
    def num_players(self) -> int:
        return int(self.returns.shape[1])

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
    def subtree_end(self) -> npt.NDArray[np.int64]:
        """int64 (H,), one past the last history of each subtree: the subtree of h is `h : subtree_end[h]`."""
        sizes = np.ones(self.num_histories, np.int64)
        tree_kernels.add_to_parents(self.parent, sizes)
        return frozen(np.arange(self.num_histories) + sizes, np.int64)

    @functools.cached_property
    def first_history(self) -> npt.NDArray[np.int64]:
        """int64 (I,), the first history of each infostate."""
        decisions = np.flatnonzero(self.infostate != NO_INFOSTATE)
        return decisions[np.unique(self.infostate[decisions], return_index=True)[1]]

    def history_actions(self, history: int) -> tuple[int, ...]:
        """The action ids on the path from the start of the game to `history`, chance moves included."""
        actions = []
        while self.parent[history] != NO_PARENT:
            actions.append(int(self.action[history]))
            history = self.parent[history]
        if len(self.roots) == 1:
            return (*self.roots[0], *reversed(actions))
        return (*self.roots[actions.pop()], *reversed(actions)) if actions else ()

    def states(self, histories: np.ndarray) -> Iterator[tuple[int, pyspiel.State]]:
        """Yields `(history, state)` for ascending `histories`; replays each shared prefix once.

        The states are not modified after they are yielded.
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
            for node_left in path[keep:]:
                del depth_on_path[node_left]
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


def _restore_with_game(found: Recipe, restore: Callable[..., GameTree], cls: type, values: list[Any]) -> GameTree:
    make, arguments = found
    return restore(cls, [make(*arguments), *values])


def _narrow(actions: np.ndarray) -> np.ndarray:
    """Converts to int32 if all values fit."""
    fit = len(actions) == 0 or (actions.min() >= np.iinfo(np.int32).min and actions.max() <= np.iinfo(np.int32).max)
    return actions.astype(np.int32) if fit else actions


def _check_not_cut(tree: GameTree) -> None:
    below = set(zip(tree.infostate_player.tolist(), tree.infostate_keys, strict=True))
    cut = infostates_before(tree.game, tree.roots) & below
    if cut:
        player, key = min(cut)
        raise ValueError(
            f"{tree.game}: infostate {key!r} of player {player} contains histories both before the roots of the subgame and "
            "below them, but has one policy; start the subgame at its first histories, or after them"
        )


def _check_returns(tree: GameTree) -> None:
    bad = np.flatnonzero(~(np.abs(tree.returns) <= _MAX_RETURN).all(axis=1))
    if len(bad):
        history, returns = list(tree.history_actions(tree.terminal[bad[0]])), tree.returns[bad[0]].tolist()
        raise ValueError(
            f"{tree.game}, history {history}: returns() is {returns}, not finite numbers of magnitude at most {_MAX_RETURN:g}"
        )
