"""Minimizers on whole treeplexes."""

import copy
import functools
import itertools
import math
import pickle

import games
import numpy as np
import pyspiel
import pytest
from scipy import optimize, special

from spiel_cfrplus import StrategyProfile, compile_game, nash_conv
from spiel_cfrplus.regret_minimizers import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    RegretMonitor,
    TreeplexGradientAscent,
)
from spiel_cfrplus.regret_minimizers.treeplex_minimizers import entropic_response, quadratic_response, strongly_convex_weights
from spiel_cfrplus.solving.self_play import SelfPlay

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
MATRIX = compile_game(games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]]))
DICE = compile_game(pyspiel.load_game("liars_dice(dice_sides=2)"))


def vertices(treeplex):
    """All reduced normal-form strategies in sequence form, by brute force."""

    def plans(sequence):
        children = [j for j in range(treeplex.num_decision_points) if treeplex.parent_sequence[j] == sequence]
        options = [[(s, *rest) for s in treeplex.sequences(j) for rest in plans(s)] for j in children]
        return [tuple(itertools.chain(*choice)) for choice in itertools.product(*options)]

    result = np.zeros((len(plans(0)), treeplex.num_sequences))
    for row, plan in enumerate(plans(0)):
        result[row, [0, *plan]] = 1
    return result


@pytest.mark.parametrize("prediction_weight", [False, True])
@pytest.mark.parametrize("treeplex", [*KUHN.treeplexes, *MATRIX.treeplexes, DICE.treeplexes[0]], ids=repr)
def test_multiplicative_weights_equal_those_on_the_listed_vertices(treeplex, prediction_weight):
    plans, rate = vertices(treeplex), 0.7
    minimizer = MultiplicativeWeights(treeplex, rate, prediction_weight=prediction_weight)
    assert minimizer.log_num_strategies == pytest.approx(math.log(len(plans)), rel=1e-12)
    np.testing.assert_allclose(minimizer.next_strategy(), plans.mean(axis=0), atol=1e-12)
    total = np.zeros(treeplex.num_sequences)
    for utility in np.random.default_rng(0).normal(size=(30, treeplex.num_sequences)):
        minimizer.observe_utility(utility)
        total += utility
        weights = np.exp(rate * plans @ (total + (utility if prediction_weight else 0)))
        np.testing.assert_allclose(minimizer.next_strategy(), weights @ plans / weights.sum(), atol=1e-10)


def dilated_entropy(treeplex, weights, x):
    """psi(x) and its gradient as it is defined, with the local regularizer log |A_j| + sum of b log b."""
    value, gradient = 0.0, np.zeros(len(x))
    for j, parent in enumerate(treeplex.parent_sequence):
        sequences = list(treeplex.sequences(j))
        policy = x[sequences] / x[parent]
        local = math.log(len(policy)) + special.xlogy(policy, policy).sum()
        value += weights[j] * x[parent] * local
        gradient[sequences] += weights[j] * (np.log(policy) + 1)
        gradient[parent] += weights[j] * (local - policy @ (np.log(policy) + 1))
    return value, gradient


def dilated_distance(treeplex, weights, center, x):
    """D(x || center) and its gradient as it is defined, with the local regularizer sum of b^2 / 2."""
    value, gradient = 0.0, np.zeros(len(x))
    for j, parent in enumerate(treeplex.parent_sequence):
        sequences = list(treeplex.sequences(j))
        policy = x[sequences] / x[parent]
        difference = policy - center[sequences]
        value += weights[j] * x[parent] * (difference**2).sum() / 2
        gradient[sequences] += weights[j] * difference
        gradient[parent] += weights[j] * ((difference**2).sum() / 2 - policy @ difference)
    return value, gradient


def numerical_maximum(treeplex, utility, regularizer):
    """Of utility . x - regularizer(x) over the polytope, by an interior-point method, which stops a little below it."""
    constraints = np.zeros((treeplex.num_decision_points + 1, treeplex.num_sequences))
    constraints[-1, 0] = 1
    for j, parent in enumerate(treeplex.parent_sequence):
        constraints[j, parent] -= 1
        constraints[j, list(treeplex.sequences(j))] = 1
    right = np.eye(len(constraints))[-1]

    def loss(x):
        value, gradient = regularizer(x)
        return value - utility @ x, gradient - utility

    solution = optimize.minimize(
        loss,
        treeplex.sequence_form(treeplex.uniform_policy()),
        jac=True,
        bounds=optimize.Bounds(1e-10, 2, keep_feasible=True),
        constraints=optimize.LinearConstraint(constraints, right, right),
        method="trust-constr",
        options={"gtol": 1e-9, "xtol": 1e-12, "barrier_tol": 1e-9, "maxiter": 2000},
    )
    return -solution.fun


