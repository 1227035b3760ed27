"""Convergence of a solver: rows with iteration, time and NashConv.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
>>> for row in convergence(solver, 20):
...     print(row.iteration, round(row.nash_conv, 6))
1 0.833333
2 0.338384
5 0.160968
10 0.057688
20 0.01994
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator

from spiel_cfrplus._utils.memory import peak_bytes
from spiel_cfrplus._utils.progress import Advance, progress_bar
from spiel_cfrplus._utils.validation import checked_count, checked_number
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.solving.curve import Row as Row
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import Solver

# Blocks of iterations grow until one takes this long.
_SECONDS_PER_BLOCK = 0.1
_MOST_ROWS_PER_DECADE = 10_000


def convergence(
    solver: Solver,
    num_iterations: int,
    *,
    report_every: int | None = None,
    rows_per_decade: int | None = None,
    target_nash_conv: float | None = None,
    time_limit: float | None = None,
    last_iterate: bool = False,
    progress: bool = False,
    run: Callable[[int], object] | None = None,
    seconds_before: float = 0.0,
    between_blocks: Callable[[], object] | None = None,
) -> Iterator[Row]:
    """Runs `solver` for `num_iterations` more and yields rows, the last one at the end.

    The seconds of the rows do not include the compilation of kernels, which `warm_up` does before. (Kernels that are used by
    minimizers that are Python objects only are compiled in the first iteration.)

    Args:
      solver: iterates while rows are consumed; to stop early, stop consuming them.
      num_iterations: the largest number of iterations.
      report_every: a row at each multiple of this; by default at 1, 2, 5, 10, 20, 50, ... iterations.
      rows_per_decade: instead, about this many rows from each power of ten to the next, evenly in log t.
      target_nash_conv: stop at the first row with at most this NashConv.
      time_limit: stop after about this many seconds, compilation included, with a row.
      last_iterate: evaluate the current policy instead of the average.
      progress: show a progress bar on standard error, if that is a terminal.
      run: does a number of iterations of `solver`; `solver.run` by default, `TheoryChecks(solver).run` to check them as well.
      seconds_before: the seconds of earlier parts of the run, added to the seconds of the rows.
      between_blocks: called after every block of iterations, which takes some tenths of a second, or one iteration if that
        takes longer; for work between rows, see `CheckpointedRun`.

    Raises:
      TypeError: a number of iterations or rows is not an integer, a limit is not a number, or `solver` is not a solver.
      ValueError: a number of iterations or rows is not positive, `report_every` and `rows_per_decade` are both given, or a
        limit is NaN; or, when rows are consumed, `run` does not advance `solver`.
    """
    if not isinstance(solver, Solver):
        raise TypeError(f"expected a solver, such as CFRPlusSolver(game), got {solver!r}")
    num_iterations = checked_count(num_iterations, least=1)
    reports = report_iterations(solver.iteration, solver.iteration + num_iterations, report_every, rows_per_decade)
    for name, limit in (("target_nash_conv", target_nash_conv), ("time_limit", time_limit)):
        if limit is not None and math.isnan(checked_number(limit, name)):
            raise ValueError(f"{name} is not a number")
    play = _Play(solver, solver.run if run is None else run, between_blocks)
    return _rows(play, num_iterations, reports, target_nash_conv, time_limit, last_iterate, progress, seconds_before)


def _rows(
    play: _Play,
    num_iterations: int,
    reports: Iterator[int],
    target_nash_conv: float | None,
    time_limit: float | None,
    last_iterate: bool,
    progress: bool,
    seconds_before: float,
) -> Iterator[Row]:
    solver = play.solver
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    warm_up(solver)
    started = time.perf_counter()
    with progress_bar(progress, unit="iterations", total=num_iterations) as advance:
        for report in reports:
            play.run_until(report, deadline, advance)
            row = measure(solver, seconds_before + time.perf_counter() - started, last_iterate)
            yield row
            reached = target_nash_conv is not None and row.nash_conv <= target_nash_conv
            if reached or time.perf_counter() >= deadline:
                return


def warm_up(solver: Solver) -> None:
    """Loads or compiles the kernels that iterate and evaluate; does not change the solver."""
    solver.self_play.run(0)
    evaluate(solver.game, solver.average_profile())


def measure(solver: Solver, seconds: float = 0.0, last_iterate: bool = False) -> Row:
    """The row of a solver at its present iteration, see `convergence`."""
    evaluation = evaluate(solver.game, solver.current_profile() if last_iterate else solver.average_profile())
    session = solver.self_play
    return Row(
        iteration=solver.iteration,
        seconds=seconds,
        nash_conv=evaluation.nash_conv,
        exploitability=evaluation.exploitability if solver.game.is_two_player_constant_sum else None,
        value=float(evaluation.values[0]),
        cce_gap=None if session.refusal(Feature.CCE) else session.cce_gap(),
        peak_bytes=peak_bytes(),
    )


def report_iterations(done: int, last: int, every: int | None = None, per_decade: int | None = None) -> Iterator[int]:
    """The iterations with rows, from `done + 1` to `last` inclusive.

    >>> list(report_iterations(0, 100)), list(report_iterations(10, 100, every=40))
    ([1, 2, 5, 10, 20, 50, 100], [40, 80, 100])
    >>> list(report_iterations(0, 100, per_decade=8))
    [1, 2, 3, 4, 6, 7, 10, 13, 18, 24, 32, 42, 56, 75, 100]

    Args:
      done: iterations done.
      last: the last iteration, at which there is a row.
      every: rows at the multiples of this number.
      per_decade: rows at 10^(k / per_decade), rounded, for k = 0, 1, 2, ...; different k may have the same row below 10.

    Raises:
      TypeError: `every` or `per_decade` is not an integer.
      ValueError: one of them is not positive, or both are given.
    """
    if every is not None and per_decade is not None:
        raise ValueError("rows are at multiples of a number or evenly in log t, not both")
    if every is not None:
        every = checked_count(every, "iterations between rows", least=1)
        regular: Iterable[int] = range(done - done % every + every, last, every)
    elif per_decade is not None:
        regular = _powers(last, checked_count(per_decade, "rows per decade", least=1, most=_MOST_ROWS_PER_DECADE))
    else:
        regular = (digit * 10**power for power in range(len(str(last))) for digit in (1, 2, 5))
    return itertools.chain((iteration for iteration in regular if done < iteration < last), [last])


def _powers(last: int, per_decade: int) -> list[int]:
    """The rounded powers of 10^(1 / per_decade) below 10 * last, ascending; exact at powers of ten."""
    digits = [10 ** (k / per_decade) for k in range(per_decade)]
    return sorted({round(10**power * digit) for power in range(len(str(last))) for digit in digits})


class _Play:
    """A solver, the function that runs it, and the function called between blocks of iterations."""

    def __init__(self, solver: Solver, run: Callable[[int], object], between_blocks: Callable[[], object] | None):
        self.solver = solver
        self._run = run
        self._between_blocks = between_blocks

    def run_until(self, iteration: int, deadline: float, advance: Advance) -> None:
        """Runs to `iteration` in blocks, and checks the time and updates the bar between them; stops early at the deadline."""
        block = 1
        while self.solver.iteration < iteration:
            started = time.perf_counter()
            if started >= deadline:
                return
            done, num_iterations = self.solver.iteration, min(block, iteration - self.solver.iteration)
            self._run(num_iterations)
            if self.solver.iteration == done:
                raise ValueError(f"run={self._run!r} does not advance this solver")
            advance(num_iterations)
            if self._between_blocks is not None:
                self._between_blocks()
            if time.perf_counter() - started < _SECONDS_PER_BLOCK:
                block *= 2
