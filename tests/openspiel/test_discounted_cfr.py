"""The drop-in `discounted_cfr` compared with the OpenSpiel module that it replaces."""

import math

import numpy as np
import pyspiel
import pytest
from drop_in import KUHN, assert_same_policies, load
from open_spiel.python.algorithms import discounted_cfr as upstream_discounted_cfr

from spiel_cfrplus.openspiel import cfr, discounted_cfr


@pytest.mark.parametrize(
    "arguments", [{}, {"alpha": 2, "beta": -1, "gamma": 3}, {"alpha": 0.5, "beta": 0.5, "gamma": 0}], ids=str
)
@pytest.mark.parametrize("game", ["kuhn_poker", "liars_dice(dice_sides=3)", "kuhn_poker(players=3)"])
def test_discounted_cfr_equals_upstream(game, arguments):
    game = load(game)
    ours, theirs = discounted_cfr.DCFRSolver(game, **arguments), upstream_discounted_cfr.DCFRSolver(game, **arguments)
    assert_same_policies(ours, theirs, 20, 0 if game.num_players() == 2 else 1e-13)


def test_linear_cfr_equals_upstream():
    game = load("liars_dice(dice_sides=3)")
    assert_same_policies(discounted_cfr.LCFRSolver(game), upstream_discounted_cfr.LCFRSolver(game), 20, 0)


def test_discounted_cfr_after_a_hundred_iterations():
    solver = discounted_cfr.DCFRSolver(KUHN)
    solver.run(100)
    # Measured on upstream's solver.
    assert pyspiel.nash_conv(KUHN, solver.tabular_average_policy()) == pytest.approx(0.003332684, abs=5e-10)


def test_simultaneous_discounted_cfr_updates():
    # Upstream's does nothing. With all exponents 0 and infinity it is regret matching with uniform averaging.
    options = {"alternating_updates": False, "linear_averaging": True, "regret_matching_plus": False}
    discounted = discounted_cfr._DCFRSolver(KUHN, **options, alpha=math.inf, beta=math.inf, gamma=0)
    plain = cfr._CFRSolver(KUHN, alternating_updates=False, linear_averaging=False, regret_matching_plus=False)
    assert_same_policies(discounted, plain, 20, 0)
    assert np.any(discounted.average_policy().action_probability_array != 0.5)


@pytest.mark.parametrize(
    "options", [{"regret_matching_plus": False, "beta": -math.inf}, {"regret_matching_plus": True, "beta": 7}]
)
def test_infinite_exponents_and_the_plus_flag_mean_regret_matching_plus(options):
    discounted = discounted_cfr._DCFRSolver(
        KUHN, alternating_updates=True, linear_averaging=True, alpha=math.inf, gamma=1, **options
    )
    assert_same_policies(discounted, cfr.CFRPlusSolver(KUHN), 50, 0)
