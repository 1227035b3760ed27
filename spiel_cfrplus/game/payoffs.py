"""Payoffs as sparse arrays over tuples of sequences, in the layout of the kernels.

These arrays are the largest ones of a compiled game, so the functions here avoid large temporary arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spiel_cfrplus._utils.arrays import frozen, sealed
from spiel_cfrplus.kernels import layouts
from spiel_cfrplus.kernels import tree as tree_kernels


def sum_by_rows(keys: np.ndarray, weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of `keys` in lexicographic order, and for each of them the weighted sum of its rows of `values`.

    Sums that differ from zero only by rounding are set to zero; rows whose sums are all zero are omitted.
    """
    order = _order_of_rows([*keys.T])
    starts = _run_starts(keys, order)
    sums = np.empty((len(starts), values.shape[1]))
    tree_kernels.segment_sums(order, np.append(starts, len(order)), weights, values, sums)
    nonzero = np.any(sums != 0, axis=1)
    if nonzero.all():  # indexing by a mask would copy the large arrays
        return keys[order[starts]], sums
    return keys[order[starts[nonzero]]], sums[nonzero]


def _order_of_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """uint32 (Z,), the permutation that sorts the rows lexicographically and stably: a radix sort.

    Args:
      columns: each (Z,), sequence numbers.
    """
    order = np.arange(len(columns[0]), dtype=layouts.INDEX)
    for column in reversed(columns):
        counts = np.bincount(column)
        placed = np.empty_like(order)
        tree_kernels.counting_sort_pass(column.astype(layouts.INDEX), order, np.cumsum(counts) - counts, placed)
        order = placed
    return order


def _run_starts(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The first position of each run of equal rows in the given order; shape (0,) if there are no rows."""
    is_start = np.zeros(len(order), bool)
    is_start[:1] = True
    for column in rows.T:  # one column at a time, because the copies are large
        in_order = column[order]
        is_start[1:] |= in_order[1:] != in_order[:-1]
    return np.flatnonzero(is_start)


def group_payoffs(sequences: np.ndarray, payoffs: np.ndarray, offsets: Sequence[int]) -> layouts.PayoffArrays:
    """Groups each player's non-zero payoffs by the tuple of the other players' sequences, then by the player's sequence.

    Args:
      sequences: (E, n), distinct tuples of the players' sequences.
      payoffs: float64 (E, n), in game units.
      offsets: the number of each player's empty sequence in the common numbering of `TreeplexArrays`.
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
