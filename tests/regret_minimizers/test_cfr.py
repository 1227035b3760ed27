"""CFR as a regret minimizer of one player: two steps by hand, and self-play written out."""

import games
import numpy as np
import pytest
from games import GAMES

from spiel_cfrplus import CFRPlusSolver, CFRSolver, SequenceFormGame, Treeplex, compile_game
from spiel_cfrplus.regret_minimizers import CFR, LocalRule, RegretMatching, RegretMatchingPlus

RULES = [RegretMatching(), RegretMatchingPlus()]
RULE_OF_SOLVER = {CFRSolver: RegretMatching(), CFRPlusSolver: RegretMatchingPlus()}


def simplex(num_actions: int) -> Treeplex:
    """A single decision with `num_actions` actions; sequences 1 .. num_actions."""
    return compile_game(games.matrix_game([[1.0, -1.0]] * num_actions)).treeplexes[0]


def test_two_steps_of_regret_matching_by_hand():
    # sigma^0 = (1/3, 1/3, 1/3); v^0 = (3, 0, -6), mean -1; r^1 = (4, 1, -5); sigma^1 = (4/5, 1/5, 0).
    # v^1 = (-1, 4, 2), mean 0; r^2 = (4, 1, -5) + (-1, 4, 2) = (3, 5, -3); sigma^2 = (3/8, 5/8, 0).
    minimizer = CFR(simplex(3), RegretMatching())
    assert minimizer.next_strategy() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3], rel=1e-15)
    minimizer.observe_utility([0, 3, 0, -6])
    assert minimizer.cumulative_regrets()[1:] == pytest.approx([4, 1, -5], rel=1e-15)
    assert minimizer.next_strategy() == pytest.approx([1, 4 / 5, 1 / 5, 0], rel=1e-15)
    minimizer.observe_utility([0, -1, 4, 2])
    assert minimizer.cumulative_regrets()[1:] == pytest.approx([3, 5, -3], rel=1e-15)
    assert minimizer.next_strategy() == pytest.approx([1, 3 / 8, 5 / 8, 0], rel=1e-15)


def test_two_steps_of_regret_matching_plus_by_hand():
    # As above, but q^1 = (4, 1, 0), so q^2 = (4, 1, 0) + (-1, 4, 2) = (3, 5, 2) and sigma^2 = (3/10, 1/2, 1/5).
    minimizer = CFR(simplex(3), RegretMatchingPlus())
    minimizer.observe_utility([0, 3, 0, -6])
    assert minimizer.cumulative_regrets()[1:] == pytest.approx([4, 1, 0], rel=1e-15)
    assert minimizer.next_strategy() == pytest.approx([1, 4 / 5, 1 / 5, 0], rel=1e-15)
    minimizer.observe_utility([0, -1, 4, 2])
    assert minimizer.cumulative_regrets()[1:] == pytest.approx([3, 5, 2], rel=1e-15)
    assert minimizer.next_strategy() == pytest.approx([1, 3 / 10, 1 / 2, 1 / 5], rel=1e-15)


def test_one_step_on_the_kuhn_treeplex_by_hand():
    # With the jack, betting at once earns 2 and passing 1 + V[j4], where calling a bet earns 4 and folding 0: V[j4] = 2 under
    # the uniform strategy. At j1: v = (3, 2), mean 5/2, regrets (1/2, -1/2). At j4: v = (0, 4), mean 2, regrets (-2, 2).
    treeplex = compile_game(GAMES["kuhn_poker"]()).treeplexes[0]
    j1, j4 = (list(treeplex.sequences(treeplex.infostate_keys.index(key))) for key in ("0", "0pb"))
    utility = np.zeros(13)
    utility[j1], utility[j4] = [1, 2], [0, 4]
    minimizer = CFR(treeplex, RegretMatching())
    minimizer.observe_utility(utility)
    assert minimizer.cumulative_regrets()[j1].tolist() == [0.5, -0.5]
    assert minimizer.cumulative_regrets()[j4].tolist() == [-2, 2]
    reach = minimizer.next_strategy()
    assert (reach[j1].tolist(), reach[j4].tolist()) == ([1, 0], [0, 1])


