"""States of a game tree that are replayed when they are asked for, for games too deep to keep one for each infostate.

A `pyspiel.State` holds its history, so that the states of all infostates of a game whose paths have D plies take memory of the
order of D for each. `TabularPolicy` is built from such states and keeps them. In a deep game it is built from `RowState`s,
which answer from the tree what is asked to build it, and keeps `ReplayedStates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import pyspiel

from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.subgames import replay
from spiel_cfrplus.kernels import tree as tree_kernels

# Actions in the histories of all states that are kept: some 200 MB.
_MOST_ACTIONS = 10_000_000


def are_deep(tree: GameTree, histories: np.ndarray) -> bool:
    """Whether states at these histories, kept together, would hold too many actions."""
    depth = np.ones(tree.num_histories, np.int64)
    tree_kernels.add_parents(tree.parent, depth)
    return int(depth[histories].sum()) > _MOST_ACTIONS


class ReplayedStates(Sequence[pyspiel.State]):
    """The states at some histories of a tree; each is replayed anew whenever it is asked for, and the caller's to keep."""

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
    """Stands for the state at one history of an infostate while a `TabularPolicy` is built.

    Answers from the tree what a game with information-state strings is asked for, everything else from a replayed state.

    Attributes:
      history: the number of the history.
    """

    def __init__(self, tree: GameTree, infostate: int, history: int, rank: int):
        """Takes the infostate, its history, and the place of that in the order of `history_str()`."""
        self.history = history
        self._tree = tree
        self._infostate = infostate
        self._rank = rank

    def history_str(self) -> str:
        """A text that sorts as that of the history does."""
        return f"{self._rank:020d}"

    def is_simultaneous_node(self) -> bool:
        """No; trees are sequential."""
        return False

    def current_player(self) -> int:
        """Whose infostate it is."""
        return int(self._tree.infostate_player[self._infostate])

    def information_state_string(self, player: int) -> str:
        """The key of the infostate."""
        return self._tree.infostate_keys[self._infostate]

    def legal_actions_mask(self, player: int) -> list[int]:
        """1 for each legal action, for each action of the game."""
        mask = np.zeros(self._tree.game.num_distinct_actions(), np.int64)
        mask[self._tree.legal_actions[slice(*self._tree.legal_action_start[self._infostate : self._infostate + 2])]] = 1
        return mask.tolist()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(replay(self._tree.game, self._tree.history_actions(self.history)), name)


def row_states(tree: GameTree, histories: np.ndarray, ranks: np.ndarray) -> list[RowState]:
    """One for each infostate.

    Args:
      tree: the tree.
      histories: int64 (I,), the history that stands for each infostate.
      ranks: int64 (H,), the place of each history in the order of `history_str()`.
    """
    pairs = zip(histories.tolist(), ranks[histories].tolist(), strict=True)
    return [RowState(tree, infostate, history, rank) for infostate, (history, rank) in enumerate(pairs)]
