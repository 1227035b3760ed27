"""Self-play of any minimizers, and CFR composed from any local ones."""

import functools
import itertools

import games
import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import Averaging, StrategyProfile, compile_game, evaluate, nash_conv
from spiel_cfrplus.regret_minimizers import (
    CFR,
    ComposedCFR,
    DiscountedRegretMatching,
    Hedge,
    ProjectedGradientAscent,
    RegretMatching,
    RegretMatchingPlus,
    SimplexRegretMatching,
)
from spiel_cfrplus.regret_minimizers.regret_matching import as_local_rule
from spiel_cfrplus.solving.best_response_play import BestResponsePlay
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.self_play import SelfPlay

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
LEDUC = compile_game(pyspiel.load_game("leduc_poker"))
RICH_IN_TIES = compile_game(pyspiel.load_game("kuhn_poker(players=3)"))
BIASED = compile_game(games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]]))
RULES = [RegretMatching(), RegretMatchingPlus(), DiscountedRegretMatching()]
PREDICTIVE_PLUS = functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus(), prediction_weight=1.0)


def compose(game, local):
    return [ComposedCFR(treeplex, local) for treeplex in game.treeplexes]


def compose_matching(treeplex, rounding, rule):
    counts = np.diff(treeplex.sequence_start).tolist()
    pairs = zip(counts, rounding[treeplex.sequence_start[:-1]], strict=True)
    return ComposedCFR(treeplex, [SimplexRegretMatching(count, rule, tie_tolerance=least) for count, least in pairs])


def average_nash_conv(session):
    return nash_conv(session.game, StrategyProfile(session.game, session.average_policy()))


