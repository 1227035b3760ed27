"""Symmetry reduction: all symmetries and forced moves are found, and the results are preserved."""

import collections
import copy
import decimal
import pickle
import re
from collections.abc import Hashable
from decimal import Decimal

import games
import numpy as np
import pyspiel
import pytest
from families import REGRET_MATCHING
from games import GAMES, Chance, End, Turn
from open_spiel.python.algorithms import exploitability
from symmetric_games import BATTLESHIP, COMPARED, random_tree, twins

from spiel_cfrplus import (
    ALGORITHMS,
    CFRPlusSolver,
    CFRSolver,
    SequenceFormGame,
    Solver,
    StrategyProfile,
    compile_game,
    make_solver,
)
from spiel_cfrplus.analysis.theory import THEOREM_6, TheoryChecks
from spiel_cfrplus.solving.symmetry import Reduction, reduce_game

FOUR_SUITS = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=10 10,firstPlayer=1 1,numSuits=4,numRanks=3,numHoleCards=1,"
    "numBoardCards=0 1,raiseSize=20 40,maxRaises=2 2)"
)

compared = pytest.mark.parametrize("name", COMPARED)


# The sizes that are known.


@pytest.mark.parametrize(
    ("name", "infostates", "most_payoffs"),
    [
        # Leduc poker up to the names of the suits has 288 infostates, as every paper that removes suits says.
        ("leduc_poker", 288, 1116),
        (FOUR_SUITS, 288, 1251),
        # The coarsest partition has 19,998 before forced moves go.
        ("tic_tac_toe", 19_998, 209_088),
        ("kuhn_poker", 12, 30),
    ],
)
def test_known_sizes(name, infostates, most_payoffs):
    reduction = reduce_game(compile_game(pyspiel.load_game(name)))
    assert reduction.num_payoffs <= most_payoffs
    if name == "tic_tac_toe":
        assert reduction.num_infostates <= infostates
    else:
        assert reduction.num_infostates == infostates


def test_kuhn_poker_has_nothing_to_merge():
    game = compile_game(pyspiel.load_game("kuhn_poker"))
    assert reduce_game(game).sequence_class.tolist() == list(range(game.num_sequences))
    assert str(reduce_game(game)) == "12 infostates to 12, 26 sequences to 26, 30 payoffs to 30"


def test_half_of_the_infostates_of_liars_dice_are_forced():
    # After the highest bid there is only the call: that bid can follow each of the 2^11 sets of lower bids, for either player.
    game = compile_game(pyspiel.load_game("liars_dice(dice_sides=4)"))
    forced = [treeplex.num_actions == 1 for treeplex in game.treeplexes]
    assert reduce_game(game).num_infostates <= game.num_infostates - np.concatenate(forced).sum() == game.num_infostates // 2


# The partition, against the definition.


def naive_classes(game: SequenceFormGame) -> list[Hashable]:
    """Color refinement as defined, with dictionaries; sums rounded to nine digits."""
    treeplexes, payoffs = game.treeplex_arrays, game.payoff_arrays
    starts = treeplexes.sequence_start.tolist()
    roots = treeplexes.player_block[:-1].tolist()
    players = {root: player for player, root in enumerate(roots)}
    representative = list(range(game.num_sequences))
    own_of, infostates = {}, []
    for j in range(len(starts) - 1):
        own = range(starts[j], starts[j + 1])
        if j not in players and len(own) == 1:
            representative[own.start] = representative[treeplexes.parent_sequence[j]]
        else:
            infostates.append(j)
            own_of[j] = list(own)
    parent = {j: representative[treeplexes.parent_sequence[j]] for j in infostates if j not in players}
    entries = [
        (representative[payoffs.entry_sequence[e]], [representative[s] for s in payoffs.opponent_sequences[row]], utility)
        for row in range(len(payoffs.opponent_sequences))
        for e in range(payoffs.entry_start[row], payoffs.entry_start[row + 1])
        for utility in [payoffs.entry_utility[e]]
    ]
    color: dict[int, Hashable] = {s: 0 for j in infostates for s in own_of[j]}
    while True:
        sums = {s: collections.defaultdict(float) for s in color}
        for s, others, utility in entries:
            sums[s][tuple(color[other] for other in others)] += utility
        paid = {s: frozenset((c, f"{v:.9g}") for c, v in totals.items() if abs(v) > 1e-12) for s, totals in sums.items()}
        kind: dict[int, Hashable] = {}
        for j in infostates:
            above = players[j] if j in players else (color[parent[j]],)
            kind[j] = (above, tuple(sorted(map(str, (color[s] for s in own_of[j])))))
        below = {s: [] for s in color}
        for j, s in parent.items():
            below[s].append(str(kind[j]))
        full = {s: (color[s], kind[j], tuple(sorted(below[s])), paid[s]) for j in infostates for s in own_of[j]}
        names = {key: number for number, key in enumerate(dict.fromkeys(full.values()))}
        new = {s: names[key] for s, key in full.items()}
        if len(names) == len(set(color.values())):
            return [new[s] for s in representative]
        color = new


