"""Runs that are kept on disk."""

import contextlib
import dataclasses
import itertools
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pyspiel
import pytest
from games import mentions

from spiel_cfrplus import CFRPlusSolver, Solver
from spiel_cfrplus.analysis import checkpointed_run
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.cli import stop_signals
from spiel_cfrplus.regret_minimizers import CFR
from spiel_cfrplus.solving.checkpoint import read_curve
from spiel_cfrplus.solving.curve import Curve, Row

KUHN = pyspiel.load_game("kuhn_poker")


def without_seconds(rows):
    return [dataclasses.replace(row, seconds=0.0) for row in rows]


def test_a_run_in_parts_has_the_rows_and_the_policy_of_one_run(tmp_path):
    whole = CFRPlusSolver(KUHN)
    expected = without_seconds(convergence(whole, 200))
    first = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz")
    assert len(list(first.convergence(50))) == 6
    resumed = CheckpointedRun.resume(tmp_path / "run.npz")
    assert len(list(resumed.convergence(150))) == 2
    assert without_seconds(resumed.curve.rows) == without_seconds(read_curve(tmp_path / "run.npz").rows) == expected
    np.testing.assert_array_equal(resumed.solver.average_profile().probabilities, whole.average_profile().probabilities)


def test_seconds_go_on_where_the_saved_run_was_and_idle_time_does_not_count(tmp_path):
    solver = CFRPlusSolver(KUHN)
    run = CheckpointedRun(solver, tmp_path / "run.npz", curve=Curve(seconds=1000.0))
    rows = list(run.convergence(10))
    assert 1000 < rows[0].seconds <= rows[-1].seconds <= run.curve.seconds == run.curve.seconds < 1100
    assert rows[-1].seconds <= read_curve(tmp_path / "run.npz").seconds <= run.curve.seconds


def test_saves_come_every_so_many_seconds_between_rows(tmp_path, monkeypatch):
    run = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz", every=0)
    saved = []
    monkeypatch.setattr(Solver, "save", lambda solver, path, curve: saved.append(solver.iteration))
    list(run.convergence(30, report_every=30))
    assert saved == [1, 3, 7, 15, 30, 30]  # after blocks of doubling length, and with the row
    saved.clear()
    never = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz", every=math.inf)
    list(never.convergence(30, report_every=30))
    assert set(saved) <= {1, 30}
    assert saved[-1] == 30


def test_dense_rows_do_not_spend_the_time_on_saves(tmp_path, monkeypatch):
    now, saved = itertools.count(), []
    monkeypatch.setattr(checkpointed_run.time, "perf_counter", lambda: float(next(now)))
    monkeypatch.setattr(Solver, "save", lambda solver, path, curve: saved.append(len(curve.rows)))
    list(CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz").convergence(1000, report_every=1))
    assert saved[-1] == 1000
    assert 10 < len(saved) < 300


def test_a_run_that_another_process_continues_is_refused(tmp_path):
    run = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "kuhn.npz")
    list(run.convergence(3))
    script = """
import pathlib, sys
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
try:
    next(CheckpointedRun.resume(sys.argv[1]).convergence(2))
except BlockingIOError as error:
    print(error)
"""
    with contextlib.closing(run.convergence(4)) as rows:
        next(rows)
        refused = subprocess.run([sys.executable, "-c", script, run.path], capture_output=True, text=True, check=True)
    assert "another process is writing to it" in refused.stdout
    assert run.solver.iteration == 5
    assert os.listdir(tmp_path) == ["kuhn.npz"]


def test_ctrl_c_saves_the_last_iteration(tmp_path):
    solver = CFRPlusSolver(KUHN)

    def run_and_interrupt(num_iterations):
        solver.run(num_iterations)
        if solver.iteration > 50:
            raise KeyboardInterrupt

    run = CheckpointedRun(solver, tmp_path / "run.npz", every=math.inf)
    with pytest.raises(KeyboardInterrupt):
        list(run.convergence(1000, report_every=1000, run=run_and_interrupt))
    assert Solver.load(tmp_path / "run.npz").iteration == solver.iteration > 50


@pytest.mark.parametrize("left", [30, 0])
def test_a_row_that_was_due_when_the_run_was_stopped_is_not_missing_afterwards(left, tmp_path):
    solver = CFRPlusSolver(KUHN)

    def run_and_interrupt(num_iterations):
        solver.run(num_iterations)
        if solver.iteration == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(CheckpointedRun(solver, tmp_path / "run.npz").convergence(50, run=run_and_interrupt))
    assert [row.iteration for row in read_curve(tmp_path / "run.npz").rows] == [1, 2, 5, 10]
    resumed = CheckpointedRun.resume(tmp_path / "run.npz")
    assert [row.iteration for row in resumed.convergence(left)] == [20, 50][: 1 + (left > 0)]
    assert [row.iteration for row in read_curve(tmp_path / "run.npz").rows][:5] == [1, 2, 5, 10, 20]
    seconds = [row.seconds for row in resumed.curve.rows]
    assert seconds == sorted(seconds)
    assert list(CheckpointedRun.resume(tmp_path / "run.npz").convergence(0)) == []


