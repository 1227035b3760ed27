"""Payoffs as sparse arrays over tuples of sequences, as kernels take them."""

from __future__ import annotations

import numpy as np

from spiel_cfrplus import _kernels
from spiel_cfrplus._arrays import frozen


def sum_by_rows(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of `keys` in lexicographic order, and the sums of the `values` that belong to each.

    Sums that are zero but for rounding are zero; rows without any other are left out.
    """
    order = np.lexsort(keys.T[::-1])
    starts = _run_starts(keys[order])
    sums, magnitudes = (np.add.reduceat(summands[order], starts, axis=0) for summands in (values, np.abs(values)))
    sums[np.abs(sums) <= _kernels.ROUNDING * magnitudes] = 0.0
    paid = np.any(sums != 0, axis=1)
    return keys[order[starts]][paid], sums[paid]


def _run_starts(rows: np.ndarray) -> np.ndarray:
    """Where a run of equal rows starts."""
    is_start = np.ones(len(rows), bool)
    is_start[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    return np.flatnonzero(is_start)


def group_payoffs(sequences: np.ndarray, payoffs: np.ndarray) -> _kernels.PayoffArrays:
    """Per player: non-zero payoffs grouped by the tuple of the other players' sequences, then by own sequence.

    Args:
      sequences: (E, n), distinct tuples of the players' sequences, numbered as in `TreeplexArrays`.
      payoffs: float64 (E, n), in game units.
    """
    rows, starts, own_sequences, utilities = [], [], [], []
    num_entries = 0
    for player in range(payoffs.shape[1]):
        nonzero = payoffs[:, player] != 0
        own, opponents = sequences[nonzero, player], np.delete(sequences[nonzero], player, axis=1)
        order = np.lexsort((own, *opponents.T[::-1]))
        row_starts = _run_starts(opponents[order])
        rows.append(opponents[order[row_starts]])
        starts.append(num_entries + row_starts)
        own_sequences.append(own[order])
        utilities.append(payoffs[nonzero, player][order])
        num_entries += len(order)
    return _kernels.PayoffArrays(
        player_block=frozen(np.cumsum([0, *map(len, rows)]), _kernels.INDEX),
        opponent_sequences=frozen(np.concatenate(rows), _kernels.INDEX),
        entry_start=frozen(np.concatenate([*starts, [num_entries]]), _kernels.INDEX),
        entry_sequence=frozen(np.concatenate(own_sequences), _kernels.INDEX),
        entry_utility=frozen(np.concatenate(utilities), np.float64),
    )
