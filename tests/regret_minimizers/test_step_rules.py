"""Rules that take steps along utilities, against the same written out in NumPy."""

import functools
import math
import pickle

import games
import numba
import numpy as np
import numpy_minimizers
import pyspiel
import pytest

from spiel_cfrplus import compile_game
from spiel_cfrplus.kernels import step_sizes
from spiel_cfrplus.regret_minimizers import (
    CFR,
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    Hedge,
    MultiplicativeWeights,
    ProjectedGradientAscent,
    SimplexMinimizer,
    TreeplexGradientAscent,
)
from spiel_cfrplus.regret_minimizers.compiled_rules import start_state
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.step_rules import (
    dilated_entropy,
    dilated_euclidean,
    gradient_ascent,
    hedge,
    multiplicative_weights,
    regret_bounds,
    treeplex_gradient_ascent,
)

# Every rule is compiled for several kinds of arguments, which takes minutes.
pytestmark = pytest.mark.slow

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
ON_SIMPLICES = {
    "hedge": (Hedge, numpy_minimizers.Hedge),
    "gradient_ascent": (ProjectedGradientAscent, numpy_minimizers.ProjectedGradientAscent),
}
ON_TREEPLEXES = {
    "treeplex_gradient_ascent": (TreeplexGradientAscent, numpy_minimizers.TreeplexGradientAscent),
    "dilated_entropy": (DilatedEntropyAscent, numpy_minimizers.DilatedEntropyAscent),
    "dilated_euclidean": (DilatedEuclideanAscent, numpy_minimizers.DilatedEuclideanAscent),
    "multiplicative_weights": (MultiplicativeWeights, numpy_minimizers.MultiplicativeWeights),
}
LOCAL_RULES = {"hedge": hedge, "gradient_ascent": gradient_ascent}
TREEPLEX_RULES = {
    "treeplex_gradient_ascent": treeplex_gradient_ascent,
    "dilated_entropy": dilated_entropy,
    "dilated_euclidean": dilated_euclidean,
    "multiplicative_weights": multiplicative_weights,
}
RULES = LOCAL_RULES | TREEPLEX_RULES
every_option = pytest.mark.parametrize(
    ("step_size", "prediction_weight"), [(None, 0.0), (None, 1.0), (None, 0.4), (0.3, 0.0), (0.3, 1.0), (0.3, 0.4)]
)
every_rule = pytest.mark.parametrize("name", RULES)


def utilities(seed, size, count):
    """Random, of magnitudes that differ from one time and place to another, and zero now and then."""
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal(scale=1.5, size=(count, 1))) * np.exp(rng.normal(size=size))
    zero = (rng.random((count, 1)) < 0.15) | (rng.random((count, size)) < 0.1)
    return np.where(zero, 0.0, scales * rng.normal(size=(count, size)))


