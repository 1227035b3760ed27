"""The papers' statements measured on live runs: they hold, they are what they say, and each can fail."""

import dataclasses
import functools
import itertools
from fractions import Fraction

import games
import numpy as np
import pyspiel
import pytest
import reference

from spiel_cfrplus import Averaging, CFRPlusSolver, CFRSolver, compile_game, make_solver
from spiel_cfrplus.analysis import theory
from spiel_cfrplus.analysis.monotone_updates import Update, lemma_2, theorem_5, theorem_6
from spiel_cfrplus.analysis.theory import (
    CFR_PLUS_BOUND,
    IDENTITY,
    LEMMA_2,
    THEOREM_5,
    THEOREM_6,
    THEOREM_L8_2,
    TheoryChecks,
    TheoryViolationError,
)
from spiel_cfrplus.regret_minimizers import (
    CFR,
    ComposedCFR,
    DiscountedRegretMatching,
    Hedge,
    RegretMatching,
    RegretMatchingPlus,
    local_rule,
)
from spiel_cfrplus.regret_minimizers.regret_matching import as_local_rule
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import STATEMENTS, Feature

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=%s))"
NAMES = [
    "kuhn_poker",
    "leduc_poker",
    "liars_dice(dice_sides=2)",
    GOOFSPIEL % "3,points_order=descending",
    GOOFSPIEL % "4,points_order=ascending,returns_type=point_difference",
    "dark_hex(num_cols=2,num_rows=2)",
    "dark_hex(board_size=2,gameversion=adh)",
]
ZERO_SUM = {name: pyspiel.load_game(name) for name in NAMES} | {
    "biased_rock_paper_scissors": games.biased_rock_paper_scissors(),
    "random_efg": games.random_efg(1),
    "one_player_never_moves": games.bad_chance_game([0.25, 0.75]),
}
KUHN = compile_game(ZERO_SUM["kuhn_poker"])
PENNY = compile_game(games.matrix_game([[1, 0], [0, 0]]))


def findings(checks):
    return {finding.statement: finding for finding in checks.report()}


