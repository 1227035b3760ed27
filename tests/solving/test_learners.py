"""The named learners, and solvers made of them."""

import copy
import pickle
import subprocess
import sys

import games
import numpy as np
import pyspiel
import pytest
from repository import ROOT, SCRIPTS

from spiel_cfrplus import (
    ALGORITHMS,
    LEARNERS,
    Averaging,
    CFRPlusSolver,
    CFRSolver,
    LearningSolver,
    Solver,
    compile_game,
    evaluate,
)
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.regret_minimizers import CFR, RegretMatchingPlus
from spiel_cfrplus.regret_minimizers.minimizer import regret_bound

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
BIASED = compile_game(games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]]))
every_learner = pytest.mark.parametrize("name", LEARNERS)

# Of docs/learners.md: iterations after which the average policy is near an equilibrium of Kuhn poker.
SLOW = {"dilated_entropy": 5000, "dilated_euclidean": 2000}


@every_learner
def test_every_learner_solves_kuhn_poker_and_keeps_its_word(name):
    solver = LearningSolver(KUHN, LEARNERS[name])
    for _ in range(2):
        solver.run(SLOW.get(name, 500) // 2)
        for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
            assert regret <= regret_bound(minimizer)
    assert solver.nash_conv() < 0.02
    assert solver.average_policy().action_probability_array.shape == (12, 2)


@pytest.mark.slow
@every_learner
def test_every_learner_solves_leduc_poker_and_keeps_its_word(name):
    solver = LearningSolver(pyspiel.load_game("leduc_poker"), LEARNERS[name])
    solver.run(10_000)
    for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
        assert regret <= regret_bound(minimizer)
    assert solver.nash_conv() < 0.2


@pytest.mark.parametrize("name", [name for name in LEARNERS if "dilated" not in name])
def test_long_games_leave_no_number_out_of_range(name):
    # The last decisions are reached with a probability of about 2^-513: its square is no float64.
    solver = LearningSolver(compile_game(games.chain(1100)), LEARNERS[name])
    solver.run(5)
    for regret, minimizer in zip(solver.self_play.regrets(), solver.self_play.minimizers, strict=True):
        assert regret <= regret_bound(minimizer) < np.inf


@pytest.mark.parametrize(("name", "power"), [("cfr", 0), ("cfr+", 1), ("pcfr+", 2), ("pdcfr+", 5), ("predictive_cfr_hedge", 1)])
def test_averages_have_the_weights_that_suit_the_learner(name, power):
    assert LearningSolver(KUHN, LEARNERS[name]).averaging == Averaging(power)
    assert LearningSolver(KUHN, LEARNERS[name], averaging="openspiel").averaging == Averaging(power, "openspiel")


def test_learners_can_be_keys_and_pickled():
    assert len(set(LEARNERS.values())) == len(LEARNERS)
    for learner in LEARNERS.values():
        solver = LearningSolver(KUHN, pickle.loads(pickle.dumps(learner)))
        solver.run(2)
        assert solver.algorithm == learner.name


@every_learner
@pytest.mark.parametrize("game", [compile_game(games.random_efg(3, num_players=3)), BIASED], ids=repr)
def test_regrets_of_simultaneous_play_stay_under_their_bounds(name, game):
    solver = LearningSolver(game, LEARNERS[name], alternating=False)
    solver.run(200)
    bounds = [regret_bound(minimizer) for minimizer in solver.self_play.minimizers]
    assert (solver.self_play.regrets() <= bounds).all()
    assert solver.self_play.cce_gap() <= max(bounds) / 200


@every_learner
def test_units_make_no_difference(name):
    plain, scaled = (
        LearningSolver(games.scaled_game(pyspiel.load_game("kuhn_poker"), factor), LEARNERS[name]) for factor in (1, 1e9)
    )
    for solver in (plain, scaled):
        solver.run(50)
    assert scaled.nash_conv() == pytest.approx(1e9 * plain.nash_conv(), rel=1e-6)


@pytest.mark.parametrize("compiled_type", [CFRSolver, CFRPlusSolver])
@pytest.mark.parametrize("alternating", [True, False])
def test_algorithms_and_learners_of_one_name_are_the_same(compiled_type, alternating):
    compiled = compiled_type(KUHN, alternating=alternating)
    written_out = LearningSolver(KUHN, LEARNERS[compiled.algorithm], alternating=alternating)
    for solver in (compiled, written_out):
        solver.run(100)
    np.testing.assert_array_equal(compiled.average_profile().probabilities, written_out.average_profile().probabilities)
    assert written_out.algorithm == compiled.algorithm


def test_any_function_of_a_treeplex_makes_a_solver():
    solver = LearningSolver(KUHN, lambda treeplex: CFR(treeplex, RegretMatchingPlus()), averaging=Averaging(1))
    expected = CFRPlusSolver(KUHN)
    for each in (solver, expected):
        each.run(30)
    np.testing.assert_array_equal(solver.average_profile().probabilities, expected.average_profile().probabilities)


@every_learner
def test_step_sizes(name):
    learner = LEARNERS[name]
    assert learner.with_step_size(None) is learner
    if not learner.takes_step_size:
        with pytest.raises(ValueError, match=r"takes no step size"):
            learner.with_step_size(1.0)
        return
    with pytest.raises(ValueError, match="step_size must be positive and finite, got -1"):
        learner.with_step_size(-1.0)
    small, large = (LearningSolver(KUHN, learner.with_step_size(step_size)) for step_size in (0.01, 1.0))
    for solver in (small, large):
        solver.run(1)
    start = LearningSolver(KUHN, learner).current_profile().probabilities
    moved = [np.abs(solver.current_profile().probabilities - start).max() for solver in (small, large)]
    assert 0 < moved[0] < moved[1]


def test_last_iterates_of_predictive_learners_converge():
    # Kuhn poker has many equilibria; that the last strategies come to one is known for these steps (Lee, Kroer, Luo 2021).
    solver = LearningSolver(KUHN, LEARNERS["predictive_gradient_ascent"])
    *_, row = convergence(solver, 500, last_iterate=True)
    assert row.nash_conv < 1e-12
    assert row.nash_conv == evaluate(KUHN, solver.current_profile()).nash_conv
    assert row.value == pytest.approx(-1 / 18, abs=1e-12)


def test_rows_know_the_distance_from_coarse_correlated_equilibria_where_players_play_together():
    assert [row.cce_gap for row in convergence(CFRSolver(KUHN, alternating=False), 2)] == [None, None]
    assert [row.cce_gap for row in convergence(LearningSolver(KUHN, CFR), 2)] == [None, None]
    solver = LearningSolver(KUHN, CFR, alternating=False)
    # The uniform profile: the best responses gain 3/8 and 13/24 (OpenSpiel's best responses are worth 1/2 and 5/12).
    assert next(convergence(solver, 1)).cce_gap == pytest.approx(13 / 24)


@every_learner
def test_copies_go_on_alike_and_apart(name):
    solver = LearningSolver(KUHN, LEARNERS[name])
    solver.run(5)
    twin = copy.copy(solver)
    twin.run(5)
    assert solver.iteration == 5
    solver.run(5)
    np.testing.assert_array_equal(twin.average_profile().probabilities, solver.average_profile().probabilities)
    if name not in ALGORITHMS:
        with pytest.raises(TypeError, match="only solvers that are compiled"):
            solver.save("never_written.npz")


def test_solvers_of_importable_minimizers_can_be_pickled():
    solver = LearningSolver(pyspiel.load_game("kuhn_poker"), CFR)
    solver.run(3)
    twin = pickle.loads(pickle.dumps(solver))
    for each in (solver, twin):
        each.run(3)
    np.testing.assert_array_equal(twin.average_profile().probabilities, solver.average_profile().probabilities)


def test_options_are_checked():
    with pytest.raises(TypeError, match="alternating must be True or False"):
        LearningSolver(KUHN, CFR, alternating="no")
    with pytest.raises(TypeError, match="averaging must be"):
        LearningSolver(KUHN, CFR, averaging=3)
    with pytest.raises(ValueError, match="expected one number for each of 13 sequences"):
        LearningSolver(KUHN, lambda treeplex: CFR(BIASED.treeplexes[0]))


def test_learning_solvers_load_nothing(tmp_path):
    CFRSolver(KUHN).save(tmp_path / "saved.npz")
    assert Solver.load(tmp_path / "saved.npz", KUHN).iteration == 0
    with pytest.raises(TypeError, match=r"cannot load a LearningSolver, only .*; unpickle it instead"):
        LearningSolver.load(tmp_path / "saved.npz", KUHN)


def test_the_table_has_a_row_for_every_learner(tmp_path):
    page = tmp_path / "learners.md"
    command = [sys.executable, str(SCRIPTS / "learners.py"), "--iterations=3", f"--output={page}"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    rows = [line.split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(LEARNERS)
    assert all(line in page.read_text() for line in result.stdout.splitlines())
    assert [row[1] for row in rows] == ["-"] * len(LEARNERS)  # nobody solves Kuhn poker in three iterations
    assert list(tmp_path.iterdir()) == [page]