def assert_same(minimizer, oracle):
    np.testing.assert_allclose(minimizer.next_strategy(), oracle.next_strategy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(minimizer.step_sizes, oracle.step_sizes, rtol=1e-12)
    assert minimizer.regret_bound == pytest.approx(oracle.regret_bound, rel=1e-12)
    assert minimizer.iteration == oracle.iteration


@every_option
@pytest.mark.parametrize("name", ON_SIMPLICES)
def test_local_rules_are_what_they_are_in_numpy(name, step_size, prediction_weight):
    sizes = [3, 1, 2, 5]
    minimizer, oracle = (make(sizes, step_size, prediction_weight=prediction_weight) for make in ON_SIMPLICES[name])
    assert_same(minimizer, oracle)
    for utility in utilities(0, 11, 60):
        for each in (minimizer, oracle):
            each.observe_utility(utility)
        assert_same(minimizer, oracle)


RANDOM = [compile_game(games.random_efg(seed, num_players=players, depth=6)) for seed, players in ((1, 2), (2, 2), (3, 3))]
every_game = pytest.mark.parametrize("game", [KUHN, *RANDOM], ids=repr)


def parameters_at(rule, t):
    return type(rule.empty_parameters())(*rule.parameter_table(np.array([t]))[0])


@every_option
@every_game
@pytest.mark.parametrize("name", TREEPLEX_RULES)
def test_treeplex_rules_are_what_they_are_in_numpy(name, game, step_size, prediction_weight):
    # All players of a game in one set of arrays.
    rule, treeplexes = TREEPLEX_RULES[name](step_size, prediction_weight), game.treeplex_arrays
    memory, first = rule.memory(treeplexes), rule.initial_arrays(treeplexes).get("policy")
    policy, values = start_state(treeplexes, first).policy, np.zeros(game.num_sequences)
    make = ON_TREEPLEXES[name][1]
    oracles = [make(treeplex, step_size, prediction_weight=prediction_weight) for treeplex in game.treeplexes]
    for t in range(1, 21):
        for player, (oracle, own) in enumerate(zip(oracles, game.player_slices, strict=True)):
            np.testing.assert_allclose(policy[own], oracle.policy, rtol=1e-9, atol=1e-12)
            (utility,) = utilities([t, player], len(oracle.strategy), 1)
            values[own] = utility
            rule.function(treeplexes, player, values, policy, memory, parameters_at(rule, t), t)
            oracle.observe_utility(utility)
            strategy = oracle.treeplex.sequence_form(policy[own])
            np.testing.assert_allclose(strategy, oracle.next_strategy(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(memory.step, np.concatenate([oracle.step_sizes for oracle in oracles]), rtol=1e-12)
        assert regret_bounds(memory) == pytest.approx([oracle.regret_bound for oracle in oracles], rel=1e-12)


@pytest.mark.parametrize("name", ON_TREEPLEXES)
def test_minimizers_compute_with_the_rules(name):
    treeplex = RANDOM[0].treeplexes[1]
    minimizer, oracle = (make(treeplex, prediction_weight=1.0) for make in ON_TREEPLEXES[name])
    assert_same(minimizer, oracle)
    for utility in utilities(treeplex.player, treeplex.num_sequences, 30):
        for each in (minimizer, oracle):
            each.observe_utility(utility)
        assert_same(minimizer, oracle)
        np.testing.assert_allclose(minimizer.current_policy(), oracle.policy, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["dilated_entropy", "dilated_euclidean"])
def test_dilated_rules_with_weights_are_what_they_are_in_numpy(name):
    (treeplex, _), rng = RANDOM[0].treeplexes, np.random.default_rng(0)
    weights = rng.uniform(1, 9, size=treeplex.num_decision_points)
    minimizer, oracle = (make(treeplex, prediction_weight=1.0, weights=weights) for make in ON_TREEPLEXES[name])
    np.testing.assert_array_equal(minimizer.weights, weights)
    for utility in utilities(0, treeplex.num_sequences, 30):
        for each in (minimizer, oracle):
            each.observe_utility(utility)
        assert_same(minimizer, oracle)


@pytest.mark.parametrize("name", LOCAL_RULES)
def test_local_rules_learn_at_every_infostate(name):
    # A player's update is CFR: each infostate observes its counterfactual values.
    rule = LOCAL_RULES[name](prediction_weight=1.0)
    minimizer, (treeplex, _) = CFR(KUHN.treeplexes[0], rule), KUHN.treeplexes
    oracle = ON_SIMPLICES[name][1](treeplex.num_actions, prediction_weight=1.0)
    for utility in utilities(3, treeplex.num_sequences, 20):
        values = treeplex.counterfactual_values(np.concatenate([[1.0], oracle.next_strategy()]), utility)
        minimizer.observe_utility(utility)
        oracle.observe_utility(values[1:])
        np.testing.assert_allclose(minimizer.current_policy()[1:], oracle.next_strategy(), rtol=1e-12, atol=1e-12)
    bounds = regret_bounds(minimizer._memory)
    assert bounds.sum() == pytest.approx(oracle.regret_bound)
    assert bounds[0] == 0  # the root


# By hand.


def test_steps_by_hand():
    # A matrix game: one decision point with three actions, where the treeplex is the simplex. Fixed steps of 1/2.
    treeplex = compile_game(games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]])).treeplexes[0]
    utility = np.array([9.0, 2 * math.log(2), 0.0, 0.0])
    hedge_like = [2 / 4, 1 / 4, 1 / 4]  # weights 2, 1, 1
    minimizer = Hedge(3, 0.5)
    minimizer.observe_utility(utility[1:])
    np.testing.assert_allclose(minimizer.next_strategy(), hedge_like)
    minimizer = MultiplicativeWeights(treeplex, 0.5)
    minimizer.observe_utility(utility)
    np.testing.assert_allclose(minimizer.next_strategy(), [1, *hedge_like])
    # The weight of entropy is 2, so that weights are 2 ** (1/2), 1, 1; with the prediction 2, 1, 1.
    minimizer = DilatedEntropyAscent(treeplex, 0.5, prediction_weight=1.0)
    minimizer.observe_utility(utility)
    np.testing.assert_allclose(minimizer.next_strategy(), [1, *hedge_like])
    # 1/3 + (0.15, 0, 0) less 0.05 each; with half the prediction 1/3 + (0.225, 0, 0) less 0.075.
    for make in (functools.partial(ProjectedGradientAscent, 3), functools.partial(TreeplexGradientAscent, treeplex)):
        for weight, moved in ((0.0, 0.05), (0.5, 0.075)):
            minimizer = make(0.5, prediction_weight=weight)
            minimizer.observe_utility([9.0, 0.3, 0.0, 0.0][-len(minimizer.next_strategy()) :])
            np.testing.assert_allclose(minimizer.next_strategy()[-3:], 1 / 3 + np.array([2 * moved, -moved, -moved]))
    # With the weight 2 half of that.
    minimizer = DilatedEuclideanAscent(treeplex, 0.5)
    minimizer.observe_utility([9.0, 0.3, 0.0, 0.0])
    np.testing.assert_allclose(minimizer.next_strategy()[1:], 1 / 3 + np.array([0.05, -0.025, -0.025]))


