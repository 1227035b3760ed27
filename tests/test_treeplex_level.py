"""Minimisers on whole treeplexes, and the projection onto the sequence-form polytope."""

import itertools
import math

import games
import numpy as np
import pyspiel
import pytest
from scipy import optimize

from spiel_cfrplus import StrategyProfile, compile_game, nash_conv
from spiel_cfrplus.regret_minimizers import (
    MultiplicativeWeights,
    RegretMonitor,
    TreeplexGradientAscent,
    project_onto_simplex,
    project_onto_treeplex,
)
from spiel_cfrplus.self_play import SelfPlay

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


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("treeplex", [*KUHN.treeplexes, *MATRIX.treeplexes, DICE.treeplexes[0]], ids=repr)
def test_multiplicative_weights_equal_those_on_the_listed_vertices(treeplex, optimistic):
    plans, rate = vertices(treeplex), 0.7
    minimizer = MultiplicativeWeights(treeplex, rate, optimistic=optimistic)
    assert minimizer.log_num_strategies == pytest.approx(math.log(len(plans)), rel=1e-12)
    np.testing.assert_allclose(minimizer.next_strategy(), plans.mean(axis=0), atol=1e-12)
    total = np.zeros(treeplex.num_sequences)
    for utility in np.random.default_rng(0).normal(size=(30, treeplex.num_sequences)):
        minimizer.observe_utility(utility)
        total += utility
        weights = np.exp(rate * plans @ (total + (utility if optimistic else 0)))
        np.testing.assert_allclose(minimizer.next_strategy(), weights @ plans / weights.sum(), atol=1e-10)


def quadratic_program(treeplex, point):
    """The nearest strategy by a general solver, from the constraints as they are defined."""
    constraints = np.zeros((treeplex.num_decision_points + 1, treeplex.num_sequences))
    constraints[-1, 0] = 1
    for j, parent in enumerate(treeplex.parent_sequence):
        constraints[j, parent] = -1
        constraints[j, list(treeplex.sequences(j))] = 1
    target = np.eye(len(constraints))[-1]
    # As bounded least squares, by an active-set method; the constraints weigh so much that they hold to about 1e-10.
    weight = 1e5
    rows = np.vstack([np.eye(treeplex.num_sequences), weight * constraints])
    right = np.concatenate([point, weight * target])
    return optimize.lsq_linear(rows, right, bounds=(0, np.inf), method="bvls", tol=1e-14).x


@pytest.mark.parametrize("seed", range(100))
def test_projection_onto_random_treeplexes_solves_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    for treeplex in compile_game(games.random_efg(seed, depth=4)).treeplexes:
        if treeplex.num_sequences <= 40:
            point = rng.normal(scale=rng.choice([0.3, 1, 3]), size=treeplex.num_sequences)
            nearest = project_onto_treeplex(treeplex, point)
            assert treeplex.contains(nearest)
            np.testing.assert_allclose(nearest, quadratic_program(treeplex, point), atol=1e-6)


@pytest.mark.parametrize("game", [KUHN, DICE, compile_game(pyspiel.load_game("leduc_poker"))], ids=repr)
def test_no_vertex_is_on_the_point_s_side_of_the_projection(game):
    # What characterises it: (point - nearest) . (x - nearest) <= 0 for every strategy x, hence for the best of them.
    rng = np.random.default_rng(0)
    for treeplex in game.treeplexes:
        for scale in (0.1, 1, 10):
            point = rng.normal(scale=scale, size=treeplex.num_sequences)
            nearest = project_onto_treeplex(treeplex, point)
            assert treeplex.contains(nearest)
            assert treeplex.best_value(point - nearest) <= (point - nearest) @ nearest + 1e-10


