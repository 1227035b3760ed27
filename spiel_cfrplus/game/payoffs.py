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

    Passes over columns that are in order are skipped: the payoffs of a game are in the order of one of its players.

    Args:
      columns: each (Z,), sequence numbers.
    """
    order = np.arange(len(columns[0]), dtype=layouts.INDEX)
    if _are_ascending(columns):
        return order
    unsorted = len(columns)
    while _are_ascending(columns[unsorted - 1 : unsorted]):
        unsorted -= 1
    for column in reversed(columns[:unsorted]):
        counts = np.bincount(column)
        placed = np.empty_like(order)
        tree_kernels.counting_sort_pass(column.astype(layouts.INDEX), order, np.cumsum(counts) - counts, placed)
        order = placed
    return order


def _are_ascending(columns: Sequence[np.ndarray]) -> bool:
    """Whether the rows are in lexicographic order."""
    are_equal = np.ones(max(0, len(columns[0]) - 1), bool)  # each row and its predecessor, in the columns so far
    for column in columns:
        if np.any(are_equal & (column[1:] < column[:-1])):
            return False
        are_equal &= column[1:] == column[:-1]
    return True


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
        rows_paid, earned = sequences, payoffs[:, player]
        if not earned.all():
            paid = np.flatnonzero(earned)
            rows_paid, earned = sequences[paid], earned[paid]
        own, opponents = rows_paid[:, player], np.delete(rows_paid, player, axis=1)
        order = _order_of_rows([*opponents.T, own])
        row_starts = _run_starts(opponents, order)
        start, stop = stop, stop + len(order)
        rows.append(opponents[order[row_starts]] + np.delete(first_of, player))
        starts.append(start + row_starts)
        entry_sequence[start:stop] = own[order]
        entry_sequence[start:stop] += first_of[player]
        entry_utility[start:stop] = earned[order]
    return layouts.PayoffArrays(
        player_block=frozen(np.cumsum([0, *map(len, rows)]), layouts.INDEX),
        opponent_sequences=frozen(np.concatenate(rows), layouts.INDEX),
        entry_start=frozen(np.concatenate([*starts, [num_entries]]), layouts.INDEX),
        entry_sequence=sealed(entry_sequence),
        entry_utility=sealed(entry_utility),
    )


def magnitudes(payoffs: layouts.PayoffArrays, player: int) -> layouts.PayoffArrays:
    """The payoffs with absolute utilities, for the gradient of `player` only.

    The utilities of the other players are not written, so they take no memory: the system provides it on the first access.
    """
    start, stop = payoffs.entry_start[payoffs.player_block[player : player + 2]]
    utility = np.empty_like(payoffs.entry_utility)
    np.abs(payoffs.entry_utility[start:stop], out=utility[start:stop])
    return payoffs._replace(entry_utility=sealed(utility))