def test_tuned_steps_by_hand():
    account = step_sizes.StepAccount(*np.zeros((5, 2)))
    # Radius 4. Errors 0 (any step), 3, 4: steps 1, then 2 / 3 and 2 / 5; the step before the first error is chosen afterwards.
    assert step_sizes.advance(account, 1, 4.0, 0.0, None) == (1.0, 1.0)
    assert step_sizes.advance(account, 1, 4.0, 3.0, None) == (2 / 3, 2 / 3)
    assert step_sizes.advance(account, 1, 4.0, 4.0, None) == (2 / 3, 2 / 5)
    np.testing.assert_allclose(account, [[0, 4], [0, 5], [0, 2 / 5], [0, 2 / 3], [0, (9 + 16) / 3]])
    # 4 / (2 / 3) + 25 / 3; the other one has not begun.
    np.testing.assert_allclose(regret_bounds(account), [0, 6 + 25 / 3])
    # A given step is taken as it is.
    account = step_sizes.StepAccount(*np.zeros((5, 1)))
    assert step_sizes.advance(account, 0, 4.0, 3.0, 0.5) == (0.5, 0.5)
    assert regret_bounds(account).tolist() == [8 + 9 / 4]


def test_steps_too_small_for_a_number_bound_nothing():
    account = step_sizes.StepAccount(np.array([1.0, 0.0]), *np.zeros((4, 2)))
    assert regret_bounds(account).tolist() == [math.inf, 0]


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1.0, 1e160, 2e299])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_errors_of_any_magnitude_are_measured(scale, weight):
    # The errors at the one infostate are 3 and 4, then 3 and 4 less what was predicted.
    utility = scale * np.array([3.0, -4.0])
    tuned = ProjectedGradientAscent(2, prediction_weight=weight)
    for _ in range(2):
        tuned.observe_utility(utility)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        expected = 1 / (5 * scale * (1 if weight else math.sqrt(2)))
    assert tuned.step_sizes == pytest.approx([min(expected, largest)], rel=1e-3)


@pytest.mark.parametrize(("number", "expected"), [(1.5, 1.5), (2e300, 1e300), (-math.inf, -1e300), (math.inf, 1e300)])
def test_saturation(number, expected):
    assert step_sizes.saturate(number) == expected


def test_steps_are_numbers_however_small_errors_are():
    assert step_sizes.tuned_step(1.0, 5e-324) == np.finfo(np.float64).max
    assert step_sizes.tuned_step(1.0, 0.0) == 1.0
    assert step_sizes.tuned_step(0.0, 1.0) == 0.0