def small_treeplexes(count):
    """So many random treeplexes with more than one decision point, each with a generator for its points."""
    for seed in itertools.count():
        for treeplex in compile_game(games.random_efg(seed, depth=4)).treeplexes:
            if treeplex.num_decision_points > 1 and treeplex.num_sequences <= 16 and count > 0:
                count -= 1
                yield treeplex, np.random.default_rng([seed, treeplex.player])
        if count == 0:
            return


@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["entropy", "distance"])
def test_dilated_steps_are_the_optimum_that_a_general_solver_finds(kind, count):
    for treeplex, rng in small_treeplexes(count):
        weights = rng.uniform(0.5, 3, size=treeplex.num_decision_points)
        utility = rng.normal(scale=rng.choice([0.3, 1, 3]), size=treeplex.num_sequences)
        if kind == "entropy":
            prior = np.concatenate([[0], np.repeat(-np.log(treeplex.num_actions), treeplex.num_actions)])
            policy, maximum = entropic_response(treeplex, utility, weights, prior)
            regularizer = functools.partial(dilated_entropy, treeplex, weights)
        else:
            center = treeplex.behavioral_policy(rng.random(treeplex.num_sequences))
            policy, maximum = quadratic_response(treeplex, utility, weights, center)
            regularizer = functools.partial(dilated_distance, treeplex, weights, center)
        strategy = treeplex.sequence_form(policy)
        assert maximum - 0.01 < numerical_maximum(treeplex, utility, regularizer) < maximum + 1e-6
        # The maximum is attained (or nearly, where the definition divides by 0), and no strategy that way or another has more.
        inside = 1e-9 * treeplex.sequence_form(treeplex.uniform_policy()) + (1 - 1e-9) * strategy
        assert utility @ inside - regularizer(inside)[0] == pytest.approx(maximum, abs=1e-6)
        for policy in rng.random((20, treeplex.num_sequences)) ** 4:
            other = treeplex.sequence_form(treeplex.behavioral_policy(policy))
            for x in (other, 0.1 * other + 0.9 * strategy, 0.001 * other + 0.999 * strategy):
                assert utility @ x - regularizer(x)[0] < maximum + 1e-12
        if strategy.min() > 0:
            # At the optimum of a concave function no strategy is better along the gradient.
            _, gradient = regularizer(strategy)
            assert treeplex.best_value(utility - gradient) == pytest.approx((utility - gradient) @ strategy, abs=1e-10)


def test_strongly_convex_weights_by_hand():
    # Kuhn poker, first player: after a bet nothing, after a pass one decision of weight 2: 2 + 2 * 2.
    treeplex = KUHN.treeplexes[0]
    expected = [6 if len(key) == 1 else 2 for key in treeplex.infostate_keys]
    assert strongly_convex_weights(treeplex).tolist() == expected


@pytest.mark.parametrize("treeplex", [*KUHN.treeplexes, DICE.treeplexes[0]], ids=repr)
def test_regularizers_are_strongly_convex(treeplex):
    # psi halfway between two strategies lies below the mean by at least |x - y|^2 / 8; the distance D from any center likewise.
    rng = np.random.default_rng(0)
    weights = strongly_convex_weights(treeplex)
    for sharpness in (1, 8):
        for _ in range(50):
            policies = rng.random((3, treeplex.num_sequences)) ** sharpness
            x, y, _ = (treeplex.sequence_form(treeplex.behavioral_policy(policy)) for policy in policies)
            center = treeplex.behavioral_policy(policies[2])
            for function in (
                functools.partial(dilated_entropy, treeplex, weights),
                functools.partial(dilated_distance, treeplex, weights, center),
            ):
                sag = (function(x)[0] + function(y)[0]) / 2 - function((x + y) / 2)[0]
                assert sag >= ((x - y) ** 2).sum() / 8


