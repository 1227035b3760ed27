"""Exact ties: regrets that are zero in exact arithmetic but not in float64, and small regrets that are not ties."""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import games
import numpy as np
import pyspiel
import pytest
import reference
from exact_arithmetic import exact_iterates
from games import GAMES, Chance, End, Node, Turn

from spiel_cfrplus import CFRPlusSolver, CFRSolver, SequenceFormGame, Solver, compile_game
from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.regret_minimizers import CFR, DiscountedRegretMatching, RegretMatching, SimplexRegretMatching

BATTLESHIP = "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=3,allow_repeated_shots=False)"


DARK_HEX = "dark_hex(board_size=2,gameversion=adh)"


GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel("
    "num_cards=4,imp_info=True,points_order=ascending,returns_type=point_difference))"
)


# Games whose first iterations have ties, and how many iterations rational arithmetic is asked for.
TIED: dict[str, int] = {
    BATTLESHIP: 2,
    DARK_HEX: 6,
    GOOFSPIEL: 3,
    "turn_based_simultaneous_game(game=oshi_zumo(coins=6,size=1,horizon=20,alesia=False,min_bid=1))": 3,
    "turn_based_simultaneous_game(game=blotto(coins=5,fields=3))": 6,
    "kuhn_poker(players=3)": 4,
    "sheriff(max_bribe=2,max_items=3,num_rounds=1)": 6,
}


PLUS: dict[type[Solver], bool] = {CFRSolver: False, CFRPlusSolver: True}


tied = pytest.mark.parametrize("name", TIED)


both_solvers = pytest.mark.parametrize("solver_type", PLUS)


both_orders = pytest.mark.parametrize("alternating", [True, False], ids=["alternating", "simultaneous"])


@functools.cache
def compiled(name: str) -> SequenceFormGame:
    return compile_game(pyspiel.load_game(name))


# Exact arithmetic.


@tied
@both_solvers
@both_orders
def test_iterates_are_those_of_exact_arithmetic(name, solver_type, alternating):
    root = games.tree_of(pyspiel.load_game(name))
    solver = solver_type(compiled(name), alternating=alternating)
    for sigma in exact_iterates(root, TIED[name], plus=PLUS[solver_type], alternating=alternating):
        solver.run(1)
        assert reference.distance(reference.policy_of(solver.current_profile()), sigma) < 1e-12


@both_solvers
@both_orders
def test_battleship_remains_in_equilibrium(solver_type, alternating):
    # In exact arithmetic all regrets are zero from the start, as the uniform strategies are an equilibrium.
    solver = solver_type(compiled(BATTLESHIP), alternating=alternating)
    for _ in range(1000):
        solver.run(1)
        assert solver.nash_conv() < 1e-12


def test_dark_hex_has_the_exact_iterates():
    # 1/3 and 1/6 by rational arithmetic.
    solver = CFRSolver(compiled(DARK_HEX))
    for expected in (1 / 3, 1 / 6):
        solver.run(1)
        assert solver.nash_conv() == pytest.approx(expected, rel=1e-12)


# The same game written otherwise.


def scaled(game: SequenceFormGame, factor: float) -> SequenceFormGame:
    return dataclasses.replace(game, payoffs=frozen(factor * game.payoffs, np.float64))


def shuffled(game: SequenceFormGame, seed: int) -> SequenceFormGame:
    """The same payoffs in another order."""
    rng, payoffs = np.random.default_rng(seed), game.payoff_arrays
    rows = np.concatenate([rng.permutation(np.arange(*block)) for block in itertools.pairwise(payoffs.player_block)])
    entries = [rng.permutation(np.arange(*payoffs.entry_start[row : row + 2])) for row in rows]
    order = np.concatenate(entries)
    changed = dataclasses.replace(game)
    vars(changed)["payoff_arrays"] = payoffs._replace(
        opponent_sequences=frozen(payoffs.opponent_sequences[rows], np.uint32),
        entry_start=frozen(np.cumsum([0, *map(len, entries)]), np.uint32),
        entry_sequence=frozen(payoffs.entry_sequence[order], np.uint32),
        entry_utility=frozen(payoffs.entry_utility[order], np.float64),
    )
    return changed


WRITTEN: dict[str, tuple[Callable[[SequenceFormGame], SequenceFormGame], float]] = {
    "1e-9": (lambda game: scaled(game, 1e-9), 1e-9),
    "1e9": (lambda game: scaled(game, 1e9), 1e9),
    "1/3": (lambda game: scaled(game, 1 / 3), 1 / 3),
    "shuffled": (lambda game: shuffled(game, 1), 1),
    "shuffled otherwise": (lambda game: shuffled(game, 2), 1),
}


@tied
@pytest.mark.parametrize(("change", "unit"), WRITTEN.values(), ids=WRITTEN)
@both_solvers
@both_orders
def test_units_and_the_order_of_sums_have_no_effect(name, change, unit, solver_type, alternating):
    solver = solver_type(compiled(name), alternating=alternating)
    other = solver_type(change(compiled(name)), alternating=alternating)
    for num_iterations in (1, 1, 3, 10, 15):
        solver.run(num_iterations)
        other.run(num_iterations)
        policies = [session.current_profile().probabilities for session in (solver, other)]
        np.testing.assert_allclose(*policies, rtol=0, atol=1e-9)
        assert other.nash_conv() / unit == pytest.approx(solver.nash_conv(), rel=1e-9, abs=1e-12)


