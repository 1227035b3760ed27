"""Euclidean projections: the nearest point of the simplex, and of the sequence-form polytope."""

import itertools
import math

import games
import numpy as np
import pyspiel
import pytest
from scipy import optimize

from spiel_cfrplus import Treeplex, compile_game
from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.kernels import projection as projection_kernels
from spiel_cfrplus.kernels import simplex as simplex_kernels
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.regret_minimizers import project_onto_simplex, project_onto_treeplex

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
DICE = compile_game(pyspiel.load_game("liars_dice(dice_sides=2)"))
LEDUC = compile_game(pyspiel.load_game("leduc_poker"))


# The simplex.


def nearest_by_enumeration(point):
    """The nearest distribution: on each set of actions the nearest point of the plane where they sum to 1, if that is one."""
    best, best_distance = None, math.inf
    for played in itertools.product([False, True], repeat=len(point)):
        if any(played):
            chosen = np.array(played)
            candidate = np.where(chosen, point + (1 - point[chosen].sum()) / chosen.sum(), 0)
            distance = np.linalg.norm(candidate - point)
            if candidate.min() >= 0 and distance < best_distance:
                best, best_distance = candidate, distance
    return best


@pytest.mark.parametrize("size", range(1, 8))
def test_projection_is_the_nearest_distribution(size):
    rng = np.random.default_rng(size)
    for scale in (1e-12, 0.3, 1, 3):
        for point in rng.normal(scale=scale, size=(10, size)):
            np.testing.assert_allclose(project_onto_simplex(point), nearest_by_enumeration(point), atol=1e-14)
    for point in rng.integers(-2, 3, size=(20, size)) / 2:  # ties
        np.testing.assert_allclose(project_onto_simplex(point), nearest_by_enumeration(point), atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e20, 1e300, 5e307])
def test_projection_of_points_far_away(scale):
    np.testing.assert_array_equal(project_onto_simplex([scale * 3, scale * 2, -scale * 3]), [1, 0, 0])
    np.testing.assert_array_equal(project_onto_simplex([-scale, scale, scale]), [0, 0.5, 0.5])


@pytest.mark.parametrize("size", [1, 3, 1000, 100_000])
def test_projections_sum_to_one(size):
    rng = np.random.default_rng(0)
    for point in (np.full(size, -7.0), rng.normal(size=size), rng.normal(size=size) / size, 1e6 + rng.random(size)):
        nearest = project_onto_simplex(point)
        assert nearest.min() >= 0
        assert nearest.sum() == pytest.approx(1, abs=1e-11)
    np.testing.assert_allclose(project_onto_simplex(np.full(size, -7.0)), 1 / size)


def test_the_kernel_works_on_its_segment_alone():
    point, nearest = np.array([9.0, 0.7, 0.5, -0.3, 9.0]), np.full(5, np.nan)
    simplex_kernels.project_onto_simplex(point, INDEX(1), INDEX(4), nearest)
    np.testing.assert_array_equal(point, [9.0, 0.7, 0.5, -0.3, 9.0])
    np.testing.assert_allclose(nearest, [np.nan, 0.6, 0.4, 0, np.nan], atol=1e-15)


@pytest.mark.parametrize("point", [[], [[0.5, 0.5]], 1.0, [math.nan, 0.0], [math.inf, 0.0]], ids=str)
def test_points_that_make_no_sense_are_refused(point):
    with pytest.raises(ValueError, match="vector of finite numbers"):
        project_onto_simplex(point)


# Treeplexes.


def make_treeplex(parents, counts):
    """Decision point j has `counts[j]` actions and follows sequence `parents[j]`."""
    starts = np.cumsum([1, *counts])
    size = int(starts[-1])
    return Treeplex(
        player=0,
        infostate_keys=tuple(map(str, range(len(counts)))),
        sequence_start=frozen(starts, np.int32),
        parent_sequence=frozen(parents, np.int32),
        actions=frozen(np.arange(size) - 1, np.int64),
        may_end=frozen(np.ones(size), np.bool_),
    )


# In the chain one may stop or go on, 2,000 times. In the broad one 15 decision points follow each of 40 actions, and 3 more
# every ninth action there. The forced one has no choice, the lone one no decision.
CHAIN = make_treeplex([0, *range(2, 4000, 2)], [2] * 2000)
BROAD = make_treeplex([0, *np.arange(1, 41).repeat(15), *np.arange(41, 1841, 9).repeat(3)], [40] + [3] * 600 + [2] * 600)
FORCED = make_treeplex(range(5), [1] * 5)
TREEPLEXES = {
    "kuhn": KUHN.treeplexes[0],
    "dice": DICE.treeplexes[1],
    "leduc": LEDUC.treeplexes[0],
    "chain": CHAIN,
    "broad": BROAD,
    "forced": FORCED,
    "lone": make_treeplex([], []),
}
every_treeplex = pytest.mark.parametrize("treeplex", TREEPLEXES.values(), ids=TREEPLEXES)


