"""benchmarks/comparison.py and roofline.py as a user runs them, on one game; times are not checked."""

import json
import subprocess
import sys
import venv

import pyspiel
import pytest
from repository import ROOT

SCRIPT = ROOT / "benchmarks" / "comparison.py"
ROOFLINE = SCRIPT.with_name("roofline.py")


def compare(*flags):
    """Exit code, standard output and standard error."""
    command = [sys.executable, str(SCRIPT), "--settle=1", "--blocks=1", "--limit=60", *flags]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return result.returncode, result.stdout, result.stderr


def openspiel_iterations(target):
    """The first of 1, 2, 5, 10, ... iterations after which OpenSpiel's CFR+ on Kuhn poker reaches the NashConv."""
    game = pyspiel.load_game("kuhn_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for iteration in range(1, 10001):
        solver.evaluate_and_update_policy()
        if str(iteration).strip("0") in ("1", "2", "5") and pyspiel.nash_conv(game, solver.average_policy()) <= target:
            return iteration
    raise AssertionError(f"no NashConv of {target}")


@pytest.mark.slow
def test_a_comparison_of_two_solvers_with_one_absent(tmp_path):
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    path = tmp_path / "numbers.json"
    flags = ["--solvers", "spiel_cfrplus", "openspiel_cpp", "noregret", "--python", f"noregret={python}", f"--json={path}"]
    code, output, errors = compare("--games", "kuhn", *flags)
    assert code == 0, errors
    note = "No module named 'noregret'"
    assert f"* noregret: omitted, {note}" in output
    numbers = json.loads(path.read_text())
    assert numbers["solvers"]["noregret"] == {"absent": note}
    results = numbers["games"]["kuhn"]
    assert list(results) == ["spiel_cfrplus", "openspiel_cpp"]
    for solver, result in results.items():
        assert "note" not in result
        assert result["check"] < 1e-9
        assert result["seconds_per_iteration"] > 0
        assert list(result["seconds_to"]) == ["0.01", "0.001", "0.0001"]
        assert f"| {solver} | " in output
    assert results["openspiel_cpp"]["iterations_to"] == {
        f"{target:g}": openspiel_iterations(target) for target in (1e-2, 1e-3, 1e-4)
    }
    assert results["openspiel_cpp"]["times_openspiel_cpp"] == 1


def test_an_unknown_solver_is_an_error():
    code, output, errors = compare("--python", "regret=python")
    assert (code, output) == (2, "")
    assert "expected SOLVER=PATH" in errors


def roofline(*flags):
    """The output of roofline.py for Kuhn poker with uniform strategies."""
    command = [sys.executable, str(ROOFLINE), "--games", "kuhn_poker", "--settle=0", "--seconds=0.01", *flags]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_the_floor_of_kuhn_poker():
    whole, reduced = json.loads(roofline("--json"))
    assert [whole["reduced"], reduced["reduced"]] == [False, True]
    # 30 ends, for each of two players an entry; 13 sequences and 7 infostates each, the empty ones included.
    assert whole["entries"] == 60
    assert whole["sequences"] == 26
    # All 24 rows are reached. No utility is there yet, so that learning reads zeros only.
    assert whole["indexed"] == (60 + 24) + 0 + 14
    assert whole["operations"] == (2 * 60 + 24) + 0 + 26 + 2 * 26
    gradient, learning = 2 * 8 * 26 + (4 + 4) * 24 + 12 * 60, 8 * 26 + 4 * 14
    assert whole["bytes"] == gradient + learning + (16 * 26 + 8 * 14) + 24 * 26
    assert whole["floor"] > 0


def test_the_scaling_table_has_one_line_for_each_game():
    lines = roofline("--scaling").splitlines()
    assert lines[1].split()[:3] == ["kuhn_poker", "60", "26"]
    assert lines[2].startswith("slowest / fastest per entry: 1.00")