@pytest.mark.parametrize(
    ("game", "rule", "num_iterations", "alternating"),
    [
        *itertools.product([KUHN], RULES, [200], [True, False]),
        *itertools.product([RICH_IN_TIES], RULES, [50], [True, False]),
        pytest.param(LEDUC, DiscountedRegretMatching(), 20, False, marks=pytest.mark.slow),
        pytest.param(LEDUC, RegretMatching(), 200, True, marks=pytest.mark.slow),
        pytest.param(LEDUC, RegretMatchingPlus(), 60, True, marks=pytest.mark.slow),
        pytest.param(LEDUC, RegretMatchingPlus(), 200, True, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_composed_cfr_in_written_out_self_play_equals_the_compiled_loop(game, rule, num_iterations, alternating):
    averaging = Averaging(power=1)
    compiled = CompiledSelfPlay(game, as_local_rule(rule), averaging, alternating)
    pairs = list(zip(game.treeplexes, map(game.tie_tolerance.__getitem__, game.player_slices), strict=True))
    composed = SelfPlay(game, [compose_matching(*pair, rule) for pair in pairs], averaging, alternating)
    halfway = SelfPlay(game, [CFR(treeplex, rule, tie_tolerance=own) for treeplex, own in pairs], averaging, alternating)
    for session in (compiled, composed, halfway):
        session.run(num_iterations)
        assert session.iteration == num_iterations
    for session in (composed, halfway):
        # To the last bit, as the sums are the same: 1e-12 would not last on Leduc, where CFR+ is chaotic.
        np.testing.assert_array_equal(session.average_policy(), compiled.average_policy())


@pytest.mark.parametrize(
    ("game", "alternating", "expected"),
    [
        (KUHN, True, {2: 0.2789473684210526, 10: 0.032167195107546113, 50: 0.0002936915898188235, 200: 4.692695905553506e-06}),
        (KUHN, False, {2: 0.65, 10: 0.1429823419869313, 50: 0.017897832644073648, 200: 0.0030246759190980677}),
        (BIASED, True, {2: 1.8666666666666667, 10: 0.1218006922318233, 50: 0.013571228760232874, 200: 0.00018676961004014455}),
    ],
    ids=["kuhn-alternating", "kuhn-simultaneous", "matrix"],
)
def test_predictive_cfr_plus_follows_the_slow_implementation(game, alternating, expected):
    # NashConv of averages with weights t ** 2, by a slow implementation that shares no code with this package.
    session = SelfPlay(game, compose(game, PREDICTIVE_PLUS), Averaging(power=2), alternating)
    for iteration, value in expected.items():
        session.run(iteration - session.iteration)
        assert average_nash_conv(session) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("game", "rule", "power", "alternating", "expected"),
    [
        (KUHN, DiscountedRegretMatching(), 2, True, {2: 0.2833333333333333, 50: 0.006611603382823472}),
        (KUHN, DiscountedRegretMatching(), 2, False, {2: 0.65, 50: 0.06425303838693193}),
        (KUHN, DiscountedRegretMatching(1, 1), 1, True, {2: 0.3194444444444444, 50: 0.004563760721609355}),
        (BIASED, DiscountedRegretMatching(), 2, True, {2: 1.8933333333333333, 50: 0.007000008012065432}),
    ],
)
def test_discounted_cfr_follows_the_slow_implementation(game, rule, power, alternating, expected):
    session = CompiledSelfPlay(game, as_local_rule(rule), Averaging(power), alternating)
    for iteration, value in expected.items():
        session.run(iteration - session.iteration)
        assert average_nash_conv(session) == pytest.approx(value, rel=1e-9)


LOCAL_MINIMIZERS = {
    "rm": SimplexRegretMatching,
    "rm+": functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus()),
    "discounted": functools.partial(SimplexRegretMatching, rule=DiscountedRegretMatching()),
    "predictive rm+": PREDICTIVE_PLUS,
    "hedge": functools.partial(Hedge, step_size=1.0),
    "predictive hedge": functools.partial(Hedge, step_size=1.0, prediction_weight=1.0),
    "gradient": functools.partial(ProjectedGradientAscent, step_size=0.3),
    "predictive gradient": functools.partial(ProjectedGradientAscent, step_size=0.3, prediction_weight=1.0),
}


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("local", LOCAL_MINIMIZERS.values(), ids=LOCAL_MINIMIZERS)
@pytest.mark.parametrize("num_iterations", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_any_local_minimizer_solves_kuhn_poker(local, alternating, num_iterations):
    session = SelfPlay(KUHN, compose(KUHN, local), alternating=alternating)
    session.run(num_iterations)
    assert average_nash_conv(session) < 0.05


def test_kinds_may_be_mixed_by_decision_point_and_by_player():
    kinds = [*LOCAL_MINIMIZERS.values()][:6]
    counts = np.diff(KUHN.treeplexes[0].sequence_start)
    mixed = ComposedCFR(KUHN.treeplexes[0], [make(count) for make, count in zip(kinds, counts, strict=True)])
    session = SelfPlay(KUHN, [mixed, CFR(KUHN.treeplexes[1])])
    session.run(1000)
    assert average_nash_conv(session) < 0.05


class FollowTheLast:
    """A user's own class, not a good one: plays the action that was best last time."""

    def __init__(self, num_actions):
        self.strategy = np.full(num_actions, 1 / num_actions)

    def next_strategy(self):
        return self.strategy

    def observe_utility(self, utility):
        self.strategy = np.eye(len(utility))[int(np.argmax(utility))]


def test_a_class_with_the_two_methods_will_do():
    session = SelfPlay(KUHN, compose(KUHN, FollowTheLast))
    session.run(1)
    # Player 0 best-responded to the uniform player 1, and player 1 to that: each action is the first best one, and values at an
    # infostate are those of the uniform strategy below it. Holding the king and having passed, player 0 calls a bet.
    king_passed = KUHN.treeplexes[0].infostate_keys.index("2pb")
    call = KUHN.treeplexes[0].sequences(king_passed)[1]
    assert session.minimizers[0].local_minimizers[king_passed].strategy.tolist() == [0, 1]
    assert session.strategies[0][call] == session.strategies[0][KUHN.treeplexes[0].parent_sequence[king_passed]]
    session.run(50)
    assert average_nash_conv(session) < 11 / 12  # of the uniform policy


def test_a_best_response_to_a_static_opponent_is_learned():
    uniform = StrategyProfile.uniform(KUHN)
    fixed, learner = uniform.sequence_form(1), CFR(KUHN.treeplexes[0])
    earned = 0.0
    for _ in range(500):
        strategy = learner.next_strategy()
        gradient = KUHN.payoff_gradient(0, [strategy, fixed])
        earned += strategy @ gradient
        learner.observe_utility(gradient)
    # A best response to the uniform player 1 is worth 1/2 (OpenSpiel's best_response says so too).
    assert evaluate(KUHN, uniform).best_response_values[0] == pytest.approx(0.5)
    assert 0 <= 0.5 - earned / 500 < 0.01


def test_three_players():
    game = compile_game(pyspiel.load_game("kuhn_poker(players=3)"))
    composed = SelfPlay(game, compose(game, functools.partial(SimplexRegretMatching, rule=RegretMatchingPlus())))
    compiled = CompiledSelfPlay(game, as_local_rule(RegretMatchingPlus()), Averaging(), True)
    composed.run(30)
    compiled.run(30)
    np.testing.assert_allclose(composed.average_policy(), compiled.average_policy(), rtol=0, atol=1e-12)


class Broken(FollowTheLast):
    def __init__(self, num_actions, strategy):
        super().__init__(num_actions)
        self.strategy = np.array(strategy)


@pytest.mark.parametrize("strategy", [[1.0], [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]], ids=str)
def test_a_local_strategy_that_is_none_is_refused_by_name(strategy):
    with pytest.raises(ValueError, match=r"gave \[.*(no distribution over|for) 2 actions"):
        SelfPlay(KUHN, compose(KUHN, functools.partial(Broken, strategy=strategy)))


def test_numbers_of_minimizers_must_fit():
    with pytest.raises(ValueError, match="6 decision points need as many different minimizers, got 1"):
        ComposedCFR(KUHN.treeplexes[0], [SimplexRegretMatching(2)])
    with pytest.raises(ValueError, match="needs 2 minimizers of their own"):
        SelfPlay(KUHN, [CFR(KUHN.treeplexes[0])])
    same = CFR(KUHN.treeplexes[0])
    with pytest.raises(ValueError, match="needs 2 minimizers of their own"):
        SelfPlay(KUHN, [same, same])
    with pytest.raises(ValueError, match="expected one number for each of 13 sequences"):
        SelfPlay(KUHN, [CFR(treeplex) for treeplex in LEDUC.treeplexes])
    with pytest.raises(ValueError, match="must not be negative"):
        SelfPlay(KUHN, compose(KUHN, SimplexRegretMatching)).run(-1)


class Late(FollowTheLast):
    """Plays what it is told from the third time on."""

    def __init__(self, treeplex, strategy):
        self.uniform, self.strategy, self.asked = treeplex.sequence_form(treeplex.uniform_policy()), strategy, 0

    def next_strategy(self):
        self.asked += 1
        return self.uniform if self.asked < 3 else self.strategy(self.uniform)

    def observe_utility(self, utility):
        pass


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (lambda x: 2 * x, "the empty sequence has 2 instead of 1"),
        (lambda x: -x, "contains -1"),
        (lambda x: x + np.eye(13)[3] * np.nan, "contains nan"),
        (lambda x: x[:-1], r"expected one number for each of 13 sequences, got shape \(12,\)"),
        (
            lambda x: np.r_[1.0, np.full(12, 0.5)],
            r"at infostate '0pb' sum to 1, but their parent sequence has 0.5 \(convert",
        ),
    ],
)
@pytest.mark.parametrize("alternating", [True, False])
def test_every_strategy_is_checked(strategy, words, alternating):
    players = [Late(KUHN.treeplexes[0], strategy), CFR(KUHN.treeplexes[1])]
    session = SelfPlay(KUHN, players, alternating=alternating)
    session.run(1)
    with pytest.raises(ValueError, match=rf"Late.*, player 0 of kuhn_poker\(\), gave no sequence-form strategy.*{words}"):
        session.run(1)
    assert session.iteration == 1


