"""Finite utilities of any magnitude give finite strategies."""

import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spiel_cfrplus import compile_game
from spiel_cfrplus.regret_minimizers import Hedge, ProjectedGradientAscent, SimplexRegretMatching
from spiel_cfrplus.solving.algorithms import ALGORITHMS

GAME = compile_game(pyspiel.load_game("kuhn_poker"))
TREEPLEX = GAME.treeplexes[0]
SIZE = TREEPLEX.num_sequences
SIMPLEX = {
    "hedge": Hedge,
    "gradient ascent": ProjectedGradientAscent,
    "regret matching": SimplexRegretMatching,
    "predictive hedge": lambda k: Hedge(k, prediction_weight=1.0),
    "predictive gradient ascent": lambda k: ProjectedGradientAscent(k, prediction_weight=1.0),
    "predictive regret matching": lambda k: SimplexRegretMatching(k, prediction_weight=1.0),
    "hedge, large step": lambda k: Hedge(k, 1e300),
    "predictive gradient ascent, large step": lambda k: ProjectedGradientAscent(k, 1e300, prediction_weight=1.0),
}

numbers = st.one_of(
    st.just(0.0),
    st.builds(
        lambda sign, digits, exponent: sign * digits * 10.0**exponent,
        st.sampled_from([-1.0, 1.0]),
        st.floats(1, 9),
        st.integers(-320, 299),
    ),
    st.sampled_from([5e-324, 1.7e308, -1.7e308]),
)


def is_distribution(strategy: np.ndarray) -> bool:
    return bool(np.all(strategy >= 0)) and math.isclose(strategy.sum(), 1, abs_tol=1e-9)


def test_tuned_steps_do_not_overflow():
    minimizer = Hedge(2)
    minimizer.observe_utility([1e-310, 0])
    expected = Hedge(2)
    expected.observe_utility([1, 0])
    assert is_distribution(minimizer.next_strategy())
    assert minimizer.next_strategy()[0] > 0.5
    assert minimizer.step_sizes[0] == np.finfo(np.float64).max


@pytest.mark.parametrize("name", SIMPLEX)
@given(utilities=st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_all_finite_utilities_give_a_distribution(name, utilities):
    minimizer = SIMPLEX[name](3)
    for utility in utilities:
        minimizer.observe_utility(utility)
        assert is_distribution(minimizer.next_strategy())


@pytest.mark.parametrize("name", [name for name, algorithm in ALGORITHMS.items() if algorithm.has_minimizers])
@given(utilities=st.lists(st.lists(numbers, min_size=SIZE, max_size=SIZE), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None)
def test_all_finite_utilities_give_a_sequence_form_strategy(name, utilities):
    for parameters in ({}, {"step_size": 1e300}) if "step_size" in ALGORITHMS[name].parameters else ({},):
        minimizer = ALGORITHMS[name].with_parameters(**parameters).minimizers(GAME)[0]
        for utility in utilities:
            minimizer.observe_utility(np.array(utility))
            assert not TREEPLEX.problem_with(minimizer.next_strategy())


@pytest.mark.parametrize("name", ["hedge", "predictive hedge", "gradient ascent", "predictive gradient ascent"])
@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e290])
def test_tuned_minimizers_do_not_depend_on_the_unit(name, unit):
    one, other = SIMPLEX[name](3), SIMPLEX[name](3)
    for utility in np.random.default_rng(0).normal(size=(10, 3)):
        one.observe_utility(utility)
        other.observe_utility(unit * utility)
    np.testing.assert_allclose(other.next_strategy(), one.next_strategy(), rtol=1e-9)
