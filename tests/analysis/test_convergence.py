"""Rows of convergence runs."""

import itertools
import time

import pyspiel
import pytest

from spiel_cfrplus import CFRPlusSolver, CFRSolver, make_solver
from spiel_cfrplus.analysis import convergence as convergence_module
from spiel_cfrplus.analysis.convergence import convergence, report_iterations, warm_up
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


def test_dense_rows_are_evenly_spaced_in_log_t():
    # 10^(k / 4) = 1, 1.778, 3.162, 5.623 and ten, hundred times these.
    expected = [1, 2, 3, 6, 10, 18, 32, 56, 100, 178, 316, 562, 600]
    assert iterations(convergence(CFRSolver(KUHN), 600, rows_per_decade=4)) == expected
    dense = list(report_iterations(0, 10**6, per_decade=8))
    assert all(sum(10**k < row <= 10 ** (k + 1) for row in dense) == 8 for k in range(1, 6))
    assert sum(1 < row <= 10 for row in dense) == 6  # 10^(1/8) rounds to 1, and 10^(3/8) to 2 as 10^(2/8) does
    ratios = [later / row for row, later in itertools.pairwise(row for row in dense if row >= 100)]
    assert all(abs(ratio / 10 ** (1 / 8) - 1) < 0.01 for ratio in ratios)


def test_dense_rows_of_a_resumed_solver_keep_the_grid():
    solver = CFRSolver(KUHN)
    solver.run(17)
    assert iterations(convergence(solver, 40, rows_per_decade=4)) == [18, 32, 56, 57]
    assert list(report_iterations(10**17 + 1, 10**18, per_decade=1)) == [10**18]


def test_two_spacings_of_rows_are_refused():
    with pytest.raises(ValueError, match="at multiples of a number or evenly in log t, not both"):
        convergence(CFRSolver(KUHN), 10, report_every=2, rows_per_decade=8)
    with pytest.raises(ValueError, match="the number of rows per decade must be 1 or more, got 0"):
        convergence(CFRSolver(KUHN), 10, rows_per_decade=0)


@pytest.mark.parametrize("name", ["cfr+", "cfr-br"])
def test_warm_up_changes_nothing_at_any_iteration(name):
    solver, other = make_solver(name, KUHN), make_solver(name, KUHN)
    for done in (0, 3):
        solver.run(done)
        other.run(done)
        warm_up(solver)
        assert solver.iteration == done
        mine, others = solver.self_play.state_dict(), other.self_play.state_dict()
        assert mine.keys() == others.keys()
        assert all(mine[array].tobytes() == others[array].tobytes() for array in mine)


def test_seconds_begin_after_the_warm_up_and_the_time_limit_before(monkeypatch):
    monkeypatch.setattr(convergence_module, "warm_up", lambda solver: time.sleep(0.3))
    first, *_ = convergence(CFRSolver(KUHN), 10)
    assert first.seconds < 0.3
    limited = list(convergence(CFRSolver(KUHN), 10**9, time_limit=0.2))
    assert limited[-1].iteration < 10


def test_rows_have_the_peak_memory_of_the_process():
    first, *_, last = convergence(CFRSolver(KUHN), 10)
    assert 10**7 < first.peak_bytes <= last.peak_bytes < 10**11


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


def test_time_limit_ends_the_run_with_a_row(monkeypatch):
    solver = CFRPlusSolver(KUHN)
    warm_up(solver)  # here, because the limit includes it and the seconds of rows do not
    monkeypatch.setattr(convergence_module, "warm_up", lambda solver: None)
    started = time.perf_counter()
    rows = list(convergence(solver, 10**9, time_limit=0.5))
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
