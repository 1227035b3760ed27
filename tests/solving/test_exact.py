"""Exact equilibria, compared with values that were computed without the package, and their certificates."""

import _thread
import itertools
import json
import threading
from fractions import Fraction

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, End, Turn, mentions
from repository import DATA
from scipy import optimize

from spiel_cfrplus import SequenceFormGame, compile_game, compile_subgame, lock, nash_conv, solve_exactly
from spiel_cfrplus.game.walk_limits import NO_LIMITS
from spiel_cfrplus.solving import exact
from spiel_cfrplus.solving.symmetry import reduce_game

SMALL = 1_500
LARGE = 30_000


def known_values(least: int, most: int) -> pytest.MarkDecorator:
    """Parametrizes a test with the games of game_values.json that have more than `least` and at most `most` histories."""
    rows = [
        row
        for row in json.loads((DATA / "game_values.json").read_text())["values"]
        if row["perfect_recall"] and least < row["histories"] <= most
    ]
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.get("game", "matrix"))


def load(row: dict) -> pyspiel.Game:
    if "matrix" in row:
        return games.matrix_game(row["matrix"])
    return pyspiel.load_game(row["game"], row["params"]) if "params" in row else pyspiel.load_game(row["game"])


def payoff_range(game: SequenceFormGame) -> float:
    returns = game.tree.returns[:, 0]
    return float(np.ptp(returns) or np.abs(returns).max())


def check_equilibrium(solution: exact.ExactSolution, value: float, tolerance: float = 1e-12) -> None:
    """The value is `value`, and the profile is an equilibrium of the whole game, both relative to the range of the payoffs."""
    game = solution.profile.game
    unit = payoff_range(game)
    assert solution.value == pytest.approx(value, rel=0, abs=tolerance * max(unit, abs(value)))
    assert nash_conv(game, solution.profile) <= 1e-12 * unit
    assert solution.nash_conv <= 1e-12 * unit
    assert solution.lower_bound <= solution.value + 1e-12 * unit
    assert solution.upper_bound >= solution.value - 1e-12 * unit
    if solution.fraction is not None:
        assert float(solution.fraction) == pytest.approx(value, rel=0, abs=tolerance * max(unit, abs(value)))


@known_values(0, SMALL)
def test_known_values(row):
    check_equilibrium(solve_exactly(load(row)), row["value"])


@pytest.mark.slow
@known_values(SMALL, LARGE)
def test_known_values_of_larger_games(row):
    check_equilibrium(solve_exactly(load(row)), row["value"])


@pytest.mark.slow
@known_values(LARGE, 10**9)
def test_known_values_of_large_games(row):
    check_equilibrium(solve_exactly(load(row)), row["value"])


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel_3"])
def test_the_bounds_are_what_the_strategies_guarantee(name):
    """Best responses by recursion over the tree, without the package."""
    game = GAMES[name]()
    solution = solve_exactly(game)
    root, policy = games.tree_of(game), reference.policy_of(solution.profile)
    assert solution.lower_bound == pytest.approx(-reference.best_response_value(root, policy, 1), abs=1e-14)
    assert solution.upper_bound == pytest.approx(reference.best_response_value(root, policy, 0), abs=1e-14)


def check_random_game(seed: int) -> None:
    game = games.random_efg(seed, 1 + seed % 6)
    check_equilibrium(solve_exactly(game), reference.zero_sum_value(games.tree_of(game)), tolerance=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_random_games(seed):
    check_random_game(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 300))
def test_many_random_games(seed):
    check_random_game(seed)


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        pytest.param("leduc_poker", marks=pytest.mark.slow),
        pytest.param("liars_dice(dice_sides=4)", marks=pytest.mark.slow),
    ],
)
def test_openspiel_computes_the_same_value(name):
    """OpenSpiel's interior-point solver has tolerances of 1e-7."""
    for module in ("cvxpy", "ecos"):
        pytest.importorskip(module, reason=f"OpenSpiel's linear program requires {module}, which OpenSpiel does not install")
    from open_spiel.python.algorithms import sequence_form_lp

    game = pyspiel.load_game(name)
    value, opponent_value, *_ = sequence_form_lp.solve_zero_sum_game(game)
    assert solve_exactly(game).value == pytest.approx(value, abs=1e-6)
    assert value == pytest.approx(-opponent_value, abs=1e-6)