# What is no tie.


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@both_solvers
def test_rounding_errors_are_ties_but_small_differences_are_not(unit, solver_type):
    # 0.1 + 0.2 is 0.3 but for rounding. What is more by 1e-10 is better, and played.
    for payoffs, expected in (([0.1 + 0.2, 0.3], [1 / 2, 1 / 2]), ([0.3 + 1e-10, 0.3], [1, 0])):
        solver = solver_type(games.matrix_game([[unit * payoff] for payoff in payoffs]))
        solver.run(100)
        assert solver.current_profile().of_player(0)[1:].tolist() == expected


@pytest.mark.parametrize("chance", [1e-3, 1e-15])
@both_solvers
def test_unlikely_parts_of_a_game_are_solved(chance, solver_type):
    # By hand: both mix (3/5, 2/5), against which 2 * 3/5 - 3 * 2/5 = 0 and -3 * 3/5 + 9/2 * 2/5 = 0.
    def turn(player: int, key: str, *children: Node) -> Turn:
        return Turn(player, key, dict(enumerate(children)))

    ends = [[End([pay, -pay]) for pay in row] for row in ([2, -3], [-3, 4.5])]
    rare = turn(0, "rare", *(turn(1, "rare", *row) for row in ends))
    usual = turn(0, "usual", End([1, -1]), End([3, -3]))
    solver = solver_type(games.efg_game(Chance([1 - chance, chance], [usual, rare])))
    solver.run(20_000)
    for player in range(2):  # whose last infostate is the rare one
        assert solver.average_profile().of_player(player)[-2:] == pytest.approx([3 / 5, 2 / 5], abs=0.02)


@both_solvers
@both_orders
def test_payoffs_of_different_magnitudes_do_not_change_iterates(solver_type, alternating):
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(4, 4))
    matrix[1] -= 1e6
    matrix[:, 2] += 1e6
    game = games.matrix_game(matrix.tolist())
    sigmas = reference.iterates(games.tree_of(game), 200, plus=PLUS[solver_type], alternating=alternating)
    solver = solver_type(game, alternating=alternating)
    for sigma in sigmas[1:]:
        solver.run(1)
        assert reference.distance(reference.policy_of(solver.current_profile()), sigma) < 1e-10


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=4)"])
@both_solvers
@both_orders
def test_long_runs_do_not_lose_accuracy(name, solver_type, alternating):
    """Compared with the same iterations without a tie tolerance."""
    solver = solver_type(compiled(name), alternating=alternating)
    solver.run(10_000)
    # Payoffs three and five times as large are rounded otherwise, and CFR+ on Leduc is chaotic.
    plain = []
    for unit in (1, 3, 5):
        other = solver_type(scaled(compiled(name), unit), alternating=alternating, exact_ties=False)
        other.run(10_000)
        plain.append(other.nash_conv() / unit)
    assert solver.nash_conv() <= 1.05 * max(plain)


# Minimizers alone.


def simplex_strategy(tie_tolerance: float, utilities: list[list[float]]) -> list[float]:
    minimizer = SimplexRegretMatching(3, tie_tolerance=tie_tolerance)
    for utility in utilities:
        minimizer.observe_utility(utility)
    return minimizer.next_strategy().tolist()


def treeplex_strategy(tie_tolerance: float, utilities: list[list[float]]) -> list[float]:
    treeplex = compile_game(games.matrix_game([[1.0, -1.0]] * 3)).treeplexes[0]
    local = CFR(treeplex, RegretMatching(), tie_tolerance=[tie_tolerance] * 4)
    for utility in utilities:
        local.observe_utility([0.0, *utility])
        local.next_strategy()
    return local.next_strategy()[1:].tolist()


@pytest.mark.parametrize("strategy", [simplex_strategy, treeplex_strategy])
def test_regrets_within_rounding_error_are_zero(strategy):
    # Uniform play of (9, 3, 0) earns 4: regrets 5, -1 and -4 each time, until one of them is more than rounding.
    utilities = [[9.0, 3.0, 0.0]]
    for num_utilities in (1, 10, 1000):
        assert strategy(5.0, utilities * num_utilities) == [1 / 3] * 3
    assert strategy(4.99, utilities) == [1, 0, 0]
    assert strategy(0.0, utilities) == [1, 0, 0]


@pytest.mark.parametrize("strategy", [simplex_strategy, treeplex_strategy])
def test_regrets_within_rounding_error_have_probability_zero(strategy):
    # Regrets 5, 2 and -7: the second is none.
    assert strategy(2.0, [[9.0, 6.0, -3.0]]) == [1, 0, 0]
    assert strategy(1.0, [[9.0, 6.0, -3.0]]) == [5 / 7, 2 / 7, 0]


def test_rounding_errors_do_not_accumulate():
    # The first action has a regret of 1/2 from the first time; afterwards it is played and nothing is added. Discounts by
    # t / (t + 1) leave 1/2 * 1/31, the only positive regret, more than the rounding of one time but less than that of 30.
    minimizer = SimplexRegretMatching(2, DiscountedRegretMatching(1, 1), tie_tolerance=1e-3)
    for _ in range(30):
        minimizer.observe_utility([1.0, 0.0])
    assert minimizer.cumulative_regrets()[0] == pytest.approx(1 / 62)
    assert minimizer.next_strategy().tolist() == [1, 0]


@pytest.mark.parametrize("tie_tolerance", [-1e-300, np.nan, np.inf, [0.0, 0.0], [[0.0]]], ids=str)
def test_an_invalid_tie_tolerance_is_refused(tie_tolerance):
    with pytest.raises(ValueError, match="tie_tolerance must be nonnegative and finite"):
        SimplexRegretMatching(3, tie_tolerance=tie_tolerance)
    with pytest.raises(ValueError, match="tie_tolerance must be nonnegative and finite"):
        CFR(compile_game(GAMES["kuhn_poker"]()).treeplexes[0], tie_tolerance=tie_tolerance)
