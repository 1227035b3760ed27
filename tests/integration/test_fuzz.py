"""Three hundred random zero-sum games with perfect recall, solved by every variant and compared with linear programming.

In such a game with value v, player 0's best response to any y earns at least v and player 1's to any x at least -v. Hence, for
any strategies, u0 - gain1 <= v <= u0 + gain0 and |u0 - v| <= NashConv. NashConv itself shows whether the solver converges.
"""

import functools

import games
import numpy as np
import pyspiel
import pytest
import reference
from families import REGRET_MATCHING, in_python

from spiel_cfrplus import (
    SequenceFormGame,
    Solver,
    StrategyProfile,
    compile_game,
    evaluate,
    make_solver,
    solve_exactly,
)

pytestmark = pytest.mark.filterwarnings("error")

NUM_GAMES = 300
# Thirds and tenths spoil the exact sums of integer payoffs, and the ties with them; the others are units.
FACTORS = [1.0, 1 / 3, 0.1, 1e-9, 1e9]
# On NashConv over the range of the payoffs after 1,000 iterations, two to five times what was found in the slowest game; the
# median of the uniform strategies is 0.34. First with alternating updates, then with simultaneous ones, which are slower.
BOUNDS = {
    "cfr": (5e-3, 4e-2),
    "cfr+": (2e-3, 3e-2),
    "lcfr": (2e-3, 4e-2),
    "dcfr": (2e-3, 4e-2),
    "dcfr+": (2e-3, 5e-2),
    "pcfr": (2e-3, 3e-1),
    "pcfr+": (2e-4, 5e-3),
    "pdcfr+": (2e-5, 8e-3),
    "sapcfr+": (1e-4, 3e-2),
    "sapdcfr+": (1e-6, 5e-2),
}

every_variant = pytest.mark.parametrize("name", REGRET_MATCHING)
both_orders = pytest.mark.parametrize("alternating", [True, False], ids=["alternating", "simultaneous"])


def random_game(seed: int) -> pyspiel.Game:
    """Depth 1 to 6, in one of several units."""
    return games.scaled_game(games.random_efg(seed, 1 + seed % 6), FACTORS[seed // 6 % len(FACTORS)])


@functools.cache
def known_game(seed: int) -> tuple[SequenceFormGame, games.Node, float, float]:
    """Returns a random game, its tree, the range of its payoffs (1 if they are equal), and its value."""
    game = random_game(seed)
    root = games.tree_of(game)
    unit = float(np.ptp([node.returns[0] for node in reference.nodes(root) if isinstance(node, games.End)])) or 1.0
    plain = games.tree_of(games.scaled_game(game, 1 / unit))  # linear programs have absolute tolerances
    return compile_game(game), root, unit, unit * reference.zero_sum_value(plain)


def assert_solved(solver: Solver, unit: float, value: float, bound: float) -> None:
    """`bound` is on NashConv over `unit`."""
    average = solver.evaluate()
    assert np.isfinite(solver.average_profile().probabilities).all()
    assert np.isfinite(solver.current_profile().probabilities).all()
    assert abs(average.values[0] - value) <= average.nash_conv + 1e-9 * unit
    assert average.values[0] - average.player_improvements[1] <= value + 1e-9 * unit
    assert average.values[0] + average.player_improvements[0] >= value - 1e-9 * unit
    assert 0 <= average.nash_conv <= bound * unit


def test_the_random_games_are_not_trivial():
    compiled = [known_game(seed)[0] for seed in range(NUM_GAMES)]
    distances = [evaluate(game, StrategyProfile.uniform(game)).nash_conv / known_game(s)[2] for s, game in enumerate(compiled)]
    assert sum(distance > 0.05 for distance in distances) > NUM_GAMES / 2
    assert max(game.tree.num_infostates for game in compiled) > 50
    assert len({game.fingerprint for game in compiled}) > NUM_GAMES * 0.9


@every_variant
@both_orders
def test_random_games_are_solved_to_their_value(name, alternating):
    for seed in range(NUM_GAMES):
        game, _, unit, value = known_game(seed)
        solver = make_solver(name, game, alternating=alternating)
        solver.run(1000)
        assert np.isfinite(solver.self_play.memory.regrets).all()
        assert_solved(solver, unit, value, BOUNDS[name][not alternating])


@pytest.mark.parametrize("step", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_random_games_have_exact_equilibria(step):
    """NashConv by best responses on the tree; 1e-9 is the tolerance of the linear program in `reference`."""
    for seed in range(0, NUM_GAMES, step):
        game, root, unit, value = known_game(seed)
        solution = solve_exactly(game)
        assert reference.nash_conv(root, reference.policy_of(solution.profile)) <= 1e-12 * unit
        assert solution.nash_conv <= 1e-12 * unit
        assert abs(solution.value - value) <= 1e-9 * unit


@pytest.mark.parametrize("name", ["cfr+", "pcfr+"])
@both_orders
def test_nash_conv_equals_that_of_best_responses_on_the_tree(name, alternating):
    for seed in range(NUM_GAMES):
        game, root, unit, _ = known_game(seed)
        solver = make_solver(name, game, alternating=alternating)
        solver.run(20)  # while there is something left to gain
        expected = reference.nash_conv(root, reference.policy_of(solver.average_profile()))
        assert solver.nash_conv() == pytest.approx(expected, rel=1e-9, abs=1e-13 * unit)


@pytest.mark.parametrize("step", [30, pytest.param(10, marks=pytest.mark.slow)])
@every_variant
def test_random_games_have_the_same_iterates_in_the_python_loop(name, step):
    for seed in range(0, NUM_GAMES, step):
        game = known_game(seed)[0]
        compiled, written_out = make_solver(name, game, reduce=False), in_python(name, game)
        for solver in (compiled, written_out):
            solver.run(50)
        for player, own in enumerate(game.player_slices):
            theirs = written_out.self_play.cumulative_strategies[player]
            assert compiled.self_play.state.cumulative_policy[own].tolist() == theirs.tolist()


@pytest.mark.parametrize("count", [10, pytest.param(30, marks=pytest.mark.slow)])
@every_variant
def test_random_three_player_and_general_sum_games_run_without_error(name, count):
    for seed in range(count):
        game = compile_game(games.random_efg(seed, num_players=3, zero_sum=seed % 2 == 0))
        for alternating in (True, False):
            solver = make_solver(name, game, alternating=alternating)
            solver.run(50)
            assert np.isfinite(solver.self_play.memory.regrets).all()
            policy = reference.policy_of(solver.average_profile())
            root = games.tree_of(game.tree.game)
            assert solver.nash_conv() == pytest.approx(reference.nash_conv(root, policy), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@every_variant
@both_orders
def test_larger_random_games_are_solved_to_their_value(name, alternating):
    for seed in range(1000, 1040):
        game = games.random_efg(seed, depth=8)
        solver = make_solver(name, game, alternating=alternating)
        solver.run(10_000)
        value = reference.zero_sum_value(games.tree_of(game))
        assert_solved(solver, float(np.ptp(solver.game.tree.returns)), value, BOUNDS[name][not alternating])