@pytest.mark.parametrize(
    ("game", "fraction"),
    [
        # Kuhn 1950, "A simplified two-person poker".
        (lambda: pyspiel.load_game("kuhn_poker"), Fraction(-1, 18)),
        # If the column is 0 with probability p, the rows earn 2p - 1 and 2 - 3p, which are equal at p = 3/5.
        (lambda: games.matrix_game([[1, -1], [-1, 2]]), Fraction(1, 5)),
        (games.biased_rock_paper_scissors, Fraction(0)),
        (games.shared_string_game, Fraction(1, 7)),
    ],
)
def test_values_as_fractions(game, fraction):
    solution = solve_exactly(game())
    assert solution.fraction == fraction
    assert solution.value == float(fraction)


@pytest.mark.parametrize(
    "payoffs",
    [
        # The value of [[a, -1], [-1, b]] is (a b - 1) / (a + b + 2): -1/3 + 2.5e-13 here, whose payoffs are near 1/3 only.
        [[1 / 3 + 1e-12, -1], [-1, 1 / 3]],
        [[2.0, -1], [-1, 1e-200]],
    ],
)
def test_payoffs_that_are_only_near_fractions_give_no_fraction(payoffs):
    assert solve_exactly(games.matrix_game(payoffs)).fraction is None


def test_a_value_with_a_large_denominator_is_not_given_as_a_fraction():
    assert solve_exactly(GAMES["leduc_poker"]()).fraction is None


def test_a_constant_sum_that_is_not_zero():
    """Both players receive 10 more than in biased matching pennies, whose value is 1/5."""
    game = games.matrix_game([[11, 9], [9, 12]], [[9, 11], [11, 8]])
    solution = solve_exactly(game)
    assert solution.value == pytest.approx(10.2, abs=1e-14)
    assert solution.nash_conv <= 1e-14


def test_payoffs_in_small_units():
    game = games.scaled_game(GAMES["kuhn_poker"](), 1e-9)
    check_equilibrium(solve_exactly(game), -1e-9 / 18)


def test_a_game_without_payoffs():
    solution = solve_exactly(games.matrix_game([[0, 0], [0, 0]]))
    assert (solution.value, solution.nash_conv, solution.fraction) == (0, 0, 0)


def test_a_subgame():
    """After pass and bet, player 0 with the jack folds and loses 1; with one history there is nothing to hide."""
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1, 0, 1):
        state.apply_action(action)
    assert solve_exactly(compile_subgame(state)).value == -1


def test_a_locked_game():
    """Against the uniform strategy of player 1, player 0's best response earns 1/2 (hand computation in `evaluation`)."""
    game = compile_game(GAMES["kuhn_poker"]())
    uniform = {(1, key): {0: 0.5, 1: 0.5} for key in game.treeplexes[1].infostate_keys}
    assert solve_exactly(lock(game, uniform)).value == pytest.approx(0.5, abs=1e-14)


@pytest.mark.parametrize("noise", [1e-8, 1e-4])
def test_refinement_removes_errors(noise):
    reduction = reduce_game(compile_game(GAMES["leduc_poker"]()))
    program, game = exact.linear_program(reduction), reduction.game
    solution = exact.first_solution(program, game, NO_LIMITS)
    generator = np.random.default_rng(0)
    disturbed = exact.Solution(*(part + noise * generator.standard_normal(len(part)) for part in solution))
    errors = [nash_conv(game, exact.lifted_profile(reduction, disturbed))]
    for _ in range(2):
        disturbed = exact.refined(program, disturbed, game, NO_LIMITS)
        errors.append(nash_conv(game, exact.lifted_profile(reduction, disturbed)))
    assert errors[0] > noise / 10
    assert errors[-1] <= 1e-13


