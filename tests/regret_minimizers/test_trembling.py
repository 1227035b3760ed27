"""Regret matching with trembles: CFR written out in NumPy, and the value of the linear program."""

import functools

import numpy as np
import pytest
from games import GAMES, mentions

from spiel_cfrplus import CFRPlusSolver, Solver, compile_game, evaluate, solve_exactly
from spiel_cfrplus.regret_minimizers import ComposedCFR
from spiel_cfrplus.regret_minimizers.trembling import trembling_regret_matching_plus

TREMBLE = 0.05


def solver_of(game, tremble=TREMBLE, **parameters):
    return CFRPlusSolver(game, rule=trembling_regret_matching_plus.with_parameters(tremble=tremble, **parameters))


class TremblingPoint:
    """Regret matching+ over the corners of the part of the simplex with these trembles, which are its pure strategies."""

    def __init__(self, num_actions, tremble, prediction_weight):
        self.corners = np.full((num_actions, num_actions), tremble)
        np.fill_diagonal(self.corners, 1 - (num_actions - 1) * tremble)
        self.prediction_weight = prediction_weight
        self.regrets, self.change = np.zeros((2, num_actions))

    def weights(self):
        positive = np.maximum(self.regrets + self.prediction_weight * self.change, 0)
        return positive / positive.sum() if positive.any() else np.full(len(positive), 1 / len(positive))

    def next_strategy(self):
        return self.weights() @ self.corners

    def observe_utility(self, utility):
        of_corners = self.corners @ utility
        self.change = of_corners - self.weights() @ of_corners
        self.regrets = np.maximum(self.regrets + self.change, 0)


@pytest.mark.parametrize("name", ["kuhn_poker", pytest.param("leduc_poker", marks=pytest.mark.slow)])
@pytest.mark.parametrize("prediction_weight", [0.0, 1.0])
def test_iterates_are_those_of_regret_matching_over_corners(name, prediction_weight):
    game = compile_game(GAMES[name]())
    point = functools.partial(TremblingPoint, tremble=TREMBLE, prediction_weight=prediction_weight)
    written_out = Solver.of_minimizers(game, lambda treeplex: ComposedCFR(treeplex, point))
    compiled = solver_of(game, prediction_weight=prediction_weight)
    for solver in (compiled, written_out):
        solver.run(30)
    expected = written_out.current_profile().probabilities
    assert compiled.current_profile().probabilities == pytest.approx(expected, abs=1e-9)
    assert abs(expected - 1 / 2).max() > 0.3  # of Kuhn poker: they have left the uniform strategy


@pytest.mark.parametrize(
    ("name", "tremble"),
    [
        ("kuhn_poker", 0.05),
        pytest.param("kuhn_poker", 0.001, marks=pytest.mark.slow),
        pytest.param("leduc_poker", 0.05, marks=pytest.mark.slow),
        pytest.param("goofspiel_4", 0.05, marks=pytest.mark.slow),
        pytest.param("dark_hex_2", 0.05, marks=pytest.mark.slow),
    ],
)
def test_the_average_tends_to_the_solution_of_the_linear_program(name, tremble):
    solver = solver_of(GAMES[name](), tremble)
    solver.run(3_000)
    average, exact = solver.average_profile(), solve_exactly(solver.game, tremble=tremble)
    evaluation = evaluate(solver.game, average, tremble=tremble)
    assert evaluation.nash_conv < 2e-3
    assert evaluation.values[0] == pytest.approx(exact.value, abs=evaluation.nash_conv + 1e-12)
    assert average.probabilities.min() >= tremble * (1 - 1e-9)


def test_without_trembles_it_is_regret_matching_plus():
    game = compile_game(GAMES["kuhn_poker"]())
    trembling, plain = solver_of(game, 0.0), CFRPlusSolver(game)
    for solver in (trembling, plain):
        solver.run(100)
    assert trembling.average_profile().probabilities == pytest.approx(plain.average_profile().probabilities, abs=1e-12)


@pytest.mark.parametrize("tremble", [0.5, -0.01, float("nan")])
def test_trembles_that_are_too_large_are_refused(tremble):
    with pytest.raises(ValueError, match=mentions("trembling_regret_matching_plus", f"tremble={tremble}", "1/2")):
        solver_of(GAMES["kuhn_poker"](), tremble)


def test_a_tremble_that_is_no_number():
    with pytest.raises(TypeError, match="tremble"):
        solver_of(GAMES["kuhn_poker"](), lambda iterations: 1 / iterations)


def test_checkpoints(tmp_path):
    solver = solver_of(GAMES["kuhn_poker"]())
    solver.run(10)
    solver.save(tmp_path / "run.npz")
    loaded = Solver.load(tmp_path / "run.npz", rule=solver.algorithm.rule)
    for each in (solver, loaded):
        each.run(10)
    assert loaded.average_profile().probabilities.tolist() == solver.average_profile().probabilities.tolist()
