"""Measured regrets: the theorem of Lecture 8, and distances from coarse correlated equilibria."""

import functools

import games
import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import StrategyProfile, compile_game
from spiel_cfrplus.regret_minimizers import (
    CFR,
    ComposedCFR,
    DiscountedRegretMatching,
    Hedge,
    ProjectedGradientAscent,
    RegretMatching,
    RegretMatchingPlus,
    RegretMonitor,
    SimplexRegretMatching,
)
from spiel_cfrplus.self_play import SelfPlay

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
LOCAL_MINIMIZERS = {
    "rm": SimplexRegretMatching,
    "rm+": functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus()),
    "discounted": functools.partial(SimplexRegretMatching, rule=DiscountedRegretMatching()),
    "predictive rm+": functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus(), optimistic=True),
    "hedge": functools.partial(Hedge, step_size=1.0),
    "gradient": functools.partial(ProjectedGradientAscent, step_size=0.3),
}


def monitored(game, local):
    """For each player CFR whose whole regret and all of whose local regrets are measured."""
    cfrs = [
        ComposedCFR(treeplex, lambda num_actions: RegretMonitor.on_simplex(local(num_actions))) for treeplex in game.treeplexes
    ]
    return [RegretMonitor.on_treeplex(cfr, cfr.treeplex) for cfr in cfrs]


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("local", LOCAL_MINIMIZERS.values(), ids=LOCAL_MINIMIZERS)
@pytest.mark.parametrize(
    "game", [KUHN, compile_game(pyspiel.load_game("kuhn_poker(players=3)")), compile_game(games.random_efg(7))], ids=repr
)
def test_regret_is_at_most_the_sum_of_positive_local_regrets(game, local, alternating):
    # Theorem L8.2, at every iteration.
    monitors = monitored(game, local)
    session = SelfPlay(game, monitors, alternating=alternating)
    for _ in range(60):
        session.run(1)
        for monitor in monitors:
            local_regrets = [minimizer.regret for minimizer in monitor.minimizer.local_minimizers]
            assert monitor.regret <= sum(max(0.0, regret) for regret in local_regrets) + 1e-10


def test_regret_by_hand():
    # Against a static uniform player 1, a best response of player 0 earns 1/2 in Kuhn poker and the uniform policy 1/8; CFR's
    # first strategy is uniform.
    monitor = RegretMonitor.on_treeplex(CFR(KUHN.treeplexes[0]), KUHN.treeplexes[0])
    assert monitor.regret == 0
    uniform = [StrategyProfile.uniform(KUHN).sequence_form(player) for player in range(2)]
    monitor.observe_utility(KUHN.payoff_gradient(0, uniform))
    assert monitor.regret == pytest.approx(1 / 2 - 1 / 8)
    assert (monitor.iteration, monitor.minimizer.iteration) == (1, 1)


@pytest.mark.parametrize(
    "name", ["kuhn_poker(players=3)", "sheriff(max_bribe=2,max_items=3,num_rounds=1)", "first_sealed_auction(max_value=3)"]
)
def test_average_regrets_are_openspiels_deviation_incentives(name):
    game = pyspiel.load_game(name)
    compiled = compile_game(game)
    monitors = [RegretMonitor.on_treeplex(CFR(treeplex, RegretMatching()), treeplex) for treeplex in compiled.treeplexes]
    session = SelfPlay(compiled, monitors, alternating=False)
    num_iterations, play = 12, []
    for _ in range(num_iterations):
        # The behaviour of CFR itself, also where a player does not come.
        policies = np.concatenate([monitor.minimizer.current_policy() for monitor in monitors])
        play.append((1 / num_iterations, StrategyProfile(compiled, policies).to_pyspiel_policy()))
        session.run(1)
    incentives = pyspiel.cce_dist(game, play).deviation_incentives
    for monitor, incentive in zip(monitors, incentives, strict=True):
        assert max(0.0, monitor.regret / num_iterations) == pytest.approx(incentive, abs=1e-12)
    assert session.cce_gap() == pytest.approx(max(incentives), abs=1e-12)
    assert max(incentives) > 1e-3


def test_sessions_and_monitors_measure_the_same_regrets():
    game = compile_game(pyspiel.load_game("kuhn_poker(players=3)"))
    for alternating in (True, False):
        monitors = [RegretMonitor.on_treeplex(CFR(treeplex), treeplex) for treeplex in game.treeplexes]
        session = SelfPlay(game, monitors, alternating=alternating)
        assert session.regrets().tolist() == [0, 0, 0]
        session.run(40)
        np.testing.assert_allclose(session.regrets(), [monitor.regret for monitor in monitors], rtol=0, atol=1e-12)
        assert session.regrets().max() > 0.1


def test_distance_from_coarse_correlated_equilibria_needs_strategies_that_were_played_together():
    players = [CFR(treeplex) for treeplex in KUHN.treeplexes]
    with pytest.raises(ValueError, match="needs iterations with simultaneous updates"):
        SelfPlay(KUHN, players, alternating=False).cce_gap()
    session = SelfPlay(KUHN, players)
    session.run(3)
    with pytest.raises(ValueError, match="needs iterations with simultaneous updates"):
        session.cce_gap()


def test_regrets_on_simplices_side_by_side_are_those_of_each():
    local = SimplexRegretMatching
    apart = ComposedCFR(KUHN.treeplexes[0], lambda num_actions: RegretMonitor.on_simplex(local(num_actions)))
    sizes = KUHN.treeplexes[0].num_actions
    together = ComposedCFR(KUHN.treeplexes[0], RegretMonitor.on_simplices(local(sizes), sizes))
    for cfr in (apart, together):
        SelfPlay(KUHN, [cfr, CFR(KUHN.treeplexes[1])]).run(30)
    expected = [monitor.regret for monitor in apart.local_minimizers]
    np.testing.assert_allclose(together.local_minimizers.regrets, expected, rtol=0, atol=1e-12)
    assert together.regret_bound == pytest.approx(apart.regret_bound) == pytest.approx(together.local_minimizers.regret_bound)


def test_a_bound_that_nobody_knows():
    cfr = ComposedCFR(KUHN.treeplexes[0], [RegretMonitor.on_simplex(CFR(KUHN.treeplexes[0]))] * 6)
    with pytest.raises(TypeError, match=r"CFR object .* knows no bound on its regret"):
        _ = cfr.regret_bound


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "sheriff(max_bribe=2,max_items=3,num_rounds=1)"])
def test_play_approaches_coarse_correlated_equilibria(name):
    game = compile_game(pyspiel.load_game(name))
    session = SelfPlay(game, [CFR(treeplex, RegretMatching()) for treeplex in game.treeplexes], alternating=False)
    gaps = []
    for num_iterations in (100, 10_000):
        session.run(num_iterations - session.iteration)
        gaps.append(session.cce_gap())
    # The theory promises a rate of t ** -1/2: a tenth after a hundred times the iterations.
    assert gaps[1] < gaps[0] / 10