@pytest.mark.parametrize("name", [*COMPARED])
def test_the_partition_is_the_coarsest(name):
    game = compile_game(COMPARED[name]())
    expected, free = naive_classes(game), game.num_sequences - reduce_game(game).forced.sum()
    if free > 1_000 and len(set(expected)) > 0.99 * free:  # left as they are
        assert reduce_game(game).num_sequences == free
        return
    found = reduce_game(game).sequence_class.tolist()
    # Equal partitions: each class of the one meets one class of the other.
    sizes = {len(set(zip(expected, found, strict=True))), len(set(expected)), len(set(found))}
    assert sizes == {reduce_game(game).num_sequences}


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_unit_of_payoffs_makes_no_difference(unit):
    game = compile_game(games.scaled_game(GAMES["leduc_poker"](), unit))
    assert str(reduce_game(game)) == "936 infostates to 288, 2186 sequences to 674, 4920 payoffs to 966"


@pytest.mark.parametrize(("change", "symmetric"), [(0.0, True), (1e-15, True), (1e-9, False)])
def test_rounding_errors_hide_no_symmetry_and_larger_differences_are_none(change, symmetric):
    tree = random_tree(3)
    alone = reduce_game(compile_game(games.efg_game(tree)))
    both = reduce_game(compile_game(games.efg_game(twins(tree, lambda value: value * (1 + change)))))
    assert (both.num_infostates == alone.num_infostates) is symmetric


def test_the_report_names_what_was_merged():
    # Private and public cards of Leduc poker are told apart by their ranks alone: J, Q, K are 0 and 1, 2 and 3, 4 and 5.
    reduction = reduce_game(compile_game(pyspiel.load_game("leduc_poker")))
    for player in range(2):
        merged = reduction.merged_infostates(player)
        assert sum(map(len, merged)) + 288 // 2 - len(merged) == 936 // 2
        for keys in merged:
            ranks = [re.sub(r"(Private|Public): (\d)", lambda card: f"{card[1]}: {int(card[2]) // 2}", key) for key in keys]
            assert len(set(ranks)) == 1
    assert reduce_game(compile_game(pyspiel.load_game("kuhn_poker"))).merged_infostates(0) == []


# CFR plays the same.


@compared
@pytest.mark.parametrize("algorithm", REGRET_MATCHING)
@pytest.mark.parametrize("alternating", [True, False])
def test_all_results_are_the_same(name, algorithm, alternating):
    game = compile_game(COMPARED[name]())
    whole, reduced = (make_solver(algorithm, game, alternating=alternating, reduce=reduce) for reduce in (False, True))
    scale = np.abs(game.payoffs).max()
    for num_iterations in (0, 1, 1, 1, 12):
        for solver in (whole, reduced):
            solver.run(num_iterations)
        assert reduced.iteration == whole.iteration
        for ours, theirs in (
            (reduced.current_profile(), whole.current_profile()),
            (reduced.average_profile(), whole.average_profile()),
        ):
            np.testing.assert_allclose(ours.probabilities, theirs.probabilities, rtol=0, atol=1e-9)
        regrets = [solver.self_play.cumulative_regrets() / scale for solver in (reduced, whole)]
        np.testing.assert_allclose(*regrets, rtol=0, atol=1e-9)
    free = ~reduce_game(game).forced
    np.testing.assert_allclose(reduced.self_play.tie_tolerance()[free], whole.self_play.tie_tolerance()[free], rtol=1e-9)
    assert reduced.nash_conv() == pytest.approx(whole.nash_conv(), abs=1e-9 * scale)


