"""Solvers x games: iterates and averages against the slow reference, equilibria by hand, and what callers may rely on."""

import functools
import math
import re
import threading
from collections.abc import Callable
from typing import Any

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES
from hypothesis import given, settings
from hypothesis import strategies as st

from spiel_cfrplus import ALGORITHMS, Averaging, CFRPlusSolver, CFRSolver, Solver, compile_game
from spiel_cfrplus.kernels import self_play
from spiel_cfrplus.solving import compiled_self_play

SOLVERS: dict[type[Solver], dict[str, Any]] = {
    CFRSolver: {"plus": False, "power": 0},
    CFRPlusSolver: {"plus": True, "power": 1},
}

COMPARED: dict[str, Callable[[], pyspiel.Game]] = {
    **GAMES,
    "shared_string": games.shared_string_game,
    "zero_chance": games.zero_chance_game,
    "idle_player": lambda: pyspiel.convert_to_turn_based(games.idle_player_game()),
    "lone_player": games.lone_player_game,
    "chain": lambda: games.chain(9),
    "general_sum_efg": lambda: games.random_efg(2, zero_sum=False),
    "three_player_efg": lambda: games.random_efg(3, num_players=3, zero_sum=False),
}
# In three-player Kuhn poker with simultaneous updates two regrets of player 2 at "0pp" are equal after the first iteration, in
# rational arithmetic; so are some in sheriff with alternating ones. Rounding makes a pure strategy of this in the reference.
# test_ties.py compares these two with rational arithmetic.
TIED = {("kuhn_poker_3p", False), ("sheriff", True)}
NUM_COMPARED = 10

compared = pytest.mark.parametrize(
    ("name", "alternating"), [(name, order) for name in COMPARED for order in (True, False) if (name, order) not in TIED]
)
all_solvers = pytest.mark.parametrize("solver_type", SOLVERS)
both_orders = pytest.mark.parametrize("alternating", [True, False], ids=["alternating", "simultaneous"])
both_conventions = pytest.mark.parametrize("averaging", ["paper", "openspiel"])


@functools.cache
def reference_iterates(name: str, plus: bool, alternating: bool) -> tuple[games.Node, list[reference.Policy]]:
    root = games.tree_of(COMPARED[name]())
    return root, reference.iterates(root, NUM_COMPARED, plus=plus, alternating=alternating)


def tables(solver: Solver) -> list[list[float]]:
    """Everything that a solver has computed."""
    profiles = (solver.current_profile(), solver.average_profile())
    regrets = [solver.self_play.cumulative_regrets().tolist()]
    return [*(profile.probabilities.tolist() for profile in profiles), *regrets, [solver.iteration, solver.nash_conv()]]


# Against the reference.


@compared
@all_solvers
def test_iterates_are_those_of_the_reference(name, solver_type, alternating):
    _, sigmas = reference_iterates(name, SOLVERS[solver_type]["plus"], alternating)
    solver = solver_type(COMPARED[name](), alternating=alternating)
    for iteration, sigma in enumerate(sigmas):
        assert solver.iteration == iteration
        assert reference.distance(reference.policy_of(solver.current_profile()), sigma) < 1e-10
        solver.evaluate_and_update_policy()


@compared
@all_solvers
@both_conventions
def test_averages_and_their_nash_conv_are_those_of_the_reference(name, solver_type, alternating, averaging):
    root, sigmas = reference_iterates(name, SOLVERS[solver_type]["plus"], alternating)
    solver = solver_type(COMPARED[name](), alternating=alternating, averaging=averaging)
    first = [1 if averaging == "paper" and alternating else 0, 0, 0]
    for iteration in (1, 2, 5, NUM_COMPARED):
        solver.run(iteration - solver.iteration)
        expected = reference.average_policy(root, sigmas[: iteration + 1], power=SOLVERS[solver_type]["power"], first=first)
        assert reference.distance(reference.policy_of(solver.average_profile()), expected) < 1e-10
        assert solver.nash_conv() == pytest.approx(reference.nash_conv(root, expected), abs=1e-10)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "goofspiel_3", "sheriff"])
