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

import math
import time
from collections.abc import Callable, Iterator

from spiel_cfrplus._utils.progress import Advance, progress_bar
from spiel_cfrplus._utils.validation import checked_count, checked_number
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.solving.curve import Row as Row
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import Solver

# Blocks of iterations grow until one takes this long.
_SECONDS_PER_BLOCK = 0.1


def convergence(
    solver: Solver,
    num_iterations: int,
    *,
    report_every: int | None = None,
    target_nash_conv: float | None = None,
    time_limit: float | None = None,
    last_iterate: bool = False,
    progress: bool = False,
    run: Callable[[int], object] | None = None,
    seconds_before: float = 0.0,
    between_blocks: Callable[[], object] | None = None,
) -> Iterator[Row]:
    """Runs `solver` for `num_iterations` more and yields rows, the last one at the end.

    Args:
      solver: iterates while rows are consumed; to stop early, stop consuming them.
      num_iterations: the largest number of iterations.
      report_every: a row at each multiple of this; by default at 1, 2, 5, 10, 20, 50, ... iterations.
      target_nash_conv: stop at the first row with at most this NashConv.
      time_limit: stop after about this many seconds, with a row.
      last_iterate: evaluate the current policy instead of the average.
      progress: show a progress bar on standard error, if that is a terminal.
      run: does a number of iterations of `solver`; `solver.run` by default, `TheoryChecks(solver).run` to check them as well.
      seconds_before: the seconds of earlier parts of the run, added to the seconds of the rows.
      between_blocks: called after every block of iterations, which takes some tenths of a second, or one iteration if that
        takes longer; for work between rows, see `CheckpointedRun`.

    Raises:
      TypeError: `num_iterations` or `report_every` is not an integer, a limit is not a number, or `solver` is not a solver.
      ValueError: `num_iterations` or `report_every` is not positive, or a limit is NaN; or, when rows are consumed, `run` does
        not advance `solver`.
    """
    if not isinstance(solver, Solver):
        raise TypeError(f"expected a solver, such as CFRPlusSolver(game), got {solver!r}")
    num_iterations = checked_count(num_iterations, least=1)
    if report_every is not None:
        report_every = checked_count(report_every, "iterations between rows", least=1)
    for name, limit in (("target_nash_conv", target_nash_conv), ("time_limit", time_limit)):
        if limit is not None and math.isnan(checked_number(limit, name)):
            raise ValueError(f"{name} is not a number")
    play = _Play(solver, solver.run if run is None else run, between_blocks)
    return _rows(play, num_iterations, report_every, target_nash_conv, time_limit, last_iterate, progress, seconds_before)


def _rows(
    play: _Play,
    num_iterations: int,
    report_every: int | None,
    target_nash_conv: float | None,
    time_limit: float | None,
    last_iterate: bool,
    progress: bool,
    seconds_before: float,
) -> Iterator[Row]:
    solver, started = play.solver, time.perf_counter()
    deadline = math.inf if time_limit is None else started + time_limit
    reports = report_iterations(solver.iteration, solver.iteration + num_iterations, report_every)
    with progress_bar(progress, unit="iterations", total=num_iterations) as advance:
        for report in reports:
            play.run_until(report, deadline, advance)
            row = measure(solver, seconds_before + time.perf_counter() - started, last_iterate)
            yield row
            reached = target_nash_conv is not None and row.nash_conv <= target_nash_conv
            if reached or time.perf_counter() >= deadline:
                return


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
    )


def report_iterations(done: int, last: int, every: int | None = None) -> Iterator[int]:
    """The iterations with rows, from `done + 1` to `last` inclusive: multiples of `every`, or 1, 2, 5, 10, 20, 50, ..."""
    if every is not None:
        yield from range(done - done % every + every, last, every)
    else:
        digits = (digit * 10**power for power in range(len(str(last))) for digit in (1, 2, 5))
        yield from (iteration for iteration in digits if done < iteration < last)
    yield last


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
