"""The table of algorithms: every row is run, as a solver and as Python objects; and what `make_solver` takes and refuses."""

import copy
import dataclasses
import pickle
import re
import subprocess
import sys

import games
import numpy as np
import pyspiel
import pytest
from families import SELF_PLAY, in_python
from repository import ROOT, SCRIPTS

from spiel_cfrplus import (
    ALGORITHMS,
    Algorithm,
    Averaging,
    CFRPlusSolver,
    CFRSolver,
    Solver,
    compile_game,
    evaluate,
    make_solver,
)
from spiel_cfrplus._utils import validation
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.regret_minimizers import CFR, RegretMatchingPlus, local_rule
from spiel_cfrplus.regret_minimizers.minimizer import regret_bound

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
BIASED = compile_game(games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]]))
every_learner = pytest.mark.parametrize("name", SELF_PLAY)

# Of docs/learners.md: iterations after which the average policy is near an equilibrium of Kuhn poker.
SLOW = {"dilated_entropy": 5000, "dilated_euclidean": 2000}


@every_learner
def test_every_learner_solves_kuhn_poker_and_keeps_its_word(name):
    solver = in_python(name, KUHN)
    for _ in range(2):
        solver.run(SLOW.get(name, 500) // 2)
        for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
            assert regret <= regret_bound(minimizer)
    assert solver.nash_conv() < 0.02
    assert solver.average_policy().action_probability_array.shape == (12, 2)


@pytest.mark.slow
@every_learner
def test_every_learner_solves_leduc_poker_and_keeps_its_word(name):
    solver = in_python(name, pyspiel.load_game("leduc_poker"))
    solver.run(10_000)
    for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
        assert regret <= regret_bound(minimizer)
    assert solver.nash_conv() < 0.2


@pytest.mark.parametrize("name", [name for name in SELF_PLAY if "dilated" not in name])
def test_long_games_leave_no_number_out_of_range(name):
    # The last decisions are reached with a probability of about 2^-513: its square is no float64.
    solver = in_python(name, compile_game(games.chain(1100)))
    solver.run(5)
    for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
        assert regret <= regret_bound(minimizer) < np.inf


@pytest.mark.parametrize(("name", "power"), [("cfr", 0), ("cfr+", 1), ("pcfr+", 2), ("pdcfr+", 5), ("predictive_cfr_hedge", 1)])
def test_averages_have_the_weights_that_suit_the_learner(name, power):
    assert in_python(name, KUHN).averaging == Averaging(power)
    assert in_python(name, KUHN, averaging="openspiel").averaging == Averaging(power, "openspiel")


def test_rows_can_be_keys_copied_and_pickled():
    assert len(set(ALGORITHMS.values())) == len(ALGORITHMS)
    for name, algorithm in ALGORITHMS.items():
        assert pickle.loads(pickle.dumps(algorithm)) is copy.deepcopy(algorithm) is algorithm
        solver = make_solver(algorithm, KUHN)
        solver.run(2)
        assert solver.algorithm is ALGORITHMS[name]


def test_auto_says_which_rule_and_average_it_is():
    chosen, named = make_solver("auto", KUHN), make_solver("sapdcfr+", KUHN, averaging=Averaging(5))
    for solver in (chosen, named):
        solver.run(100)
    assert chosen.nash_conv() == named.nash_conv() < 1e-5
    assert "sapdcfr+ with weights t^5" in chosen.algorithm.notes


@every_learner
@pytest.mark.parametrize("game", [compile_game(games.random_efg(3, num_players=3)), BIASED], ids=repr)
def test_regrets_of_simultaneous_play_stay_under_their_bounds(name, game):
    solver = in_python(name, game, alternating=False)
    solver.run(200)
    bounds = [regret_bound(minimizer) for minimizer in solver.self_play.minimizers]
    assert (solver.self_play.regrets() <= bounds).all()
    assert solver.self_play.cce_gap() <= max(bounds) / 200


@every_learner
def test_units_make_no_difference(name):
    plain, scaled = (in_python(name, games.scaled_game(pyspiel.load_game("kuhn_poker"), factor)) for factor in (1, 1e9))
    for solver in (plain, scaled):
        solver.run(50)
    assert scaled.nash_conv() == pytest.approx(1e9 * plain.nash_conv(), rel=1e-6)


@pytest.mark.parametrize("compiled_type", [CFRSolver, CFRPlusSolver])
@pytest.mark.parametrize("alternating", [True, False])
def test_algorithms_and_learners_of_one_name_are_the_same(compiled_type, alternating):
    compiled = compiled_type(KUHN, alternating=alternating)
    written_out = in_python(compiled.algorithm.name, KUHN, alternating=alternating)
    for solver in (compiled, written_out):
        solver.run(100)
    np.testing.assert_array_equal(compiled.average_profile().probabilities, written_out.average_profile().probabilities)
    assert written_out.algorithm.name == compiled.algorithm.name


def test_any_function_of_a_treeplex_makes_a_solver():
    solver = Solver.of_minimizers(KUHN, lambda treeplex: CFR(treeplex, RegretMatchingPlus()), averaging=Averaging(1))
    expected = CFRPlusSolver(KUHN)
    for each in (solver, expected):
        each.run(30)
    np.testing.assert_array_equal(solver.average_profile().probabilities, expected.average_profile().probabilities)


@every_learner
def test_step_sizes(name):
    if "step_size" not in ALGORITHMS[name].parameters:
        with pytest.raises(TypeError, match=rf"^{re.escape(name)} takes no step size$"):
            make_solver(name, KUHN, step_size=1.0)
        return
    with pytest.raises(ValueError, match="step_size must be positive and finite, got -1"):
        make_solver(name, KUHN, step_size=-1.0)
    small, large = (make_solver(name, KUHN, step_size=step_size) for step_size in (0.01, 1.0))
    for solver in (small, large):
        solver.run(1)
    start = make_solver(name, KUHN).current_profile().probabilities
    moved = [np.abs(solver.current_profile().probabilities - start).max() for solver in (small, large)]
    assert 0 < moved[0] < moved[1]


def test_last_iterates_of_predictive_learners_converge():
    # Kuhn poker has many equilibria; that the last strategies come to one is known for these steps (Lee, Kroer, Luo 2021).
    solver = in_python("predictive_gradient_ascent", KUHN)
    *_, row = convergence(solver, 500, last_iterate=True)
    assert row.nash_conv < 1e-12
    assert row.nash_conv == evaluate(KUHN, solver.current_profile()).nash_conv
    assert row.value == pytest.approx(-1 / 18, abs=1e-12)


def test_rows_know_the_distance_from_coarse_correlated_equilibria_where_players_play_together():
    assert [row.cce_gap for row in convergence(CFRSolver(KUHN, alternating=False), 2)] == [None, None]
    assert [row.cce_gap for row in convergence(Solver.of_minimizers(KUHN, CFR), 2)] == [None, None]
    solver = Solver.of_minimizers(KUHN, CFR, alternating=False)
    # The uniform profile: the best responses gain 3/8 and 13/24 (OpenSpiel's best responses are worth 1/2 and 5/12).
    assert next(convergence(solver, 1)).cce_gap == pytest.approx(13 / 24)


@every_learner
def test_copies_go_on_alike_and_apart(name):
    solver = in_python(name, KUHN)
    solver.run(5)
    twin = copy.copy(solver)
    twin.run(5)
    assert solver.iteration == 5
    solver.run(5)
    np.testing.assert_array_equal(twin.average_profile().probabilities, solver.average_profile().probabilities)
    with pytest.raises(TypeError, match=rf"cannot save {re.escape(name)}: its minimizers are Python objects; pickle this one"):
        solver.save("never_written.npz")


def test_solvers_of_importable_minimizers_can_be_pickled():
    solver = Solver.of_minimizers(pyspiel.load_game("kuhn_poker"), CFR)
    solver.run(3)
    twin = pickle.loads(pickle.dumps(solver))
    for each in (solver, twin):
        each.run(3)
    np.testing.assert_array_equal(twin.average_profile().probabilities, solver.average_profile().probabilities)


def test_options_are_checked():
    with pytest.raises(TypeError, match="alternating must be True or False"):
        Solver.of_minimizers(KUHN, CFR, alternating="no")
    with pytest.raises(TypeError, match="averaging must be"):
        Solver.of_minimizers(KUHN, CFR, averaging=3)
    with pytest.raises(ValueError, match="expected one number for each of 13 sequences"):
        Solver.of_minimizers(KUHN, lambda treeplex: CFR(BIASED.treeplexes[0]))


def test_the_table_has_a_row_for_every_learner(tmp_path):
    page = tmp_path / "learners.md"
    command = [sys.executable, str(SCRIPTS / "learners.py"), "--iterations=3", f"--output={page}"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    rows = [line.split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == SELF_PLAY
    assert all(line in page.read_text() for line in result.stdout.splitlines())
    assert [row[1] for row in rows] == ["-"] * len(SELF_PLAY)  # nobody solves Kuhn poker in three iterations
    assert list(tmp_path.iterdir()) == [page]


# What `make_solver` takes.


@local_rule(per_action=("regrets",), parameters={"floor": 0.0}, scale_free=True)
def plus(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, parameters.floor)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)


MINE = Algorithm("mine", plus, averaging_power=2.0, source="these tests")


@pytest.mark.parametrize("what", ["cfr+", ALGORITHMS["cfr+"], RegretMatchingPlus(), plus, MINE], ids=str)
def test_anything_that_can_be_run_makes_a_solver(what):
    solver = make_solver(what, KUHN, averaging=Averaging(1), exact_ties=False)
    expected = CFRPlusSolver(KUHN, exact_ties=False)
    for each in (solver, expected):
        each.run(20)
    np.testing.assert_allclose(
        solver.average_profile().probabilities, expected.average_profile().probabilities, rtol=0, atol=1e-12
    )


def test_what_a_solver_is_named_after():
    assert [str(make_solver(what, KUHN).algorithm) for what in ("cfr+", plus, MINE)] == ["cfr+", "plus", "mine"]
    assert [type(make_solver(name, KUHN)).__name__ for name in ("cfr+", "sapcfr+")] == ["CFRPlusSolver", "Solver"]
    assert repr(make_solver(MINE, KUHN)) == "Solver: mine for kuhn_poker(), 0 iterations"
    assert make_solver(MINE, KUHN).averaging == Averaging(2)
    # A row of another name is no reason to take it for the named class.
    assert type(make_solver(dataclasses.replace(ALGORITHMS["cfr+"], averaging_power=3.0), KUHN)) is Solver


def test_a_solver_of_a_game_alone_is_cfr_plus():
    solver, expected = Solver(KUHN), CFRPlusSolver(KUHN)
    for each in (solver, expected):
        each.run(10)
    assert solver.algorithm.name == "cfr+"
    assert solver.nash_conv() == expected.nash_conv()


def test_a_rule_in_a_module_is_found_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "module_of_rules.py").write_text(
        "from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching\n"
        "class Rules:\n    mine = DiscountedRegretMatching(1.0, 1.0)\n"
    )
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('not\\ntoday')\n")
    (tmp_path / "leaving_module.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    solver, expected = (make_solver(what, KUHN, averaging=Averaging(1)) for what in ("module_of_rules:Rules.mine", "lcfr"))
    for each in (solver, expected):
        each.run(10)
    assert solver.nash_conv() == expected.nash_conv()
    for place, error, words in (
        ("module_of_rules:other", ValueError, "'module_of_rules:other': module_of_rules has no other"),
        ("module_of_rules:Rules", TypeError, "expected the name of an algorithm, an Algorithm or a rule, got <class"),
        ("no_such_module:rule", ValueError, "cannot import 'no_such_module' for 'no_such_module:rule': ModuleNotFoundError"),
        ("broken_module:rule", ValueError, "cannot import 'broken_module' for 'broken_module:rule': RuntimeError: not"),
        ("leaving_module:rule", ValueError, "cannot import 'leaving_module' for 'leaving_module:rule': SystemExit: 3"),
        (":rule", ValueError, "':rule' is not of the form module:name"),
        ("a:b:c", ValueError, "'a:b:c' is not of the form module:name"),
        ("lp", ValueError, "use solve_exactly"),
        ("cfrplus", ValueError, "unknown algorithm 'cfrplus'; choose one of cfr, cfr+, lcfr,"),
        (CFR, TypeError, "for Python minimizers see Solver.of_minimizers"),
        (None, TypeError, "got None"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            make_solver(place, KUHN)


def test_parameters_of_the_rule_are_options():
    third, named = make_solver("pcfr+", KUHN, prediction_weight=1 / 3), make_solver("sapcfr+", KUHN)
    for each in (third, named):
        each.run(20)
    assert third.nash_conv() == named.nash_conv()
    assert third.algorithm.rule.prediction_weight == 1 / 3
    assert ALGORITHMS["pcfr+"].rule.prediction_weight == 1
    hedged = make_solver("cfr_hedge", KUHN, prediction_weight=1.0)
    hedged.run(20)
    expected = make_solver("predictive_cfr_hedge", KUHN)
    expected.run(20)
    assert hedged.nash_conv() == expected.nash_conv()
    for value, error in ((2.0, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="prediction_weight must be"):
            make_solver("pcfr+", KUHN, prediction_weight=value)
    with pytest.raises(TypeError, match=r"^plus takes no prediction weight$"):
        make_solver(plus, KUHN, prediction_weight=1.0)


@local_rule(per_action=("regrets",), per_player=("seen",), scale_free=True)
def counting(point, values, policy, memory, parameters, t):
    pass


def constant(actions, values, memory, parameters, t):
    return (0.0,)


@pytest.mark.parametrize(
    ("what", "options", "words"),
    [
        ("cfr-br", {"alternating": False}, "cfr-br takes no alternating: each player learns alone, against best responses"),
        ("cfr-br", {"threads": 2}, "cfr-br takes no threads: each player learns alone"),
        ("cfr-br", {"reduce": True}, "cfr-br takes no reduce: each player learns alone"),
        ("cfr-br", {"record_regrets": True}, "cfr-br takes no record regrets: each player learns alone"),
        (counting, {"threads": 2}, "counting takes no threads: the updates of its rule cannot be divided"),
        (
            dataclasses.replace(plus, schedule=constant),
            {"reduce": True},
            "plus takes no reduce: its rule does not declare that infostates may be merged",
        ),
        ("cfr+", {"rule": dataclasses.replace(plus, schedule=constant), "threads": 2}, "cfr+ takes no threads"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_option_that_cannot_be_honored_is_refused_by_name(what, options, words, monkeypatch):
    monkeypatch.setattr(validation, "num_cores", lambda: 2)
    with pytest.raises(TypeError, match=f"^{re.escape(words)}"):
        make_solver(what, KUHN, **options)
    make_solver(what, KUHN, **dict.fromkeys(options.keys() & {"threads"}, 1))


def test_recorded_regrets_are_those_of_python_objects():
    for name in ("cfr", "pcfr+"):
        recorded = make_solver(name, BIASED, alternating=False, record_regrets=True)
        expected = in_python(name, BIASED, alternating=False)
        for each in (recorded, expected):
            each.run(30)
        assert recorded.self_play.regrets() == pytest.approx(expected.self_play.regrets(), rel=1e-12, abs=1e-12)
        assert recorded.self_play.cce_gap() == pytest.approx(expected.self_play.cce_gap(), rel=1e-12)
    with pytest.raises(ValueError, match="record_regrets is for one thread, not for several threads"):
        make_solver("cfr", BIASED, record_regrets=True, threads=2)
    with pytest.raises(TypeError, match="record_regrets must be True or False"):
        make_solver("cfr", BIASED, record_regrets=1)
