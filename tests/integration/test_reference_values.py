"""The package compared with numbers that were computed without it; data/README.md describes the computation and the fields."""

import collections
import fractions
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest
from repository import DATA

from spiel_cfrplus import (
    CFRPlusSolver,
    GameTree,
    SequenceFormGame,
    Solver,
    StrategyProfile,
    compile_game,
    evaluate,
    make_solver,
)

TRAJECTORIES = json.loads((DATA / "trajectories.json").read_text())
GAMES = json.loads((DATA / "game_values.json").read_text())["values"]

LARGE = 30_000  # Games with more histories are left to the slow tests.


def load(game: str = "", params: dict[str, Any] | None = None, matrix: list[list[float]] | None = None) -> pyspiel.Game:
    if matrix is not None:
        return pyspiel.convert_to_turn_based(pyspiel.create_matrix_game(matrix, (-np.array(matrix)).tolist()))
    return pyspiel.load_game(game, params) if params else pyspiel.load_game(game)


# Trajectories.


@functools.cache
def compiled(name: str) -> SequenceFormGame:
    return compile_game(load(**TRAJECTORIES["games"][name]))


def start(run: dict[str, Any], convention: str) -> Solver:
    return make_solver(run["algorithm"], compiled(run["game"]), alternating=run["alternating"], averaging=convention)


def runs(choose: Callable[[dict[str, Any]], bool] = lambda run: True) -> pytest.MarkDecorator:
    """Parametrizes a test with the chosen runs, once per averaging convention for which the numbers of the run are valid."""
    params = [
        pytest.param(run, convention, id="-".join([run["game"], run["algorithm"], order, convention]))
        for run in filter(choose, TRAJECTORIES["runs"])
        for order in ["alternating" if run["alternating"] else "simultaneous"]
        for convention in run["averaging"]
    ]
    return pytest.mark.parametrize(("run", "convention"), params)


@runs()
def test_iterations_agree_with_the_slow_implementation_digit_by_digit(run, convention):
    solver = start(run, convention)
    for row in run["rows"]:
        if row["t"] <= run["compare_digits_until"]:
            solver.run(row["t"] - solver.iteration)
            average, current = solver.evaluate(), evaluate(solver.game, solver.current_profile())
            ours = {"t": solver.iteration, "nash_conv": average.nash_conv, "current_nash_conv": current.nash_conv}
            if "u0" in row:
                ours["u0"] = average.values[0]
            assert ours == pytest.approx(row, rel=1e-9, abs=1e-12)


@runs(lambda run: run["exact_nash_conv"] != [])
def test_first_iterations_agree_with_rational_arithmetic(run, convention):
    solver = start(run, convention)
    for exact in map(fractions.Fraction, run["exact_nash_conv"]):
        solver.run(1)
        assert solver.nash_conv() == pytest.approx(float(exact), rel=1e-12)


@runs(lambda run: run["rows"][-1]["t"] > run["compare_digits_until"])
def test_nash_conv_has_the_right_magnitude_where_rounding_dominates(run, convention):
    # Linear CFR is the most sensitive: multiplying the payoffs of liars_dice_3 by 3, 5, 1/10 and other such numbers, which
    # changes nothing but roundings, spreads its NashConv at t = 500 from 1.5e-4 to 1.6e-3.
    factor = 4 if run["algorithm"] == "lcfr" else 2
    solver = start(run, convention)
    for row in run["rows"]:
        solver.run(row["t"] - solver.iteration)
        assert 1 / factor < solver.nash_conv() / row["nash_conv"] < factor


# Game values.


def games(perfect_recall: bool) -> list[Any]:
    """Parameters (function that loads the game, known facts)."""
    params = []
    for entry in GAMES:
        how = {key: entry[key] for key in ("game", "params", "matrix") if key in entry}
        if entry["perfect_recall"] == perfect_recall:
            marks = [pytest.mark.slow] if entry["histories"] > LARGE else []
            params.append(pytest.param((how, entry), marks=marks, id=" ".join(map(str, how.values()))))
    return params


@pytest.fixture(scope="module", params=games(perfect_recall=True))
def known_game(request) -> tuple[SequenceFormGame, dict[str, Any]]:
    how, known = request.param
    return compile_game(load(**how)), known


def payoffs_by_last_moves(tree: GameTree) -> dict[Any, float]:
    """The matrix of the sequence form: player 0's expected utility for each pair of the players' last moves."""
    parent, action, actor, infostate = (column.tolist() for column in (tree.parent, tree.action, tree.actor, tree.infostate))
    last_moves: list[Any] = [(None, None)]
    chance = [1.0]
    for history in range(1, tree.num_histories):
        above = parent[history]
        moves = list(last_moves[above])
        if actor[above] >= 0:
            moves[actor[above]] = (infostate[above], action[history])
        last_moves.append(tuple(moves))
        chance.append(chance[above] * float(tree.chance_probability[history]))
    payoffs: dict[Any, float] = collections.defaultdict(float)
    for history, utility in zip(tree.terminal.tolist(), tree.returns[:, 0].tolist(), strict=True):
        payoffs[last_moves[history]] += chance[history] * utility
    return payoffs


def test_compiled_game_has_the_known_sizes(known_game):
    game, known = known_game
    assert game.tree.num_histories == known["histories"]
    assert [treeplex.num_decision_points for treeplex in game.treeplexes] == known["infostates"]
    assert [treeplex.num_sequences for treeplex in game.treeplexes] == known["sequences"]


def test_compiled_game_has_the_nonzero_payoffs(known_game):
    game, known = known_game
    payoffs = payoffs_by_last_moves(game.tree)
    assert len(payoffs) == known["payoff_matrix_entries"]
    kept = np.concatenate([game.payoffs[:, 0], np.zeros(len(payoffs) - len(game.payoffs))])
    np.testing.assert_allclose(np.sort(kept), np.sort(list(payoffs.values())), rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(game.payoffs[:, 0]) == len(game.payoffs)


def test_uniform_policy_has_the_known_nash_conv(known_game):
    game, known = known_game
    uniform = evaluate(game, StrategyProfile.uniform(game))
    assert uniform.nash_conv == pytest.approx(known["uniform_nash_conv"], rel=1e-9, abs=1e-12)


def test_cfr_plus_converges_to_the_known_value(known_game):
    """Player 0's best response to any y earns at least the value v of a zero-sum game, and player 1's to any x at least -v:

    u0 + gain0 = max over x of u0(x, y) >= v   and   u0 - gain1 = min over y of u0(x, y) <= v,

    hence |u0 - v| <= gain0 + gain1 = NashConv. That holds for any strategies. The bound
    leaves a factor of 2 to the slowest of these games, 2.6e-3 in an oshi-zumo.
    """
    game, known = known_game
    solver = CFRPlusSolver(game)
    solver.run(2000)
    average = solver.evaluate()
    u0, (gain0, gain1) = average.values[0], average.player_improvements
    most = np.abs(game.tree.returns).max()
    assert u0 - gain1 <= known["value_upper"] + 1e-9 * most
    assert u0 + gain0 >= known["value_lower"] - 1e-9 * most
    assert abs(u0 - known["value"]) <= average.nash_conv + 1e-9 * most
    assert average.nash_conv <= 5e-3 * most


@pytest.mark.parametrize("how_and_known", games(perfect_recall=False))
def test_a_game_with_imperfect_recall_is_refused(how_and_known):
    how, _ = how_and_known
    with pytest.raises(ValueError, match="requires perfect recall"):
        compile_game(load(**how))