def random_strategy(rng, treeplex):
    """A sequence-form strategy that gives every third action or so probability 0, and in the chain still comes to the end."""
    weights = rng.random(treeplex.num_sequences) * (rng.random(treeplex.num_sequences) < 2 / 3)
    if treeplex is CHAIN:
        weights[1::2] *= 1e-3
        weights[2::2] = 1
    return treeplex.sequence_form(treeplex.behavioral_policy(weights))


def across_constraints(treeplex, multipliers, at_empty):
    """The sum of multiples of the rows of the constraints: a vector along which every strategy has the same product."""
    vector = np.zeros(treeplex.num_sequences)
    vector[0] = at_empty
    for j, (parent, multiplier) in enumerate(zip(treeplex.parent_sequence, multipliers, strict=True)):
        vector[parent] -= multiplier
        vector[list(treeplex.sequences(j))] += multiplier
    return vector


@every_treeplex
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_the_projection_from_which_a_point_was_made_is_found(treeplex, scale):
    # Karush, Kuhn and Tucker: `strategy` is nearest to strategy + multiples of the constraints' rows - something non-negative
    # where the strategy is zero. Where that is zero too, the action is on the verge of being played.
    rng = np.random.default_rng(0)
    for _ in range(5):
        strategy = random_strategy(rng, treeplex)
        bound = (strategy == 0) * rng.integers(2, size=len(strategy)) * rng.random(len(strategy))
        multipliers = rng.normal(size=treeplex.num_decision_points)
        point = strategy + scale * (across_constraints(treeplex, multipliers, rng.normal()) - bound)
        nearest = project_onto_treeplex(treeplex, point)
        assert treeplex.contains(nearest, 1e-13)
        np.testing.assert_allclose(nearest, strategy, atol=1e-13 + 1e-14 * scale)


def nearest_by_quadratic_program(treeplex, point):
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
    rough = optimize.lsq_linear(rows, right, bounds=(0, np.inf), method="bvls", tol=1e-14).x
    # Which sequences are played is known now; with these the constraints are equations, and no weight is needed.
    played = rough > 1e-6
    binding = constraints[:, played]
    solution = np.zeros_like(rough)
    solution[played] = point[played] + np.linalg.lstsq(binding, target - binding @ point[played], rcond=None)[0]
    np.testing.assert_allclose(solution, rough, atol=1e-5)
    return solution


def test_projection_onto_random_treeplexes_solves_the_quadratic_program():
    compared = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        for treeplex in compile_game(games.random_efg(seed, depth=4)).treeplexes:
            if 2 < treeplex.num_sequences <= 40:
                point = rng.normal(scale=rng.choice([0.3, 1, 3]), size=treeplex.num_sequences)
                if seed % 4 == 0:
                    point = point.round()  # ties
                nearest = project_onto_treeplex(treeplex, point)
                np.testing.assert_allclose(
                    nearest, nearest_by_quadratic_program(treeplex, point), atol=1e-12, err_msg=str(seed)
                )
                compared += 1
    assert compared >= 200


@pytest.mark.parametrize("game", [KUHN, DICE, LEDUC], ids=repr)
def test_no_strategy_is_on_the_points_side_of_the_projection(game):
    # What characterizes it: (point - nearest) . (x - nearest) <= 0 for every strategy x, hence for the best of them.
    rng = np.random.default_rng(0)
    for treeplex in game.treeplexes:
        for scale in (1e-12, 0.1, 1, 10):
            for point in (rng.normal(size=treeplex.num_sequences), rng.integers(-1, 2, size=treeplex.num_sequences)):
                nearest = project_onto_treeplex(treeplex, scale * point)
                assert treeplex.contains(nearest, 1e-14)
                difference = scale * point - nearest
                assert treeplex.best_value(difference) <= difference @ nearest + 1e-12 * (1 + scale)


@every_treeplex
def test_steps_across_the_constraints_change_nothing(treeplex):
    rng = np.random.default_rng(1)
    point = rng.normal(size=treeplex.num_sequences)
    step = across_constraints(treeplex, rng.normal(size=treeplex.num_decision_points), rng.normal())
    moved = project_onto_treeplex(treeplex, point + step)
    np.testing.assert_allclose(moved, project_onto_treeplex(treeplex, point), atol=1e-12)


