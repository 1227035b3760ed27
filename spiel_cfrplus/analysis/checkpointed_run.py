"""Runs that save their solver, rows and seconds to disk, so that they can be stopped at any time and resumed.

>>> import pyspiel, tempfile
>>> from spiel_cfrplus import CFRPlusSolver
>>> with tempfile.TemporaryDirectory() as folder:
...     run = CheckpointedRun(CFRPlusSolver(pyspiel.load_game("kuhn_poker")), f"{folder}/kuhn.npz")
...     before = [row.iteration for row in run.convergence(10)]
...     resumed = CheckpointedRun.resume(f"{folder}/kuhn.npz")
...     after = [row.iteration for row in resumed.convergence(40)]
>>> before, after, [row.iteration for row in resumed.curve.rows]
([1, 2, 5, 10], [20, 50], [1, 2, 5, 10, 20, 50])
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator

import pyspiel

from spiel_cfrplus._utils.files import check_writable, reserved
from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.analysis.convergence import convergence, measure, report_iterations, warm_up
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.curve import NO_ROWS, Curve, Row
from spiel_cfrplus.solving.solvers import Solver

# A row is saved immediately, unless saves would take more than a twentieth of the time.
_SAVE_INTERVAL_PER_SAVE_SECOND = 20


class CheckpointedRun:
    """Runs a solver and saves it at every row, every `every` seconds between rows, at the end, and at Ctrl-C.

    A process that is killed loses at most the last `every` seconds and one block of iterations (some tenths of a second, or one
    iteration if that takes longer).

    Attributes:
      solver: the solver.
      path: the checkpoint.
    """

    def __init__(self, solver: Solver, path: str | os.PathLike[str], *, every: float = 60.0, curve: Curve = NO_ROWS):
        """Takes a solver at any iteration; does not iterate or save.

        Args:
          solver: one that `Solver.save` can save.
          path: the checkpoint; an existing file will be replaced.
          every: seconds between saves; infinity for saves at rows only.
          curve: the rows so far, if the solver has iterated; and whether rows evaluate the current policy.

        Raises:
          TypeError: `every` is not a number, `path` is not a path, or `solver` is not a solver that can be saved.
          OSError: `path` cannot be written.
          ValueError: `every` is negative or NaN.
        """
        if not isinstance(solver, Solver):
            raise TypeError(f"expected a solver, such as CFRPlusSolver(game), got {solver!r}")
        solver.check_can_save()
        check_writable(path)
        if not checked_number(every, "every") >= 0:
            raise ValueError(f"every must be a number of seconds of 0 or more, got {every}")
        self.solver = solver
        self.path = path
        self._every = every
        self._rows = list(curve.rows)
        self._last_iterate = curve.last_iterate
        self._seconds, self._started = curve.seconds, math.inf  # before the present call of `convergence`, and its start
        self._saved_at, self._save_seconds = -math.inf, 0.0
        self._saved_state: tuple[int, int] | None = None

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        game: pyspiel.Game | SequenceFormGame | None = None,
        *,
        every: float = 60.0,
        threads: int = 1,
    ) -> CheckpointedRun:
        """Loads the run that was saved to `path`.

        Args, errors: see `Solver.load` and the constructor.
        """
        return cls(Solver.load(path, game, threads=threads), path, every=every, curve=checkpoint.read_curve(path))

    @property
    def curve(self) -> Curve:
        """All rows since the beginning of the run."""
        seconds = self._seconds + max(0.0, time.perf_counter() - self._started)
        return Curve(tuple(self._rows), seconds, self._last_iterate)

    def convergence(
        self,
        num_iterations: int,
        *,
        report_every: int | None = None,
        rows_per_decade: int | None = None,
        target_nash_conv: float | None = None,
        time_limit: float | None = None,
        progress: bool = False,
        run: Callable[[int], object] | None = None,
    ) -> Iterator[Row]:
        """Runs for `num_iterations` more, saves the run, and yields the new rows.

        If a row was due when the run was stopped, it comes first. Without remaining iterations it is the last row, if missing.

        Args, errors: see `convergence.convergence` and `Solver.save`.

        Raises:
          BlockingIOError: another process iterates and saves to `path`.
        """
        done = self.solver.iteration
        due = report_iterations(done - 1, done + num_iterations, report_every, rows_per_decade)
        missing = self._missing_row(next(due))
        if num_iterations == 0:
            return self._saved_rows(missing)
        started = time.perf_counter()
        warm_up(self.solver)  # here, because the seconds of the run begin with the first row
        rows = convergence(
            self.solver,
            num_iterations,
            report_every=report_every,
            rows_per_decade=rows_per_decade,
            target_nash_conv=target_nash_conv,
            time_limit=None if time_limit is None else time_limit - (time.perf_counter() - started),
            last_iterate=self._last_iterate,
            progress=progress,
            run=run,
            seconds_before=self._seconds,
            between_blocks=self._save_if_due,
        )
        return self._saved_rows(itertools.chain(missing, rows))

    def _missing_row(self, next_due: int) -> Iterator[Row]:
        """The row of the present iteration, if it is due but missing because the run was stopped before it was measured."""
        done = self.solver.iteration
        last_row = self._rows[-1].iteration if self._rows else 0
        if last_row < done == next_due:
            yield measure(self.solver, self._seconds, self._last_iterate)

    def _saved_rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        self._started = time.perf_counter()
        with reserved(self.path):
            try:
                for row in rows:
                    if self._rows and self._rows[-1].iteration == row.iteration:
                        continue
                    self._rows.append(row)
                    self._save_if_due(min(self._every, _SAVE_INTERVAL_PER_SAVE_SECOND * self._save_seconds))
                    yield row
                self.save()
            except KeyboardInterrupt:
                self.save()
                raise
            finally:
                self._seconds, self._started = self.curve.seconds, math.inf

    def save(self) -> None:
        """Saves the run, if it has changed since the last save.

        Raises:
          OSError, TypeError: see `Solver.save`.
        """
        state = (self.solver.iteration, len(self._rows))
        if state == self._saved_state:
            return
        started = time.perf_counter()
        self.solver.save(self.path, self.curve)
        self._saved_at, self._saved_state = time.perf_counter(), state
        self._save_seconds = self._saved_at - started

    def _save_if_due(self, after: float | None = None) -> None:
        """Saves if `after` seconds, `every` by default, have passed since the last save."""
        if time.perf_counter() - self._saved_at >= (self._every if after is None else after):
            self.save()