def test_strategies_may_be_lists():
    class Listing(Late):
        def next_strategy(self):
            return self.uniform.tolist()

    session = SelfPlay(KUHN, [Listing(treeplex, None) for treeplex in KUHN.treeplexes])
    session.run(3)
    assert average_nash_conv(session) == pytest.approx(11 / 12)


def test_errors_of_local_minimizers_say_where():
    class Failing(FollowTheLast):
        def observe_utility(self, utility):
            raise RuntimeError("out of ideas")

    session = SelfPlay(KUHN, compose(KUHN, Failing))
    with pytest.raises(RuntimeError, match="out of ideas") as caught:
        session.run(1)
    assert caught.value.__notes__ == ["by the local minimizer at infostate '0'"]


def test_games_must_be_compiled():
    with pytest.raises(TypeError, match="expected a compiled game, got kuhn_poker"):
        SelfPlay(pyspiel.load_game("kuhn_poker"), [])


class _BreaksOnce:
    """CFR, but from some call on `next_strategy` gives what is no strategy, or a call raises."""

    def __init__(self, treeplex, call, fault):
        self._inner = CFR(treeplex)
        self._calls, self._call, self._fault = 0, call, fault

    def next_strategy(self):
        self._calls += 1
        strategy = self._inner.next_strategy()
        if self._calls < self._call:
            return strategy
        if self._fault == "interrupt":
            raise KeyboardInterrupt
        return strategy + 1

    def observe_utility(self, utility):
        if self._fault == "error" and self._calls >= self._call - 1:
            raise RuntimeError("broken")
        self._inner.observe_utility(utility)