@pytest.mark.parametrize(
    ("openspiel_solver", "solver_type"), [(pyspiel.CFRSolver, CFRSolver), (pyspiel.CFRPlusSolver, CFRPlusSolver)]
)
def test_the_reference_itself_agrees_with_openspiel(name, openspiel_solver, solver_type):
    game = GAMES[name]()
    root, sigmas = reference_iterates(name, SOLVERS[solver_type]["plus"], alternating=True)
    solver = openspiel_solver(game)
    for iteration in range(1, NUM_COMPARED + 1):
        solver.evaluate_and_update_policy()
        average = reference.average_policy(
            root, sigmas[: iteration + 1], power=SOLVERS[solver_type]["power"], first=[0] * game.num_players()
        )
        policy = pyspiel.TabularPolicy({key: list(strategy.items()) for (_, key), strategy in average.items()})
        expected = pyspiel.nash_conv(game, solver.average_policy())
        assert pyspiel.nash_conv(game, policy) == pytest.approx(expected, abs=1e-12)
        assert reference.nash_conv(root, average) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("load", "value"),
    [  # the first is Kuhn's, the others are by hand, see the games
        (GAMES["kuhn_poker"], -1 / 18),
        (games.biased_rock_paper_scissors, 0),
        (games.shared_string_game, 1 / 7),
        (games.zero_chance_game, 1 / 5),
        (lambda: pyspiel.convert_to_turn_based(games.idle_player_game()), 1 / 2),
        (lambda: games.chain(7), 1),
    ],
)
def test_the_linear_program_finds_known_values(load, value):
    assert reference.zero_sum_value(games.tree_of(load())) == pytest.approx(value, abs=1e-12)


# Equilibria.


@pytest.mark.parametrize(
    ("load", "policies", "value"),
    [  # by hand, see the games
        (games.biased_rock_paper_scissors, [[1 / 4, 1 / 2, 1 / 4], [1 / 4, 1 / 2, 1 / 4]], 0),
        (games.shared_string_game, [[3 / 7, 4 / 7], [2 / 7, 5 / 7]], 1 / 7),
        (games.zero_chance_game, [[3 / 5, 2 / 5], [3 / 5, 2 / 5]], 1 / 5),
        (lambda: pyspiel.convert_to_turn_based(games.idle_player_game()), [[1 / 2, 1 / 2, 0, 1], [5 / 8, 3 / 8]], 1 / 2),
        (games.lone_player_game, [[0, 1]], 3 / 4),
    ],
)
@all_solvers
@both_orders
def test_averages_approach_equilibria_known_by_hand(load, policies, value, solver_type, alternating):
    solver = solver_type(load(), alternating=alternating)
    solver.run(20_000)
    for player, policy in enumerate(policies):
        assert solver.average_profile().of_player(player)[1:] == pytest.approx(policy, abs=0.02)
    assert solver.evaluate().values[0] == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(
    "name", ["kuhn_poker", "leduc_poker", "liars_dice_3", "goofspiel_4", "dark_hex_2", "misere_kuhn_poker"]
)
@all_solvers
def test_nash_conv_keeps_below_the_papers_bound(name, solver_type):
    """NashConv <= (|I_0| + |I_1|) L sqrt(k) / sqrt(t), L the range of the utilities; twice that for the linear average."""
    solver = solver_type(GAMES[name]())
    tree = solver.game.tree
    bound = tree.num_infostates * np.ptp(tree.returns) * math.sqrt(np.diff(tree.legal_action_start).max())
    if solver_type is CFRPlusSolver:
        bound *= 2
    for iteration in (1, 3, 10, 30, 100, 300):
        solver.run(iteration - solver.iteration)
        assert 0 <= solver.nash_conv() <= bound / math.sqrt(iteration)