def run(session, num_iterations, report_every=50):
    """The findings after `num_iterations` with reports on the way."""
    checks = TheoryChecks(session)
    for _ in range(num_iterations // report_every):
        checks.run(report_every)
        result = findings(checks)
    return result


# The statements hold.


@pytest.mark.parametrize("num_iterations", [150, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("solver", [CFRSolver, CFRPlusSolver])
@pytest.mark.parametrize("game", ZERO_SUM.values(), ids=ZERO_SUM)
def test_all_statements_hold_with_alternating_updates(game, solver, num_iterations):
    solver = solver(game)
    result = run(solver, num_iterations)
    largest = np.abs(solver.game.tree.returns).max()
    for statement, finding in result.items():
        if statement is CFR_PLUS_BOUND and solver.algorithm.name == "cfr":
            assert finding.reason == "it is proved for regret matching+"
        else:
            assert finding.applies
            assert finding.slack >= -1e-10 * largest
    assert result[LEMMA_2].slack > 0
    assert result[IDENTITY].measured["mean_improvement"] > 0
    assert result[IDENTITY].measured["nash_conv"] == pytest.approx(solver.nash_conv(), rel=0, abs=1e-12 * largest)


@pytest.mark.parametrize("solver", [CFRSolver, CFRPlusSolver])
@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "sheriff(max_bribe=2,max_items=3,num_rounds=1)", "kuhn_poker"])
@pytest.mark.parametrize("alternating", [True, False])
def test_any_number_of_players_any_sum_and_either_order(name, solver, alternating):
    result = run(solver(pyspiel.load_game(name), alternating=alternating), 100)
    for statement in (LEMMA_2, THEOREM_5, THEOREM_6, THEOREM_L8_2):
        assert result[statement].slack >= -1e-12
    for statement in (IDENTITY, CFR_PLUS_BOUND):
        if name == "kuhn_poker" and (statement is IDENTITY or solver is CFRPlusSolver):
            assert result[statement].slack >= -1e-12
        elif name != "kuhn_poker":
            assert result[statement].reason == "the game does not have two players and a constant sum"


def test_a_game_for_one_player():
    result = run(CFRPlusSolver(games.lone_player_game()), 50)
    assert result[THEOREM_L8_2].applies
    assert result[THEOREM_L8_2].player == 0


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize(
    "rule", [DiscountedRegretMatching(), DiscountedRegretMatching(1, 1), DiscountedRegretMatching(-1, np.inf)], ids=str
)
def test_updates_with_discounted_regrets_are_monotone_too(rule, alternating):
    # The proofs never use what is negative in the table after an update, nor a common positive factor.
    for game in (KUHN, compile_game(games.random_efg(7)), compile_game(games.biased_rock_paper_scissors())):
        result = run(CompiledSelfPlay(game, as_local_rule(rule), Averaging(2), alternating), 300)
        for statement in (LEMMA_2, THEOREM_5, THEOREM_6, IDENTITY, THEOREM_L8_2):
            assert result[statement].slack >= -1e-10


def test_rounding_that_chooses_a_strategy_is_no_violation(monkeypatch):
    # Ties leave +-1e-17 where exact arithmetic has 0, and such a stored value may vanish: here it does.
    vanished = []

    def count(update):
        old, new = update.positive
        vanished.append(np.sum((old > 0) & (new == 0)))
        return lemma_2(update)

    monkeypatch.setattr(theory, "UPDATE_STATEMENTS", (counted := dataclasses.replace(LEMMA_2, slack=count),))
    solver = CFRPlusSolver(pyspiel.load_game(GOOFSPIEL % "4"), alternating=False, reduce=False, exact_ties=False)
    assert run(solver, 200)[counted].slack > 0
    assert sum(vanished) > 0


@pytest.mark.parametrize("alternating", [True, False])
def test_the_iterations_are_those_of_the_solver(leduc, alternating):
    plain, checked = (CFRPlusSolver(leduc, alternating=alternating) for _ in range(2))
    plain.run(60)
    checks = TheoryChecks(checked)
    for _ in range(3):
        checks.run(20)
        checks.report()
    for expected, actual in zip(plain.self_play.state, checked.self_play.state, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_written_out_self_play_measures_the_same(leduc):
    # Its minimizers' own policies matter: they go on learning where they do not come.
    players = zip(leduc.treeplexes, leduc.player_slices, strict=True)
    minimizers = [CFR(treeplex, tie_tolerance=leduc.tie_tolerance[own]) for treeplex, own in players]
    written_out = SelfPlay(leduc, minimizers, Averaging(1))
    assert run(written_out, 100) == run(CFRPlusSolver(leduc, reduce=False), 100)


@pytest.mark.parametrize("solver", [CFRSolver, CFRPlusSolver])
def test_a_constant_sum_will_do(solver):
    result = run(solver(games.matrix_game([[3, -1, 2], [-2, 1, 0]], [[4, 8, 5], [9, 6, 7]])), 100)
    assert result[IDENTITY].slack >= -1e-14
    assert result[IDENTITY].measured["nash_conv"] > 1e-3


# What is measured is what the statements say.


class Recorder(TheoryChecks):
    """Keeps every update."""

    def __init__(self, session):
        super().__init__(session)
        self.updates = []

    def _judge_update(self, update):
        self.updates.append(update)
        super()._judge_update(update)


def at(treeplex, table):
    """A reference's table of one player as a vector over its sequences, without the empty one."""
    keys, actions, points = treeplex.infostate_keys, treeplex.actions[1:], treeplex.decision_point_of[1:]
    return np.array([table[treeplex.player, keys[j]][a] for j, a in zip(points, actions, strict=True)])


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("plus", [True, False])
@pytest.mark.parametrize("game", [ZERO_SUM["kuhn_poker"], games.random_efg(7)], ids=["kuhn_poker", "random_efg"])
def test_measurements_agree_with_a_slow_implementation(game, plus, alternating):
    num_iterations, root = 12, games.tree_of(game)
    sigmas = reference.iterates(root, num_iterations, plus=plus, alternating=alternating)
    checks = Recorder((CFRPlusSolver if plus else CFRSolver)(game, alternating=alternating))
    checks.run(num_iterations)
    weights = np.arange(1, num_iterations + 1) ** int(plus)
    earned, improvements = np.zeros((num_iterations, 2)), np.zeros(num_iterations)
    for update, (t, player) in zip(checks.updates, itertools.product(range(num_iterations), range(2)), strict=True):
        old, new = sigmas[t], sigmas[t + 1]
        met = {key: (new if alternating and key[0] < player else old)[key] for key in old}
        updated = {key: (new if key[0] == player else met)[key] for key in old}
        values, new_values = (
            at(update.treeplex, reference.counterfactual_values(root, policy, player)) for policy in (met, updated)
        )
        starts = update.treeplex.sequence_start[:-1] - 1
        gains = np.add.reduceat((at(update.treeplex, new) - at(update.treeplex, old)) * values, starts)
        earned[t, player] = reference.expected_value(root, met, player)
        improvement = reference.expected_value(root, updated, player) - earned[t, player]
        np.testing.assert_allclose(theorem_5(update)[0], gains, rtol=0, atol=1e-12)
        np.testing.assert_allclose(theorem_6(update)[0], [improvement, *(new_values - values)], rtol=0, atol=1e-12)
        improvements[t] += improvement if player == 0 and alternating else 0
    assert improvements.sum() > 0 or not alternating

    average = reference.average_policy(root, sigmas, power=int(plus), first=[int(alternating), 0])
    best = [reference.best_response_value(root, average, player) for player in range(2)]
    measured = findings(checks)[IDENTITY].measured
    for player in range(2):
        regret = best[player] - np.average(earned[:, player], weights=weights)
        assert measured[f"regret_{player}"] == pytest.approx(regret, rel=0, abs=1e-12)
    assert measured["mean_improvement"] == pytest.approx(np.average(improvements, weights=weights), rel=0, abs=1e-12)
    assert measured["nash_conv"] == pytest.approx(reference.nash_conv(root, average), rel=0, abs=1e-12)


def test_the_least_slack_is_kept():
    checks = Recorder(CFRPlusSolver(KUHN))
    bounds = []
    for _ in range(30):
        checks.run(1)
        result = findings(checks)
        bounds.append(result[CFR_PLUS_BOUND].measured["bound"] - result[CFR_PLUS_BOUND].measured["nash_conv"])
    assert result[CFR_PLUS_BOUND].slack == min(bounds)
    for statement, measure in ((LEMMA_2, lemma_2), (THEOREM_5, theorem_5), (THEOREM_6, theorem_6)):
        least = [measure(update)[0].min() for update in checks.updates]
        assert result[statement].slack == min(least)
        assert result[statement].iteration == int(np.argmin(least)) // 2 + 1
        assert result[statement].player == int(np.argmin(least)) % 2


class Scripted:
    """Plays the given distributions of a matrix game one after the other, whatever happens."""

    def __init__(self, play):
        self.play, self.t = play, 0

    def next_strategy(self):
        return np.array([1.0, *map(float, self.play[self.t % len(self.play)])])

    def observe_utility(self, utility):
        self.t += 1


def exact_measurements(rows, xs, ys, weights, alternating):
    """Regrets, mean improvement and NashConv by their definitions, in fractions."""
    total = sum(weights)

    def earned(x, y):
        return sum(p * q * rows[i][j] for i, p in enumerate(x) for j, q in enumerate(y))

    def mean(numbers):
        return sum(weight * number for weight, number in zip(weights, numbers, strict=True)) / total

    t = len(weights)
    met = xs[1 : t + 1] if alternating else xs[:t]  # by player 1
    x_bar = [mean([x[i] for x in met]) for i in range(len(rows))]
    y_bar = [mean([y[j] for y in ys[:t]]) for j in range(len(rows[0]))]
    best_0 = max(sum(q * payoff for q, payoff in zip(y_bar, row, strict=True)) for row in rows)
    best_1 = max(-sum(p * row[j] for p, row in zip(x_bar, rows, strict=True)) for j in range(len(rows[0])))
    regret_0 = best_0 - mean([earned(x, y) for x, y in zip(xs[:t], ys[:t], strict=True)])
    regret_1 = best_1 + mean([earned(x, y) for x, y in zip(met, ys[:t], strict=True)])
    improvement = mean([earned(z, y) - earned(x, y) for x, y, z in zip(xs[:t], ys[:t], met, strict=True)])
    return {"nash_conv": best_0 + best_1, "regret_0": regret_0, "regret_1": regret_1, "mean_improvement": improvement}


def scripted_findings(rows, xs, ys, power, alternating, num_iterations):
    players = [Scripted(xs), Scripted(ys)]
    session = SelfPlay(compile_game(games.matrix_game(rows)), players, Averaging(power), alternating)
    return run(session, num_iterations, report_every=num_iterations)


@pytest.mark.parametrize("num_iterations", [2, 10, 100])
@pytest.mark.parametrize(
    ("rows", "num_actions", "expected"),
    [
        # Rows and columns alternate between 0 and 1. First matrix: player 0 earns 1 with (0, 0) and (1, 1), its best against
        # (1/2, 1/2). Player 1 meets (1, 0) and (0, 1), pays 0 and 1, and would pay 1/2 on average for column 0 throughout.
        # The averages (1/2, 1/2) give the best responses 1 and -1/2. Leaving row 0 for row 1 against column 0 costs 1.
        ([[1, 1], [0, 1]], 2, {"nash_conv": 1 / 2, "regret_0": 0, "regret_1": 0, "mean_improvement": -1 / 2}),
        # Second: player 0 earns 1 each time, the best there is; player 1 meets (1, 0) and (0, 1) and pays -1 each time, the
        # least there is. The best responses to the averages (1/2, 1/2, 0) are row 2 for 1 and column 2 for 1.
        ([[1, -1, -1], [-1, 1, -1], [1, 1, 0]], 3, {"nash_conv": 2, "regret_0": 0, "regret_1": 0, "mean_improvement": -2}),
    ],
)
def test_the_counterexample(rows, num_actions, expected, num_iterations):
    play = [list(row) for row in np.eye(num_actions, dtype=int)[:2]]
    result = scripted_findings(rows, play, play, 0, True, num_iterations)
    assert result[IDENTITY].slack >= -1e-15
    assert result[IDENTITY].measured == pytest.approx(expected, rel=0, abs=1e-15)
    assert result[THEOREM_L8_2].slack == pytest.approx(0, abs=1e-15)  # one infostate each: whole and local regret are one
    for statement in (LEMMA_2, THEOREM_5, THEOREM_6, CFR_PLUS_BOUND):
        assert result[statement].reason == "not all players are CFR with regret matching"


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_identity_against_exact_fractions(power, alternating):
    rng = np.random.default_rng(5)
    rows = [[3, -1, 2], [-2, 1, 0]]
    xs, ys = (
        [[Fraction(int(n), int(sum(ns))) for n in ns] for ns in rng.integers(1, 9, (8, len(actions)))]
        for actions in (rows, rows[0])
    )
    expected = exact_measurements(rows, xs, ys, [Fraction(i**power) for i in range(1, 8)], alternating)
    regrets = expected["regret_0"] + expected["regret_1"]
    assert expected["nash_conv"] == regrets - expected["mean_improvement"]
    assert (expected["mean_improvement"] != 0) == alternating
    result = scripted_findings(rows, xs, ys, power, alternating, 7)
    assert result[IDENTITY].measured == pytest.approx({name: float(x) for name, x in expected.items()}, rel=1e-13, abs=1e-15)


def test_the_bound_by_hand():
    # Kuhn poker: 12 infostates of 2 actions, utilities from -2 to 2: 2 * 12 * 4 * sqrt(2 / 50) = 19.2.
    measured = run(CFRPlusSolver(KUHN), 50)[CFR_PLUS_BOUND].measured
    assert measured["bound"] == pytest.approx(19.2)
    assert 0 < measured["nash_conv"] < 0.01


def test_local_regrets_by_hand():
    # Player 0's first values against the uniform player 1: holding card 0, passing -5/12 and betting -1/6; card 1, -1/12 and
    # 1/6; card 2, 5/12 and 1/2 (a half of each is their mean, 1/8 more the better). After "pb": -1/6, -1/3; -1/6, 0; -1/6, 1/3.
    # Local regrets: 1/8, 1/8, 1/24; 1/12, 1/12, 1/4. The whole: 1/2 - 1/8, a best response's value less the uniform one's.
    checks = TheoryChecks(CFRSolver(KUHN))
    checks.run(1)
    measured = findings(checks)[THEOREM_L8_2].measured
    assert measured["local_regrets_0"] == pytest.approx(1 / 8 + 1 / 8 + 1 / 8 + 1 / 12 + 1 / 12 + 1 / 4)
    assert measured["regret_0"] == pytest.approx(1 / 2 - 1 / 8)


# They can fail.


def follow_regrets(player):
    """Makes the player play what its table says."""
    player._state.policy[:] = player.treeplex.behavioral_policy(player.cumulative_regrets())


class Trusting(SelfPlay):
    """Self-play that says of every minimizer that the statements hold for its updates."""

    def refusal(self, feature):
        return "" if feature in STATEMENTS else super().refusal(feature)


class Wrong(CFR):
    """CFR whose third update is wrong in its own way."""

    def observe_utility(self, utility):
        super().observe_utility(utility)
        if self.iteration == 3:
            self.spoil(self._memory.regrets)
            follow_regrets(self)

    def spoil(self, table):
        raise NotImplementedError


class Forgets(Wrong):
    def spoil(self, table):
        table[:] = 0.0


class TakesLossesForGains(Wrong):
    def spoil(self, table):
        table *= -1.0


def wrong_play(game, player, wrong, alternating=True):
    """Player 0 or 1 is wrong, the other is CFR."""
    players = [CFR(treeplex, RegretMatching()) for treeplex in game.treeplexes]
    players[player] = wrong(game.treeplexes[player], RegretMatching())
    return Trusting(game, players, alternating=alternating)


def violation(session, num_iterations=10):
    with pytest.raises(TheoryViolationError) as caught:
        run(session, num_iterations, num_iterations)
    return caught.value


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("statement", "wrong"), [(LEMMA_2, Forgets), (THEOREM_5, TakesLossesForGains), (THEOREM_6, TakesLossesForGains)]
)
def test_a_wrong_update_is_found_with_its_infostate(statement, wrong, player, alternating, scale, monkeypatch):
    monkeypatch.setattr(theory, "UPDATE_STATEMENTS", (statement,))  # another may be found first
    game = compile_game(games.scaled_game(pyspiel.load_game("kuhn_poker"), scale))
    error = violation(wrong_play(game, player, wrong, alternating))
    finding = error.finding
    assert (finding.statement, finding.iteration, finding.player) == (statement, 3, player)
    if (statement, player) == (THEOREM_6, 1):
        # Player 1 moves once, so that its own strategy matters to no counterfactual value, only to its expected utility.
        assert finding.infostate is None
    else:
        assert finding.infostate in game.treeplexes[player].infostate_keys
    assert -10 * scale < finding.slack < -0.01 * scale
    words = [statement.source, f"at infostate {finding.infostate!r}" * (finding.infostate is not None), f"player {player}"]
    assert all(word in str(error) for word in words)


def test_right_play_of_a_scaled_game_scales():
    plain, small, large = (
        run(CFRPlusSolver(games.scaled_game(pyspiel.load_game("kuhn_poker"), scale)), 100) for scale in (1, 2.0**-40, 2.0**40)
    )
    for statement, finding in plain.items():
        assert small[statement].slack == finding.slack * 2.0**-40
        assert large[statement].slack == finding.slack * 2.0**40
    assert plain[CFR_PLUS_BOUND].slack > 0


def one_update(values, old_policy, new_policy, old_table=(1.0, 1.0), new_table=(1.0, 1.0)):
    """An update at the only infostate of a matrix game, with the given counterfactual values."""
    vectors = [np.array([1.0, *policy]) for policy in (old_policy, new_policy)]
    vectors += [np.array([0.0, *table]) for table in (old_table, new_table, values, np.abs(values))]
    return Update(
        compile_game(games.matrix_game([[1] * len(values)] * len(values))).treeplexes[0], *vectors, np.zeros(1), np.zeros(1)
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("fall", [1e-9, 1e-17])
def test_a_small_fall_is_a_violation_and_rounding_is_none(fall, scale):
    # The second action earns less by `scale`, and gets more probability by `fall`.
    scaled = {"old_table": [scale, scale], "new_table": [scale, scale]}
    update = one_update([scale, 0.0], [0.5, 0.5], [0.5 - fall, 0.5 + fall], **scaled)
    for statement in (theorem_5, theorem_6):
        slack, rounding = statement(update)
        assert (slack < -rounding).any() == (fall == 1e-9)


def test_stored_ties_of_rounding_decide_nothing():
    # In exact arithmetic the first two actions tie. Rounding had chosen them, then left nothing, and the strategy is uniform.
    third = 1 / 3
    update = one_update([1.0, 1.0, -5.0], [0.5, 0.5, 0.0], [third, third, third], [1e-17, 1e-17, 0.0], [0.0, 0.0, 0.0])
    assert lemma_2(update)[0] == np.inf
    assert theorem_5(update)[0] == np.inf
    slack, rounding = theorem_6(update)
    assert (slack >= -rounding).all()
    assert update.improvements == pytest.approx(-2)
    # Stored values that rounding cannot have made are another matter.
    update = dataclasses.replace(update, old_table=np.array([0.0, 1e-3, 1e-3, 0.0]))
    assert lemma_2(update)[0] == pytest.approx(-2e-3)
    for statement in (theorem_5, theorem_6):
        slack, rounding = statement(update)
        assert (slack < -rounding).any()


def test_what_undecided_infostates_lose_is_forgiven_up_to_rounding():
    rng = np.random.default_rng(3)
    for values in rng.uniform(-1, 1, (200, 3)):
        update = one_update(values, [0.3, 0.7, 0.0], [1 / 3, 1 / 3, 1 / 3], [3e-18, 7e-18, 0.0], [0.0, 0.0, 0.0])
        slack, rounding = theorem_6(update)
        assert (slack >= -rounding).all()


def test_lemma_2_by_hand():
    assert lemma_2(one_update([1.0, 0.0], [1.0, 0.0], [0.4, 0.6], [2.0, -1.0], [0.5, 0.75]))[0] == 1.25
    assert lemma_2(one_update([1.0, 0.0], [0.5, 0.5], [1.0, 0.0], [0.0, -1.0], [0.5, -1.5]))[0] == np.inf  # nothing to lose


def test_a_wrong_average_breaks_the_identity():
    class Late(SelfPlay):
        """Averages player 0 as OpenSpiel does."""

        def _averaged(self, weight, before, after):
            return super()._averaged(weight, before, [before[0], *after[1:]])

    error = violation(Late(KUHN, [CFR(treeplex) for treeplex in KUHN.treeplexes], Averaging(1)))
    assert error.finding.statement is IDENTITY
    assert (error.finding.player, error.finding.infostate, error.finding.iteration) == (None, None, 10)


class NeverLearns(CFR):
    def observe_utility(self, utility):
        self._state.iteration[0] += 1


def test_play_that_does_not_improve_exceeds_the_bound():
    # Uniform play of [[1, 0], [0, 0]] has NashConv 1/2 for ever; the bound 2 * 2 * 1 * sqrt(2 / t) passes that at t = 128.
    checks = TheoryChecks(Trusting(PENNY, [NeverLearns(treeplex) for treeplex in PENNY.treeplexes], Averaging(1)))
    checks.run(127)
    assert findings(checks)[CFR_PLUS_BOUND].slack > 0
    checks.run(2)
    with pytest.raises(TheoryViolationError, match=r"NashConv is within the bound of CFR\+: slack -0.0019") as caught:
        checks.report()  # 4 * sqrt(2 / 129) - 1/2
    assert caught.value.finding.statement is CFR_PLUS_BOUND


def test_mismeasured_local_regrets_are_found(monkeypatch):
    half = theory.Account.positive_local_regrets
    monkeypatch.setattr(theory.Account, "positive_local_regrets", lambda account: half(account) / 2)
    # At one infostate each, both sides of Theorem L8.2 are equal.
    error = violation(CFRSolver(games.matrix_game([[3, -1], [-2, 1]])))
    assert error.finding.statement is THEOREM_L8_2
    assert error.finding.player in (0, 1)


# What does not apply.


def reasons(session, num_iterations=10):
    return {statement: finding.reason for statement, finding in run(session, num_iterations, num_iterations).items()}


class Predictive(CFR):
    """Matches the stored values and what the last utility would add to them if it came again."""

    predicted = 0.0

    def observe_utility(self, utility):
        policy = self.current_policy()
        super().observe_utility(utility)
        values = self.treeplex.counterfactual_values(policy, utility)
        means = np.add.reduceat(policy * values, self.treeplex.sequence_start[:-1])
        self.predicted = values - np.concatenate([[0.0], means])[self.treeplex.decision_point_of + 1]

    def next_strategy(self):
        self._state.policy[:] = self.treeplex.behavioral_policy(self._memory.regrets + self.predicted)
        self._state.reach[:] = self.treeplex.sequence_form(self._state.policy)
        return self._state.reach.copy()


def test_predictive_play_is_not_monotone_and_not_held_to_it():
    def play(kind, session=SelfPlay):
        return session(KUHN, [kind(treeplex) for treeplex in KUHN.treeplexes], Averaging(1))

    assert violation(play(Predictive, Trusting), 50).finding.statement in (LEMMA_2, THEOREM_5, THEOREM_6)
    result = run(play(functools.partial(CFR, prediction_weight=1.0)), 50)
    assert result[THEOREM_6].reason == "predictive strategies are not matched to the stored values alone"
    assert {statement for statement, finding in result.items() if finding.applies} == {IDENTITY, THEOREM_L8_2}
    assert min(result[IDENTITY].slack, result[THEOREM_L8_2].slack) >= -1e-14


def test_the_identity_and_theorem_l8_2_are_for_any_minimizers():
    players = [ComposedCFR(treeplex, lambda num_actions: Hedge(num_actions, 1.0)) for treeplex in KUHN.treeplexes]
    result = run(SelfPlay(KUHN, players, Averaging(1)), 50)
    assert {statement for statement, finding in result.items() if finding.applies} == {IDENTITY, THEOREM_L8_2}
    assert min(result[IDENTITY].slack, result[THEOREM_L8_2].slack) >= -1e-14


def test_other_averages():
    reason = "the averages do not pair strategies that were played against each other"
    assert reasons(CFRPlusSolver(KUHN, averaging="openspiel"))[IDENTITY] == reason
    assert reasons(CFRPlusSolver(KUHN, averaging="openspiel"))[CFR_PLUS_BOUND] == reason
    assert reasons(CFRPlusSolver(KUHN, averaging="openspiel", alternating=False))[IDENTITY] == ""
    assert (
        reasons(CFRPlusSolver(KUHN, averaging=Averaging(2)))[CFR_PLUS_BOUND] == "it is proved for averages with linear weights"
    )
    assert reasons(CFRPlusSolver(KUHN, averaging=Averaging(2)))[IDENTITY] == ""


def test_rules_are_known_by_their_numbers():
    plus = CompiledSelfPlay(KUHN, as_local_rule(DiscountedRegretMatching(np.inf, -np.inf)), Averaging(1), True)
    assert set(reasons(plus).values()) == {""}
    lost = CompiledSelfPlay(KUHN, as_local_rule(DiscountedRegretMatching(-2000, 0)), Averaging(1), True)
    result = reasons(lost)
    assert result[THEOREM_5] == "positive regrets are discounted to zero"
    assert result[IDENTITY] == ""


def test_a_run_that_had_begun():
    solver = CFRPlusSolver(KUHN)
    solver.run(7)
    result = run(solver, 50)
    reason = "the run began before the checks"
    assert (result[IDENTITY].reason, result[CFR_PLUS_BOUND].reason) == (reason, reason)
    assert result[THEOREM_6].slack >= -1e-15
    assert result[THEOREM_L8_2].slack >= -1e-15


def test_a_warm_start():
    players = [CFR(treeplex) for treeplex in KUHN.treeplexes]
    for player in players:
        player._memory.regrets[1::2] = 1.0
        follow_regrets(player)
    result = reasons(SelfPlay(KUHN, players, Averaging(1)))
    assert result.pop(CFR_PLUS_BOUND) == "the stored values did not start at zero"
    assert set(result.values()) == {""}


def test_averages_that_have_not_begun():
    class Delayed(Averaging):
        def weights(self, iterations):
            return np.maximum(iterations - 3.0, 0.0)

    checks = TheoryChecks(CFRPlusSolver(KUHN, averaging=Delayed()))
    checks.run(3)
    assert findings(checks)[IDENTITY].reason == "nothing has been averaged yet"
    checks.run(20)
    assert findings(checks)[IDENTITY].slack >= -1e-14


def test_nothing_is_claimed_of_an_update_that_is_not_known():
    class Mine(CFR):
        """A subclass may do anything."""

    reason = "not all players are CFR with regret matching"
    assert reasons(SelfPlay(KUHN, [Mine(treeplex) for treeplex in KUHN.treeplexes]))[LEMMA_2] == reason

    class Session(CompiledSelfPlay):
        """So may a session."""

    reason = "Session may override the update"
    result = reasons(Session(KUHN, as_local_rule(RegretMatchingPlus()), Averaging(1), True))
    assert [result[statement] for statement in (LEMMA_2, THEOREM_5, THEOREM_6, CFR_PLUS_BOUND)] == [reason] * 4

    class MySolver(CFRPlusSolver):
        def run(self, num_iterations):
            super().run(2 * num_iterations)

    with pytest.raises(TypeError, match="MySolver overrides run, so its iterations are unknown"):
        TheoryChecks(MySolver(KUHN))


@local_rule(per_action=("regrets",), scale_free=True, statements=("lemma_2", "theorem_5"))
def declared(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)


def test_a_rule_declares_which_statements_hold():
    result = run(make_solver(declared, KUHN, averaging=Averaging(1)), 20, 20)
    assert result[LEMMA_2].slack > 0
    assert result[THEOREM_5].slack >= -1e-12
    for statement in (THEOREM_6, CFR_PLUS_BOUND):
        assert result[statement].reason == "the rule declared does not declare it"


def test_every_statement_about_updates_is_asked_for_under_its_name():
    assert [statement.name for statement in theory.UPDATE_STATEMENTS] == ["lemma_2", "theorem_5", "theorem_6"]
    for statement in theory.UPDATE_STATEMENTS:
        assert statement.feature is Feature(statement.name)


# Use.


def test_before_anything_is_played():
    for finding in TheoryChecks(CFRPlusSolver(KUHN)).report():
        assert finding.applies
        assert finding.slack is None
        assert finding.verdict == "not measured yet"


def test_texts():
    checks = TheoryChecks(CFRPlusSolver(KUHN))
    checks.run(1)
    result = findings(checks)
    # Player 0's regret is 1/2 - 1/8, and it moves to a best response. 5/6 is exact, from tests/data/trajectories.json.
    assert str(result[LEMMA_2]) == "CFR+ paper, Lemma 2 and corollary, positive stored values never vanish: not measured yet"
    measured = "(nash conv 0.833333, regret 0 0.375, regret 1 0.833333, mean improvement 0.375)"
    assert result[IDENTITY].verdict.endswith(f" in iteration 1 {measured}")


def test_sessions_that_somebody_else_runs_are_refused():
    solver = CFRPlusSolver(KUHN)
    checks = TheoryChecks(solver)
    checks.run(2)
    solver.run(1)
    for use in (checks.report, lambda: checks.run(1)):
        with pytest.raises(ValueError, match="is at iteration 3, the checks are at 2: the session was run by other means"):
            use()


def test_counts_are_checked():
    checks = TheoryChecks(CFRPlusSolver(KUHN))
    with pytest.raises(ValueError, match="must not be negative"):
        checks.run(-1)
    with pytest.raises(TypeError):
        checks.run(1.5)
    assert checks.session.iteration == 0