def test_a_run_that_a_time_limit_stops_before_its_first_iteration_can_be_resumed(tmp_path):
    run = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz")
    assert [row.iteration for row in run.convergence(10, time_limit=0)] == [0]
    resumed = CheckpointedRun.resume(tmp_path / "run.npz")
    assert [row.iteration for row in resumed.convergence(2)] == [1, 2]
    assert [row.iteration for row in read_curve(tmp_path / "run.npz").rows] == [0, 1, 2]


def test_what_is_saved_already_is_not_saved_again(tmp_path):
    run = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz")
    list(run.convergence(10))
    os.remove(tmp_path / "run.npz")
    run.save()
    assert os.listdir(tmp_path) == []


def test_a_plain_save_has_no_rows(tmp_path):
    CFRPlusSolver(KUHN).save(tmp_path / "solver.npz")
    assert read_curve(tmp_path / "solver.npz") == Curve()


@pytest.mark.parametrize("every", [-1, math.nan])
def test_intervals_that_make_no_sense_are_refused(every, tmp_path):
    with pytest.raises(ValueError, match="every must be a number of seconds of 0 or more"):
        CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz", every=every)


@pytest.mark.parametrize(
    ("make_solver", "words"),
    [
        (lambda: KUHN, "expected a solver, such as CFRPlusSolver(game), got "),
        (lambda: Solver.of_minimizers(KUHN, CFR), "cannot save CFR: its minimizers are Python objects"),
    ],
    ids=["game", "minimizers"],
)
def test_what_cannot_be_saved_is_refused_before_it_runs(make_solver, words, tmp_path):
    with pytest.raises(TypeError, match=mentions(words)):
        CheckpointedRun(make_solver(), tmp_path / "run.npz")


def test_a_path_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "missing" / "run.npz")
    CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []


def test_an_interval_that_is_no_number_is_named(tmp_path):
    for every in ("5", None):
        with pytest.raises(TypeError, match=f"every must be a number, got {every!r}"):
            CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz", every=every)


def test_curves_survive_as_arrays():
    rows = (Row(1, 0.1, 0.5, 0.25, -0.1, None), Row(2**53 - 1, 0.25, 0.0, None, 1 / 3, 0.125, 2**40 + 1))
    curve = Curve(rows, 0.5, True)
    assert Curve.from_array(curve.to_array(), 0.5, True) == curve
    assert [row.peak_bytes for row in Curve.from_array(curve.to_array(), 0.5, True).rows] == [None, 2**40 + 1]
    assert Curve.from_array(Curve().to_array(), 0.0, False) == Curve()


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((2, 5)),
        np.zeros((2, 7), np.float32),
        np.zeros((2, 7)),  # twice iteration 0
        np.full((1, 7), np.nan),
        np.full((1, 7), 0.5),
        np.full((1, 7), -2.0),
        np.array([[1.0, 0.1, 0.1, 0.05, 0.0, np.nan, np.inf]]),  # infinitely many bytes
    ],
)
def test_other_arrays_are_no_curve(rows):
    with pytest.raises(ValueError, match="rows are"):
        Curve.from_array(rows, 0.0, False)
    with pytest.raises(ValueError, match="after nan seconds"):
        Curve.from_array(Curve().to_array(), math.nan, False)


def own_handler(number, frame):
    """Somebody else's."""


def test_handlers_are_restored_and_those_of_others_left_alone():
    previous = signal.signal(signal.SIGHUP, own_handler)
    try:
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        with stop_signals.StopSignals().heard():
            assert signal.getsignal(signal.SIGHUP) is own_handler
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is own_handler
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, previous)


@pytest.fixture
def stops():
    yield stop_signals.StopSignals()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def raise_at_once():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.raise_signal(signal.SIGHUP)


def test_a_signal_is_raised_at_once_and_later_ones_are_ignored(stops):
    with pytest.raises(stop_signals.Stopped, match="stopped by SIGTERM") as stopped, stops.heard():
        raise_at_once()
    assert stopped.value.exit_code == 143
    signal.raise_signal(signal.SIGTERM)  # would end the process


def test_a_deferred_signal_is_raised_when_it_is_asked_for(stops):
    done = []

    def act():
        run = stops.checked(done.append)
        run(1)
        signal.raise_signal(signal.SIGHUP)
        done.append("between")
        run(2)
        done.append("never")

    with pytest.raises(stop_signals.Stopped, match="SIGHUP"), stops.heard(), stops.deferred():
        act()
    assert done == [1, "between", 2]
    with pytest.raises(stop_signals.Stopped, match="SIGHUP"), stops.deferred():
        done.append("end")
    assert done[-1] == "end"


def test_ctrl_c_is_heard_a_second_time(stops):
    heard = []

    def press_twice():
        for _ in range(2):
            heard.append(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        heard.append("never")

    with pytest.raises(stop_signals.Stopped, match="interrupted") as stopped, stops.heard(), stops.deferred():
        press_twice()
    assert stopped.value.exit_code == 130
    assert heard == [signal.SIGINT] * 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