@compared
@pytest.mark.parametrize("algorithm", ["cfr", "pcfr+"])
def test_recorded_regrets_are_the_same(name, algorithm):
    game = compile_game(COMPARED[name]())
    scale = np.abs(game.payoffs).max()
    options = {"alternating": False, "record_regrets": True}
    whole, reduced = (make_solver(algorithm, game, reduce=reduce, **options) for reduce in (False, True))
    for num_iterations in (1, 1, 13):
        for solver in (whole, reduced):
            solver.run(num_iterations)
        regrets = [solver.self_play.regrets() / scale for solver in (reduced, whole)]
        np.testing.assert_allclose(*regrets, rtol=0, atol=1e-12 * solver.iteration)
        assert reduced.self_play.cce_gap() == pytest.approx(whole.self_play.cce_gap(), abs=1e-12 * scale)


def test_merged_actions_by_hand():
    # The rows 0 and 2 are alike. Uniform play earns (1 + 0 + 1) / 3 against column 0 and (0 + 3 + 0) / 3 against column 1, the
    # uniform column 5/6; the rows' regrets are 1/2 - 5/6 and 3/2 - 5/6.
    game = compile_game(games.matrix_game([[1, 0], [0, 3], [1, 0]]))
    solver = CFRSolver(game, alternating=False, reduce=True)
    assert solver.reduction.num_sequences == game.num_sequences - 1
    assert solver.current_profile().probabilities[1:4] == pytest.approx([1 / 3] * 3)
    solver.run(1)
    regrets = solver.self_play.cumulative_regrets()
    assert regrets[1:4] == pytest.approx([-1 / 3, 2 / 3, -1 / 3])
    assert regrets[5:] == pytest.approx([5 / 6 - 2 / 3, 5 / 6 - 1])
    assert solver.current_profile().probabilities[1:] == pytest.approx([0, 1, 0, 1, 1, 0])
    # Against column 0 uniform play earns 1/3 less than the merged rows: together they are played.
    solver.run(1)
    assert solver.self_play.cumulative_regrets()[1:4] == pytest.approx([2 / 3, 2 / 3, 2 / 3])
    assert solver.current_profile().probabilities[1:4] == pytest.approx([1 / 3] * 3)


def test_the_exported_policy_is_that_of_the_whole_game():
    game = pyspiel.load_game("leduc_poker")
    solver = CFRPlusSolver(game)
    assert solver.reduction is not None
    solver.run(50)
    policy = solver.average_policy()
    assert exploitability.nash_conv(game, policy) == pytest.approx(solver.nash_conv(), abs=1e-12)
    assert len(policy.action_probability_array) == 936


def test_ties_of_symmetric_actions_remain_ties():
    # In exact arithmetic battleship stays in the equilibrium that it starts from.
    solver = CFRPlusSolver(pyspiel.load_game(BATTLESHIP), reduce=True)
    for _ in range(10):
        solver.run(100)
        assert solver.nash_conv() < 1e-12


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_rounding_errors_do_not_leave_an_unstable_equilibrium(unit):
    # CFR+ approaches it as t^-2 in exact arithmetic; on the whole game rounding adds up and loses it by t = 10,000.
    name = BATTLESHIP.replace("ship_sizes=[1]", "ship_sizes=[2]")
    solver = CFRPlusSolver(games.scaled_game(pyspiel.load_game(name), unit))
    solver.run(1_000)
    early = solver.nash_conv()
    solver.run(9_000)
    assert 0 < solver.nash_conv() < early / 90 < unit * 1e-7


# What callers may rely on.


