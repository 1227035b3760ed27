"""Convergence rows of a run, and their conversion to and from arrays."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import ClassVar

import numpy as np


@dataclasses.dataclass(frozen=True)
class Row:
    """Measurements of a solver at one iteration.

    Attributes:
      iteration: number of iterations since the solver was created.
      seconds: wall-clock seconds of the run so far, evaluations included, time between a save and its resumption excluded.
      nash_conv: NashConv of the average policy, or of the current policy if requested, in game units.
      exploitability: nash_conv / 2 in two-player constant-sum games, else None.
      value: player 0's expected utility under that policy, in game units.
      cce_gap: distance of the empirical distribution of play from a coarse correlated equilibrium, in game units, if the
        session has `session.Feature.CCE`, otherwise None.
      peak_bytes: the largest resident memory of the process so far, in bytes; None if the system does not provide it.
    """

    iteration: int
    seconds: float
    nash_conv: float
    exploitability: float | None
    value: float
    cce_gap: float | None
    peak_bytes: int | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class Curve:
    """All rows of a run, from its start, including runs that were stopped and resumed.

    Attributes:
      rows: in ascending order of iterations.
      seconds: wall-clock seconds of the run, including the time after the last row.
      last_iterate: whether the rows are for current policies instead of average policies.
    """

    rows: tuple[Row, ...] = ()
    seconds: float = 0.0
    last_iterate: bool = False

    num_columns: ClassVar[int] = len(dataclasses.fields(Row))

    def to_array(self) -> np.ndarray:
        """The rows, float64 (R, 7); the columns are the attributes of `Row`, with NaN for None."""
        return np.array(list(map(_numbers, self.rows)), np.float64).reshape(-1, self.num_columns)

    @classmethod
    def from_array(cls, rows: np.ndarray, seconds: float, last_iterate: bool) -> Curve:
        """The curve from an array that `to_array` returned.

        Raises:
          ValueError: the array is invalid.
        """
        if rows.dtype != np.float64 or rows.shape[1:] != (cls.num_columns,) or not math.isfinite(seconds):
            raise ValueError(f"rows are {rows.dtype} of shape {rows.shape}, after {seconds} seconds")
        iterations = rows[:, 0]
        numbers_are_finite = np.isfinite(rows[:, :2]).all() and not np.isinf(rows[:, -1]).any()
        if not numbers_are_finite or (np.diff(iterations, prepend=-1) <= 0).any() or (iterations % 1 != 0).any():
            raise ValueError("rows are not those of a run")
        return cls(tuple(map(_row, rows.tolist())), seconds, last_iterate)


_numbers = operator.attrgetter(*(field.name for field in dataclasses.fields(Row)))
NO_ROWS = Curve()


def _row(numbers: list[float]) -> Row:
    iteration, seconds, nash_conv, exploitability, value, cce_gap, peak_bytes = numbers
    peak = None if math.isnan(peak_bytes) else int(peak_bytes)
    return Row(int(iteration), seconds, nash_conv, _or_none(exploitability), value, _or_none(cce_gap), peak)


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number