def test_regret_matching_plus_is_the_default():
    assert CFR(simplex(2)).rule.discounts == RegretMatchingPlus()


@pytest.mark.parametrize("rule", RULES)
def test_starts_uniform_with_no_utilities_observed(rule):
    treeplex = compile_game(GAMES["leduc_poker"]()).treeplexes[1]
    minimizer = CFR(treeplex, rule)
    assert minimizer.iteration == 0
    assert not minimizer.cumulative_regrets().any()
    assert minimizer.next_strategy().tolist() == treeplex.sequence_form(treeplex.uniform_policy()).tolist()


@pytest.mark.parametrize("rule", RULES)
def test_reading_changes_nothing(rule):
    game = compile_game(GAMES["leduc_poker"]())
    once, often = CFR(game.treeplexes[0], rule), CFR(game.treeplexes[0], rule)
    rng = np.random.default_rng(0)
    for _ in range(5):
        once.next_strategy()
        for _ in range(3):
            strategy = often.next_strategy()
            regrets = often.cumulative_regrets()
        # What was returned is the caller's.
        strategy[:] = regrets[:] = 99
        utility = rng.normal(size=game.treeplexes[0].num_sequences)
        once.observe_utility(utility)
        often.observe_utility(utility)
    assert once.cumulative_regrets().tolist() == often.cumulative_regrets().tolist()
    assert once.next_strategy().tolist() == often.next_strategy().tolist()
    assert once.iteration == often.iteration == 5


@pytest.mark.parametrize("rule", RULES)
def test_observing_leaves_the_argument_alone(rule):
    treeplex = compile_game(GAMES["kuhn_poker"]()).treeplexes[0]
    utility = np.random.default_rng(0).normal(size=13)
    before = utility.copy()
    utility.flags.writeable = False
    CFR(treeplex, rule).observe_utility(utility)
    assert utility.tolist() == before.tolist()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("factor", [2.0**-40, 1e-12, 1e12, 2.0**40])
def test_scaled_utilities_give_the_same_strategies(rule, factor):
    treeplex = compile_game(GAMES["leduc_poker"]()).treeplexes[0]
    plain, scaled = CFR(treeplex, rule), CFR(treeplex, rule)
    rng = np.random.default_rng(1)
    for _ in range(30):
        utility = rng.normal(size=treeplex.num_sequences)
        plain.observe_utility(utility)
        scaled.observe_utility(factor * utility)
        assert np.allclose(plain.next_strategy(), scaled.next_strategy(), rtol=0, atol=1e-9)
    assert np.allclose(scaled.cumulative_regrets() / factor, plain.cumulative_regrets(), rtol=1e-9, atol=1e-12)
    # Powers of two change no digit.
    if factor in (2.0**-40, 2.0**40):
        assert plain.next_strategy().tolist() == scaled.next_strategy().tolist()


@pytest.mark.parametrize(
    "utility",
    [np.zeros(12), np.zeros(14), np.zeros((1, 13)), 0.0, [], np.full(13, np.nan), np.full(13, np.inf), [*[0.0] * 12, -np.inf]],
    ids=["short", "long", "matrix", "number", "empty", "nan", "inf", "one inf"],
)
@pytest.mark.parametrize("rule", RULES)
def test_bad_utilities_are_refused_and_change_nothing(rule, utility):
    minimizer = CFR(compile_game(GAMES["kuhn_poker"]()).treeplexes[0], rule)
    minimizer.observe_utility(np.arange(13.0))
    regrets, strategy = minimizer.cumulative_regrets().tolist(), minimizer.next_strategy().tolist()
    with pytest.raises(ValueError, match="expected 13 finite numbers"):
        minimizer.observe_utility(utility)
    assert minimizer.cumulative_regrets().tolist() == regrets
    assert minimizer.next_strategy().tolist() == strategy
    assert minimizer.iteration == 1