def test_modes():
    leduc, kuhn = (compile_game(pyspiel.load_game(name)) for name in ("leduc_poker", "kuhn_poker"))
    assert CFRSolver(leduc).reduction is CFRSolver(leduc, reduce=True).reduction is reduce_game(leduc)
    assert CFRSolver(leduc, reduce=False).reduction is None
    assert CFRSolver(kuhn).reduction is None
    assert CFRSolver(kuhn, reduce=True).reduction is reduce_game(kuhn)
    for nonsense in ("on", None, 2):
        with pytest.raises(ValueError, match='reduce must be True, False or "auto"'):
            CFRSolver(leduc, reduce=nonsense)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "sheriff", "biased_rock_paper_scissors"])
def test_auto_does_not_reduce_a_game_without_symmetry(name):
    game = compile_game(GAMES[name]())
    assert isinstance(reduce_game(game), Reduction)
    assert not reduce_game(game).has_symmetry
    assert CFRSolver(game).reduction is None


@pytest.mark.parametrize("name", ["goofspiel_3", "tiny_hanabi", "dark_hex_2", "liars_dice_3", "universal_poker"])
def test_auto_merges_symmetric_parts_of_small_games(name):
    game = compile_game(GAMES[name]())
    assert reduce_game(game).has_symmetry
    assert CFRSolver(game).reduction is reduce_game(game)


def test_auto_does_not_reduce_a_small_game_with_forced_moves_only():
    forced = Turn(1, "forced", {0: End([1, -1])})
    game = compile_game(games.efg_game(Turn(0, "free", {0: forced, 1: End([0, 0])})))
    assert reduce_game(game).forced.any()
    assert not reduce_game(game).has_symmetry
    assert CFRSolver(game).reduction is None


def test_a_few_symmetries_in_a_large_game_do_not_slow_its_iterations():
    # Liar's dice with 5 sides has 5 x 1023 x 2 free sequences at least, of which some twenty can be merged.
    game = compile_game(pyspiel.load_game("liars_dice(dice_sides=5)"))
    assert reduce_game(game).treeplex_arrays.uniform_policy is None
    assert not reduce_game(game).has_symmetry
    assert CFRSolver(game).reduction is reduce_game(game)


def _exact_nash_conv(payoffs: list[list[Decimal]], algorithm: str, iterations: int) -> Decimal:
    """NashConv of a matrix game's average strategies, in the arithmetic of `decimal`; `payoffs` are player 0's."""
    row = ALGORITHMS[algorithm]
    factors = [[Decimal(float(x)) for x in pair] for pair in row.rule.discounts.discounts(np.arange(1, iterations + 1))]
    gains = [payoffs, [[-x for x in column] for column in zip(*payoffs, strict=True)]]
    tables = [[Decimal(0)] * len(rows) for rows in gains]
    strategies = [[1 / Decimal(len(rows))] * len(rows) for rows in gains]
    sums = [list(table) for table in tables]
    for t in range(1, iterations + 1):
        weight = Decimal(t) ** int(row.averaging_power)
        for player in range(2):
            if player == 1:
                sums[1] = [total + weight * x for total, x in zip(sums[1], strategies[1], strict=True)]
            utility = [_dot(own, strategies[1 - player]) for own in gains[player]]
            regrets = [value - _dot(utility, strategies[player]) for value in utility]
            table = [old + regret for old, regret in zip(tables[player], regrets, strict=True)]
            tables[player] = [x * factors[t - 1][0 if x > 0 else 1] for x in table]
            predicted = [x + Decimal(row.rule.prediction_weight) * r for x, r in zip(tables[player], regrets, strict=True)]
            positive = [max(x, Decimal(0)) for x in predicted]
            total = sum(positive)
            strategies[player] = [x / total if total else 1 / Decimal(len(table)) for x in positive]
            if player == 0:
                sums[0] = [old + weight * x for old, x in zip(sums[0], strategies[0], strict=True)]
    means = [[x / sum(own) for x in own] for own in sums]
    return sum((max(_dot(row, means[1 - player]) for row in gains[player]) for player in range(2)), Decimal(0))