def disturb(monkeypatch: pytest.MonkeyPatch, error: float) -> None:
    """Adds an error to what HiGHS returns first."""
    first = exact.first_solution
    monkeypatch.setattr(exact, "first_solution", lambda *args: exact.Solution(*(error + part for part in first(*args))))


def test_solutions_with_errors_are_refined(monkeypatch):
    disturb(monkeypatch, 1e-6)
    solution = solve_exactly(GAMES["kuhn_poker"]())
    assert solution.refinements >= 1
    check_equilibrium(solution, -1 / 18)


def test_a_warning_if_refinement_does_not_help(monkeypatch):
    disturb(monkeypatch, 1e-3)
    monkeypatch.setattr(exact, "refined", lambda program, solution, *_: solution)
    with pytest.warns(UserWarning, match=mentions("NashConv", "ill-conditioned")):
        assert solve_exactly(GAMES["kuhn_poker"]()).nash_conv > 1e-6


@pytest.mark.parametrize("name", ["kuhn_poker_3p", "sheriff"])
def test_other_games_are_refused(name):
    game = GAMES[name]()
    with pytest.raises(ValueError, match=mentions("two-player constant-sum", str(game))):
        solve_exactly(game)


def test_programs_that_are_too_large_are_refused_with_their_size():
    game = GAMES["kuhn_poker"]()
    size = solve_exactly(game).size
    with pytest.raises(ValueError, match=mentions(str(size), "max_nonzeros=80", "make_solver")):
        solve_exactly(game, max_nonzeros=80)
    assert solve_exactly(game, max_nonzeros=size.nonzeros).size == size


@pytest.mark.parametrize("tremble", [0, 0.01])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "goofspiel_3"])
def test_the_size_is_that_of_the_program(name, tremble):
    reduction = reduce_game(compile_game(GAMES[name]()))
    matrix = exact.linear_program(reduction, tremble).matrix
    assert exact.program_size(reduction, trembles=tremble > 0) == (*matrix.shape, matrix.nnz)


def test_the_time_limit():
    with pytest.raises(TimeoutError, match=mentions("leduc_poker", "time limit")):
        solve_exactly(compile_game(GAMES["leduc_poker"]()), time_limit=0)


@pytest.mark.parametrize("limits", [{"time_limit": -1}, {"max_nonzeros": -1}])
def test_invalid_limits(limits):
    with pytest.raises(ValueError, match=mentions(next(iter(limits)).split("_")[-1], "-1")):
        solve_exactly(GAMES["kuhn_poker"](), **limits)


def test_ctrl_c_ends_the_wait():
    over = threading.Event()
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        exact.interruptible(lambda: over.wait(20))
    over.set()


def test_errors_of_the_call_are_raised():
    with pytest.raises(ZeroDivisionError):
        exact.interruptible(lambda: 1 / 0)


# Trembles.


def never_reached_game() -> pyspiel.Game:
    """Player 0 stops and earns 1, or goes on; then player 1 chooses between paying it 0 and earning 1 from it.

    Player 0 always stops, so that in an equilibrium player 1 may do either. With trembles e player 1 pays with probability e,
    so that going on earns -(1 - e) and player 0 does so with probability e: the value is (1 - e) - e (1 - e) = (1 - e)^2.
    """
    last = Turn(1, "reply", {0: End([0, 0]), 1: End([-1, 1])})
    return games.efg_game(Turn(0, "start", {0: End([1, -1]), 1: last}))


@pytest.mark.parametrize("tremble", [0.3, 0.01, 1e-6])
def test_trembles_decide_where_play_never_comes(tremble):
    solution = solve_exactly(never_reached_game(), tremble=tremble)
    assert solution.value == pytest.approx((1 - tremble) ** 2, abs=1e-15)
    assert solution.profile.probabilities == pytest.approx([1, 1 - tremble, tremble, 1, tremble, 1 - tremble], abs=1e-15)
    assert (solution.tremble, solution.fraction) == (tremble, None)