def test_entropy_with_fixed_steps_goes_from_strategy_to_strategy():
    # The lazy form that the class computes, against argmax step * utility . x - D(x || last) of the definition.
    treeplex = KUHN.treeplexes[0]
    minimizer = DilatedEntropyAscent(treeplex, 0.8)
    regularizer = functools.partial(dilated_entropy, treeplex, minimizer.weights)
    for utility in np.random.default_rng(0).normal(size=(5, treeplex.num_sequences)):
        _, gradient = regularizer(minimizer.next_strategy())
        minimizer.observe_utility(utility)
        strategy = minimizer.next_strategy()
        # D is psi less its linear approximation at the last strategy. Optimal: no strategy is better along the gradient.
        direction = 0.8 * utility + gradient - regularizer(strategy)[1]
        assert treeplex.best_value(direction) == pytest.approx(direction @ strategy, abs=1e-10)


KINDS = {
    "weights": MultiplicativeWeights,
    "gradient": TreeplexGradientAscent,
    "entropy": DilatedEntropyAscent,
    "distance": DilatedEuclideanAscent,
}
MINIMIZERS = {
    f"{'predictive ' * prediction_weight}{name}{' fixed' * (step is not None)}": functools.partial(
        kind, step_size=step, prediction_weight=prediction_weight
    )
    for name, kind in KINDS.items()
    for prediction_weight in (False, True)
    for step in (None, 2.0)
}
every_minimizer = pytest.mark.parametrize("make", MINIMIZERS.values(), ids=MINIMIZERS)


@every_minimizer
@pytest.mark.parametrize("alternating", [True, False])
def test_self_play_solves_kuhn_poker(make, alternating):
    session = SelfPlay(KUHN, [make(treeplex) for treeplex in KUHN.treeplexes], alternating=alternating)
    session.run(1000)
    assert nash_conv(KUHN, StrategyProfile(KUHN, session.average_policy())) < 0.1


def random_adversary(t, strategy):
    return np.random.default_rng(t).normal(size=len(strategy))


def hostile_adversary(t, strategy):
    return random_adversary(t, strategy) - strategy


def late_adversary(t, strategy):
    # Nothing at first, then little, then much: hard on step sizes tuned to the past.
    return (t > 20) * (0.001 if t < 150 else 1.0) * hostile_adversary(t, strategy)


@pytest.mark.parametrize("adversary", [random_adversary, hostile_adversary, late_adversary])
@pytest.mark.parametrize("game", [KUHN, DICE], ids=repr)
@every_minimizer
def test_regret_stays_under_its_bound(make, game, adversary):
    treeplex = game.treeplexes[0]
    monitor = RegretMonitor.on_treeplex(make(treeplex), treeplex)
    for t in range(300):
        monitor.observe_utility(adversary(t, monitor.next_strategy()))
    assert 0 < monitor.regret <= monitor.regret_bound


def test_bounds_by_hand():
    # A matrix game: one decision point with three actions, where the treeplex is the simplex. Utility (3, 4, 0), step 1/2.
    treeplex = MATRIX.treeplexes[0]
    expected = {
        # log(3) / step + step * 4^2 / 8, as the utility ranges from 0 to 4
        MultiplicativeWeights: 2 * math.log(3) + 1,
        # 1 / step + step / 2 * |utility|^2
        TreeplexGradientAscent: 2 + 25 / 4,
        # weight 2: 2 log(3) / step + step / 2 * |utility|^2
        DilatedEntropyAscent: 4 * math.log(3) + 25 / 4,
        DilatedEuclideanAscent: 4 + 25 / 4,
    }
    for kind, bound in expected.items():
        minimizer = kind(treeplex, 0.5)
        assert minimizer.regret_bound == 0
        minimizer.observe_utility([7.0, 3.0, 4.0, 0.0])  # what the empty sequence earns makes no difference
        assert minimizer.regret_bound == pytest.approx(bound)
    # Weights of 1 are half of those that are convex enough.
    halved = DilatedEuclideanAscent(treeplex, 0.5, weights=np.ones(1))
    halved.observe_utility([0.0, 3.0, 4.0, 0.0])
    assert halved.regret_bound == pytest.approx(2 + 2 * 25 / 4)
    # Weights of 4 are twice as convex as needed.
    doubled = DilatedEuclideanAscent(treeplex, 0.5, weights=np.full(1, 4.0))
    doubled.observe_utility([0.0, 3.0, 4.0, 0.0])
    assert doubled.regret_bound == pytest.approx(8 + 25 / 8)
    # In Kuhn poker a pure strategy comes to at most two decision points for each of three cards, and chooses for each.
    assert TreeplexGradientAscent(KUHN.treeplexes[0], 1.0)._memory.divergence_bound == pytest.approx([6])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("name", [name for name in MINIMIZERS if "fixed" not in name])
