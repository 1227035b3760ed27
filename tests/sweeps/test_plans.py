"""Plans of sweeps."""

import dataclasses
import inspect

import pytest

from spiel_cfrplus import Averaging, Solver
from spiel_cfrplus.sweeps.plans import OPTIONS, RunPlan, plan_sweep, read_plans


def test_all_combinations_are_planned_once_in_order():
    plans = plan_sweep(["kuhn_poker", "leduc_poker"], ["cfr", "cfr+"], alternating=[True, False], iterations=[5, 5])
    assert [(plan.game, plan.algorithm, plan.alternating) for plan in plans] == [
        (game, algorithm, alternating)
        for game in ("kuhn_poker", "leduc_poker")
        for algorithm in ("cfr", "cfr+")
        for alternating in (True, False)
    ]
    assert {plan.iterations for plan in plans} == {5}


def test_a_file_is_the_same_plan(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("""
games = ["kuhn_poker", "goofspiel(num_cards=3,imp_info=true)"]
algorithms = ["cfr", "cfr+"]
iterations = 100
averaging_power = [1, 2.5]
reduce = "off"
""")
    games = ["kuhn_poker", "goofspiel(num_cards=3,imp_info=true)"]
    assert read_plans(path) == plan_sweep(games, ["cfr", "cfr+"], iterations=100, averaging_power=[1.0, 2.5], reduce="off")


def test_whole_numbers_may_be_floats(tmp_path):
    (tmp_path / "sweep.toml").write_text('games = "kuhn_poker"\nalgorithms = "cfr"\niterations = 1e3')
    assert read_plans(tmp_path / "sweep.toml") == plan_sweep("kuhn_poker", "cfr", iterations=1000)
    with pytest.raises(TypeError, match=r"iterations must be of type int, got 1000\.5"):
        plan_sweep("kuhn_poker", "cfr", iterations=1000.5)


def test_ids_depend_on_all_attributes_and_on_defaults_only_by_value():
    plan = RunPlan("leduc_poker(players=3)", "user_rules:plain_plus", iterations=7)
    assert plan.id.startswith("leduc_poker-user_rules_plain_plus-")
    assert plan.id == RunPlan("leduc_poker(players=3)", "user_rules:plain_plus", 7, True, rows_per_decade=8).id
    others = {
        "game": "leduc_poker(players=4)",
        "algorithm": "cfr+",
        "iterations": 8,
        "alternating": False,
        "averaging": "openspiel",
        "averaging_power": 0.0,
        "averaging_delay": 1,
        "step_size": 1.0,
        "prediction_weight": 0.5,
        "reduce": "off",
        "exact_ties": False,
        "threads": 2,
        "last_iterate": True,
        "target_nash_conv": 0.0,
        "time_limit": 0.0,
        "max_histories": 1,
        "print_freq": 1,
        "rows_per_decade": 9,
        "modules": "games_of_a_sweep",
    }
    assert others.keys() == vars(plan).keys()
    ids = {dataclasses.replace(plan, **{name: value}).id for name, value in others.items()}
    assert len(ids | {plan.id}) == 1 + len(others)


def test_commands_have_all_options():
    assert RunPlan("kuhn_poker", "cfr").command == (
        "spiel-cfrplus --game=kuhn_poker --algorithm=cfr --iterations=10000 --rows_per_decade=8"
    )
    plan = RunPlan("leduc_poker(players=3)", "dcfr", 9, False, "openspiel", 1.5, 2, exact_ties=False, print_freq=3)
    assert plan.command == (
        "spiel-cfrplus '--game=leduc_poker(players=3)' --algorithm=dcfr --iterations=9 --noalternating --averaging=openspiel "
        "--averaging_power=1.5 --averaging_delay=2 --noexact_ties --print_freq=3"
    )


def test_every_option_of_solvers_is_an_option_of_sweeps_unless_a_checkpoint_or_a_table_cannot_have_it():
    options = set(inspect.signature(Solver).parameters) - {"game", "rule", "record_regrets"}
    assert options < set(OPTIONS)


def test_files_are_relative_to_the_plan_and_part_of_the_id_by_content(tmp_path, monkeypatch):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rps.nfg").write_text("some content")
        (tmp_path / folder / "plan.toml").write_text(
            'games = ["rps.nfg", "kuhn_poker"]\nalgorithms = "cfr"\nmodules = ["a", "b"]'
        )
    monkeypatch.chdir(tmp_path)
    here, kuhn = read_plans("here/plan.toml")
    assert (here.game, kuhn.game, kuhn.modules) == (str(tmp_path / "here" / "rps.nfg"), "kuhn_poker", "a,b")
    assert f"--game={here.game}" in here.command
    assert "--import=a,b" in here.command
    there, _ = read_plans(tmp_path / "there" / "plan.toml")
    assert here.id == there.id
    assert here.id.startswith("rps-cfr-")
    (tmp_path / "there" / "rps.nfg").write_text("other content")
    assert here.id != there.id
    (tmp_path / "there" / "rps.nfg").unlink()
    assert len({here.id, there.id}) == 2
    monkeypatch.chdir(tmp_path / "here")
    assert plan_sweep("rps.nfg", "cfr", modules=["a", "b"]) == (here,)


def test_the_default_weights_are_those_of_the_algorithm():
    assert RunPlan("kuhn_poker", "dcfr").weights() == Averaging(2.0)
    assert RunPlan("kuhn_poker", "dcfr", averaging_power=0, averaging_delay=5).weights() == Averaging(0.0, delay=5)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"iteratoins": 5}, ValueError, "unknown option iteratoins; did you mean iterations?"),
        ({"zzz": 5}, ValueError, "unknown option zzz; options are iterations, alternating, "),
        ({"iterations": []}, ValueError, "iterations is an empty list"),
        ({"iterations": "5"}, TypeError, "iterations must be of type int, got '5'"),
        ({"iterations": True}, TypeError, "iterations must be of type int, got True"),
        ({"alternating": 1}, TypeError, "alternating must be of type bool, got 1"),
        ({"averaging": "linear"}, ValueError, "averaging must be one of paper, openspiel, got 'linear'"),
        ({"reduce": "never"}, ValueError, "reduce must be one of auto, on, off, got 'never'"),
        ({"step_size": "1"}, TypeError, "step_size must be a number, got '1'"),
        ({"modules": [1]}, TypeError, "modules must be names, got [1]"),
        ({"module": ["a"]}, ValueError, "unknown option module; did you mean modules?"),
    ],
)
def test_invalid_options_are_refused(options, error, words):
    with pytest.raises(error) as caught:
        plan_sweep(["kuhn_poker"], ["cfr"], **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("games = [", "sweep.toml is not a TOML file"),
        ('algorithms = ["cfr"]', "sweep.toml: no games; write games = [...]"),
        ('games = "kuhn_poker"', "sweep.toml: no algorithms; write algorithms = [...]"),
        ('games = "kuhn_poker"\nalgorithms = ["cfr++"]', "sweep.toml: unknown algorithm 'cfr++'"),
        ('games = [1]\nalgorithms = ["cfr"]', "sweep.toml: game must be of type str, got 1"),
        ('games = "kuhn_poker"\nalgorithms = "cfr"\ngame = "x"', "sweep.toml: unknown option game; did you mean games?"),
    ],
)
def test_invalid_files_are_refused(text, words, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"sweep\.toml") as caught:
        read_plans(path)
    assert words in str(caught.value)