@pytest.mark.parametrize("fault", ["refused", "error", "interrupt"])
@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize("make", ["alternating", "simultaneous", "best responses"])
def test_a_broken_iteration_leaves_the_session_as_it_was(make, broken, fault):
    def session(num_iterations, last_call):
        minimizers = [
            _BreaksOnce(treeplex, last_call if player == broken else 1000, fault)
            for player, treeplex in enumerate(KUHN.treeplexes)
        ]
        if make == "best responses":
            played = BestResponsePlay(KUHN, minimizers, Averaging(1))
        else:
            played = SelfPlay(KUHN, minimizers, Averaging(1), alternating=make == "alternating")
        if num_iterations > 7:
            with pytest.raises((ValueError, RuntimeError, KeyboardInterrupt)):
                played.run(num_iterations)
        else:
            played.run(num_iterations)
        return played

    halted, whole = session(9, 9), session(7, 1000)  # the first call precedes the first iteration
    assert halted.iteration == whole.iteration == 7
    np.testing.assert_array_equal(halted.average_policy(), whole.average_policy())
    np.testing.assert_array_equal(halted.current_policy(), whole.current_policy())
    if make != "best responses":
        np.testing.assert_array_equal(halted.regrets(), whole.regrets())


def test_a_refused_discount_leaves_the_minimizer_as_it_was():
    class Rule:
        def discounts(self, iterations):
            return np.where(iterations[:, None] < 3, 1.0, -1.0) * np.ones((len(iterations), 2))

    minimizer = SimplexRegretMatching(2, Rule())
    for _ in range(2):
        minimizer.observe_utility([1, 0])
    before = minimizer.cumulative_regrets().tolist()
    with pytest.raises(ValueError, match="nonnegative factors"):
        minimizer.observe_utility([1, 0])
    assert minimizer.iteration == 2
    assert minimizer.cumulative_regrets().tolist() == before
