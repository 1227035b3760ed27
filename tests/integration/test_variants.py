"""All members of the regret-matching family by name: closed forms, the papers' formulas, each other, and OpenSpiel."""

import copy
import fractions
import functools
import itertools
import math
import pathlib
import pickle
from typing import Any

import exact_arithmetic
import games
import numpy as np
import pyspiel
import pytest
import reference
from families import REGRET_MATCHING, SOLVERS, in_python
from games import GAMES
from open_spiel.python.algorithms import discounted_cfr, exploitability

from spiel_cfrplus import (
    ALGORITHMS,
    Averaging,
    CFRPlusSolver,
    CFRSolver,
    DiscountedCFRPlusSolver,
    DiscountedCFRSolver,
    LinearCFRSolver,
    PDCFRPlusSolver,
    PredictiveCFRPlusSolver,
    PredictiveCFRSolver,
    SequenceFormGame,
    Solver,
    compile_game,
    make_solver,
)
from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching, RegretMatching, RegretMatchingPlus

INF = math.inf
EFG = compile_game(games.random_efg(1))

# The averages' exponents as the papers give them: Burch, Moravcik, Schmid 2019 (CFR, CFR+); Brown, Sandholm 2019 (linear and
# discounted CFR); Farina, Kroer, Sandholm 2021 (predictive CFR); Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024 (DCFR+ and PDCFR+).
POWERS = {"cfr": 0, "cfr+": 1, "lcfr": 1, "dcfr": 2, "dcfr+": 4, "pcfr": 2, "pcfr+": 2, "pdcfr+": 5}
# With a third of the predicted regrets (Meng, Zhang, Ge, Yang, Gao 2025).
POWERS |= {"sapcfr+": 2, "sapdcfr+": 5}

every_variant = pytest.mark.parametrize("name", REGRET_MATCHING)
both_orders = pytest.mark.parametrize("alternating", [True, False], ids=["alternating", "simultaneous"])
both_conventions = pytest.mark.parametrize("convention", ["paper", "openspiel"])


def tables(solver: Solver) -> list[list[float]]:
    """Everything that a compiled solver has computed."""
    return [array.tolist() for array in (solver.self_play.state.reach, *solver.self_play.state_dict().values())]


def test_all_variants_are_tested():
    assert list(POWERS) == REGRET_MATCHING


# Closed forms.


def forced_game() -> pyspiel.Game:
    """Player 1 always earns 1 more by column 1; against it player 0 prefers row 0, and is indifferent against uniform.

    So all variants have the same strategies. Player 1 is uniform once and plays column 1 from sigma^1 on. Player 0 has no
    regret in the first iteration, whatever the order, and is uniform twice; it plays row 0 from sigma^2 on.
    """
    return games.matrix_game([[-1, 1], [1, -1]], [[0, 1], [0, 1]])


@every_variant
@both_orders
@both_conventions
def test_averages_of_known_iterates(name, alternating, convention):
    solver = make_solver(name, forced_game(), alternating=alternating, averaging=convention)
    written_out = in_python(name, forced_game(), alternating=alternating, averaging=convention)
    weights = [fractions.Fraction(i ** POWERS[name]) for i in range(1, 9)]
    uniform_in_average = [1 if alternating and convention == "paper" else 2, 1]  # of player 0, of player 1
    for iteration in range(1, len(weights) + 1):
        for each in (solver, written_out):
            each.run(1)
            for player, worse in enumerate((1, 0)):
                share = sum(weights[: min(uniform_in_average[player], iteration)]) / sum(weights[:iteration])
                expected = {worse: float(share / 2), 1 - worse: float(1 - share / 2)}
                assert dict(enumerate(each.average_profile().of_player(player)[1:])) == pytest.approx(expected, rel=1e-14)
    assert solver.current_profile().probabilities.tolist() == [1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("name", "iteration", "expected"),
    [
        ("cfr", 7, (1, 1)),
        ("cfr+", 7, (1, 0)),
        ("lcfr", 1, (1 / 2, 1 / 2)),
        ("lcfr", 9, (9 / 10, 9 / 10)),
        ("dcfr", 1, (1 / 2, 1 / 2)),
        ("dcfr", 4, (8 / 9, 1 / 2)),
        ("dcfr", 100, (1000 / 1001, 1 / 2)),
        ("dcfr+", 1, (1 / 2, 0)),
        ("dcfr+", 4, (8 / 9, 0)),
        ("pcfr", 7, (1, 1)),
        ("pcfr+", 7, (1, 0)),
        ("pdcfr+", 1, (1 / 2, 0)),
        ("pdcfr+", 2**10, (2**23 / (2**23 + 1), 0)),
        ("sapcfr+", 7, (1, 0)),
        ("sapdcfr+", 2**10, (2**23 / (2**23 + 1), 0)),
    ],
)
def test_factors_on_positive_and_negative_regrets(name, iteration, expected):
    assert ALGORITHMS[name].rule.discounts.discounts(np.array([iteration])) == pytest.approx(np.array([expected]), rel=1e-15)


