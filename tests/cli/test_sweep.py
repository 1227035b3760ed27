"""The subcommand sweep."""

import importlib
import json
import sys

import pytest
from absl import flags

from spiel_cfrplus.cli import subcommands, sweep
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.sweeps.plans import plan_sweep
from spiel_cfrplus.sweeps.sweep import run_sweep


def test_a_file_and_flags_are_the_same_sweep(tmp_path, capsys):
    plan = tmp_path / "sweep.toml"
    plan.write_text(
        'games = ["kuhn_poker", "goofspiel(num_cards=2,imp_info=true)"]\nalgorithms = "cfr"\n'
        "iterations = 5\nalternating = [true, false]\n"
    )
    assert subcommands.run(sweep, [str(plan), str(tmp_path / "a"), "--engine=serial"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[-1] == f"4 runs in {tmp_path / 'a'}/runs.csv"
    options = ["--games=kuhn_poker,goofspiel(num_cards=2,imp_info=true)", "--algorithms=cfr", "--iterations=5"]
    arguments = [str(tmp_path / "a"), "--alternating=true,false", "--engine=serial", "--json", *options]
    assert subcommands.run(sweep, arguments) == 0
    output, _ = capsys.readouterr()
    games = ["kuhn_poker", "goofspiel(num_cards=2,imp_info=true)"]
    plans = plan_sweep(games, ["cfr"], iterations=5, alternating=[True, False])
    assert [json.loads(line) for line in output.splitlines()] == run_sweep(plans, tmp_path / "a", engine="serial")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "usage: sweep FILE.toml FOLDER"),
        (["a"], "--games is missing"),
        (["a", "--games=kuhn_poker"], "--algorithms is missing"),
        (["no_such_file.toml", "a"], "no_such_file.toml"),
        (["no_such_file.toml", "a", "--games=kuhn_poker"], "--games has no effect with no_such_file.toml"),
        (
            ["no_such_file.toml", "a", "--import=x"],
            "--import has no effect with no_such_file.toml; write modules = [...] in it",
        ),
        (["a", "--games=kuhn_poker", "--algorithms=cfr", "--import=no_such_module"], "cannot import no_such_module: No module"),
        (["a", "--games=kuhn_poker", "--algorithms=cfr++"], "unknown algorithm 'cfr++'"),
        (["a", "--games=kuhn_poker", "--algorithms=cfr", "--iterations=x"], "--iterations=x: values are numbers"),
        (["a", "--games=kuhn_poker", "--algorithms=cfr", "--engine=serial", "--jobs=2"], "a number of jobs is for processes"),
    ],
)
def test_invalid_arguments_are_refused(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        subcommands.run(sweep, arguments)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_names_of_games_may_have_commas_in_parentheses():
    games = ["a", "b(x=1,game=c(y=2,z=3))", "d(e=f(),g=1)"]
    assert sweep._parsed("games", ", ".join(games)) == games
    assert sweep._parsed("averaging_power", "1,2.5") == [1, 2.5]
    assert sweep._parsed("reduce", "on,auto") == ["on", "auto"]


def test_all_options_of_a_run_are_flags():
    values = flags.FlagValues()
    sweep.define(values)
    attributes = list(vars(plan_sweep(["kuhn_poker"], ["cfr"])[0]))
    assert {"games", "algorithms", "import", *attributes[2:]} - {"modules"} < set(values)


def test_a_rule_of_the_current_folder_is_run_again_after_an_edit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    arguments = ["results", "--games=kuhn_poker", "--algorithms=rules_of_a_sweep:rule", "--iterations=20", "--engine=serial"]
    results = []
    for keep in (1.0, 1.0, 0.1):
        (tmp_path / "rules_of_a_sweep.py").write_text(RULE.format(keep=keep))
        sys.modules.pop("rules_of_a_sweep", None)
        importlib.invalidate_caches()
        assert subcommands.run(sweep, arguments) == 0
        results.append(capsys.readouterr().out)
    assert results[0] == results[1] != results[2]


RULE = """
from spiel_cfrplus.regret_minimizers import local_rule

@local_rule(per_action=("regrets",), parameters={{"keep": {keep}}})
def rule(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max({keep} * memory.regrets[a] + values[a] - point.value, 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)
"""
