"""Files of rows."""

import csv
import json

import pyspiel
import pytest
from fresh_process import run_python

from spiel_cfrplus import CFRPlusSolver
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.row_files import RowFile, check_path, load_rows
from spiel_cfrplus.solving.curve import Row

KUHN = pyspiel.load_game("kuhn_poker")
# A third is 0.333... in decimals, 5e-324 is the smallest double, and 2**53 - 1 needs all of its digits.
ROWS = (
    Row(1, 0.1, 1 / 3, 1 / 6, -0.1, None, 10**9),
    Row(2**53 - 1, 1e7, 5e-324, None, 0.0, 0.125, None),
)


def write(path, **runs):
    with RowFile(path) as file:
        for name, rows in runs.items():
            for row in rows:
                file.write(name, row)


@pytest.mark.parametrize("name", ["rows.csv", "ROWS.JSONL"])
def test_the_same_doubles_are_read(name, tmp_path):
    path = tmp_path / name
    write(path, **{'cfr, with a comma and a "quote"': ROWS, "cfr+": ROWS[1:]})
    loaded = load_rows(path)
    assert list(loaded) == ['cfr, with a comma and a "quote"', "cfr+"]
    for rows, expected in zip(loaded.values(), (ROWS, ROWS[1:]), strict=True):
        assert rows == expected
        assert [row.peak_bytes for row in rows] == [row.peak_bytes for row in expected]
        assert all(isinstance(row.iteration, int) for row in rows)


def test_other_programs_read_the_files(tmp_path):
    write(tmp_path / "rows.csv", cfr=ROWS)
    with open(tmp_path / "rows.csv", newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == ["algorithm", "iteration", "seconds", "nash_conv", "exploitability", "value", "cce_gap", "peak_bytes"]
    assert (first["algorithm"], first["nash_conv"], first["cce_gap"]) == ("cfr", "0.3333333333333333", "")
    assert second["iteration"] == "9007199254740991"
    write(tmp_path / "rows.jsonl", cfr=ROWS)
    first, _ = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    assert first == {
        "algorithm": "cfr",
        "iteration": 1,
        "seconds": 0.1,
        "nash_conv": 1 / 3,
        "exploitability": 1 / 6,
        "value": -0.1,
        "cce_gap": None,
        "peak_bytes": 10**9,
    }


def test_a_process_that_is_killed_leaves_its_rows(tmp_path):
    path = tmp_path / "rows.csv"
    run_python(f"""
import os, signal
from spiel_cfrplus.analysis.row_files import RowFile
from spiel_cfrplus.solving.curve import Row
file = RowFile({str(path)!r})
if os.fork() == 0:
    for iteration in range(1, 101):
        file.write("cfr", Row(iteration, 0.0, 1.0, None, 0.0, None))
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
""")
    assert [row.iteration for row in load_rows(path)["cfr"]] == list(range(1, 101))


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_an_incomplete_last_line_is_not_read(name, tmp_path):
    path = tmp_path / name
    write(path, cfr=ROWS)
    path.write_bytes(path.read_bytes()[:-1])
    assert load_rows(path) == {"cfr": ROWS[:1]}


def test_a_new_file_has_the_known_rows_and_replaces_another(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("something else")
    with RowFile(path, {"cfr": ROWS[:1]}) as file:
        assert load_rows(path) == {"cfr": ROWS[:1]}
        file.write("cfr", ROWS[1])
    assert load_rows(path) == {"cfr": ROWS}
    assert list(tmp_path.iterdir()) == [path]


def test_rows_of_a_checkpoint_are_read_too(tmp_path):
    run = CheckpointedRun(CFRPlusSolver(KUHN), tmp_path / "run.npz")
    rows = tuple(run.convergence(10))
    assert load_rows(tmp_path / "run.npz") == {"cfr+": rows}


HEADER = "algorithm,iteration,seconds,nash_conv,exploitability,value,cce_gap,peak_bytes\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rows.csv", "", "line 1: other columns than those of rows"),
        ("rows.csv", "a,b\n", "line 1: other columns than those of rows"),
        ("rows.csv", "x" * 10**6, "line 1: other columns"),
        ("rows.csv", HEADER + "cfr,1,0.1,0.5,,0.0,\n", "line 2: "),
        ("rows.csv", HEADER + "cfr,1.5,0.1,0.5,,0.0,,\n", "line 2: invalid literal for int"),
        ("rows.csv", HEADER + "cfr,1,0.1,nan,,0.0,,\n", "line 2: nash_conv is 'nan'"),
        ("rows.csv", HEADER + "cfr,-1,0.1,1,,0.0,,\n", "line 2: iteration is '-1'"),
        ("rows.csv", HEADER + "cfr,1,0.1,,,0.0,,\n", "line 2: "),
        ("rows.csv", HEADER + 2 * "cfr,1,0.1,1,,0.0,,\n" + "\n", "line 4: "),
        ("rows.jsonl", "[1]\n", "line 1: not an object"),
        ("rows.jsonl", '{"algorithm": "cfr"}\n', "line 1: other columns"),
        ("rows.jsonl", "{\n", "line 1: "),
    ],
)
def test_other_files_are_refused(name, text, words, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"{name} is not a file of rows, or is damaged \({words}"):
        load_rows(path)


def test_names_that_do_not_fit_are_refused(tmp_path):
    for refuse in (RowFile, load_rows, check_path):
        with pytest.raises(ValueError, match=r"the name of a file of rows must end in \.csv or \.jsonl, got '.*rows\.txt'"):
            refuse(tmp_path / "rows.txt")
    with pytest.raises(ValueError, match="the name of a run must be printable"):
        write(tmp_path / "rows.csv", **{"two\nlines": ROWS})
    with pytest.raises(FileNotFoundError, match="no such directory"):
        check_path(tmp_path / "missing" / "rows.csv")


def test_two_writers_of_a_file_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    with RowFile(path) as first:
        with pytest.raises(BlockingIOError, match=r"another process is writing to it: .*rows\.csv"):
            RowFile(path)
        first.write("cfr", ROWS[0])
    assert [*load_rows(path)] == ["cfr"]
    RowFile(path, load_rows(path)).close()
    assert [*load_rows(path)] == ["cfr"]
