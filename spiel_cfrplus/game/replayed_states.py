"""States of a game tree that are replayed on access, for games too deep to store one state per infostate.

A `pyspiel.State` stores its history, so a state at depth D takes memory proportional to D. `TabularPolicy` is built from one
state per infostate and stores these states. In a deep game it is built from `RowState`s, which read most answers from the tree,
and stores `ReplayedStates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import pyspiel

from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.subgames import replay
from spiel_cfrplus.kernels import tree as tree_kernels

# In the histories of all stored states; they take about 200 MB.
_MAX_ACTIONS = 10_000_000


def are_deep(tree: GameTree, histories: np.ndarray) -> bool:
    """Whether the states at these histories together would store more than `_MAX_ACTIONS` actions."""
    depth = np.ones(tree.num_histories, np.int64)
    tree_kernels.add_parents(tree.parent, depth)
    return int(depth[histories].sum()) > _MAX_ACTIONS


class ReplayedStates(Sequence[pyspiel.State]):
    """The states at some histories of a tree; each access replays a new state, which the caller may modify."""

    def __init__(self, tree: GameTree, histories: np.ndarray):
        """Takes the histories, int64 (k,), in the order of the sequence."""
        self._tree = tree
        self._histories = histories

    def __len__(self) -> int:
        return len(self._histories)

    @overload
    def __getitem__(self, index: int) -> pyspiel.State: ...

    @overload
    def __getitem__(self, index: slice) -> ReplayedStates: ...

    def __getitem__(self, index: int | slice) -> pyspiel.State | ReplayedStates:
        if isinstance(index, slice):
            return ReplayedStates(self._tree, self._histories[index])
        return replay(self._tree.game, self._tree.history_actions(int(self._histories[index])))


class RowState:
    """A substitute for the state at one history of an infostate, used while a `TabularPolicy` is built.

    The methods that `TabularPolicy` calls for games with information-state strings read the tree. Every other attribute is
    that of a replayed state.

    Attributes:
      history: the number of the history.
    """

    def __init__(self, tree: GameTree, infostate: int, history: int, rank: int):
        """Takes the infostate, its history, and the rank of the history in the order of `history_str()`."""
        self.history = history
        self._tree = tree
        self._infostate = infostate
        self._rank = rank

    def history_str(self) -> str:
        """A string that has the same rank as `history_str()` of the state."""
        return f"{self._rank:020d}"

    def is_simultaneous_node(self) -> bool:
        """False, because game trees are sequential."""
        return False

    def current_player(self) -> int:
        """The player who acts at the infostate."""
        return int(self._tree.infostate_player[self._infostate])

    def information_state_string(self, player: int) -> str:
        """The key of the infostate."""
        return self._tree.infostate_keys[self._infostate]

    def legal_actions_mask(self, player: int) -> list[int]:
        """One entry per action of the game: 1 if it is legal, else 0."""
        mask = np.zeros(self._tree.game.num_distinct_actions(), np.int64)
        mask[self._tree.legal_actions[slice(*self._tree.legal_action_start[self._infostate : self._infostate + 2])]] = 1
        entries: list[int] = mask.tolist()
        return entries

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(replay(self._tree.game, self._tree.history_actions(self.history)), name)


def row_states(tree: GameTree, histories: np.ndarray, ranks: np.ndarray) -> list[RowState]:
    """One `RowState` per infostate.

    Args:
      tree: the tree.
      histories: int64 (I,), the history that represents each infostate.
      ranks: int64 (H,), the rank of each history in the order of `history_str()`.
    """
    pairs = zip(histories.tolist(), ranks[histories].tolist(), strict=True)
    return [RowState(tree, infostate, history, rank) for infostate, (history, rank) in enumerate(pairs)]
