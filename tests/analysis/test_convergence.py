"""Rows of convergence runs."""

import itertools
import time

import pyspiel
import pytest

from spiel_cfrplus import CFRPlusSolver, CFRSolver
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.analysis.theory import TheoryChecks

KUHN = pyspiel.load_game("kuhn_poker")


def iterations(rows):
    return [row.iteration for row in rows]


@pytest.mark.parametrize(
    ("num_iterations", "report_every", "expected"),
    [
        (1, None, [1]),
        (25, None, [1, 2, 5, 10, 20, 25]),
        (100, None, [1, 2, 5, 10, 20, 50, 100]),
        (10, 4, [4, 8, 10]),
        (10, 5, [5, 10]),
        (3, 100, [3]),
    ],
)
def test_rows_come_when_due_and_at_the_end(num_iterations, report_every, expected):
    assert iterations(convergence(CFRSolver(KUHN), num_iterations, report_every=report_every)) == expected


def test_rows_of_a_resumed_solver_keep_the_grid():
    solver = CFRSolver(KUHN)
    solver.run(7)
    assert iterations(convergence(solver, 20)) == [10, 20, 27]
    assert iterations(convergence(solver, 20, report_every=10)) == [30, 40, 47]


def test_rows_say_what_the_solver_is_worth():
    # NashConv and value of the paper's CFR+ average after 2 iterations on Kuhn are 67/198 and 0.04641654641..., from a slow
    # implementation in rational arithmetic.
    *_, row = convergence(CFRPlusSolver(KUHN), 2)
    assert row.nash_conv == pytest.approx(67 / 198, rel=1e-12)
    assert row.exploitability == row.nash_conv / 2
    assert row.value == pytest.approx(0.04641654641654642, rel=1e-12)
    *_, row = convergence(CFRPlusSolver(pyspiel.load_game("kuhn_poker(players=3)")), 2)
    assert row.exploitability is None


def test_stops_at_the_first_row_on_target():
    rows = list(convergence(CFRPlusSolver(KUHN), 10**6, target_nash_conv=1e-2))
    assert rows[-1].nash_conv <= 1e-2 < rows[-2].nash_conv


def test_time_limit_ends_the_run_with_a_row():
    started = time.perf_counter()
    rows = list(convergence(CFRPlusSolver(KUHN), 10**9, time_limit=0.5))
    assert 0.5 <= time.perf_counter() - started < 5  # generous: the machine may be busy
    assert rows[-1].iteration < 10**9
    assert rows[-1].seconds >= 0.5


def test_no_iteration_is_done_beyond_the_rows_taken():
    solver = CFRSolver(KUHN)
    rows = convergence(solver, 1000)
    assert solver.iteration == 0
    taken = list(itertools.islice(rows, 3))
    assert solver.iteration == taken[-1].iteration == 5


@pytest.mark.parametrize("arguments", [{"num_iterations": 0}, {"num_iterations": 10, "report_every": 0}])
def test_numbers_that_make_no_sense_are_refused_at_once(arguments):
    with pytest.raises(ValueError, match="must be 1 or more, got 0"):
        convergence(CFRSolver(KUHN), **arguments)


def test_iterations_are_played_by_whatever_is_asked_to():
    solver, played = CFRSolver(KUHN), []

    def run(num_iterations):
        played.append(num_iterations)
        solver.run(num_iterations)

    plain = list(convergence(CFRSolver(KUHN), 25))
    assert [(row.iteration, row.nash_conv) for row in convergence(solver, 25, run=run)] == [
        (row.iteration, row.nash_conv) for row in plain
    ]
    assert sum(played) == 25


def test_statements_can_be_checked_on_the_way():
    solver = CFRPlusSolver(KUHN)
    checks = TheoryChecks(solver)
    for row in convergence(solver, 20, run=checks.run):
        *_, bound, _ = checks.report()
        assert bound.iteration == row.iteration
        assert bound.measured["nash_conv"] == pytest.approx(row.nash_conv, rel=1e-12)


def test_play_of_another_solver_is_refused():
    with pytest.raises(ValueError, match="does not advance this solver"):
        next(convergence(CFRSolver(KUHN), 10, run=CFRSolver(KUHN).run))


def test_blocks_end_where_something_else_may_be_done():
    solver, seen = CFRSolver(KUHN), []
    rows = list(convergence(solver, 20, seconds_before=100.0, between_blocks=lambda: seen.append(solver.iteration)))
    assert seen[:4] == [1, 2, 3, 5]
    assert seen[-1] == 20
    assert 100 < rows[0].seconds <= rows[-1].seconds < 160