def test_tuned_steps_do_not_care_for_units(name, scale):
    plain, scaled = MINIMIZERS[name](KUHN.treeplexes[0]), MINIMIZERS[name](KUHN.treeplexes[0])
    for utility in np.random.default_rng(0).normal(size=(50, 13)):
        plain.observe_utility(utility)
        scaled.observe_utility(scale * utility)
        np.testing.assert_allclose(scaled.next_strategy(), plain.next_strategy(), rtol=0, atol=1e-9)
    assert scaled.regret_bound == pytest.approx(scale * plain.regret_bound)


@every_minimizer
def test_utilities_that_make_no_sense_change_nothing(make):
    minimizer = make(KUHN.treeplexes[0])
    before = minimizer.next_strategy()
    for utility in (np.zeros(5), np.full(13, math.nan)):
        with pytest.raises(ValueError, match="expected 13 finite numbers"):
            minimizer.observe_utility(utility)
    np.testing.assert_array_equal(minimizer.next_strategy(), before)
    assert minimizer.iteration == 0


@every_minimizer
def test_players_without_decisions_play_their_one_strategy(make):
    (idle,) = (treeplex for treeplex in compile_game(games.chain(1)).treeplexes if not treeplex.num_decision_points)
    minimizer = make(idle)
    minimizer.observe_utility([1.0])
    assert minimizer.next_strategy().tolist() == [1]
    assert minimizer.regret_bound >= 0


@every_minimizer
def test_copies_learn_on_their_own(make):
    minimizer = make(KUHN.treeplexes[0])
    minimizer.observe_utility(np.arange(13.0))
    before = minimizer.next_strategy()
    for twin in (copy.deepcopy(minimizer), pickle.loads(pickle.dumps(minimizer))):
        twin.observe_utility(np.cos(np.arange(13.0)))
        assert twin.next_strategy().tolist() != before.tolist()
        np.testing.assert_array_equal(minimizer.next_strategy(), before)


@pytest.mark.parametrize("name", ["weights", "gradient", "predictive weights", "predictive gradient"])
def test_long_games_are_learned(name):
    # Opponents who play uniformly come to the last of these decisions with a probability of 2^-100.
    game = compile_game(games.chain(200))
    session = SelfPlay(game, [MINIMIZERS[name](treeplex) for treeplex in game.treeplexes])
    session.run(100)
    bounds = [minimizer.regret_bound for minimizer in session.minimizers]
    assert (session.regrets() <= bounds).all()
    assert nash_conv(game, StrategyProfile(game, session.average_policy())) < 0.9


@pytest.mark.parametrize("kind", [DilatedEntropyAscent, DilatedEuclideanAscent])
def test_dilated_regularizers_know_their_limits(kind):
    with pytest.raises(ValueError, match="player 0 has too many decisions in a row"):
        kind(compile_game(games.chain(2200)).treeplexes[0])


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("step_size", [0.0, -1.0, math.inf, math.nan])
def test_bad_step_sizes_are_refused(kind, step_size):
    with pytest.raises(ValueError, match="step_size must be positive and finite"):
        kind(KUHN.treeplexes[0], step_size)


@pytest.mark.parametrize("kind", [DilatedEntropyAscent, DilatedEuclideanAscent])
@pytest.mark.parametrize("weights", [[1.0], np.zeros(6), np.full(6, np.nan), np.full(6, np.inf)], ids=str)
def test_bad_weights_are_refused(kind, weights):
    with pytest.raises(ValueError, match="expected 6 positive weights"):
        kind(KUHN.treeplexes[0], weights=weights)
