"""Averaging: weights in closed form, and both conventions compared with averages of stored iterates."""

import math

import numpy as np
import pytest
from games import GAMES

from spiel_cfrplus import Averaging, CFRPlusSolver, CFRSolver, Solver, compile_game, make_solver
from spiel_cfrplus.regret_minimizers import CFR
from spiel_cfrplus.solving.averaging import checked_weights

ITERATIONS = np.arange(1, 6)


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (0, [1, 1, 1, 1, 1]),
        (1, [1, 2, 3, 4, 5]),
        (2, [1, 4, 9, 16, 25]),
        (0.5, [1, 2**0.5, 3**0.5, 2, 5**0.5]),
    ],
)
def test_weights_are_powers_of_the_iteration(power, expected):
    weights = Averaging(power).weights(ITERATIONS)
    assert weights.dtype == np.float64
    assert weights == pytest.approx(expected, rel=1e-15)


def test_weights_of_later_iterations_do_not_depend_on_where_a_run_starts():
    averaging = Averaging(1.5)
    assert averaging.weights(ITERATIONS)[3:].tolist() == averaging.weights(ITERATIONS[3:]).tolist()


@pytest.mark.parametrize(
    ("power", "delay", "expected"),
    [(1, 2, [0, 0, 1, 2, 3]), (0, 2, [0, 0, 1, 1, 1]), (2, 3, [0, 0, 0, 1, 4]), (0, 9, [0] * 5), (1, 0, [1, 2, 3, 4, 5])],
)
def test_a_delay_omits_the_first_iterations(power, delay, expected):
    assert Averaging(power, delay=delay).weights(ITERATIONS).tolist() == expected


def test_a_delayed_average_is_uniform_until_it_starts():
    game = compile_game(GAMES["kuhn_poker"]())
    solver = CFRPlusSolver(game, averaging=Averaging(1, "openspiel", delay=3))
    uniform = solver.average_profile().probabilities
    solver.run(3)
    assert solver.average_profile().probabilities.tolist() == uniform.tolist()
    assert np.isfinite(solver.nash_conv())
    # The fourth and fifth iterations start from sigma^3 and sigma^4, with weights 1 and 2.
    strategies = []
    for _ in range(2):
        strategies.append([solver.current_profile().sequence_form(player) for player in range(2)])
        solver.run(1)
    for player, treeplex in enumerate(game.treeplexes):
        mean = strategies[0][player] + 2 * strategies[1][player]
        assert solver.average_profile().of_player(player) == pytest.approx(treeplex.behavioral_policy(mean), rel=1e-14)


@pytest.mark.parametrize(("delay", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_invalid_delays_are_refused(delay, error):
    with pytest.raises(error):
        Averaging(delay=delay)


@pytest.mark.parametrize(
    ("convention", "alternating", "expected"),
    [
        ("paper", True, [1, 0, 0]),
        ("paper", False, [0, 0, 0]),
        ("openspiel", True, [0, 0, 0]),
        ("openspiel", False, [0, 0, 0]),
    ],
)
def test_first_averaged_strategy_of_each_player(convention, alternating, expected):
    assert Averaging(0, convention).first_iterate(3, alternating).tolist() == expected
    assert Averaging(0, convention).first_iterate(2, alternating).tolist() == expected[:2]


@pytest.mark.parametrize("power", [-1, -1e-9, float("inf"), float("nan")])
def test_invalid_powers_are_refused(power):
    with pytest.raises(ValueError, match="power must be finite and at least 0"):
        Averaging(power)


@pytest.mark.parametrize("convention", ["", "Paper", "burch", None])
def test_unknown_conventions_are_refused_with_the_known_ones(convention):
    with pytest.raises(ValueError, match=r"unknown averaging convention .* choose one of paper, openspiel"):
        Averaging(0, convention)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "sheriff", "leduc_poker"])
@pytest.mark.parametrize("algorithm", [CFRSolver, CFRPlusSolver])
@pytest.mark.parametrize("convention", ["paper", "openspiel"])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("power", [0, 1, 2.5])
def test_the_average_equals_that_of_the_stored_iterates(name, algorithm, convention, alternating, power):
    """The formula of both conventions, sum over i = 1 .. T of i**power * x_p^(first + i - 1), on sequence-form strategies."""
    num_iterations = 12
    game = compile_game(GAMES[name]())
    solver = algorithm(game, alternating=alternating, averaging=Averaging(power, convention))
    iterates = [solver.current_profile()]
    for _ in range(num_iterations):
        solver.evaluate_and_update_policy()
        iterates.append(solver.current_profile())
    for player, treeplex in enumerate(game.treeplexes):
        first = 1 if player == 0 and alternating and convention == "paper" else 0
        weights = np.arange(1, num_iterations + 1) ** float(power)
        strategies = [profile.sequence_form(player) for profile in iterates[first : first + num_iterations]]
        average = np.average(strategies, axis=0, weights=weights)
        result = solver.average_profile()
        assert np.allclose(result.of_player(player), treeplex.behavioral_policy(average), rtol=0, atol=1e-12)
        assert np.allclose(result.sequence_form(player), average, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("algorithm", "power"), [(CFRSolver, 0), (CFRPlusSolver, 1)])
