"""Partition of a game among threads, with the same float64 results as one thread.

The updates at an infostate and below it are independent of those elsewhere, given the reach and the values at the infostate.
So each treeplex is cut near its root into a *top tree* above the cut and *subtrees* below it. The subtrees are assigned to
*parts* of about equal work, one per thread. Top trees and parts are called *blocks*; each block is stored as a separate player:

    top tree of player 0, part 1, ..., part K, top tree of player 1, part 1, ...

so that the kernels of CFR process a block in the same way as a player. In a top tree each subtree is represented by a *boundary
infostate*, an infostate with one action. Its sequence is the parent sequence of the first infostate of the subtree: the value
of the subtree is added to the boundary infostate, and the reach of the boundary infostate is the reach of the subtree. The root
of a part, which the layout requires for every player, is not used.

The payoffs of a block are those at its own sequences. A row of payoffs that contains sequences of several blocks is divided,
and each of these blocks must process the row. To make this rare, subtrees with common rows, such as those after one sequence of
bids with any die or hand, form a *group*, which is assigned to one part unless it is too large.

The order of all sums is preserved: rows of payoffs keep their order, and so do the infostates and boundary infostates that
follow a sequence.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> print(partition_game(compile_game(pyspiel.load_game("leduc_poker")), 2))
2 parts, the largest with 48.3 % of the work; 3.5 % in common
"""

from __future__ import annotations

import dataclasses
import heapq

import numpy as np

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import layouts
from spiel_cfrplus.kernels import parallel as parallel_kernels
from spiel_cfrplus.kernels import tree as tree_kernels
from spiel_cfrplus.solving.symmetry import Reduction

# A subtree that can be cut has at most 1 / 16 of the work of a part, and a group that is not divided at most half of it.
# Smaller subtrees make the parts more equal and divide fewer rows, but make the top trees larger.
_SUBTREES_IN_PART = 16
# The work of a payoff is 1. A sequence is processed in several passes, a payoff in one.
_WORK_OF_SEQUENCE = 10


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Partition(Immutable):
    """A game or a reduced game in blocks, on which kernels iterate with several threads; read-only.

    Attributes:
      num_parts: parts per player; some are empty if a treeplex cannot be split into as many.
      treeplex_arrays, payoff_arrays: the game, with n (num_parts + 1) blocks as players. Block p (num_parts + 1) is the top
        tree of player p, followed by its parts.
      number: int64 (S,), the position of each sequence of the game in the partition.
      infostate_number: int64 (J,), the position of each infostate of the game in the partition.
      work: float64 (n, num_parts + 1), the approximate number of steps of an iteration in each block.
    """

    num_parts: int
    treeplex_arrays: layouts.TreeplexArrays
    payoff_arrays: layouts.PayoffArrays
    number: np.ndarray
    infostate_number: np.ndarray
    work: np.ndarray

    def __str__(self) -> str:
        parts = 100 * self.work[:, 1:].sum(axis=0) / self.work.sum()
        common = 100 - parts.sum()
        return f"{self.num_parts} parts, the largest with {parts.max():.1f} % of the work; {common:.1f} % in common"

    def _summary(self) -> str:
        return str(self)

    @property
    def top_trees(self) -> np.ndarray:
        """int64 (n,), the block of each player's top tree."""
        return np.arange(len(self.work)) * (self.num_parts + 1)


def partition_game(played: SequenceFormGame | Reduction, num_parts: int) -> Partition:
    """Divides a game into top trees and parts of about equal work.

    Args:
      played: a game or its reduction.
      num_parts: number of parts per player.
    """
    treeplexes, payoffs = played.treeplex_arrays, played.payoff_arrays
    counts = np.diff(treeplexes.sequence_start).astype(np.int64)
    infostate_of = np.repeat(np.arange(len(counts)), counts)
    parent = infostate_of[treeplexes.parent_sequence]
    paid, row = infostate_of[payoffs.entry_sequence], _row_of_entries(payoffs)
    work = (_WORK_OF_SEQUENCE * counts + np.bincount(paid, minlength=len(counts))).astype(np.float64)
    player = np.repeat(np.arange(len(treeplexes.player_block) - 1), np.diff(treeplexes.player_block))
    part_work = (np.bincount(player, work) / num_parts)[player]
    in_top_tree, subtree = _cut(parent, work, part_work / _SUBTREES_IN_PART)
    group = subtree.copy()
    parallel_kernels.unite_subtrees(payoffs, paid, in_top_tree, group)
    group = _leaders(group)
    unit = np.where(np.bincount(group, work, len(group))[group] <= part_work / 2, group, subtree)
    block = player * (num_parts + 1)
    block[~in_top_tree] += 1 + _assign_parts(player[~in_top_tree], unit[~in_top_tree], work[~in_top_tree], num_parts)
    arrays, number, infostate_number = _partition_treeplexes(treeplexes, parent, in_top_tree, block, num_parts)
    return Partition(
        num_parts=num_parts,
        treeplex_arrays=arrays,
        payoff_arrays=_partition_payoffs(payoffs, block[paid], row, number, len(arrays.player_block) - 1),
        number=number,
        infostate_number=infostate_number,
        work=frozen(np.bincount(block, work, len(arrays.player_block) - 1).reshape(-1, num_parts + 1), np.float64),
    )


def _row_of_entries(payoffs: layouts.PayoffArrays) -> np.ndarray:
    return np.repeat(np.arange(len(payoffs.opponent_sequences)), np.diff(payoffs.entry_start))


