"""benchmarks/rules.py as a user runs it, on Kuhn poker; times are not checked."""

import json
import subprocess
import sys

import pytest
from repository import ROOT

FOLDER = ROOT / "benchmarks"


def run(*flags):
    """Exit code, standard output and standard error."""
    command = [sys.executable, str(FOLDER / "rules.py"), "--games", "kuhn", "--starts=1", "--blocks=2", "--seconds=0.001"]
    result = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=600, check=False)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.slow
def test_a_rule_of_a_user_beside_the_built_in_one(tmp_path):
    path = tmp_path / "numbers.jsonl"
    code, output, errors = run("--threads", "1", f"--json={path}")
    assert code == 0, errors
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["key"] for row in rows] == [["kuhn", variant, "1", "cfr+"] for variant in ("whole", "reduced")]
    for row in rows:
        assert [len(times) for times in row["numbers"].values()] == [2, 2]
        assert all(seconds > 0 for times in row["numbers"].values() for seconds in times)
    assert "| kuhn | reduced | 1 | cfr+ | " in output
    # What is in the file is not measured again.
    assert run("--threads", "1", f"--json={path}")[1] == output


@pytest.mark.slow
def test_another_checkout_beside_this_one():
    code, output, errors = run("--other", str(ROOT), "--algorithms", "pcfr+", "--variants", "whole")
    assert code == 0, errors
    assert "| kuhn | whole | 1 | pcfr+ | " in output
    assert output.splitlines()[0].startswith("| game | variant | threads | algorithm | other, µs | this, µs | ratio | ")


def test_a_folder_without_the_package_is_an_error(tmp_path):
    code, output, errors = run("--other", str(tmp_path))
    assert (code, output) == (2, "")
    assert "contains no package spiel_cfrplus" in errors


@pytest.mark.slow
def test_contenders_with_other_results_are_an_error(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import pytest
    import rules

    contenders = {"a": rules.Contender("cfr"), "b": rules.Contender("cfr+")}
    options = {"settle": 10, "starts": 1, "blocks": 1, "block_seconds": 0.001, "limit": 120}
    with pytest.raises(rules.DifferentResultsError, match="a, b have different policies on kuhn_poker"):
        rules.measure(contenders, "kuhn_poker", False, 1, **options)


def test_the_rule_of_the_user_is_that_of_the_documentation():
    page = (ROOT / "docs" / "local_rules.md").read_text()
    decorator = (FOLDER / "user_rule.py").read_text().split("\n\n\n")[1].splitlines()
    statements = [line for line in decorator if '"""' not in line]
    assert "\n".join([f">>> {statements[0]}", *(f"... {line}" for line in statements[1:])]) in page
