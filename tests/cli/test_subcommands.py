"""The subcommands and their flags; `version` stands for all."""

import gc
import importlib.metadata
import json
import subprocess
import sys

import pytest

import spiel_cfrplus
from spiel_cfrplus.cli import entry_point, subcommands, version
from spiel_cfrplus.cli.errors import UsageError


def main(*arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["spiel-cfrplus", *arguments])
    monkeypatch.setattr("warnings.showwarning", None)
    with pytest.raises(SystemExit) as end:
        entry_point.main()
    return end.value.code


@pytest.fixture(autouse=True)
def signals(monkeypatch):
    """The process of the tests keeps its handlers of signals and its collector."""
    for name in ("stop_signals.end_at_once", "stop_signals.ignore", "program.prepare"):
        monkeypatch.setattr(f"spiel_cfrplus.cli.{name}", lambda: None)
    yield
    gc.enable()


def test_a_subcommand_has_its_own_flags(monkeypatch, capsys):
    assert main("version", monkeypatch=monkeypatch) == 0
    output = capsys.readouterr().out
    assert f"spiel_cfrplus {spiel_cfrplus.__version__}\nopen_spiel {importlib.metadata.version('open_spiel')}\n" in output
    assert main("version", "--help", monkeypatch=monkeypatch) == 0
    usage = capsys.readouterr().out
    assert usage.startswith("usage: spiel-cfrplus version")
    assert "--json" in usage
    assert "--iterations" not in usage


def test_help_lists_the_subcommands(monkeypatch, capsys):
    assert main("help", monkeypatch=monkeypatch) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]] == list(subcommands.NAMES)


def test_errors_are_one_line_and_exit_code_2(monkeypatch, capsys):
    for arguments, message in (
        (["version", "--jsno"], "error: Unknown command line flag 'jsno'. Did you mean: json ?\n"),
        (["version", "--json=3"], "error: flag --json=3"),
        (["version", "more"], "error: unexpected argument 'more'"),
    ):
        assert main(*arguments, monkeypatch=monkeypatch) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert error.startswith(message)
        assert error.count("\n") == 1


def test_flags_of_one_call_are_not_those_of_the_next(capsys):
    subcommands.run(version, ["--json"])
    assert json.loads(capsys.readouterr().out)["spiel_cfrplus"] == spiel_cfrplus.__version__
    subcommands.run(version, [])
    assert not capsys.readouterr().out.startswith("{")
    with pytest.raises(UsageError):
        subcommands.run(version, ["--nope"])


def test_solve_prints_rows_as_json_lines_and_all_else_on_standard_error(tmp_path):
    command = [sys.executable, "-m", "spiel_cfrplus", "solve", "--game=matrix_mp", "--iterations=2", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["algorithm"], row["iteration"], row["cce_gap"]) for row in rows] == [("cfr+", 1, None), ("cfr+", 2, None)]
    # Both play heads with probability 1/2, which is the equilibrium, and stay there.
    assert [(row["nash_conv"], row["exploitability"], row["value"]) for row in rows] == [(0, 0, 0)] * 2
    assert "matrix_mp" in result.stderr
    assert "by OpenSpiel" in result.stderr
