"""Payoffs as sparse arrays over tuples of sequences, as kernels take them.

These arrays are the largest of a compiled game; what is made on the way to them is kept small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spiel_cfrplus._utils.arrays import frozen, sealed
from spiel_cfrplus.kernels import layouts
from spiel_cfrplus.kernels import tree as tree_kernels


def sum_by_rows(keys: np.ndarray, weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of `keys` in lexicographic order, and the sum of the weighted rows of `values` that belong to each.

    Sums that are zero but for rounding are zero; rows without any other are left out.
    """
    order = _order_of_rows([*keys.T])
    starts = _run_starts(keys, order)
    sums = np.empty((len(starts), values.shape[1]))
    tree_kernels.segment_sums(order, np.append(starts, len(order)), weights, values, sums)
    paid = np.any(sums != 0, axis=1)
    return (keys[order[starts]], sums) if paid.all() else (keys[order[starts[paid]]], sums[paid])


def _order_of_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The rows in lexicographic order, equal ones in the order that they have, uint32 (Z,): a radix sort.

    Args:
      columns: each (Z,), numbers of sequences.
    """
    order = np.arange(len(columns[0]), dtype=layouts.INDEX)
    for column in reversed(columns):
        counts = np.bincount(column)
        placed = np.empty_like(order)
        tree_kernels.counting_sort_pass(column.astype(layouts.INDEX), order, np.cumsum(counts) - counts, placed)
        order = placed
    return order


def _run_starts(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where a run of equal rows starts, if they are taken in this order; (0,) if there are none."""
    is_start = np.zeros(len(order), bool)
    is_start[:1] = True
    for column in rows.T:  # one at a time, as the copies are large
        in_order = column[order]
        is_start[1:] |= in_order[1:] != in_order[:-1]
    return np.flatnonzero(is_start)


def group_payoffs(sequences: np.ndarray, payoffs: np.ndarray, offsets: Sequence[int]) -> layouts.PayoffArrays:
    """Per player: non-zero payoffs grouped by the tuple of the other players' sequences, then by own sequence.

    Args:
      sequences: (E, n), distinct tuples of the players' sequences.
      payoffs: float64 (E, n), in game units.
      offsets: what to add to each player's sequences for the common numbering of `TreeplexArrays`.
    """
    first_of = np.array(offsets, layouts.INDEX)
    rows, starts = [], []
    num_entries, stop = np.count_nonzero(payoffs), 0
    entry_sequence, entry_utility = np.empty(num_entries, layouts.INDEX), np.empty(num_entries)
    for player in range(payoffs.shape[1]):
        paid = np.flatnonzero(payoffs[:, player])
        own = sequences[paid, player]
        opponents = np.delete(sequences, player, axis=1)[paid]
        order = _order_of_rows([*opponents.T, own])
        row_starts = _run_starts(opponents, order)
        start, stop = stop, stop + len(order)
        rows.append(opponents[order[row_starts]] + np.delete(first_of, player))
        starts.append(start + row_starts)
        entry_sequence[start:stop] = own[order]
        entry_sequence[start:stop] += first_of[player]
        entry_utility[start:stop] = payoffs[paid[order], player]
    return layouts.PayoffArrays(
        player_block=frozen(np.cumsum([0, *map(len, rows)]), layouts.INDEX),
        opponent_sequences=frozen(np.concatenate(rows), layouts.INDEX),
        entry_start=frozen(np.concatenate([*starts, [num_entries]]), layouts.INDEX),
        entry_sequence=sealed(entry_sequence),
        entry_utility=sealed(entry_utility),
    )
