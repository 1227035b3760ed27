"""A large game divided among threads, which play it side by side to the same doubles as one.

Once a player has come to an infostate, what it learns there and below depends on nothing that it learns elsewhere. So each
treeplex is cut near its root: above the cut is the player's *top tree*, below it *subtrees*, and these are collected in as many
*parts* of equal work as there are threads. Trunks and parts, the *blocks*, are laid out as players of their own:

    top tree of player 0, part 1, ..., part K, top tree of player 1, part 1, ...

so that the kernels of CFR run on a block as they run on a player. In a top tree each subtree is represented by a *boundary
infostate*, an infostate with one action. Its sequence is the parent of the subtree's first infostate: what that is worth
arrives at the boundary infostate, and the boundary infostate's reach is where the subtree starts from. The root that a part
has, as all players do, is not used.

The payoffs of a block are those at its own sequences. A row of payoffs is thus divided as well if several blocks have a share
in it, and each of them must look at the row. To keep that rare, subtrees that meet rows in common, such as those after one line
of bids with any die or hand, form a *group*, which comes to one part unless it is too large.

Nothing that is summed changes its order: not the payoffs of a sequence, as rows stay in order, and not the values of what
follows a sequence, as infostates and boundary infostates do.

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

# A subtree that can be cut further has at most one of so many equal shares of the work of a part; a group that stays together
# half of a part. Smaller subtrees make parts more equal and keep more rows whole, at the price of larger top trees.
_SUBTREES_IN_PART = 16
# A sequence takes part in several passes, a payoff in one.
_WORK_OF_SEQUENCE = 10


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Partition(Immutable):
    """What kernels iterate on instead of a game, or its reduction, to use several threads; read-only.

    Attributes:
      num_parts: of each player; some are empty where a treeplex does not split into as many.
      treeplex_arrays, payoff_arrays: the game, with n (num_parts + 1) blocks as players. Block p (num_parts + 1) is the top
        tree of player p, after which its parts come.
      number: int64 (S,), the place of each sequence of the game here.
      infostate_number: int64 (J,), the place of each infostate.
      work: float64 (n, num_parts + 1), about how many steps an iteration takes in each block.
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
        """The players' top trees among the blocks, int64 (n,)."""
        return np.arange(len(self.work)) * (self.num_parts + 1)


def partition_game(played: SequenceFormGame | Reduction, num_parts: int) -> Partition:
    """Cuts the treeplexes and collects what is below the cut in parts of about the same work.

    Args:
      played: a game, or its reduction.
      num_parts: of each player.
    """
    treeplexes, payoffs = played.treeplex_arrays, played.payoff_arrays
    counts = np.diff(treeplexes.sequence_start).astype(np.int64)
    infostate_of = np.repeat(np.arange(len(counts)), counts)
    parent = infostate_of[treeplexes.parent_sequence]
    paid, row = infostate_of[payoffs.entry_sequence], _row_of_entries(payoffs)
    work = (_WORK_OF_SEQUENCE * counts + np.bincount(paid, minlength=len(counts))).astype(np.float64)
    player = np.repeat(np.arange(len(treeplexes.player_block) - 1), np.diff(treeplexes.player_block))
    share = (np.bincount(player, work) / num_parts)[player]
    in_top_tree, subtree = _cut(parent, work, share / _SUBTREES_IN_PART)
    group = subtree.copy()
    parallel_kernels.unite_subtrees(payoffs, paid, in_top_tree, group)
    group = _leaders(group)
    together = np.where(np.bincount(group, work, len(group))[group] <= share / 2, group, subtree)
    block = player * (num_parts + 1)
    block[~in_top_tree] += 1 + _part(player[~in_top_tree], together[~in_top_tree], work[~in_top_tree], num_parts)
    arrays, number, infostate_number = _lay_out(treeplexes, parent, in_top_tree, block, num_parts)
    return Partition(
        num_parts=num_parts,
        treeplex_arrays=arrays,
        payoff_arrays=_lay_out_payoffs(payoffs, block[paid], row, number, len(arrays.player_block) - 1),
        number=number,
        infostate_number=infostate_number,
        work=frozen(np.bincount(block, work, len(arrays.player_block) - 1).reshape(-1, num_parts + 1), np.float64),
    )


def _row_of_entries(payoffs: layouts.PayoffArrays) -> np.ndarray:
    return np.repeat(np.arange(len(payoffs.opponent_sequences)), np.diff(payoffs.entry_start))


def _cut(parent: np.ndarray, work: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which infostates are in a top tree, bool (J,), and the first one of the subtree that each is in, or itself, int64 (J,).

    Args:
      parent: int64 (J,), the infostate before each; itself for a root.
      work: float64 (J,), of each infostate.
      most: float64 (J,), the work of a subtree that need not be cut.
    """
    itself = np.arange(len(parent))
    below = work.copy()
    tree_kernels.add_to_parents(parent, below)
    in_top_tree = ((below > most) & (below > work)) | (parent == itself)
    return in_top_tree, _leaders(np.where(in_top_tree | in_top_tree[parent], itself, parent))


def _leaders(above: np.ndarray) -> np.ndarray:
    """Where one comes to that goes from each number to that above it for as long as there is another."""
    while np.any(above != above[above]):
        above = above[above]
    return above


def _part(player: np.ndarray, together: np.ndarray, work: np.ndarray, num_parts: int) -> np.ndarray:
    """The part of each infostate below the top trees, from 0: what stays together, heaviest first, comes where least is yet."""
    _, first, unit = np.unique(together, return_index=True, return_inverse=True)
    size = np.bincount(unit, work)
    filled = [[(0.0, part) for part in range(num_parts)] for _ in range(player.max(initial=-1) + 1)]
    part_of = np.empty(len(first), np.int64)
    for heaviest in np.argsort(-size, kind="stable").tolist():
        parts = filled[player[first[heaviest]]]
        load, part_of[heaviest] = parts[0]
        heapq.heapreplace(parts, (load + size[heaviest], part_of[heaviest]))
    return part_of[unit]


def _lay_out(
    treeplexes: layouts.TreeplexArrays, parent: np.ndarray, in_top_tree: np.ndarray, block: np.ndarray, num_parts: int
) -> tuple[layouts.TreeplexArrays, np.ndarray, np.ndarray]:
    """The treeplexes with blocks as players; the new numbers of sequences, int64 (S,), and of infostates, int64 (J,)."""
    counts = np.diff(treeplexes.sequence_start)
    tops = np.flatnonzero(~in_top_tree & in_top_tree[parent])
    num_blocks = (len(treeplexes.player_block) - 1) * (num_parts + 1)
    parts = np.flatnonzero(np.arange(num_blocks) % (num_parts + 1))
    # Infostates, then boundary infostates, then roots of parts: where they come, and with how many sequences.
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
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return arrays, frozen(number, np.int64), frozen(places[: len(counts)], np.int64)


def _lay_out_payoffs(
    payoffs: layouts.PayoffArrays, block: np.ndarray, row: np.ndarray, number: np.ndarray, num_blocks: int
) -> layouts.PayoffArrays:
    """The payoffs with blocks as players, from the block and the row of each entry."""
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
