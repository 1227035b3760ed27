"""Sweeps: tables, restarts, refusals. Runs are in this process; tests/sweeps/test_engines.py has the others."""

import csv
import os
import shlex
import subprocess
import sys

import pyspiel
import pytest
from repository import ROOT, SCRIPTS

from spiel_cfrplus import make_solver
from spiel_cfrplus._utils.files import locked
from spiel_cfrplus.game import walk_cache
from spiel_cfrplus.sweeps import runs, sweep
from spiel_cfrplus.sweeps.plans import plan_sweep
from spiel_cfrplus.sweeps.sweep import run_sweep

PLANS = plan_sweep(["kuhn_poker", "matrix_rps"], ["cfr", "cfr+"], iterations=50, alternating=[True, False])


def run(plans, folder, **options):
    return run_sweep(plans, folder, engine="serial", **options)


@pytest.fixture
def performed(monkeypatch):
    """The ids of the runs that are done."""
    ids = []

    def perform(task):
        ids.append(task.plan.id)
        return runs.perform(task)

    monkeypatch.setattr(sweep, "perform", perform)
    return ids


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_the_results_of_separate_runs(tmp_path):
    table = run(PLANS, tmp_path / "new" / "folder")
    assert [row["run"] for row in table] == [plan.id for plan in PLANS]
    for row, plan in zip(table, PLANS, strict=True):
        solver = make_solver(
            plan.algorithm,
            pyspiel.load_game(f"turn_based_simultaneous_game(game={plan.game}())")
            if plan.game == "matrix_rps"
            else pyspiel.load_game(plan.game),
            alternating=plan.alternating,
        )
        solver.run(50)
        assert (row["status"], row["message"], row["iteration"]) == ("done", "", 50)
        assert row["nash_conv"] == solver.nash_conv()
        assert row["exploitability"] == row["nash_conv"] / 2
        assert (row["num_histories"], row["num_infostates"]) == (solver.game.tree.num_histories, solver.game.num_infostates)


def test_the_files_are_the_tables(tmp_path):
    table = run(PLANS[:2], tmp_path)
    rows = read_csv(tmp_path / "runs.csv")
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in table] == rows
    curves = read_csv(tmp_path / "curves.csv")
    assert [int(row["iteration"]) for row in curves if row["run"] == PLANS[0].id] == [
        1,
        2,
        3,
        4,
        6,
        7,
        10,
        13,
        18,
        24,
        32,
        42,
        50,
    ]
    assert float(curves[-1]["nash_conv"]) == table[1]["nash_conv"]
    assert {row["game"] for row in curves} == {"kuhn_poker"}


