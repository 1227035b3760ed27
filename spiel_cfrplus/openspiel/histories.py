"""A game tree with infostates keyed as in OpenSpiel's CFR solvers, and the state of a solver on it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.walk import CHANCE, TERMINAL
from spiel_cfrplus.kernels import histories as history_kernels
from spiel_cfrplus.kernels.layouts import INDEX


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Histories(Immutable):
    """A tree in the layout of the kernels, with infostates keyed by the string only.

    Attributes:
      tree: the game tree. Infostates of two players with the same string are merged.

    Raises:
      ValueError: two players share a string but have different legal actions.
    """

    tree: GameTree

    def _summary(self) -> str:
        return str(self.tree)

    def __post_init__(self) -> None:
        for infostate, pooled in enumerate(self.pooled.tolist()):
            if self._legal_actions(infostate) != self._legal_actions(self.representative[pooled]):
                key = self.tree.infostate_keys[infostate]
                raise ValueError(
                    f"{self.tree.game}: two players with the information-state string {key!r} have different actions"
                )

    def _legal_actions(self, infostate: int) -> list[int]:
        start, stop = self.tree.legal_action_start[infostate : infostate + 2]
        actions: list[int] = self.tree.legal_actions[start:stop].tolist()
        return actions

    @functools.cached_property
    def infostate_of_key(self) -> dict[str, int]:
        """The number of each information-state string, in the order of the walk."""
        return {key: number for number, key in enumerate(dict.fromkeys(self.tree.infostate_keys))}

    @functools.cached_property
    def pooled(self) -> np.ndarray:
        """int64 (I,), the merged infostate of each infostate of the tree."""
        return frozen([self.infostate_of_key[key] for key in self.tree.infostate_keys], np.int64)

    @functools.cached_property
    def representative(self) -> np.ndarray:
        """int64 (J,), the first infostate of the tree with each string."""
        return frozen(np.unique(self.pooled, return_index=True)[1], np.int64)

    @functools.cached_property
    def actions(self) -> np.ndarray:
        """int64 (A,), the action id of each table entry."""
        return frozen([action for infostate in self.representative for action in self._legal_actions(infostate)], np.int64)

    @functools.cached_property
    def num_actions(self) -> np.ndarray:
        """int64 (J,), the number of legal actions of each infostate."""
        return frozen(np.diff(self.tree.legal_action_start)[self.representative], np.int64)

    @functools.cached_property
    def infostate_of_entry(self) -> np.ndarray:
        """int64 (A,), the infostate of each table entry."""
        return frozen(np.repeat(np.arange(len(self.representative)), self.num_actions), np.int64)

    @functools.cached_property
    def arrays(self) -> history_kernels.HistoryArrays:
        """The layout that kernels take."""
        tree = self.tree
        mover = np.array(tree.actor)
        mover[tree.actor == CHANCE] = tree.num_players
        mover[tree.actor == TERMINAL] = tree.num_players + 1
        table_start = np.concatenate([[0], np.cumsum(self.num_actions)])
        first_table_index = np.zeros(tree.num_histories, np.int64)
        decisions, chances = tree.infostate != NO_INFOSTATE, tree.actor == CHANCE
        first_table_index[decisions] = table_start[self.pooled[tree.infostate[decisions]]]
        num_outcomes = np.bincount(tree.parent[1:], minlength=tree.num_histories)[chances]
        first_table_index[chances] = table_start[-1] + np.cumsum(num_outcomes) - num_outcomes
        return history_kernels.HistoryArrays(
            mover=frozen(mover, np.uint8),
            first_table_index=frozen(first_table_index, INDEX),
            subtree_end=frozen(tree.subtree_end, INDEX),
            terminal=frozen(tree.terminal, INDEX),
            returns=frozen(tree.returns.T, np.float64),
            table_start=frozen(table_start, INDEX),
            owner=frozen(tree.infostate_player[self.representative], np.uint8),
        )

    def new_learner(self) -> history_kernels.HistoryState:
        """The initial state of a solver: uniform strategies."""
        tree = self.tree
        after_chance = np.flatnonzero(tree.actor[tree.parent[1:]] == CHANCE) + 1
        outcomes = after_chance[np.argsort(tree.parent[after_chance], kind="stable")]
        return history_kernels.HistoryState(
            cumulative_regrets=np.zeros(len(self.actions)),
            cumulative_policy=np.zeros(len(self.actions)),
            probabilities=np.concatenate(
                [np.repeat(1 / self.num_actions, self.num_actions), tree.chance_probability[outcomes]]
            ),
            reach=np.empty((tree.num_histories, tree.num_players + 1)),
            value=np.empty(tree.num_histories),
            iteration=np.zeros(1, np.int64),
        )