def test_regrets_after_three_iterations_by_hand():
    """One player guesses a coin that shows 1 with 3/4: rewards (1/4, 3/4), and regrets of the uniform strategy (-1/4, 1/4).

    From iteration 2 on guess 1 is sure, with regrets (-1/2, 0). So after 3 iterations, with positive factors p1, p2, p3 and
    negative ones n1, n2, n3, the table is (((-n1/4 - 1/2) n2 - 1/2) n3, p1 p2 p3 / 4).
    """
    expected = {
        "cfr": (-5 / 4, 1 / 4),
        "cfr+": (0, 1 / 4),
        "lcfr": (((-1 / 8 - 1 / 2) * 2 / 3 - 1 / 2) * 3 / 4, 1 / 16),
        "dcfr": (((-1 / 8 - 1 / 2) / 2 - 1 / 2) / 2, (1 / 8) * 8**0.5 / (8**0.5 + 1) * 27**0.5 / (27**0.5 + 1)),
        "dcfr+": (0, (1 / 8) * 8**0.5 / (8**0.5 + 1) * 27**0.5 / (27**0.5 + 1)),
        "pcfr": (-5 / 4, 1 / 4),
        "pcfr+": (0, 1 / 4),
        "pdcfr+": (0, (1 / 8) * 2**2.3 / (2**2.3 + 1) * 3**2.3 / (3**2.3 + 1)),
    }
    # What is predicted is not stored.
    expected |= {"sapcfr+": expected["pcfr+"], "sapdcfr+": expected["pdcfr+"]}
    game = compile_game(games.lone_player_game())
    for name, solver_type in SOLVERS.items():
        solver = solver_type(game)
        solver.run(3)
        assert solver.self_play.cumulative_regrets()[1:] == pytest.approx(np.array(expected[name]), rel=1e-14)


# The papers' formulas, written out slowly.


