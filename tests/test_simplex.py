"""Regret minimisers on the simplex, alone."""

import functools
import math

import numpy as np
import pytest
from scipy import optimize

from spiel_cfrplus.regret_minimizers import (
    DiscountedRegretMatching,
    Hedge,
    ProjectedGradientAscent,
    RegretMatching,
    RegretMatchingPlus,
    SimplexRegretMatching,
    project_onto_simplex,
)

K, T = 4, 400
# Each minimiser for K actions and T utilities in [0, 1], and what its docstring promises of the regret.
L, G = 1.0, math.sqrt(K)
HEDGE_RATE, STEP_SIZE = math.sqrt(8 * math.log(K) / T) / L, math.sqrt(2 / T) / G
MINIMIZERS = {
    "rm": (lambda: SimplexRegretMatching(K, RegretMatching()), L * math.sqrt(K * T)),
    "rm+": (lambda: SimplexRegretMatching(K, RegretMatchingPlus()), L * math.sqrt(K * T)),
    "hedge": (lambda: Hedge(K, HEDGE_RATE), L * math.sqrt(T * math.log(K) / 2)),
    "gradient": (lambda: ProjectedGradientAscent(K, STEP_SIZE), 1 / STEP_SIZE + STEP_SIZE * G**2 * T / 2),
}
OTHERS = {
    "discounted": lambda: SimplexRegretMatching(K, DiscountedRegretMatching()),
    "optimistic rm": lambda: SimplexRegretMatching(K, RegretMatching(), optimistic=True),
    "optimistic rm+": lambda: SimplexRegretMatching(K, RegretMatchingPlus(), optimistic=True),
    "optimistic hedge": lambda: Hedge(K, HEDGE_RATE, optimistic=True),
    "optimistic gradient": lambda: ProjectedGradientAscent(K, STEP_SIZE, optimistic=True),
}
EVERY = {name: make for name, (make, _) in MINIMIZERS.items()} | OTHERS
every_minimizer = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def regret(minimizer, utilities):
    """The largest gain of a fixed action over what was played."""
    earned, sums = 0.0, np.zeros(K)
    for utility in utilities:
        earned += minimizer.next_strategy() @ utility
        sums += utility
        minimizer.observe_utility(utility)
    return sums.max() - earned


def random_utilities(seed):
    return np.random.default_rng(seed).random((T, K))