def test_parquet_files_have_the_same_rows_and_types(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow, of the extra sweep, is not installed")
    table = run([*PLANS[:1], *plan_sweep(["kuhn"], ["cfr"])], tmp_path)
    read = parquet.read_table(tmp_path / "runs.parquet")
    assert read.to_pylist() == table
    assert str(read.schema.field("step_size").type) == "double"  # all are missing
    assert parquet.read_table(tmp_path / "curves.parquet").num_rows == len(read_csv(tmp_path / "curves.csv"))


def test_a_restart_does_what_is_missing_only(tmp_path, performed):
    run(PLANS[:3], tmp_path)
    before = read_csv(tmp_path / "runs.csv")
    performed.clear()
    os.unlink(tmp_path / "runs.csv")
    table = run(PLANS, tmp_path)
    assert performed == [plan.id for plan in PLANS[3:]]
    assert read_csv(tmp_path / "runs.csv")[:3] == before
    assert len(table) == len(PLANS)
    performed.clear()
    assert run(PLANS, tmp_path) == table
    assert performed == []


def test_an_interrupted_run_continues_from_its_checkpoint(tmp_path, monkeypatch):
    (whole,) = run(PLANS[:1], tmp_path / "whole")
    finish = runs.RowFile.write
    rows_written = []

    def write_and_interrupt(file, name, row):
        finish(file, name, row)
        rows_written.append(row.iteration)
        if len(rows_written) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(runs.RowFile, "write", write_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(PLANS[:1], tmp_path / "parts")
    assert read_csv(tmp_path / "parts" / "runs.csv") == []
    (row,) = run(PLANS[:1], tmp_path / "parts")
    assert rows_written == [1, 2, 3, 4, 6, 7, 10, 13, 18, 24, 32, 42, 50]
    assert {**row, "seconds": 0, "peak_bytes": 0} == {**whole, "seconds": 0, "peak_bytes": 0}
    curves = [[line["iteration"] for line in read_csv(tmp_path / part / "curves.csv")] for part in ("whole", "parts")]
    assert curves[0] == curves[1]


def test_a_game_is_walked_once(tmp_path, monkeypatch):
    walked = []
    plain = walk_cache.walk_whole_game

    def count(*arguments, **options):
        walked.append(str(arguments[0]))
        return plain(*arguments, **options)

    monkeypatch.setattr(walk_cache, "walk_whole_game", count)
    runs._compiled.cache_clear()
    run(PLANS[:4], tmp_path)
    runs._compiled.cache_clear()
    run(plan_sweep(["kuhn_poker"], ["dcfr"], iterations=5), tmp_path)
    assert walked == ["kuhn_poker()"]


def test_refused_and_failed_runs_are_rows(tmp_path, monkeypatch, performed):
    plans = [
        *plan_sweep(["kuhn_poker"], ["cfr-br", "cfr"], iterations=5, alternating=[True, False]),
        *plan_sweep(["kuhn", "leduc_poker(plyers=2)", "hex(board_size=100000)", "catch"], ["cfr"], iterations=5),
        *plan_sweep(["leduc_poker"], ["cfr"], iterations=5, max_histories=1000),
        *plan_sweep(["kuhn_poker"], ["cfr"], iterations=5, averaging_delay=-1),
    ]
    plain = runs.make_solver

    def make_or_fail(algorithm, game, **options):
        if algorithm.name == "cfr" and options["alternating"]:
            raise MemoryError("memory ran out")
        return plain(algorithm, game, **options)

    monkeypatch.setattr(runs, "make_solver", make_or_fail)
    table = run(plans, tmp_path)
    statuses = {(row["game"], row["algorithm"], row["alternating"], row["averaging_delay"]): row["status"] for row in table}
    assert list(statuses.values()) == ["done", "refused", "failed", "done", *["refused"] * 6]
    messages = [row["message"] for row in table]
    assert messages[0] == messages[3] == ""
    for message, words in zip(
        [messages[1], messages[2], *messages[4:]],
        [
            "cfr-br takes no alternating: each player learns alone",
            "MemoryError: memory ran out",
            "cannot load 'kuhn': ",
            "cannot load 'leduc_poker(plyers=2)': ",
            "cannot load 'hex(board_size=100000)': ",
            "has no information-state strings",
            "max_histories=1000",
            "the number of iterations to skip must not be negative",
        ],
        strict=True,
    ):
        assert words in message
        assert "\n" not in message
    assert all(row["nash_conv"] is None for row in table if row["status"] != "done")
    performed.clear()
    monkeypatch.setattr(runs, "make_solver", plain)
    assert run(plans, tmp_path) == table
    assert performed == []
    again = run(plans, tmp_path, retry=True)
    assert performed == [plans[2].id]
    assert [row["status"] for row in again] == ["done", "refused", "done", "done", *["refused"] * 6]


def test_a_target_ends_a_run(tmp_path):
    plans = plan_sweep(["kuhn_poker"], ["cfr+"], iterations=10**6, target_nash_conv=0.01)
    (row,) = run(plans, tmp_path)
    assert (row["status"], row["iteration"] < 1000, row["nash_conv"] <= 0.01) == ("done", True, True)
    os.unlink(tmp_path / "runs" / row["run"] / "outcome.json")  # as if it had been killed before the last write
    (again,) = run(plans, tmp_path)
    assert again["iteration"] == row["iteration"]


def test_the_command_of_a_row_repeats_the_run(tmp_path):
    plans = plan_sweep(["leduc_poker"], ["dcfr"], iterations=70, alternating=False, averaging="openspiel", averaging_power=1.5)
    (row,) = run(plans, tmp_path)
    program, *flags = shlex.split(row["command"])
    assert program == "spiel-cfrplus"
    command = [sys.executable, str(SCRIPTS / "run.py"), *flags, "--noverify"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=True)
    iteration, _, nash_conv, exploitability, value = result.stdout.splitlines()[-1].split()
    assert (int(iteration), nash_conv) == (70, f"{row['nash_conv']:.6e}")
    assert (exploitability, value) == (f"{row['exploitability']:.6e}", f"{row['value']:.9f}")


def test_a_folder_is_for_one_sweep_at_a_time(tmp_path):
    (tmp_path / "lock").touch()
    with locked(tmp_path / "lock"), pytest.raises(BlockingIOError, match="another process runs a sweep in this folder"):
        run(PLANS, tmp_path)
    assert len(run(PLANS[:1], tmp_path)) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "spark"}, "unknown engine 'spark'; choose one of serial, joblib, dask, ray"),
        ({"engine": "serial", "address": "x"}, "an address is for the engines dask and ray, not for serial"),
        ({"engine": "serial", "jobs": 2}, "a number of jobs is for processes of this machine, not for serial"),
        ({"engine": "joblib", "jobs": 0}, "the number of jobs must be an integer of 1 or more, got 0"),
        ({"engine": "serial", "checkpoint_every": -1}, "checkpoint_every must be a number of seconds of 0 or more, got -1"),
    ],
)
def test_invalid_arguments_are_refused_before_any_work(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        run_sweep(PLANS, tmp_path / "sweep", **options)
    assert not (tmp_path / "sweep").exists()