def test_projection_onto_one_decision_point_is_that_onto_the_simplex():
    treeplex = MATRIX.treeplexes[0]
    for point in np.random.default_rng(0).normal(size=(50, 3)):
        nearest = project_onto_treeplex(treeplex, np.concatenate([[5.0], point]))
        np.testing.assert_allclose(nearest[1:], project_onto_simplex(point), atol=1e-12)


def test_strategies_are_their_own_projections():
    treeplex = KUHN.treeplexes[0]
    for policy in np.random.default_rng(0).random((20, treeplex.num_sequences)):
        strategy = treeplex.sequence_form(treeplex.behavioural_policy(policy))
        np.testing.assert_allclose(project_onto_treeplex(treeplex, strategy), strategy, atol=1e-12)


MINIMIZERS = {
    "weights": lambda treeplex: MultiplicativeWeights(treeplex, 2.0),
    "optimistic weights": lambda treeplex: MultiplicativeWeights(treeplex, 2.0, optimistic=True),
    "gradient": lambda treeplex: TreeplexGradientAscent(treeplex, 0.5),
    "optimistic gradient": lambda treeplex: TreeplexGradientAscent(treeplex, 0.5, optimistic=True),
}
every_minimizer = pytest.mark.parametrize("make", MINIMIZERS.values(), ids=MINIMIZERS)


@every_minimizer
@pytest.mark.parametrize("alternating", [True, False])
def test_self_play_solves_kuhn_poker(make, alternating):
    session = SelfPlay(KUHN, [make(treeplex) for treeplex in KUHN.treeplexes], alternating=alternating)
    session.run(1000)
    assert nash_conv(KUHN, StrategyProfile(KUHN, session.average_policy())) < 0.02


@pytest.mark.parametrize("kind", ["weights", "gradient"])
def test_regret_stays_under_its_bound(kind):
    num_rounds = 300
    treeplex = KUHN.treeplexes[0]
    rng = np.random.default_rng(0)
    # Utilities of norm 1 at most; over strategies they range over at most 2 sqrt(S).
    utilities = rng.normal(size=(num_rounds, treeplex.num_sequences))
    utilities /= np.linalg.norm(utilities, axis=1, keepdims=True)
    if kind == "weights":
        log_n = MultiplicativeWeights(treeplex, 1.0).log_num_strategies
        spread = max(treeplex.best_value(u) + treeplex.best_value(-u) for u in utilities)
        rate = math.sqrt(8 * log_n / num_rounds) / spread
        minimizer, bound = MultiplicativeWeights(treeplex, rate), spread * math.sqrt(num_rounds * log_n / 2)
    else:
        start = treeplex.sequence_form(treeplex.uniform_policy())
        diameter = max(np.linalg.norm(vertex - start) for vertex in vertices(treeplex))
        step = diameter / math.sqrt(num_rounds)
        minimizer, bound = TreeplexGradientAscent(treeplex, step), diameter * math.sqrt(num_rounds)
    monitor = RegretMonitor.on_treeplex(minimizer, treeplex)
    for utility in utilities:
        monitor.observe_utility(utility)
        monitor.next_strategy()
    assert 0 < monitor.regret <= bound


@every_minimizer
def test_utilities_that_make_no_sense_change_nothing(make):
    minimizer = make(KUHN.treeplexes[0])
    before = minimizer.next_strategy()
    for utility in (np.zeros(5), np.full(13, math.nan)):
        with pytest.raises(ValueError, match="expected 13 finite numbers"):
            minimizer.observe_utility(utility)
    np.testing.assert_array_equal(minimizer.next_strategy(), before)
    assert minimizer.iteration == 0


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="learning_rate must be positive"):
        MultiplicativeWeights(KUHN.treeplexes[0], 0.0)
    with pytest.raises(ValueError, match="step_size must be positive"):
        TreeplexGradientAscent(KUHN.treeplexes[0], math.inf)
    with pytest.raises(ValueError, match="13 sequences"):
        project_onto_treeplex(KUHN.treeplexes[0], np.zeros(3))
