"""Regret minimizers on the simplex, alone."""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from scipy import optimize

from spiel_cfrplus import PredictiveCFRPlusSolver
from spiel_cfrplus.regret_minimizers import (
    CFR,
    DiscountedRegretMatching,
    Hedge,
    ProjectedGradientAscent,
    RegretMatching,
    RegretMatchingPlus,
    SimplexRegretMatching,
    project_onto_simplex,
)

K, T = 4, 400
# Each minimizer for K actions and T utilities in [0, 1], and what its docstring promises of the regret in general.
L, G = 1.0, math.sqrt(K)
HEDGE_STEP, GRADIENT_STEP = math.sqrt(8 * math.log(K) / T) / L, math.sqrt(2 / T) / G
BOUNDED = {
    "rm": (lambda k: SimplexRegretMatching(k, RegretMatching()), L * math.sqrt(K * T)),
    "rm+": (lambda k: SimplexRegretMatching(k, RegretMatchingPlus()), L * math.sqrt(K * T)),
    "hedge": (lambda k: Hedge(k, HEDGE_STEP), L * math.sqrt(T * math.log(K) / 2)),
    "gradient": (
        lambda k: ProjectedGradientAscent(k, GRADIENT_STEP),
        1 / GRADIENT_STEP + GRADIENT_STEP * G**2 * T / 2,
    ),
}
OTHERS = {
    "discounted": lambda k: SimplexRegretMatching(k, DiscountedRegretMatching()),
    "linear": lambda k: SimplexRegretMatching(k, DiscountedRegretMatching(1, 1)),
    "predictive rm": lambda k: SimplexRegretMatching(k, RegretMatching(), prediction_weight=1.0),
    "predictive rm+": lambda k: SimplexRegretMatching(k, RegretMatchingPlus(), prediction_weight=1.0),
    "a third predictive rm+": lambda k: SimplexRegretMatching(k, RegretMatchingPlus(), prediction_weight=1 / 3),
    "predictive discounted": lambda k: SimplexRegretMatching(k, DiscountedRegretMatching(), prediction_weight=1.0),
    "predictive hedge": lambda k: Hedge(k, HEDGE_STEP, prediction_weight=1.0),
    "predictive gradient": lambda k: ProjectedGradientAscent(k, GRADIENT_STEP, prediction_weight=1.0),
    "tuned hedge": Hedge,
    "tuned gradient": ProjectedGradientAscent,
    "tuned predictive hedge": functools.partial(Hedge, prediction_weight=1.0),
    "tuned predictive gradient": functools.partial(ProjectedGradientAscent, prediction_weight=1.0),
}
EVERY = {name: make for name, (make, _) in BOUNDED.items()} | OTHERS
FIXED_STEPS = {"hedge", "gradient", "predictive hedge", "predictive gradient"}
every_minimizer = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def play_against(minimizer, adversary):
    """T rounds; the adversary sees the strategy. Returns the largest gain of a fixed action over what was played."""
    earned, sums = 0.0, np.zeros(K)
    for t in range(T):
        strategy = minimizer.next_strategy()
        utility = adversary(t, strategy)
        earned += strategy @ utility
        sums += utility
        minimizer.observe_utility(utility)
    return sums.max() - earned


@every_minimizer
def test_the_utility_of_the_caller_is_not_changed(make):
    minimizer, utility = make(K), np.array([1.0, -2.0, 0.5, 3.0])
    for _ in range(3):
        minimizer.observe_utility(utility)
        np.testing.assert_array_equal(utility, [1.0, -2.0, 0.5, 3.0])


def random_adversary(t, strategy):
    return np.random.default_rng(t).random(K)


