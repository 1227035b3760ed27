"""Comparison with OpenSpiel's own solvers."""

import importlib

import games
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score

from spiel_cfrplus import CFRSolver
from spiel_cfrplus.analysis import crosscheck as crosscheck_module
from spiel_cfrplus.analysis.crosscheck import crosscheck

importlib.import_module("open_spiel.python.games")

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))"


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+"])
@pytest.mark.parametrize(
    ("game", "num_iterations"),
    [
        ("kuhn_poker", 50),
        pytest.param("leduc_poker", 20, marks=pytest.mark.slow),
        ("liars_dice(dice_sides=3)", 50),
        ("kuhn_poker(players=3)", 50),
        ("python_kuhn_poker", 50),
        (GOOFSPIEL, 50),
    ],
)
def test_agrees_with_openspiel(game, num_iterations, algorithm):
    rows = crosscheck(pyspiel.load_game(game), algorithm, num_iterations=num_iterations)
    assert rows[-1].iteration == num_iterations
    assert max(row.difference for row in rows) < 1e-9


@pytest.mark.parametrize("algorithm", ["lcfr", "dcfr"])
@pytest.mark.parametrize(
    ("game", "num_iterations"),
    [("kuhn_poker", 100), ("liars_dice(dice_sides=2)", 30), pytest.param("leduc_poker", 10, marks=pytest.mark.slow)],
)
def test_discounted_variants_agree_with_openspiel(game, num_iterations, algorithm):
    rows = crosscheck(pyspiel.load_game(game), algorithm, num_iterations=num_iterations)
    assert max(row.difference for row in rows) < 1e-8


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+"])
@pytest.mark.parametrize("game", ["kuhn_poker", "liars_dice(dice_sides=3)"])
def test_agrees_with_openspiel_when_updates_are_simultaneous(game, algorithm):
    rows = crosscheck(pyspiel.load_game(game), algorithm, num_iterations=20, alternating=False)
    assert max(row.difference for row in rows) < 1e-9


def test_works_on_games_that_only_exist_as_objects():
    assert max(row.difference for row in crosscheck(games.biased_rock_paper_scissors(), "cfr+", num_iterations=50)) < 1e-9


def test_the_distance_from_the_exact_value_where_it_is_cheap(monkeypatch):
    """The value of Kuhn poker is -1/18 (Kuhn 1950). OpenSpiel's average policy has the value of ours, by parity."""
    game = pyspiel.load_game("kuhn_poker")
    theirs = pyspiel.CFRPlusSolver(game)
    for _ in range(10):
        theirs.evaluate_and_update_policy()
    policy = theirs.average_policy()
    value = expected_game_score.policy_value(game.new_initial_state(), [policy, policy])[0]
    *_, last = crosscheck(game, "cfr+", num_iterations=10)
    assert last.value_error == pytest.approx(abs(value + 1 / 18), abs=1e-12) != 0
    monkeypatch.setattr(crosscheck_module, "_CHEAP_NONZEROS", 80)  # its program has 81
    assert crosscheck(game, "cfr+", num_iterations=1)[0].value_error is None


def test_three_players_have_no_exact_value():
    assert crosscheck(pyspiel.load_game("kuhn_poker(players=3)"), "cfr", num_iterations=1)[0].value_error is None


def test_a_solver_that_differs_is_noticed(monkeypatch):
    monkeypatch.setattr(crosscheck_module, "make_solver", lambda _, game, **options: CFRSolver(game, **options))
    rows = crosscheck(pyspiel.load_game("kuhn_poker"), "cfr+", num_iterations=10)
    assert rows[0].difference < 1e-9
    assert rows[-1].current_policy > 1e-3
    assert rows[-1].average_policy > 1e-3
    assert rows[-1].nash_conv > 1e-3


def test_algorithms_that_openspiel_lacks_are_refused():
    for algorithm, alternating in (("pcfr+", True), ("dcfr", False)):
        with pytest.raises(ValueError, match=r"OpenSpiel has no solver for .* updates; choose one of cfr, cfr\+, lcfr, dcfr"):
            crosscheck(pyspiel.load_game("kuhn_poker"), algorithm, num_iterations=1, alternating=alternating)