@pytest.mark.parametrize("prediction_weight", [False, True])
def test_factors_that_make_no_sense_change_nothing(prediction_weight):
    class Failing(RegretMatching):
        def discounts(self, iterations):
            return np.ones((1, 2)) if iterations[0] < 3 else np.full((1, 2), np.nan)

    minimizer = CFR(simplex(3), Failing(), prediction_weight=prediction_weight)
    for utility in ([0, 3, 0, -6], [0, -1, 4, 2]):
        minimizer.observe_utility(utility)
    before = minimizer.next_strategy().tolist()
    with pytest.raises(ValueError, match="did not return two finite, nonnegative factors"):
        minimizer.observe_utility([0, 9, -9, 9])
    assert minimizer.next_strategy().tolist() == before
    assert minimizer.iteration == 2


def play_by_hand(game: SequenceFormGame, rule: LocalRule, num_iterations: int, alternating: bool) -> list[np.ndarray]:
    """Self-play of CFR objects as the lecture writes it; returns the last strategies."""
    pairs = zip(game.treeplexes, game.player_slices, strict=True)
    players = [CFR(treeplex, rule, tie_tolerance=game.tie_tolerance[own]) for treeplex, own in pairs]
    strategies = [player.next_strategy() for player in players]
    for _ in range(num_iterations):
        seen = strategies if alternating else list(strategies)
        for number, player in enumerate(players):
            player.observe_utility(game.payoff_gradient(number, seen))
            strategies[number] = player.next_strategy()
    return strategies


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "leduc_poker"])
@pytest.mark.parametrize("solver_type", RULE_OF_SOLVER)
@pytest.mark.parametrize("alternating", [True, False])
def test_self_play_by_hand_is_the_solver(name, solver_type, alternating):
    game = compile_game(GAMES[name]())
    by_hand = play_by_hand(game, RULE_OF_SOLVER[solver_type], 200, alternating)
    solver = solver_type(game, alternating=alternating, reduce=False)
    solver.run(200)
    profile = solver.current_profile()
    for player, strategy in enumerate(by_hand):
        assert np.allclose(profile.sequence_form(player), strategy, rtol=0, atol=1e-12)


def test_only_cfr_keeps_negative_regrets():
    game = compile_game(GAMES["kuhn_poker"]())
    least = {}
    for solver_type in (CFRSolver, CFRPlusSolver):
        solver = solver_type(game)
        solver.run(10)
        least[solver_type] = solver.self_play.cumulative_regrets().min()
    assert least[CFRSolver] < 0
    assert least[CFRPlusSolver] == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["kuhn_poker", "dark_hex_2", "leduc_poker"])
def test_regret_is_at_most_the_sum_of_local_regrets(rule, name):
    """Theorem L8.2, against an adversary that knows the strategy and taxes what is played."""
    treeplex = compile_game(GAMES[name]()).treeplexes[0]
    minimizer = CFR(treeplex, rule)
    rng = np.random.default_rng(5)
    total, earned = np.zeros(treeplex.num_sequences), 0.0
    for _ in range(50):
        strategy = minimizer.next_strategy()
        utility = rng.normal(size=treeplex.num_sequences) - strategy
        total += utility
        earned += strategy @ utility
        minimizer.observe_utility(utility)
    regret = best_value(treeplex, total) - earned
    local = minimizer.cumulative_regrets()
    starts = treeplex.sequence_start[:-1]
    assert 0 < regret <= np.maximum(np.maximum.reduceat(local, starts), 0).sum() * (1 + 1e-12)


def best_value(treeplex: Treeplex, utility: np.ndarray) -> float:
    """The most that a strategy earns against a fixed utility, bottom-up."""
    values = utility.copy()
    for point in reversed(range(treeplex.num_decision_points)):
        values[treeplex.parent_sequence[point]] += max(values[sequence] for sequence in treeplex.sequences(point))
    return values[0]