@pytest.mark.parametrize("convention", ["paper", "openspiel"])
def test_a_convention_by_name_uses_the_weights_of_the_algorithm(algorithm, power, convention):
    game = compile_game(GAMES["kuhn_poker"]())
    named, explicit = (algorithm(game, averaging=averaging) for averaging in (convention, Averaging(power, convention)))
    assert named.averaging == explicit.averaging == Averaging(power, convention)
    for solver in (named, explicit):
        solver.run(50)
    assert named.average_profile().probabilities.tolist() == explicit.average_profile().probabilities.tolist()


def test_the_default_convention_is_the_papers():
    assert CFRPlusSolver(GAMES["kuhn_poker"]()).averaging.convention == Averaging().convention == "paper"


@pytest.mark.parametrize("power", [400, 1e308])
def test_weights_too_large_to_be_summed_are_refused(power):
    solver = CFRPlusSolver(GAMES["kuhn_poker"](), averaging=Averaging(power))
    solver.run(1)
    with pytest.raises(ValueError, match="too large for a float64 sum"):
        solver.run(50)
    assert solver.iteration == 1
    assert np.isfinite(solver.nash_conv())


@pytest.mark.parametrize("weight", [math.nan, math.inf, 1e301])
def test_a_weight_that_cannot_be_summed_is_refused_with_its_iteration(weight):
    with pytest.raises(ValueError, match="too large for a float64 sum from iteration 8 on"):
        checked_weights(np.array([1.0, weight, 3.0]), np.array([7, 8, 9]))
    np.testing.assert_array_equal(checked_weights(np.array([0.0, 1e300]), np.array([1, 2])), [0.0, 1e300])


def test_a_power_that_decreases_is_the_schedule_of_the_paper():
    # Zhang, McAleer, Sandholm 2026: before iteration t + 1 the sums are multiplied by (t / (t + 1))^(30 - 5 t / n).
    horizon, num_iterations = 10, 25
    averaging = Averaging(30, decrease=5, horizon=horizon)
    weights = np.ones(num_iterations)
    for t in range(1, num_iterations):
        weights[:t] *= (t / (t + 1)) ** (30 - 5 * min(t / horizon, 1))
    result = averaging.weights(np.arange(1, num_iterations + 1))
    assert result / result[-1] == pytest.approx(weights, rel=1e-12)
    assert averaging.weights(np.arange(7, 20)).tolist() == result[6:19].tolist()


@pytest.mark.parametrize("algorithm", ["cfr+", "cfr-br", "python"])
def test_only_the_last_strategies(algorithm):
    game, last = compile_game(GAMES["kuhn_poker"]()), Averaging(only_last=True)
    if algorithm == "python":
        solver, plain = Solver.of_minimizers(game, CFR, averaging=last), Solver.of_minimizers(game, CFR)
    else:
        solver, plain = make_solver(algorithm, game, averaging=last), make_solver(algorithm, game)
    profiles = []
    for num_iterations in (3, 1, 4):
        profiles.append([plain.run(num_iterations - 1), plain.current_profile()][1])
        plain.run(1)
        solver.run(num_iterations)
        before, after = profiles[-1], plain.current_profile()
        # Player 0's last strategy is that after the update, player 1's that before it; CFR-BR has those before the updates.
        expected = [before if algorithm == "cfr-br" else after, before]
        for player, profile in enumerate(expected):
            average = solver.average_profile().of_player(player)
            reached = game.treeplexes[player].sequence_form(profile.of_player(player)) > 0
            assert average[reached] == pytest.approx(profile.of_player(player)[reached], abs=1e-12)


def test_the_late_half():
    assert Averaging.late(1000) == Averaging(2, delay=500)
    assert Averaging.late(10, 0.75, 1, "openspiel") == Averaging(1, "openspiel", 7)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Averaging(2, decrease=3, horizon=5), "must be from 0 to 2"),
        (lambda: Averaging(2, decrease=1), "require each other"),
        (lambda: Averaging(2, horizon=5), "require each other"),
        (lambda: Averaging(2, only_last=True), "only_last excludes weights"),
        (lambda: Averaging.late(10, 1.0), "at least 0 and less than 1"),
    ],
)
def test_averages_that_contradict_themselves_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