@pytest.mark.parametrize(
    "name", ["kuhn_poker", "leduc_poker", "liars_dice_3", "goofspiel_3", "goofspiel_4", "misere_kuhn_poker"]
)
@all_solvers
@both_orders
@both_conventions
def test_every_variant_soon_beats_uniform(name, solver_type, alternating, averaging):
    solver = solver_type(GAMES[name](), alternating=alternating, averaging=averaging)
    uniform = solver.nash_conv()
    solver.run(50)
    assert solver.nash_conv() < uniform / 3


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    seed=st.integers(0, 10**6), depth=st.integers(1, 6), solver_type=st.sampled_from(list(SOLVERS)), alternating=st.booleans()
)
def test_random_games_are_solved_to_their_linear_programming_value(seed, depth, solver_type, alternating):
    game = games.random_efg(seed, depth)
    solver = solver_type(game, alternating=alternating)
    solver.run(300)
    evaluation = solver.evaluate()
    value = reference.zero_sum_value(games.tree_of(game))
    assert abs(evaluation.values[0] - value) <= evaluation.nash_conv + 1e-9
    assert -evaluation.best_response_values[1] - 1e-9 <= value <= evaluation.best_response_values[0] + 1e-9
    tree = solver.game.tree
    most_actions = np.diff(tree.legal_action_start).max(initial=1)
    assert evaluation.nash_conv <= 2 * tree.num_infostates * np.ptp(tree.returns) * math.sqrt(most_actions / 300) + 1e-9


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10**6), solver_type=st.sampled_from(list(SOLVERS)), alternating=st.booleans())
def test_random_general_sum_games_give_policies_whose_nash_conv_is_true(seed, solver_type, alternating):
    game = games.random_efg(seed, zero_sum=False)
    solver = solver_type(game, alternating=alternating)
    solver.run(100)
    root = games.tree_of(game)
    for profile in (solver.average_profile(), solver.current_profile()):
        policy = reference.policy_of(profile)
        assert all(math.isclose(sum(strategy.values()), 1, abs_tol=1e-12) for strategy in policy.values())
    average = reference.policy_of(solver.average_profile())
    assert solver.nash_conv() == pytest.approx(reference.nash_conv(root, average), abs=1e-11)


# What callers may rely on.


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "leduc_poker", "sheriff"])
@all_solvers
@both_orders
def test_iterations_are_the_same_doubles_however_they_are_divided(name, solver_type, alternating):
    game = compile_game(GAMES[name]())
    solvers = [solver_type(game, alternating=alternating) for _ in range(3)]
    solvers[0].run(60)
    for _ in range(60):
        solvers[1].evaluate_and_update_policy()
    for num_iterations in (7, 0, 1, 52):
        solvers[2].run(num_iterations)
        solvers[2].average_policy()
        solvers[2].nash_conv()
    assert tables(solvers[0]) == tables(solvers[1]) == tables(solvers[2])


@all_solvers
def test_long_runs_enter_compiled_code_in_pieces_and_an_interrupt_falls_between_them(solver_type, monkeypatch):
    game = compile_game(GAMES["kuhn_poker"]())
    undisturbed, disturbed = solver_type(game), solver_type(game)
    undisturbed.run(50)
    monkeypatch.setattr(compiled_self_play, "_MOST_ITERATIONS_PER_CALL", 4)
    kernel = self_play.self_play
    pieces: list[int] = []

    def interrupt_before_the_sixth(*arguments: Any) -> None:
        (steps,) = (argument for argument in arguments if isinstance(argument, self_play.Steps))
        pieces.append(steps.weights.size)
        if len(pieces) == 6:
            raise KeyboardInterrupt
        kernel(*arguments)

    monkeypatch.setattr(self_play, "self_play", interrupt_before_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        disturbed.run(50)
    assert disturbed.iteration == 20
    disturbed.run(30)
    assert pieces == [4] * 6 + [4] * 7 + [2]
    assert tables(disturbed) == tables(undisturbed)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "python_kuhn_poker"])
@all_solvers
def test_runs_are_deterministic(name, solver_type):
    first, second = solver_type(GAMES[name]()), solver_type(GAMES[name]())
    for solver in (first, second):
        solver.run(300)
    assert tables(first) == tables(second)


@all_solvers
def test_a_python_game_is_solved_like_its_twin(solver_type):
    # The twins name their infostates differently, but walk them in the same order.
    twins = [solver_type(GAMES[name]()) for name in ("kuhn_poker", "python_kuhn_poker")]
    for solver in twins:
        solver.run(100)
    assert tables(twins[0]) == tables(twins[1])