def _cut(parent: np.ndarray, work: np.ndarray, max_work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts the treeplexes into top trees and subtrees.

    Args:
      parent: int64 (J,), the parent infostate of each infostate; a root is its own parent.
      work: float64 (J,), the work of each infostate.
      max_work: float64 (J,), the largest work of a subtree.

    Returns:
      bool (J,), whether each infostate is in a top tree; int64 (J,), the first infostate of its subtree, or itself in a top
      tree.
    """
    itself = np.arange(len(parent))
    below = work.copy()
    tree_kernels.add_to_parents(parent, below)
    in_top_tree = ((below > max_work) & (below > work)) | (parent == itself)
    return in_top_tree, _leaders(np.where(in_top_tree | in_top_tree[parent], itself, parent))


def _leaders(above: np.ndarray) -> np.ndarray:
    """The root of each number in the forest that `above` defines, where a root is above itself."""
    while np.any(above != above[above]):
        above = above[above]
    return above


def _assign_parts(player: np.ndarray, unit: np.ndarray, work: np.ndarray, num_parts: int) -> np.ndarray:
    """The part, from 0, of each infostate below the top trees.

    A unit is a group, or a subtree of a group that is divided.
    """
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    size = np.bincount(unit, work)
    part_of = np.empty(len(first), np.int64)
    for one in range(player.max(initial=-1) + 1):
        own = player[first] == one
        part_of[own] = dealt_out(size[own], num_parts)
    return part_of[unit]


def dealt_out(sizes: np.ndarray, num_parts: int) -> np.ndarray:
    """int64 (U,), the part, from 0, to which each of U units is assigned.

    Greedy: in descending order of size, each unit is assigned to the part with the least so far.

    Args:
      sizes: (U,), the sizes of the units.
      num_parts: number of parts.
    """
    loads = [(0.0, part) for part in range(num_parts)]
    part_of = np.empty(len(sizes), np.int64)
    for largest in np.argsort(-sizes, kind="stable").tolist():
        load, part_of[largest] = loads[0]
        heapq.heapreplace(loads, (load + sizes[largest], part_of[largest]))
    return part_of


def _partition_treeplexes(
    treeplexes: layouts.TreeplexArrays, parent: np.ndarray, in_top_tree: np.ndarray, block: np.ndarray, num_parts: int
) -> tuple[layouts.TreeplexArrays, np.ndarray, np.ndarray]:
    """The treeplexes with blocks as players; int64 (S,) and int64 (J,), the new numbers of sequences and of infostates."""
    counts = np.diff(treeplexes.sequence_start)
    tops = np.flatnonzero(~in_top_tree & in_top_tree[parent])
    num_blocks = (len(treeplexes.player_block) - 1) * (num_parts + 1)
    parts = np.flatnonzero(np.arange(num_blocks) % (num_parts + 1))
    # The infostates of the result are sorted by block and, within a block, in the order of the game: roots of parts first, and
    # each boundary infostate at the position of the infostate that it represents.
    blocks = np.concatenate([block, block[parent[tops]], parts])
    order = np.lexsort((np.concatenate([np.arange(len(counts)), tops, np.full(len(parts), -1)]), blocks))
    sizes = np.concatenate([counts, np.ones(len(tops) + len(parts), np.int64)])[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    first = np.empty(len(order), np.int64)
    first[order] = starts[:-1]
    of_infostates, of_boundary, of_roots = np.split(first, [len(counts), len(counts) + len(tops)])
    number = np.repeat(of_infostates - treeplexes.sequence_start[:-1], counts) + np.arange(treeplexes.sequence_start[-1])
    above = number[treeplexes.parent_sequence]
    parents = np.concatenate([above, above[tops], of_roots])
    parents[tops] = of_boundary
    uniform_policy = np.ones(starts[-1])
    if treeplexes.uniform_policy is not None:
        uniform_policy[number] = treeplexes.uniform_policy
    arrays = layouts.TreeplexArrays(
        player_block=frozen(np.searchsorted(blocks[order], np.arange(num_blocks + 1)), layouts.INDEX),
        sequence_start=frozen(starts, layouts.INDEX),
        parent_sequence=frozen(parents[order], layouts.INDEX),
        uniform_policy=None if treeplexes.uniform_policy is None else frozen(uniform_policy, np.float64),
    )
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    return arrays, frozen(number, np.int64), frozen(positions[: len(counts)], np.int64)


def _partition_payoffs(
    payoffs: layouts.PayoffArrays, block: np.ndarray, row: np.ndarray, number: np.ndarray, num_blocks: int
) -> layouts.PayoffArrays:
    """The payoffs with blocks as players, given the block and the row of each entry."""
    order = np.argsort(block, kind="stable")
    block, row = block[order], row[order]
    is_start = np.ones(len(order), bool)
    is_start[1:] = (np.diff(block) != 0) | (np.diff(row) != 0)
    starts = np.flatnonzero(is_start)
    return layouts.PayoffArrays(
        player_block=frozen(np.searchsorted(block[starts], np.arange(num_blocks + 1)), layouts.INDEX),
        opponent_sequences=frozen(number[payoffs.opponent_sequences[row[starts]]], layouts.INDEX),
        entry_start=frozen(np.append(starts, len(order)), layouts.INDEX),
        entry_sequence=frozen(number[payoffs.entry_sequence[order]], layouts.INDEX),
        entry_utility=frozen(payoffs.entry_utility[order], np.float64),
    )