def slow_iterates(root: games.Node, num_iterations: int, name: str, alternating: bool, exact: bool = False) -> list[Any]:
    """sigma^0, ..., sigma^T as defined in the papers, in floats or in fractions.

    Discounting comes before the regrets are added, with the factor of the iteration before, where the package has it after:
    R^t = f(R^{t-1}, t - 1) + r^t, with the part below zero cut off in the + variants. Brown and Sandholm 2019, section 4; Xu et
    al. 2024, whose predicted table is f(R^t, t) + r^t again; Farina et al. 2021, Algorithms 1 and 2. Meng et al. 2025 have
    r^t / (1 + 2) in it.
    """
    damping, name = (3, name[2:]) if name.startswith("sap") else (1, name)
    alpha, beta = {"lcfr": (1, 1), "dcfr": (1.5, 0), "dcfr+": (1.5, 0), "pdcfr+": (2.3, 0)}.get(name, (INF, INF))
    number: Any = fractions.Fraction if exact else float
    values_at, match = (
        (exact_arithmetic.exact_values, exact_arithmetic.exact_match)
        if exact
        else (reference.counterfactual_values, reference.match_regrets)
    )

    def discounted(regret: Any, t: int) -> Any:
        exponent = alpha if regret > 0 else beta
        return regret if exponent == INF or t == 0 else regret * number(t**exponent) / (number(t**exponent) + 1)

    def step(table: dict[int, Any], regrets: dict[int, Any], t: int) -> dict[int, Any]:
        sums = {action: discounted(table[action], t) + regrets[action] for action in table}
        return {action: max(total, number(0)) if name.endswith("+") else total for action, total in sums.items()}

    stored = {key: dict.fromkeys(strategy, number(0)) for key, strategy in reference.uniform_policy(root).items()}
    result = [{key: match(table) for key, table in stored.items()}]
    for t in range(1, num_iterations + 1):
        old, new = result[-1], dict(result[-1])
        for player in range(reference.num_players(root)):
            for key, values in values_at(root, new if alternating else old, player).items():
                mean = sum(old[key][action] * value for action, value in values.items())
                regrets = {action: value - mean for action, value in values.items()}
                stored[key] = step(stored[key], regrets, t - 1)
                predicted = {action: regret / damping for action, regret in regrets.items()}
                new[key] = match(step(stored[key], predicted, t) if name.startswith("p") else stored[key])
        result.append(new)
    return result


@pytest.mark.parametrize(
    "load",
    [GAMES["kuhn_poker"], GAMES["liars_dice_3"], lambda: games.matrix_game([[2, -1, 0], [-1, 1, 3], [1, 0, -2]])],
    ids=["kuhn_poker", "liars_dice_3", "matrix"],
)
@every_variant
@both_orders
def test_iterates_and_averages_equal_the_formulas_of_the_papers(load, name, alternating):
    root, game = games.tree_of(load()), compile_game(load())
    sigmas = slow_iterates(root, 10, name, alternating)
    solver = make_solver(name, game, alternating=alternating)
    for sigma in sigmas[1:]:
        solver.run(1)
        assert reference.distance(reference.policy_of(solver.current_profile()), sigma) < 1e-10
    for convention, first in (("paper", [int(alternating), 0]), ("openspiel", [0, 0])):
        solver = make_solver(name, game, alternating=alternating, averaging=convention)
        solver.run(10)
        expected = reference.average_policy(root, sigmas, power=POWERS[name], first=first)
        assert reference.distance(reference.policy_of(solver.average_profile()), expected) < 1e-10
        assert solver.nash_conv() == pytest.approx(reference.nash_conv(root, expected), rel=1e-9)


@pytest.mark.parametrize(
    ("load", "num_iterations"),
    [
        (lambda: pyspiel.load_game("dark_hex(board_size=2,gameversion=adh)"), 4),
        (lambda: pyspiel.load_game("turn_based_simultaneous_game(game=blotto(coins=5,fields=3))"), 5),
        (GAMES["kuhn_poker_3p"], 3),
        (lambda: games.random_efg(262), 6),
    ],
    ids=["dark_hex", "blotto", "kuhn_poker_3p", "random_efg"],
)
@every_variant
@both_orders
def test_ties_are_those_of_exact_arithmetic(load, num_iterations, name, alternating):
    sigmas = slow_iterates(games.tree_of(load()), num_iterations, name, alternating, exact=True)
    solver = make_solver(name, load(), alternating=alternating)
    for sigma in sigmas[1:]:
        solver.run(1)
        assert reference.distance(reference.policy_of(solver.current_profile()), sigma) < 1e-12


# Each other.