def trembling_strategies(root: games.Node, player: int, tremble: float) -> list[reference.Policy]:
    """The policies of a player that play one action of every infostate as often as possible."""
    uniform = {key: local for key, local in reference.uniform_policy(root).items() if key[0] == player}
    for choices in itertools.product(*uniform.values()):
        yield {
            key: {a: 1 - tremble * (len(local) - 1) if a == choice else tremble for a in local}
            for (key, local), choice in zip(uniform.items(), choices, strict=True)
        }


def trembling_value(root: games.Node, tremble: float) -> float:
    """The value of the matrix game between these policies, of which all others that tremble are mixtures."""
    own, other = (list(trembling_strategies(root, player, tremble)) for player in range(2))
    matrix = np.array([[reference.expected_value(root, first | second, 0) for second in other] for first in own])
    rows, columns = matrix.shape
    result = optimize.linprog(
        [*np.zeros(rows), -1], np.column_stack([-matrix.T, np.ones(columns)]), np.zeros(columns), [[*np.ones(rows), 0]], [1],
        [(0, None)] * rows + [(None, None)],
    )  # fmt: skip
    return -result.fun


def check_trembling_solution(solution: exact.ExactSolution, tremble: float) -> None:
    """Every action has its least probability, and a larger one only where its counterfactual value is largest."""
    root, policy = games.tree_of(solution.profile.game.tree.game), reference.policy_of(solution.profile)
    assert all(probability >= tremble * (1 - 1e-12) for local in policy.values() for probability in local.values())
    for player in range(2):
        for infostate, values in reference.counterfactual_values(root, policy, player).items():
            scale = max(map(abs, values.values()))
            chosen = [values[action] for action, probability in policy[infostate].items() if probability > tremble + 1e-9]
            assert all(value >= max(values.values()) - 1e-9 * scale for value in chosen)
    assert solution.nash_conv <= 1e-12 * payoff_range(solution.profile.game)


@pytest.mark.parametrize("tremble", [0.05, pytest.param(0.001, marks=pytest.mark.slow)])
def test_kuhn_poker_with_trembles(tremble):
    game = GAMES["kuhn_poker"]()
    solution = solve_exactly(game, tremble=tremble)
    check_trembling_solution(solution, tremble)
    assert solution.value == pytest.approx(trembling_value(games.tree_of(game), tremble), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_games_with_trembles(seed):
    game = games.random_efg(seed, 2)
    most = max((len(local) for local in reference.uniform_policy(games.tree_of(game)).values()), default=1)
    solution = solve_exactly(game, tremble=0.5 / most)
    check_trembling_solution(solution, 0.5 / most)
    assert solution.value == pytest.approx(trembling_value(games.tree_of(game), 0.5 / most), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("tremble", [0.05, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("name", ["leduc_poker", "liars_dice_3", "goofspiel_4", "dark_hex_2"])
def test_larger_games_with_trembles(name, tremble):
    """In most of these games symmetry reduction merges infostates or actions."""
    check_trembling_solution(solve_exactly(GAMES[name](), tremble=tremble), tremble)


@pytest.mark.slow
def test_play_that_affects_nash_conv_less_than_rounding():
    """The first solution of HiGHS has NashConv 1e-16, and play after several trembles that is not optimal."""
    check_trembling_solution(solve_exactly(pyspiel.load_game("liars_dice(dice_sides=4)"), tremble=1e-3), 1e-3)


def test_the_value_with_trembles_tends_to_that_without():
    game = compile_game(GAMES["kuhn_poker"]())
    assert solve_exactly(game, tremble=1e-9).value == pytest.approx(-1 / 18, abs=1e-8)


@pytest.mark.parametrize("tremble", [0.5, -0.1, float("nan"), 2])
def test_trembles_that_are_too_large(tremble):
    with pytest.raises(ValueError, match=mentions(f"tremble={tremble}", "1/2", "kuhn_poker")):
        solve_exactly(GAMES["kuhn_poker"](), tremble=tremble)