@all_solvers
def test_returned_policies_are_snapshots(solver_type):
    solver = solver_type(GAMES["kuhn_poker"]())
    solver.run(3)
    profiles = [solver.current_profile(), solver.average_profile()]
    policies = [solver.current_policy(), solver.average_policy()]
    evaluation = solver.evaluate()
    session = solver.self_play
    arrays = [session.current_policy(), session.average_policy(), evaluation.values]
    arrays += [*(profile.probabilities for profile in profiles), *(policy.action_probability_array for policy in policies)]
    before = [array.copy() for array in arrays]
    moved_from = tables(solver)
    solver.run(10)
    assert tables(solver) != moved_from
    for array, copy in zip(arrays, before, strict=True):
        assert array.tolist() == copy.tolist()
    # Nor does writing to what may be written reach the solver; profiles cannot be written to.
    unchanged = tables(solver)
    for policy in (solver.current_policy(), solver.average_policy()):
        policy.action_probability_array[:] = 0
    for profile in (solver.current_profile(), solver.average_profile()):
        with pytest.raises(ValueError, match="read-only"):
            profile.probabilities[0] = 0
    assert tables(solver) == unchanged


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "leduc_poker", "tiny_hanabi", "python_kuhn_poker"])
@pytest.mark.parametrize("num_iterations", [0, 1])
@all_solvers
def test_policies_cover_every_infostate_from_the_start(name, num_iterations, solver_type):
    game = GAMES[name]()
    root = games.tree_of(game)
    solver = solver_type(game)
    solver.run(num_iterations)
    for profile in (solver.current_profile(), solver.average_profile()):
        assert reference.policy_of(profile).keys() == reference.uniform_policy(root).keys()
        table = profile.to_tabular_policy().action_probability_array
        assert len(table) == len(reference.uniform_policy(root))
        assert np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-14)
        expected = reference.nash_conv(root, reference.policy_of(profile))
        assert pyspiel.nash_conv(game, profile.to_pyspiel_policy()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "leduc_poker", "liars_dice_3", "sheriff"])
@all_solvers
@both_orders
def test_where_averages_are_exactly_uniform(name, solver_type, alternating):
    game = compile_game(GAMES[name]())
    uniform = np.concatenate([treeplex.uniform_policy() for treeplex in game.treeplexes])
    for averaging in ("paper", "openspiel"):
        solver = solver_type(game, alternating=alternating, averaging=averaging)
        assert np.array_equal(solver.current_profile().probabilities, uniform)
        assert np.array_equal(solver.average_profile().probabilities, uniform)
        solver.run(1)
        assert not np.allclose(solver.current_profile().probabilities, uniform)
        # sigma^0 is the only strategy in the average, unless player 0's sigma^1 is.
        moves = averaging == "paper" and alternating
        assert np.allclose(solver.average_profile().probabilities, uniform, rtol=1e-15, atol=0) is not moves
        if name != "liars_dice_3":  # whose six sixths do not add up to 1 in float64
            assert np.array_equal(solver.average_profile().probabilities, uniform) is not moves


@all_solvers
def test_no_probability_is_negative_not_even_as_a_zero(solver_type):
    solver = solver_type(GAMES["kuhn_poker"]())
    for _ in range(20):
        solver.evaluate_and_update_policy()
        for profile in (solver.current_profile(), solver.average_profile()):
            assert not np.signbit(profile.probabilities).any()


def test_solvers_share_a_compiled_game_and_nothing_else():
    game = compile_game(GAMES["kuhn_poker"]())
    alone = {}
    for solver_type in SOLVERS:
        solver = solver_type(GAMES["kuhn_poker"]())
        solver.run(40)
        alone[solver_type] = tables(solver)
    together = [solver_type(game) for solver_type in SOLVERS]
    assert all(solver.game is game for solver in together)
    for _ in range(4):
        for solver in together:
            solver.run(10)
    assert [tables(solver) for solver in together] == list(alone.values())


@pytest.mark.parametrize("factor", [1e-12, 2.0**-40, 2.0**40, 1e12])
@pytest.mark.parametrize("name", ["kuhn_poker", "liars_dice_3", "biased_rock_paper_scissors"])
@all_solvers
def test_scaled_payoffs_give_the_same_policies(name, factor, solver_type):
    plain, scaled = (solver_type(games.scaled_game(GAMES[name](), scale)) for scale in (1.0, factor))
    for solver in (plain, scaled):
        solver.run(50)
    assert np.allclose(plain.average_profile().probabilities, scaled.average_profile().probabilities, rtol=0, atol=1e-9)
    assert scaled.nash_conv() / factor == pytest.approx(plain.nash_conv(), rel=1e-7)
    assert scaled.evaluate().exploitability == scaled.nash_conv() / 2
    if math.frexp(factor)[0] == 0.5:  # powers of two change no digit
        assert plain.average_profile().probabilities.tolist() == scaled.average_profile().probabilities.tolist()