SAME = {
    "dcfr(inf, -inf) is cfr+": (
        functools.partial(DiscountedCFRSolver, rule=DiscountedRegretMatching(INF, -INF)),
        functools.partial(CFRPlusSolver, averaging=Averaging(2)),
    ),
    "dcfr(inf, -inf) with gamma 3.5 is cfr+ with it": (
        functools.partial(DiscountedCFRSolver, rule=DiscountedRegretMatching(INF, -INF), averaging=Averaging(3.5, "openspiel")),
        functools.partial(CFRPlusSolver, averaging=Averaging(3.5, "openspiel")),
    ),
    "dcfr(inf, inf) is cfr": (
        functools.partial(DiscountedCFRSolver, rule=DiscountedRegretMatching(INF, INF), averaging=Averaging(0)),
        CFRSolver,
    ),
    "lcfr is dcfr(1, 1, 1)": (
        LinearCFRSolver,
        functools.partial(DiscountedCFRSolver, rule=DiscountedRegretMatching(1, 1), averaging=Averaging(1)),
    ),
    "dcfr+ is dcfr(3/2, -inf, 4)": (
        DiscountedCFRPlusSolver,
        functools.partial(DiscountedCFRSolver, rule=DiscountedRegretMatching(1.5, -INF), averaging=Averaging(4)),
    ),
    "dcfr+(inf) is cfr+": (
        functools.partial(DiscountedCFRPlusSolver, rule=DiscountedRegretMatching(INF, -INF)),
        functools.partial(CFRPlusSolver, averaging=Averaging(4)),
    ),
    "pdcfr+(inf) is pcfr+": (
        functools.partial(PDCFRPlusSolver, rule=DiscountedRegretMatching(INF, -INF)),
        functools.partial(PredictiveCFRPlusSolver, averaging=Averaging(5)),
    ),
    "pcfr with regret matching+ is pcfr+": (
        functools.partial(PredictiveCFRSolver, rule=RegretMatchingPlus()),
        PredictiveCFRPlusSolver,
    ),
    "sapcfr+ with the whole prediction is pcfr+": (
        functools.partial(make_solver, "sapcfr+", prediction_weight=1.0),
        PredictiveCFRPlusSolver,
    ),
    "sapcfr+ with nothing of it is cfr+": (
        functools.partial(make_solver, "sapcfr+", prediction_weight=0.0),
        functools.partial(CFRPlusSolver, averaging=Averaging(2)),
    ),
    "sapdcfr+(inf) is sapcfr+": (
        functools.partial(make_solver, "sapdcfr+", rule=DiscountedRegretMatching(INF, -INF)),
        functools.partial(make_solver, "sapcfr+", averaging=Averaging(5)),
    ),
    "cfr+ with regret matching is cfr": (
        functools.partial(CFRPlusSolver, rule=RegretMatching(), averaging=Averaging(0)),
        CFRSolver,
    ),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
@pytest.mark.parametrize("game", ["kuhn", "leduc", "efg"])
@both_orders
def test_special_cases_are_bit_identical(pair, game, alternating, request):
    game = EFG if game == "efg" else request.getfixturevalue(game)
    first, second = (make(game, alternating=alternating) for make in pair)
    for solver in (first, second):
        solver.run(200)
    assert tables(first) == tables(second)
    assert first.nash_conv() == second.nash_conv()


@both_orders
def test_no_two_variants_are_the_same(alternating, kuhn):
    policies = []
    for solver_type in SOLVERS.values():
        solver = solver_type(kuhn, alternating=alternating)
        solver.run(20)
        policies.append(solver.average_profile().probabilities)
    for first, second in itertools.combinations(policies, 2):
        assert np.abs(first - second).max() > 1e-3


def assert_compiled_equals_written_out(game: SequenceFormGame, name: str, num_iterations: int, **options: Any) -> None:
    compiled = make_solver(name, game, reduce=False, **options)
    written_out = in_python(name, game, **options)
    for solver in (compiled, written_out):
        solver.run(num_iterations)
    assert compiled.averaging == written_out.averaging
    state, session, tables = compiled.self_play.state, written_out.self_play, compiled.self_play.cumulative_regrets()
    assert np.any(tables != 0)
    for player, own in enumerate(game.player_slices):
        regrets = session.minimizers[player].local_minimizers.cumulative_regrets()
        assert tables[own][1:].tolist() == regrets.tolist()
        assert state.reach[own].tolist() == session.strategies[player].tolist()
        assert state.cumulative_policy[own].tolist() == session.cumulative_strategies[player].tolist()


@every_variant
@both_orders
@both_conventions
def test_the_compiled_loop_is_bit_identical_to_the_python_loop(name, alternating, convention, kuhn):
    for game in (kuhn, EFG):
        assert_compiled_equals_written_out(game, name, 100, alternating=alternating, averaging=convention)


@every_variant
@both_orders
def test_the_compiled_loop_equals_the_python_loop_on_leduc_poker(name, alternating, leduc):
    assert_compiled_equals_written_out(leduc, name, 30, alternating=alternating)


# OpenSpiel.


OPENSPIEL = {"dcfr": discounted_cfr.DCFRSolver, "lcfr": discounted_cfr.LCFRSolver}


def assert_equals_openspiel(name: str, game: pyspiel.Game, num_iterations: int) -> float:
    """The NashConv of both."""
    ours, theirs = make_solver(name, game, averaging="openspiel"), OPENSPIEL[name](game)
    for _ in range(num_iterations):
        theirs.evaluate_and_update_policy()
    ours.run(num_iterations)
    for mine, other in ((ours.average_policy(), theirs.average_policy()), (ours.current_policy(), theirs.current_policy())):
        assert mine.state_lookup == other.state_lookup
        difference = np.abs(mine.action_probability_array - other.action_probability_array)
        assert difference.max() < 1e-9
    return ours.nash_conv()


def test_discounted_cfr_equals_openspiel():
    # OpenSpiel 2.0.2: open_spiel/python/algorithms/discounted_cfr.py, 100 iterations, NashConv by exploitability.nash_conv.
    assert assert_equals_openspiel("dcfr", pyspiel.load_game("kuhn_poker"), 100) == pytest.approx(0.003332684, abs=5e-10)
    assert_equals_openspiel("dcfr", pyspiel.load_game("leduc_poker"), 5)


def test_linear_cfr_equals_openspiel():
    assert_equals_openspiel("lcfr", pyspiel.load_game("kuhn_poker"), 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPENSPIEL)
def test_discounted_and_linear_cfr_equal_openspiel_on_leduc_poker(name):
    assert_equals_openspiel(name, pyspiel.load_game("leduc_poker"), 30)


# Exponents.


EXTREMES = [-INF, -1e308, -1e4, -1.0, 0.0, 1.0, 1e4, 1e308, INF]


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("beta", EXTREMES)
def test_all_exponents_give_valid_factors_and_strategies(alpha, beta):
    rule = DiscountedRegretMatching(alpha, beta)
    factors = rule.discounts(np.array([1, 2, 3, 10**6]))
    assert factors.shape == (4, 2)
    for exponent, column in zip((alpha, beta), factors.T, strict=True):
        limit = float(exponent > 0)
        if abs(exponent) == INF:
            assert column.tolist() == [limit] * 4
        else:
            assert column[0] == 1 / 2
        if abs(exponent) in (1e4, 1e308):
            assert column[1:] == pytest.approx([limit] * 3, abs=1e-300)
    for solver_type in (DiscountedCFRSolver, PDCFRPlusSolver):
        solver = solver_type(GAMES["kuhn_poker"](), rule=rule)
        solver.run(50)
        assert np.isfinite(solver.self_play.cumulative_regrets()).all()
        assert np.isfinite(solver.nash_conv())
        for profile in (solver.current_profile(), solver.average_profile()):
            assert reference.plain_sum(profile.probabilities) == pytest.approx(2 + 12, rel=1e-12)


@pytest.mark.parametrize("exponents", [(math.nan, 0.0), (1.5, math.nan), (math.nan, math.nan)])
def test_exponents_that_are_not_numbers_are_refused(exponents):
    with pytest.raises(ValueError, match=r"exponents of discounting must be numbers, got alpha=.*, beta="):
        DiscountedRegretMatching(*exponents)


@every_variant
@pytest.mark.parametrize("power", [math.nan, INF, -1.0])
def test_invalid_powers_are_refused(name, power):
    with pytest.raises(ValueError, match="power must be finite and at least 0"):
        make_solver(name, EFG, averaging=Averaging(power))


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("name", ["dcfr", "pcfr"])
def test_discounts_may_reduce_a_regret_to_any_magnitude(name, alpha):
    # Row 0 is always better by 2: it has a regret of 1 from the first iteration, which shrinks from then on, and is never left.
    game, rule = games.matrix_game([[2, 1], [0, -1]]), DiscountedRegretMatching(alpha, 0)
    for solver in (make_solver(name, game, rule=rule), in_python(name, game, rule=rule)):
        for _ in range(500):
            solver.run(1)
            assert solver.current_profile().of_player(0).tolist() == [1, 1, 0]


def test_openspiels_discounted_cfr_agrees_where_discounts_wear_regrets_down():
    ours = DiscountedCFRSolver(GAMES["kuhn_poker"](), rule=DiscountedRegretMatching(0, 0), averaging=Averaging(2, "openspiel"))
    theirs = discounted_cfr.DCFRSolver(GAMES["kuhn_poker"](), alpha=0, beta=0, gamma=2)
    ours.run(300)
    for _ in range(300):
        theirs.evaluate_and_update_policy()
    expected = exploitability.nash_conv(GAMES["kuhn_poker"](), theirs.average_policy())
    assert ours.nash_conv() == pytest.approx(expected, rel=1e-5)


# What callers may rely on.


@every_variant
@both_orders
def test_iterations_are_the_same_doubles_however_they_are_divided(name, alternating, kuhn):
    solvers = [make_solver(name, kuhn, alternating=alternating) for _ in range(3)]
    solvers[0].run(60)
    for _ in range(60):
        solvers[1].evaluate_and_update_policy()
    for num_iterations in (7, 0, 1, 52):
        solvers[2].run(num_iterations)
        solvers[2].current_policy()
        solvers[2].average_policy()
        solvers[2].nash_conv()
    assert tables(solvers[0]) == tables(solvers[1]) == tables(solvers[2])


class Forgiving:
    """Regret matching that becomes regret matching+ after ten iterations, and discards its positive regrets once."""

    def discounts(self, iterations):
        factors = np.ones((len(iterations), 2))
        factors[iterations > 10, 1] = 0
        factors[iterations == 30, 0] = 0.5
        return factors


@both_orders
def test_factors_may_change_in_any_iteration(alternating):
    game = compile_game(
        pyspiel.load_game("turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))")
    )
    solvers = [CFRSolver(game, alternating=alternating, rule=Forgiving(), reduce=False) for _ in range(2)]
    solvers[0].run(60)
    for _ in range(60):
        solvers[1].run(1)  # in which nothing is passed over
    assert tables(solvers[0]) == tables(solvers[1])


def by_file(solver: Solver, folder: pathlib.Path) -> Solver:
    solver.save(folder / "solver.npz")
    return Solver.load(folder / "solver.npz", solver.game)


def by_pickle(solver: Solver, folder: pathlib.Path) -> Solver:
    return pickle.loads(pickle.dumps(solver))


def by_copy(solver: Solver, folder: pathlib.Path) -> Solver:
    return copy.copy(solver)


RULES = [None, DiscountedRegretMatching(0.7, -1.3), DiscountedRegretMatching(2, INF), RegretMatching(), RegretMatchingPlus()]


@pytest.mark.parametrize("again", [by_file, by_pickle, by_copy])
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("done", [0, 1, 6])
@every_variant
@both_orders
def test_resumed_solvers_go_on_to_the_same_doubles(name, alternating, done, rule, again, tmp_path, kuhn):
    solver = make_solver(name, kuhn, alternating=alternating, rule=rule)
    solver.run(done)
    resumed = again(solver, tmp_path)
    assert type(resumed) is type(solver)
    assert resumed.self_play.rule == solver.self_play.rule
    assert resumed.self_play.rule.discounts == (ALGORITHMS[name].rule.discounts if rule is None else rule)
    assert (resumed.averaging, resumed.alternating, resumed.iteration) == (solver.averaging, alternating, done)
    assert tables(resumed) == tables(solver)
    for each in (solver, resumed):
        each.run(9)
    assert tables(resumed) == tables(solver)
    undisturbed = make_solver(name, kuhn, alternating=alternating, rule=rule)
    undisturbed.run(done + 9)
    assert tables(resumed) == tables(undisturbed)


@every_variant
@both_orders
def test_leduc_poker_is_resumed_after_many_iterations(name, alternating, tmp_path, leduc):
    solver = make_solver(name, leduc, alternating=alternating)
    solver.run(300)
    resumed = by_file(solver, tmp_path)
    for each in (solver, resumed):
        each.run(100)
    assert tables(resumed) == tables(solver)


def test_checkpoints_distinguish_local_rules(tmp_path, kuhn):
    plain, changed = DiscountedCFRSolver(kuhn), DiscountedCFRSolver(kuhn, rule=DiscountedRegretMatching(0.7, -1.3))
    for solver in (plain, changed):
        solver.run(6)
    assert tables(plain) != tables(changed)
    resumed = by_file(changed, tmp_path)
    resumed.run(3)
    changed.run(3)
    assert tables(resumed) == tables(changed)
    with pytest.raises(ValueError, match="saved by a DiscountedCFRSolver, expected a LinearCFRSolver"):
        LinearCFRSolver.load(tmp_path / "solver.npz", kuhn)


@pytest.mark.parametrize("factor", [1e-9, 1e9, 2.0**-30, 2.0**30])
@every_variant
@both_orders
def test_units_make_no_difference(name, alternating, factor):
    for load in (GAMES["kuhn_poker"], games.biased_rock_paper_scissors, GAMES["random_efg"]):
        plain, scaled = (make_solver(name, games.scaled_game(load(), unit), alternating=alternating) for unit in (1.0, factor))
        for solver in (plain, scaled):
            solver.run(50)
        assert np.allclose(plain.average_profile().probabilities, scaled.average_profile().probabilities, rtol=0, atol=1e-9)
        assert scaled.nash_conv() / factor == pytest.approx(plain.nash_conv(), rel=1e-6)
        if math.frexp(factor)[0] == 0.5:  # powers of two change no digit
            assert plain.average_profile().probabilities.tolist() == scaled.average_profile().probabilities.tolist()


def test_all_types_of_numbers_are_saved(tmp_path):
    rule, averaging = DiscountedRegretMatching(np.int64(1), np.float32(0.5)), Averaging(np.int64(2), delay=np.int32(1))
    solver = DiscountedCFRSolver(pyspiel.load_game("kuhn_poker"), rule=rule, averaging=averaging)
    solver.run(3)
    solver.save(tmp_path / "saved.npz")
    assert Solver.load(tmp_path / "saved.npz").self_play.rule.discounts == DiscountedRegretMatching(1.0, 0.5)


@pytest.mark.parametrize("rule", ["dcfr", 3, DiscountedRegretMatching, object()], ids=["name", "number", "class", "object"])
def test_arguments_that_are_not_local_rules_are_refused(rule):
    with pytest.raises(TypeError, match=r"expected a function .* or discounts of regret matching, got"):
        DiscountedCFRSolver(pyspiel.load_game("kuhn_poker"), rule=rule)


@pytest.mark.parametrize(
    "factors", [[[np.nan, 0.0]], [[1.0]], [[np.inf, 1.0]], [1.0, 0.0], [[1.0, -1.0]], [[-0.5, 0.0]]], ids=str
)
def test_invalid_factors_are_refused(factors):
    class Rule:
        def discounts(self, iterations):
            return np.array(factors)

    solver = DiscountedCFRSolver(pyspiel.load_game("kuhn_poker"), rule=Rule())
    with pytest.raises(ValueError, match="did not return two finite, nonnegative factors"):
        solver.run(1)
    assert solver.iteration == 0