def drifting_adversary(t, strategy):
    # The best action changes every 40 steps.
    return np.eye(K)[np.random.default_rng(t // 40).integers(K)]


def hostile_adversary(t, strategy):
    # It pays 1 on the action that is played least: whoever stands still, or follows the last utility, loses linearly.
    return np.eye(K)[strategy.argmin()]


def alternating_adversary(t, strategy):
    # It belies the prediction that the last utility comes again.
    return np.eye(K)[t % 2]


def late_adversary(t, strategy):
    # Nothing at first, then little, then much: hard on step sizes tuned to the past.
    return (t > 20) * (0.001 if t < 200 else 1.0) * np.eye(K)[strategy.argmin()]


ADVERSARIES = [random_adversary, drifting_adversary, hostile_adversary, alternating_adversary, late_adversary]
every_adversary = pytest.mark.parametrize("adversary", ADVERSARIES)


@every_adversary
@pytest.mark.parametrize(("make", "bound"), BOUNDED.values(), ids=BOUNDED)
def test_regret_stays_under_the_bound_in_general(make, bound, adversary):
    minimizer = make(K)
    regret = play_against(minimizer, adversary)
    assert regret <= minimizer.regret_bound <= bound * (1 + 1e-12)


@every_adversary
@every_minimizer
def test_regret_stays_under_the_bound_for_what_came(make, adversary):
    minimizer = make(K)
    assert minimizer.regret_bound == 0
    assert play_against(minimizer, adversary) <= minimizer.regret_bound < T


def test_bounds_by_hand():
    # Regret matching: uniform earns 1/2 of (1, 0): regrets (1/2, -1/2), squared norm 1/2. Then (1, 0) earns 1: (0, -1). The
    # squares sum to 3/2. With predictions the second was expected to be (1/2, -1/2) again: 1/2 + |(-1/2, -1/2)|^2.
    assert bound_after(SimplexRegretMatching(2), [1.0, 0.0], [1.0, 0.0]) == pytest.approx(math.sqrt(3 / 2))
    assert bound_after(SimplexRegretMatching(2, prediction_weight=1.0), [1.0, 0.0], [1.0, 0.0]) == pytest.approx(1)
    # Factors t / (t + 1): P_1 = 1/2, P_2 = P_1 / 4 + 1 = 9/8, and half of sqrt(P_1) was discounted.
    linear = SimplexRegretMatching(2, DiscountedRegretMatching(1, 1))
    assert bound_after(linear, [1.0, 0.0], [1.0, 0.0]) == pytest.approx(math.sqrt(9 / 8) + math.sqrt(1 / 2) / 2)
    # Hedge at step 1/2: log(2) / (1/2) + (1/2) / 8 for each range of 1; nothing for the second if it was expected.
    for weight, errors in ((False, 2), (True, 1)):
        hedge = Hedge(2, 0.5, prediction_weight=weight)
        assert bound_after(hedge, [1.0, 0.0], [1.0, 0.0]) == pytest.approx(2 * math.log(2) + errors / 16)
    # Gradient ascent at step 1/2: 1 / (1/2) + (1/4) |utility|^2.
    assert bound_after(ProjectedGradientAscent(2, 0.5), [3.0, 4.0]) == pytest.approx(2 + 25 / 4)
    # Tuned, radius 1: steps are 1/5 and 1/5, then 1 / sqrt(50).
    tuned = ProjectedGradientAscent(2)
    assert bound_after(tuned, [3.0, 4.0], [3.0, 4.0]) == pytest.approx(5 + 25 / 10 + 25 / 10)
    assert tuned.step_sizes == pytest.approx([1 / math.sqrt(50)])


def bound_after(minimizer, *utilities):
    play(minimizer, *utilities)
    return minimizer.regret_bound


@every_minimizer
def test_strategies_are_distributions_and_asking_changes_nothing(make):
    minimizer = make(K)
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
    minimizer = make(K)
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
    np.testing.assert_allclose(play(SimplexRegretMatching(3, prediction_weight=1.0), first, second), [1 / 5, 4 / 5, 0])
    # With half the weight: (1, 0, -1) becomes (1.5, 0, -1.5), and then (1, 2, -1) becomes (1, 3, -1).
    np.testing.assert_allclose(play(SimplexRegretMatching(3, prediction_weight=0.5), first, second), [1 / 4, 3 / 4, 0])
    # Hedge at rate log 2: weights 2 ** sums; the predictive form counts the last utility twice.
    np.testing.assert_allclose(play(Hedge(2, math.log(2)), [1.0, 0.0], [1.0, 0.0]), [4 / 5, 1 / 5])
    np.testing.assert_allclose(play(Hedge(2, math.log(2), prediction_weight=1.0), [1.0, 0.0]), [4 / 5, 1 / 5])
    # A step of 0.2 * (1, 0) from (0.5, 0.5) is (0.7, 0.5), nearest to (0.6, 0.4); the predictive step once more is (0.7, 0.3).
    np.testing.assert_allclose(play(ProjectedGradientAscent(2, 0.2), [1.0, 0.0]), [0.6, 0.4])
    np.testing.assert_allclose(play(ProjectedGradientAscent(2, 0.2, prediction_weight=1.0), [1.0, 0.0]), [0.7, 0.3])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("name", [name for name in EVERY if name not in FIXED_STEPS])
def test_nothing_but_fixed_steps_cares_for_units(name, scale):
    plain, scaled = EVERY[name](K), EVERY[name](K)
    for utility in np.random.default_rng(1).normal(size=(100, K)):
        plain.observe_utility(utility)
        scaled.observe_utility(scale * utility)
        np.testing.assert_allclose(scaled.next_strategy(), plain.next_strategy(), rtol=1e-9, atol=1e-12)
    assert scaled.regret_bound == pytest.approx(scale * plain.regret_bound, rel=1e-9)


@every_minimizer
def test_simplices_side_by_side_are_learned_separately(make):
    sizes = [2, 1, 4, 3]
    together, alone = make(sizes), [make(size) for size in sizes]
    assert together.next_strategy() == pytest.approx(np.concatenate([minimizer.next_strategy() for minimizer in alone]))
    # Of different sizes, so that step sizes of different simplices differ.
    scales = np.repeat([1.0, 1.0, 10.0, 0.1], sizes)
    for utility in np.random.default_rng(2).normal(size=(60, 10)) * scales:
        together.observe_utility(utility)
        for minimizer, part in zip(alone, np.split(utility, np.cumsum(sizes)[:-1]), strict=True):
            minimizer.observe_utility(part)
        expected = np.concatenate([minimizer.next_strategy() for minimizer in alone])
        np.testing.assert_allclose(together.next_strategy(), expected, rtol=0, atol=1e-12)
    assert together.regret_bound == pytest.approx(sum(minimizer.regret_bound for minimizer in alone), rel=1e-12)


@every_minimizer
def test_copies_learn_on_their_own(make):
    minimizer = make(K)
    minimizer.observe_utility([1.0, 2.0, 3.0, 4.0])
    before = minimizer.next_strategy()
    for twin in (copy.deepcopy(minimizer), pickle.loads(pickle.dumps(minimizer))):
        twin.observe_utility([9.0, 0.0, 0.0, 0.0])
        assert twin.next_strategy().tolist() != before.tolist()
        np.testing.assert_array_equal(minimizer.next_strategy(), before)


@pytest.mark.parametrize("scale", [1e-300, 1e-165, 1e150])
@pytest.mark.parametrize("name", [name for name in EVERY if name not in FIXED_STEPS])
def test_tiny_and_huge_utilities_are_utilities(name, scale):
    minimizer = EVERY[name](K)
    regret = play_against(minimizer, lambda t, strategy: scale * hostile_adversary(t, strategy))
    assert 0 < regret <= minimizer.regret_bound < T * scale
    assert minimizer.next_strategy().sum() == pytest.approx(1)


def test_bounds_that_are_not_proved_are_infinite():
    class Inflated:
        def __init__(self, *factors):
            self.factors = factors

        def discounts(self, iterations):
            return np.tile(self.factors, (len(iterations), 1))

    for factors in ((2.0, 0.0), (1.0, 2.0)):
        minimizer = SimplexRegretMatching(2, Inflated(*factors))
        play(minimizer, [1.0, 0.0], [0.0, 1.0])
        assert minimizer.regret_bound == math.inf


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
    minimizer = make(K)
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
        (functools.partial(Hedge, 3, step_size=0.0), "step_size must be positive and finite, got 0.0"),
        (functools.partial(Hedge, 3, step_size=math.nan), "step_size must be positive"),
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


@pytest.mark.parametrize("weight", [-0.1, 1.5, math.nan])
def test_predictions_have_a_weight_from_0_to_1(weight, kuhn):
    for make in (
        lambda: SimplexRegretMatching(2, prediction_weight=weight),
        lambda: CFR(kuhn.treeplexes[0], prediction_weight=weight),
        lambda: PredictiveCFRPlusSolver(kuhn, prediction_weight=weight),
    ):
        with pytest.raises(ValueError, match="prediction_weight must be between 0 and 1"):
            make()