# What the rules say of themselves.


@every_rule
def test_steps_may_follow_a_schedule(name):
    decaying = RULES[name](lambda iterations: 0.5 / np.sqrt(iterations), prediction_weight=1.0)
    assert [key for key, _ in decaying.parameters] == ["step_size", "prediction_weight"]
    np.testing.assert_allclose(decaying.parameter_table(np.array([1, 4])), [[0.5, 1], [0.25, 1]])
    if isinstance(decaying, LocalRule):
        minimizer, fixed = SimplexMinimizer(2, decaying), SimplexMinimizer(2, RULES[name](0.25, 1.0))
        for _ in range(4):
            minimizer.observe_utility([0.0, 0.0])
            fixed.observe_utility([0.0, 0.0])
        np.testing.assert_array_equal(minimizer.next_strategy(), [0.5, 0.5])


@every_rule
def test_rules_can_be_keys_and_pickled(name):
    for step_size in (None, 0.5):
        rule = RULES[name](step_size, 1.0)
        assert rule.name == name
        assert pickle.loads(pickle.dumps(rule)) == rule == RULES[name](step_size, 1.0) != RULES[name](0.25)
        assert len({rule, RULES[name](step_size, 1.0)}) == 1
    assert RULES[name]().with_prediction_weight(0.5) == RULES[name](prediction_weight=0.5)


@pytest.mark.parametrize("name", LOCAL_RULES)
def test_tuned_local_rules_are_scale_free(name):
    assert LOCAL_RULES[name]().scale_free
    assert not LOCAL_RULES[name](0.1).scale_free
    assert not LOCAL_RULES[name]().merges_actions


@every_option
@pytest.mark.parametrize("name", LOCAL_RULES)
def test_zeros_change_nothing_unless_something_is_predicted(name, step_size, prediction_weight):
    rule = LOCAL_RULES[name](step_size, prediction_weight)
    minimizer = SimplexMinimizer([7] * 30, rule)  # so many that a needless projection changes a last digit somewhere
    for utility in 0.1 * np.random.default_rng(0).normal(size=(5, 210)):
        minimizer.observe_utility(utility)
    before, policy = rule.memory(minimizer._simplices.arrays), minimizer.next_strategy()
    for kept, now in zip(before, minimizer._memory, strict=True):
        if kept is not None:
            kept[:] = now
    minimizer.observe_utility(np.zeros(210))
    skips = rule.skips_unreached(rule.parameter_table(np.array([1, 2, 3])))
    assert skips.tolist() == [False] + [prediction_weight == 0] * 2
    unchanged = np.array_equal(policy, minimizer.next_strategy())
    assert unchanged == (prediction_weight == 0)
    if unchanged:
        # The step of the last strategy counts in the bound alone; any step since the last error gives a valid one.
        for name in set(rule.array_names) - {"last_step", "prediction"}:
            np.testing.assert_array_equal(getattr(before, name), getattr(minimizer._memory, name), err_msg=name)


@every_rule
@pytest.mark.parametrize("step_size", [0.0, -1.0, math.inf, math.nan])
def test_bad_step_sizes_are_refused(name, step_size):
    with pytest.raises(ValueError, match="step_size must be positive and finite"):
        RULES[name](step_size)


@every_rule
def test_bad_weights_of_predictions_are_refused(name):
    with pytest.raises(ValueError, match="prediction_weight must be between 0 and 1"):
        RULES[name](prediction_weight=1.5)


def test_rules_are_compiled_for_one_signature():
    for game in (KUHN, compile_game(games.random_efg(0, num_players=3))):
        for make in TREEPLEX_RULES.values():
            for rule in (make(), make(0.5, 1.0)):
                memory, policy = rule.memory(game.treeplex_arrays), np.ones(game.num_sequences)
                for player in range(game.num_players):
                    values = np.ones(game.num_sequences)
                    rule.function(game.treeplex_arrays, player, values, policy, memory, parameters_at(rule, 1), 1)
                signatures = [each for each in rule.function.signatures if each[1] == numba.int64]  # not for player 0 alone
                assert len(signatures) == 1, rule
