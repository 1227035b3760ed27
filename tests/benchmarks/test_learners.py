"""benchmarks/learners.py as a user runs it, on Kuhn poker without LiteEFG; times are not checked."""

import json
import subprocess
import sys

import pytest
from repository import ROOT

from spiel_cfrplus import ALGORITHMS

FOLDER = ROOT / "benchmarks"


@pytest.fixture
def learners(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import learners

    return learners


def run(*flags):
    """Exit code, standard output and standard error."""
    command = [sys.executable, str(FOLDER / "learners.py"), "--games", "kuhn_poker", "--blocks=2", "--seconds=0.001"]
    result = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=600, check=False)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.slow
def test_three_algorithms_one_without_python_objects(tmp_path):
    path = tmp_path / "numbers.jsonl"
    code, output, errors = run("--algorithms", "pcfr+", "dilated_entropy", "cfr-br", f"--json={path}")
    assert code == 0, errors
    rows = {tuple(row["key"]): row["numbers"] for row in map(json.loads, path.read_text().splitlines())}
    assert list(rows) == [(name, "kuhn_poker") for name in ("pcfr+", "dilated_entropy", "cfr-br")]
    assert all(len(numbers["compiled"]) == 2 for numbers in rows.values())
    assert len(rows["dilated_entropy", "kuhn_poker"]["python"]) == 2
    assert rows["cfr-br", "kuhn_poker"]["python"] == "two minimizers in self-play are not CFR-BR"
    assert "| `cfr-br` | kuhn_poker | " in output


@pytest.mark.slow
def test_an_interpreter_without_liteefg_is_noted(tmp_path):
    path = tmp_path / "numbers.jsonl"
    code, output, errors = run("--algorithms", "cfr", "pcfr", "--liteefg", sys.executable, f"--json={path}")
    assert code == 0, errors
    rows = {tuple(row["key"]): row["numbers"] for row in map(json.loads, path.read_text().splitlines())}
    assert isinstance(rows["cfr", "kuhn_poker"]["liteefg"], str)
    assert rows["pcfr", "kuhn_poker"]["liteefg"] == "no counterpart"
    assert "| `predictive_dilated_entropy` | `DOMD(eta=0.1, " in output


def test_an_unknown_algorithm_is_an_error():
    code, output, errors = run("--algorithms", "cfr++")
    assert (code, output) == (2, "")
    assert "unknown algorithms cfr++" in errors


def test_counterparts_are_of_algorithms_and_take_their_options(learners):
    for name, counterpart in learners.COUNTERPARTS.items():
        for option in counterpart.matching:
            assert not ALGORITHMS[name].option_refusal(option)


def test_a_policy_of_another_algorithm_does_not_pass_the_check(learners):
    other = learners.compiled("dcfr", "kuhn_poker")
    other.run(learners.CHECKED_ITERATIONS)
    learners.check("python", "dcfr", "kuhn_poker", other.current_policy())
    with pytest.raises(learners.DifferentResultsError, match="lcfr on kuhn_poker: NashConv"):
        learners.check("python", "lcfr", "kuhn_poker", other.current_policy())
