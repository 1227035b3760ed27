"""A run that is kept on disk: its solver, its rows and its seconds, so that it can be stopped at any time and resumed.

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

from spiel_cfrplus._utils.files import check_writable
from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.analysis.convergence import convergence, measure, report_iterations
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.curve import NO_ROWS, Curve, Row
from spiel_cfrplus.solving.solvers import Solver

# A row is saved at once, unless saves would take more than a twentieth of the time.
_TIMES_ITS_COST = 20


class CheckpointedRun:
    """Runs a solver and saves it: with its rows, every `every` seconds between them, at the end, and at Ctrl-C.

    A process that is killed loses at most the last `every` seconds and one block of iterations (some tenths of a second, or one
    iteration if that takes longer).

    Attributes:
      solver: what runs.
      path: where it is saved.
    """

    def __init__(self, solver: Solver, path: str | os.PathLike[str], *, every: float = 60.0, curve: Curve = NO_ROWS):
        """Takes a solver as it stands; nothing is played or saved.

        Args:
          solver: one that `Solver.save` can save.
          path: the checkpoint; what is there will be replaced.
          every: save when so many seconds have passed since the last save; infinity for saves with rows only.
          curve: the rows so far, for a solver that has iterated; whether rows are about current policies.

        Raises:
          TypeError: `every` is not a number, `path` is no path, or `solver` is no solver that can be saved.
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
        """The run that was saved to `path`, ready to go on.

        Args, errors: see `Solver.load` and the constructor.
        """
        return cls(Solver.load(path, game, threads=threads), path, every=every, curve=checkpoint.read_curve(path))

    @property
    def curve(self) -> Curve:
        """All rows from the beginning of the run on."""
        seconds = self._seconds + max(0.0, time.perf_counter() - self._started)
        return Curve(tuple(self._rows), seconds, self._last_iterate)

    def convergence(
        self,
        num_iterations: int,
        *,
        report_every: int | None = None,
        target_nash_conv: float | None = None,
        time_limit: float | None = None,
        progress: bool = False,
        run: Callable[[int], object] | None = None,
    ) -> Iterator[Row]:
        """Runs for `num_iterations` more, saves on the way, and yields the rows that are new.

        A row that was due when the run was stopped comes first. With no iterations left that is the last row, if it is missing.

        Args, errors: see `convergence.convergence` and `Solver.save`.
        """
        missing = self._missing_row(num_iterations, report_every)
        if num_iterations == 0:
            return self._kept(missing)
        rows = convergence(
            self.solver,
            num_iterations,
            report_every=report_every,
            target_nash_conv=target_nash_conv,
            time_limit=time_limit,
            last_iterate=self._last_iterate,
            progress=progress,
            run=run,
            seconds_before=self._seconds,
            between_blocks=self._save_if_due,
        )
        return self._kept(itertools.chain(missing, rows))

    def _missing_row(self, num_iterations: int, report_every: int | None) -> Iterator[Row]:
        """The row of the solver as it stands, if one is due but not kept: the run was stopped before it was measured."""
        done = self.solver.iteration
        last_row = self._rows[-1].iteration if self._rows else 0
        if last_row < done == next(report_iterations(done - 1, done + num_iterations, report_every)):
            yield measure(self.solver, self._seconds, self._last_iterate)

    def _kept(self, rows: Iterator[Row]) -> Iterator[Row]:
        self._started = time.perf_counter()
        try:
            for row in rows:
                if self._rows and self._rows[-1].iteration == row.iteration:
                    continue
                self._rows.append(row)
                self._save_if_due(min(self._every, _TIMES_ITS_COST * self._save_seconds))
                yield row
            self.save()
        except KeyboardInterrupt:
            self.save()
            raise
        finally:
            self._seconds, self._started = self.curve.seconds, math.inf

    def save(self) -> None:
        """Saves the run, if anything has happened since it was last saved.

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
        """Saves if so many seconds, `every` by default, have passed since the last save."""
        if time.perf_counter() - self._saved_at >= (self._every if after is None else after):
            self.save()