# Degenerate games and bad arguments.


@pytest.mark.parametrize(
    "load",
    [
        lambda: games.matrix_game([[0, 0], [0, 0]]),
        lambda: games.matrix_game([[1]]),
        lambda: games.bad_chance_game([1.0]),  # in which player 1 never acts
        lambda: games.efg_game(games.Chance([0.5, 0.5], [games.End([1, -1]), games.End([-1, 1])])),  # nobody acts
    ],
    ids=["pays nothing", "no choice", "idle player", "chance only"],
)
@all_solvers
@both_orders
def test_degenerate_games_are_solved(load, solver_type, alternating):
    solver = solver_type(load(), alternating=alternating)
    solver.run(10_000)
    assert solver.nash_conv() == pytest.approx(0, abs=1e-3)
    assert np.isfinite(solver.average_profile().probabilities).all()


@all_solvers
def test_three_players_have_a_nash_conv_but_no_exploitability(solver_type):
    solver = solver_type(GAMES["kuhn_poker_3p"]())
    solver.run(200)
    assert 0 < solver.nash_conv() < 0.05
    with pytest.raises(ValueError, match=r"kuhn_poker.players=3. .* nash_conv"):
        _ = solver.evaluate().exploitability


@pytest.mark.parametrize(
    ("num_iterations", "error"),
    [(-1, ValueError), (1.0, TypeError), (1.5, TypeError), ("3", TypeError), (None, TypeError), (math.inf, TypeError)],
)
def test_bad_numbers_of_iterations_are_refused_and_change_nothing(num_iterations, error):
    solver = CFRSolver(GAMES["kuhn_poker"]())
    solver.run(5)
    before = tables(solver)
    with pytest.raises(error):
        solver.run(num_iterations)
    assert tables(solver) == before


def test_numbers_of_iterations_may_be_of_any_integer_type():
    solver = CFRSolver(GAMES["kuhn_poker"]())
    solver.run(np.int64(2))
    solver.run(np.uint8(3))
    assert solver.iteration == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"averaging": "papr"}, ValueError, ["papr", "paper", "openspiel"]),
        ({"averaging": 1.0}, TypeError, ["averaging", "1.0"]),
        ({"averaging": None}, TypeError, ["averaging", "None"]),
        ({"alternate": True}, TypeError, ["alternate"]),
        ({"alternating": "no"}, TypeError, ["alternating", "'no'"]),
        ({"alternating": 1}, TypeError, ["alternating", "1"]),
    ],
)
@all_solvers
def test_bad_options_are_refused_when_the_solver_is_made(options, error, words, solver_type):
    with pytest.raises(error, match=games.mentions(*words)):
        solver_type(compile_game(GAMES["kuhn_poker"]()), **options)


@pytest.mark.parametrize("wrong", ["kuhn_poker", None])
@all_solvers
def test_what_is_no_game_is_a_type_error(wrong, solver_type):
    with pytest.raises(TypeError, match=re.escape("pyspiel.load_game")):
        solver_type(wrong)


def test_options_are_kept_and_shown():
    solver = CFRSolver(GAMES["kuhn_poker"](), alternating=False, averaging=Averaging(2, "openspiel"))
    assert (solver.alternating, solver.averaging, solver.iteration) == (False, Averaging(2, "openspiel"), 0)


def test_algorithms_are_listed_by_name():
    for name, algorithm in ALGORITHMS.items():
        assert algorithm.name == name == str(algorithm)
        assert algorithm.source
    assert CFRSolver.algorithm is ALGORITHMS["cfr"]
    assert CFRPlusSolver.algorithm is ALGORITHMS["cfr+"]


def test_evaluate_and_update_policy_is_one_iteration_and_returns_nothing():
    solver = CFRPlusSolver(GAMES["kuhn_poker"]())
    assert solver.evaluate_and_update_policy() is None
    assert solver.iteration == 1


@all_solvers
def test_solvers_in_several_threads_may_share_a_compiled_game(solver_type):
    game = compile_game(GAMES["leduc_poker"]())
    alone = solver_type(game)
    alone.run(300)
    together = [solver_type(game) for _ in range(3)]
    threads = [threading.Thread(target=solver.run, args=[300]) for solver in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(tables(solver) == tables(alone) for solver in together)
