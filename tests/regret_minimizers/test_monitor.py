"""Measured regrets: the theorem of Lecture 8, and distances from coarse correlated equilibria."""

import functools
import math

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
    StaticStrategy,
    TreeplexGradientAscent,
)
from spiel_cfrplus.solving.self_play import SelfPlay

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
LOCAL_MINIMIZERS = {
    "rm": SimplexRegretMatching,
    "rm+": functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus()),
    "discounted": functools.partial(SimplexRegretMatching, rule=DiscountedRegretMatching()),
    "predictive rm": functools.partial(SimplexRegretMatching, prediction_weight=1.0),
    "predictive rm+": functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus(), prediction_weight=1.0),
    "predictive discounted": functools.partial(SimplexRegretMatching, rule=DiscountedRegretMatching(), prediction_weight=1.0),
    "hedge, fixed step": functools.partial(Hedge, step_size=1.0),
    "hedge": Hedge,
    "predictive hedge": functools.partial(Hedge, prediction_weight=1.0),
    "gradient, fixed step": functools.partial(ProjectedGradientAscent, step_size=0.3),
    "gradient": ProjectedGradientAscent,
    "predictive gradient": functools.partial(ProjectedGradientAscent, prediction_weight=1.0),
}


def monitored(game, local):
    """For each player CFR whose whole regret and all of whose local regrets are measured."""
    cfrs = [
        ComposedCFR(treeplex, lambda num_actions: RegretMonitor.on_simplex(local(num_actions))) for treeplex in game.treeplexes
    ]
    return [RegretMonitor.on_treeplex(cfr, cfr.treeplex) for cfr in cfrs]


@pytest.mark.parametrize("num_iterations", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("local", LOCAL_MINIMIZERS.values(), ids=LOCAL_MINIMIZERS)
@pytest.mark.parametrize(
    "game", [KUHN, compile_game(pyspiel.load_game("kuhn_poker(players=3)")), compile_game(games.random_efg(7))], ids=repr
)
def test_regret_is_at_most_the_sum_of_positive_local_regrets(game, local, alternating, num_iterations):
    # Theorem L8.2, at every iteration.
    monitors = monitored(game, local)
    session = SelfPlay(game, monitors, alternating=alternating)
    for _ in range(num_iterations):
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
        # The behavior of CFR itself, also where a player does not come.
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
    with pytest.raises(ValueError, match="no iterations have been done"):
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


class Meddler:
    """Works in its own array all the time, and spoils what it is given."""

    def __init__(self, treeplex):
        self.inner = TreeplexGradientAscent(treeplex)
        self.strategy = self.inner.next_strategy()

    def next_strategy(self):
        return self.strategy

    def observe_utility(self, utility):
        self.inner.observe_utility(utility)
        utility *= 0
        self.strategy[:] = self.inner.next_strategy()


@pytest.mark.parametrize("alternating", [True, False])
def test_minimizers_may_go_on_with_arrays_that_they_gave_or_got(alternating):
    well_behaved = SelfPlay(KUHN, [TreeplexGradientAscent(treeplex) for treeplex in KUHN.treeplexes], alternating=alternating)
    meddlers = SelfPlay(KUHN, [Meddler(treeplex) for treeplex in KUHN.treeplexes], alternating=alternating)
    monitors = [RegretMonitor.on_treeplex(Meddler(treeplex), treeplex) for treeplex in KUHN.treeplexes]
    monitored = SelfPlay(KUHN, monitors, alternating=alternating)
    for session in (well_behaved, meddlers, monitored):
        session.run(20)
    for session in (meddlers, monitored):
        np.testing.assert_array_equal(session.regrets(), well_behaved.regrets())
        np.testing.assert_array_equal(session.average_policy(), well_behaved.average_policy())
    assert [monitor.regret for monitor in monitors] == pytest.approx(well_behaved.regrets(), abs=1e-12)


def test_a_utility_without_a_question_before_it_meets_the_strategy_of_the_time():
    # Hedge at step log 2 after (1, 0): (2/3, 1/3), after two of them (4/5, 1/5); they earn 1/2 and 2/3 of (1, 0).
    monitor = RegretMonitor.on_simplex(Hedge(2, math.log(2)))
    for _ in range(2):
        monitor.observe_utility([1.0, 0.0])
    assert monitor.regret == pytest.approx(2 - 1 / 2 - 2 / 3)
    # CFR in one point is its local minimizer, asked or not.
    asked, unasked = (ComposedCFR(KUHN.treeplexes[0], functools.partial(Hedge, step_size=1.0)) for _ in range(2))
    for utility in np.random.default_rng(0).normal(size=(5, 13)):
        asked.next_strategy()
        for cfr in (asked, unasked):
            cfr.observe_utility(utility)
    np.testing.assert_array_equal(asked.next_strategy(), unasked.next_strategy())


@pytest.mark.parametrize("utility", [[math.nan, 0.0], [math.inf, 0.0]])
def test_monitors_keep_their_account_clean(utility):
    monitor = RegretMonitor.on_simplex(StaticStrategy([0.5, 0.5]))
    monitor.observe_utility([1.0, 0.0])
    with pytest.raises(ValueError, match="expected finite numbers"):
        monitor.observe_utility(utility)
    assert (monitor.iteration, monitor.regret) == (1, 0.5)


def test_players_who_would_all_lose_by_deviating_are_at_no_distance():
    # Both play at the same time left and right in turn: in the battle of the sexes nobody gains from a fixed strategy.
    game = compile_game(games.battle_of_the_sexes())

    class InTurn:
        def __init__(self):
            self.now = 0

        def next_strategy(self):
            return np.array([1.0, self.now == 0, self.now == 1])

        def observe_utility(self, utility):
            self.now = 1 - self.now

    session = SelfPlay(game, [InTurn(), InTurn()], alternating=False)
    session.run(10)
    assert session.regrets().max() < 0
    assert session.cce_gap() == 0


def test_a_minimizer_without_a_bound():
    cfr = ComposedCFR(KUHN.treeplexes[0], lambda num_actions: RegretMonitor.on_simplex(CFR(KUHN.treeplexes[0])))
    with pytest.raises(TypeError, match=r"CFR object .* has no bound on its regret"):
        _ = cfr.regret_bound


@pytest.mark.parametrize("first", [20, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "sheriff(max_bribe=2,max_items=3,num_rounds=1)"])
def test_play_approaches_coarse_correlated_equilibria(name, first):
    game = compile_game(pyspiel.load_game(name))
    session = SelfPlay(game, [CFR(treeplex, RegretMatching()) for treeplex in game.treeplexes], alternating=False)
    gaps = []
    for num_iterations in (first, 100 * first):
        session.run(num_iterations - session.iteration)
        gaps.append(session.cce_gap())
    # The theory promises a rate of t ** -1/2: a tenth after a hundred times the iterations.
    assert gaps[1] < gaps[0] / 10
