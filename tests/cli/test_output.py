"""The flag --output: rows in a file while runs are in progress."""

import dataclasses
import subprocess
import sys
import time

import pytest
from repository import ROOT, SCRIPTS

from spiel_cfrplus.analysis.convergence import report_iterations
from spiel_cfrplus.analysis.row_files import load_rows
from spiel_cfrplus.solving.checkpoint import read_curve


def command(*flags):
    return [sys.executable, str(SCRIPTS / "run.py"), "--noverify", *flags]


def run(*flags):
    return subprocess.run(command(*flags), capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)


def test_rows_of_all_algorithms_are_written(tmp_path):
    path = tmp_path / "rows.csv"
    result = run("--algorithm=cfr,cfr+", "--iterations=100", "--rows_per_decade=8", f"--output={path}")
    assert result.returncode == 0, result.stderr
    rows = load_rows(path)
    assert list(rows) == ["cfr", "cfr+"]
    for algorithm in rows:
        assert [row.iteration for row in rows[algorithm]] == list(report_iterations(0, 100, per_decade=8))
    assert f"{rows['cfr+'][-1].nash_conv:.6e}" in result.stdout


def test_a_run_that_is_killed_and_resumed_has_all_rows_once(tmp_path):
    path, checkpoint = tmp_path / "rows.jsonl", tmp_path / "run.npz"
    flags = (f"--output={path}", f"--checkpoint={checkpoint}", "--print_freq=1000", "--game=leduc_poker")
    process = subprocess.Popen(command(*flags, "--iterations=1000000000"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not path.exists() or len(load_rows(path).get("cfr+", ())) < 20 or not checkpoint.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = load_rows(path)["cfr+"]
    assert [row.iteration for row in before] == [1000 * (number + 1) for number in range(len(before))]
    saved = read_curve(checkpoint).rows
    assert len(saved) <= len(before)
    last = before[-1].iteration + 500
    result = run(*flags, f"--iterations={last}")
    assert result.returncode == 0, result.stderr
    (after,) = load_rows(path).values()
    assert [row.iteration for row in after] == [*range(1000, last, 1000), last]
    assert after == read_curve(checkpoint).rows
    # Rows after the checkpoint are measured again: the same numbers, after other seconds.
    assert [dataclasses.replace(row, seconds=0) for row in after[: len(before)]] == [
        dataclasses.replace(row, seconds=0) for row in before
    ]
    assert after[: len(saved)] == saved


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--output=rows.txt"], "--output=rows.txt: the name of a file of rows must end in .csv or .jsonl"),
        (["--output=no_such_folder/rows.csv"], "--output=no_such_folder/rows.csv: "),
        (["--output=a.csv", "--save_policy=a.csv"], "--output and --save_policy are both to be written to a.csv"),
        (["--rows_per_decade=8", "--print_freq=5"], "--print_freq and --rows_per_decade cannot be combined"),
        (["--crosscheck", "--output=a.csv"], "--output has no effect with --crosscheck"),
        (["--rows_per_decade=0"], "--rows_per_decade=0"),
    ],
)
def test_invalid_flags_are_one_line_and_exit_code_2(flags, words):
    result = run(*flags)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