def _dot(one, other):
    return sum((x * y for x, y in zip(one, other, strict=True)), Decimal(0))


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+", "dcfr", "dcfr+", "pcfr", "pcfr+", "pdcfr+"])
def test_symmetric_small_games_have_the_iterates_of_exact_arithmetic(algorithm):
    # Regrets of symmetric allocations tie exactly; on the whole game rounding parts them within 20 iterations.
    game = pyspiel.convert_to_turn_based(pyspiel.load_game("blotto(coins=4,fields=3)"))
    start = game.new_initial_state()
    payoffs = [
        [Decimal(start.child(mine).child(theirs).returns()[0]) for theirs in start.child(mine).legal_actions()]
        for mine in start.legal_actions()
    ]
    with decimal.localcontext(prec=60):
        expected = float(_exact_nash_conv(payoffs, algorithm, 20))
    solver = make_solver(algorithm, game)
    solver.run(20)
    assert solver.nash_conv() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["cfr+", "pdcfr+"])
@pytest.mark.parametrize("again", ["file", "pickle", "deepcopy"])
def test_a_resumed_reduced_solver_has_identical_results(algorithm, again, tmp_path):
    solver = make_solver(algorithm, pyspiel.load_game("leduc_poker"))
    solver.run(20)
    match again:
        case "file":
            solver.save(tmp_path / "solver.npz")
            resumed = Solver.load(tmp_path / "solver.npz")
        case "pickle":
            resumed = pickle.loads(pickle.dumps(solver))
        case _:
            resumed = copy.deepcopy(solver)
    assert resumed.reduction is not None
    for one in (solver, resumed):
        one.run(30)
    assert resumed.average_profile().probabilities.tolist() == solver.average_profile().probabilities.tolist()
    assert resumed.self_play.cumulative_regrets().tolist() == solver.self_play.cumulative_regrets().tolist()


@pytest.mark.parametrize("reduce", [True, False])
def test_a_resumed_checkpoint_uses_the_saved_reduction(reduce, tmp_path):
    solver = CFRSolver(pyspiel.load_game("leduc_poker"), reduce=reduce)
    solver.run(3)
    solver.save(tmp_path / "solver.npz")
    assert (CFRSolver.load(tmp_path / "solver.npz").reduction is not None) is reduce


def test_a_warm_start_iterates_on_the_whole_game():
    game = compile_game(pyspiel.load_game("leduc_poker"))
    policy = CFRSolver(game).current_profile().probabilities.copy()
    policy[1], policy[2] = 0.9, 0.1  # with one of six cards only
    solver = CFRPlusSolver(game)
    solver.warm_start(StrategyProfile(game, policy), 10)
    assert solver.reduction is None
    np.testing.assert_allclose(solver.current_profile().probabilities, policy, atol=1e-12)


def test_theory_checks_hold_on_a_reduced_run():
    checks = TheoryChecks(CFRPlusSolver(pyspiel.load_game("leduc_poker")))
    checks.run(50)
    for finding in checks.report():
        assert finding.applies
        assert finding.slack > -1e-10
    assert {finding.statement for finding in checks.report()} >= {THEOREM_6}


@pytest.mark.parametrize(
    "make", [lambda: games.matrix_game([[0, 0], [0, 0], [0, 0]]), games.lone_player_game, games.zero_chance_game]
)
def test_odd_games(make):
    game = compile_game(make())
    solver = CFRPlusSolver(game, reduce=True)
    solver.run(10)
    plain = CFRPlusSolver(game, reduce=False)
    plain.run(10)
    np.testing.assert_allclose(solver.average_profile().probabilities, plain.average_profile().probabilities, atol=1e-12)
    np.testing.assert_allclose(solver.current_profile().probabilities, plain.current_profile().probabilities, atol=1e-12)


def test_infostates_with_different_numbers_of_equal_actions_are_not_merged():
    # Player 0 has two actions or three, as chance has it; each infostate becomes one with a single sequence.
    def turn(key, num_actions):
        return Turn(
            0, key, {action: Turn(1, f"after {key}", {0: End([0, 0]), 1: End([0, 0])}) for action in range(num_actions)}
        )

    game = compile_game(games.efg_game(Chance([0.5, 0.5], [turn("two", 2), turn("three", 3)])))
    assert (reduce_game(game).num_infostates, reduce_game(game).num_sequences) == (3, 5)
    solver = CFRPlusSolver(game, reduce=True)
    solver.run(3)
    assert solver.current_profile().of_player(0).tolist() == pytest.approx([1, 1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])