def drifting_utilities(seed):
    # The best action changes every 40 steps.
    best = np.random.default_rng(seed).integers(K, size=T // 40).repeat(40)
    return np.eye(K)[best]


@pytest.mark.parametrize("utilities", [random_utilities, drifting_utilities])
@pytest.mark.parametrize(("make", "bound"), MINIMIZERS.values(), ids=MINIMIZERS)
def test_regret_stays_under_its_bound(make, bound, utilities):
    for seed in range(5):
        assert regret(make(), utilities(seed)) <= bound


@pytest.mark.parametrize(("make", "bound"), MINIMIZERS.values(), ids=MINIMIZERS)
def test_regret_stays_under_its_bound_against_an_adversary(make, bound):
    # It pays 1 on the action that is played least: whoever stands still, or follows the last utility, loses linearly.
    minimizer, sums, earned = make(), np.zeros(K), 0.0
    for _ in range(T):
        strategy = minimizer.next_strategy()
        utility = np.eye(K)[strategy.argmin()]
        sums, earned = sums + utility, earned + strategy @ utility
        minimizer.observe_utility(utility)
    assert sums.max() - earned <= bound


@every_minimizer
def test_strategies_are_distributions_and_asking_changes_nothing(make):
    minimizer = make()
    np.testing.assert_array_equal(minimizer.next_strategy(), np.full(K, 1 / K))
    for utility in np.random.default_rng(0).normal(size=(50, K)):
        minimizer.observe_utility(utility)
        strategy = minimizer.next_strategy()
        assert strategy.min() >= 0
        assert strategy.sum() == pytest.approx(1, abs=1e-12)
        strategy[:] = 7  # the caller's own
        np.testing.assert_array_equal(minimizer.next_strategy(), minimizer.next_strategy())
        assert minimizer.next_strategy().max() <= 1
    assert minimizer.iteration == 50


@every_minimizer
def test_the_best_action_is_found(make):
    minimizer = make()
    for _ in range(T):
        minimizer.observe_utility([0.0, 0.0, 1.0, 0.0])
    assert minimizer.next_strategy()[2] > 0.8


def play(minimizer, *utilities):
    for utility in utilities:
        minimizer.observe_utility(utility)
    return minimizer.next_strategy()


def test_two_steps_by_hand():
    # Regret matching. Uniform earns 2: regrets (1, 0, -1), strategy (1, 0, 0), which earns 0: regrets (1, 2, -1).
    first, second = [3.0, 2.0, 1.0], [0.0, 2.0, 0.0]
    np.testing.assert_allclose(play(SimplexRegretMatching(3), first, second), [1 / 3, 2 / 3, 0])
    # Regret matching+ forgets the -1: after the second utility (1, 2, 0). A third, against (1/3, 2/3, 0), of (0, 0, 3) earns 0:
    # (1, 2, 3) for it, (1, 2, 2) for regret matching.
    third = [0.0, 0.0, 3.0]
    np.testing.assert_allclose(
        play(SimplexRegretMatching(3, RegretMatchingPlus()), first, second, third), [1 / 6, 2 / 6, 3 / 6]
    )
    np.testing.assert_allclose(play(SimplexRegretMatching(3), first, second, third), [1 / 5, 2 / 5, 2 / 5])
    # Discounting with t^1 / (t^1 + 1) on both sides: (1, 0, -1) / 2, then ((1, 0, -1) / 2 + (0, 2, 0)) * 2 / 3.
    np.testing.assert_allclose(play(SimplexRegretMatching(3, DiscountedRegretMatching(1, 1)), first, second), [1 / 5, 4 / 5, 0])
    # Optimistic: the table (1, 0, -1) takes in the same regrets again, (2, 0, -2); the second utility, against (1, 0, 0),
    # leaves (1, 2, -1) and is expected to come again: (1, 4, -1).
    np.testing.assert_allclose(play(SimplexRegretMatching(3, optimistic=True), first, second), [1 / 5, 4 / 5, 0])
    # Hedge at rate log 2: weights 2 ** sums; optimistic counts the last utility twice.
    np.testing.assert_allclose(play(Hedge(2, math.log(2)), [1.0, 0.0], [1.0, 0.0]), [4 / 5, 1 / 5])
    np.testing.assert_allclose(play(Hedge(2, math.log(2), optimistic=True), [1.0, 0.0]), [4 / 5, 1 / 5])
    # A step of 0.2 * (1, 0) from (0.5, 0.5) is (0.7, 0.5), nearest to (0.6, 0.4); the optimistic step once more is (0.7, 0.3).
    np.testing.assert_allclose(play(ProjectedGradientAscent(2, 0.2), [1.0, 0.0]), [0.6, 0.4])
    np.testing.assert_allclose(play(ProjectedGradientAscent(2, 0.2, optimistic=True), [1.0, 0.0]), [0.7, 0.3])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("rule", [RegretMatching(), RegretMatchingPlus(), DiscountedRegretMatching()], ids=repr)
def test_regret_matching_does_not_care_for_units(rule, optimistic, scale):
    plain, scaled = (SimplexRegretMatching(K, rule, optimistic=optimistic) for _ in range(2))
    for utility in np.random.default_rng(1).normal(size=(100, K)):
        plain.observe_utility(utility)
        scaled.observe_utility(scale * utility)
        np.testing.assert_allclose(scaled.next_strategy(), plain.next_strategy(), rtol=1e-9, atol=1e-12)


def test_hedge_survives_large_utilities():
    np.testing.assert_array_equal(play(Hedge(2, 1.0), [1e5, -1e5], [-3e5, 0.0]), [0.0, 1.0])


@pytest.mark.parametrize("seed", range(20))
def test_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    point = rng.normal(scale=2, size=size)
    solution = optimize.minimize(
        lambda x: (x - point) @ (x - point),
        np.full(size, 1 / size),
        jac=lambda x: 2 * (x - point),
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    np.testing.assert_allclose(project_onto_simplex(point), solution.x, atol=1e-6)


@every_minimizer
@pytest.mark.parametrize("utility", [[1.0] * (K - 1), [[1.0] * K], [math.nan] * K, [math.inf] + [0.0] * (K - 1)], ids=str)
def test_utilities_that_make_no_sense_change_nothing(make, utility):
    minimizer = make()
    minimizer.observe_utility([1.0, 2.0, 3.0, 4.0])
    before = minimizer.next_strategy()
    with pytest.raises(ValueError, match=f"expected {K} finite numbers"):
        minimizer.observe_utility(utility)
    np.testing.assert_array_equal(minimizer.next_strategy(), before)
    assert minimizer.iteration == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (functools.partial(SimplexRegretMatching, 0), "at least one action, got 0"),
        (functools.partial(Hedge, 3, learning_rate=0.0), "learning_rate must be positive and finite, got 0.0"),
        (functools.partial(Hedge, 3, learning_rate=math.nan), "learning_rate must be positive"),
        (functools.partial(ProjectedGradientAscent, 3, step_size=math.inf), "step_size must be positive and finite, got inf"),
        (functools.partial(DiscountedRegretMatching, alpha=math.nan), "must be numbers"),
    ],
)
def test_bad_options_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("scale", [1.0, 1e20, 1e300])
def test_projection_of_points_far_away(scale):
    np.testing.assert_array_equal(project_onto_simplex([scale * 3, scale * 2, -scale]), [1, 0, 0])