@every_treeplex
def test_strategies_are_their_own_projections(treeplex):
    rng = np.random.default_rng(2)
    for _ in range(10):
        strategy = random_strategy(rng, treeplex)
        np.testing.assert_allclose(project_onto_treeplex(treeplex, strategy), strategy, atol=1e-14)
    nearest = project_onto_treeplex(treeplex, rng.normal(size=treeplex.num_sequences))
    np.testing.assert_allclose(project_onto_treeplex(treeplex, nearest), nearest, atol=1e-14)


@every_treeplex
def test_projections_are_no_farther_apart_than_the_points(treeplex):
    rng = np.random.default_rng(3)
    for distance in (1e-9, 1e-3, 1.0):
        points = rng.normal(size=treeplex.num_sequences) + [[0], [distance]] * rng.normal(size=treeplex.num_sequences)
        first, second = (project_onto_treeplex(treeplex, point) for point in points)
        assert np.linalg.norm(first - second) <= np.linalg.norm(points[0] - points[1]) + 1e-13


@pytest.mark.parametrize("size", [1, 3, 100])
def test_projection_onto_one_decision_point_is_that_onto_the_simplex(size):
    treeplex = make_treeplex([0], [size])
    for point in np.random.default_rng(0).normal(size=(50, size)):
        nearest = project_onto_treeplex(treeplex, np.concatenate([[5.0], point]))
        np.testing.assert_allclose(nearest[1:], project_onto_simplex(point), atol=1e-14)


@pytest.mark.parametrize("scale", [1e6, 1e20, 1e300])
def test_far_away_all_actions_but_the_best_are_left(scale):
    # A pass earns 1 and may lead to a second decision, which earns 1 either way; a bet earns 1. At the second decision the two
    # actions tie: of all best strategies the nearest plays each with probability 1/2.
    treeplex = KUHN.treeplexes[0]
    assert treeplex.parent_sequence.tolist() == [0, 1, 0, 5, 0, 9]
    nearest = project_onto_treeplex(treeplex, np.full(13, scale))
    np.testing.assert_array_equal(nearest, [1, 1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5])
    # When everything costs, a bet costs once and a pass twice.
    nearest = project_onto_treeplex(treeplex, np.full(13, -scale))
    np.testing.assert_array_equal(nearest, [1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(project_onto_treeplex(make_treeplex([0], [4]), np.full(5, -scale)), [1, *[0.25] * 4])


def test_a_step_that_pays_for_itself_two_decisions_later():
    # Stop or go on, again stop (far from the point, hence never) or go on, and then the one action, whose coordinate is 1.5.
    # With probability p of going on, the squared distance is (1 - p)^2 + 2 p^2 + (p - 1.5)^2 + 4^2, least at 4 p = 2.5.
    treeplex = make_treeplex([0, 2, 4], [2, 2, 1])
    point = np.array([0, 0, 0, -4, 0, 1.5])
    np.testing.assert_allclose(project_onto_treeplex(treeplex, point), [1, 3 / 8, 5 / 8, 0, 5 / 8, 5 / 8], atol=1e-15)


@pytest.mark.parametrize("point", [np.zeros(3), np.zeros((1, 13)), np.full(13, math.nan), np.full(13, math.inf)], ids=str)
def test_points_that_make_no_sense_are_refused_on_treeplexes(point):
    with pytest.raises(ValueError, match="expected 13 finite numbers"):
        project_onto_treeplex(KUHN.treeplexes[0], point)


def test_the_point_is_left_alone():
    point = np.random.default_rng(0).normal(size=13)
    before = point.copy()
    project_onto_treeplex(KUHN.treeplexes[0], point)
    project_onto_simplex(point)
    np.testing.assert_array_equal(point, before)


def test_kernels_are_compiled_for_one_signature():
    kernels = (projection_kernels.project_onto_treeplex, simplex_kernels.project_onto_simplex)
    project_onto_treeplex(CHAIN, np.ones(CHAIN.num_sequences))
    project_onto_simplex([0.5])
    before = [list(kernel.signatures) for kernel in kernels]
    for treeplex in TREEPLEXES.values():
        project_onto_treeplex(treeplex, np.ones(treeplex.num_sequences, np.float32))
    project_onto_simplex([1, 2])
    assert all(before)
    assert [list(kernel.signatures) for kernel in kernels] == before
