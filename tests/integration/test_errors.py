"""Errors for invalid input: a specific ValueError with the game, the reason and the remedy, before any long computation."""

import copy
import pickle
import sys
from collections.abc import Callable

import games
import numpy as np
import pyspiel
import pytest
from families import SOLVERS
from games import GAMES, mentions

from spiel_cfrplus import CFRBRSolver, CFRPlusSolver, CFRSolver, Solver, compile_game, evaluate
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.analysis.plotting import plot_convergence
from spiel_cfrplus.analysis.theory import TheoryChecks
from spiel_cfrplus.game import walk
from spiel_cfrplus.openspiel import cfr as openspiel_cfr

NAN, INFINITY = float("nan"), float("inf")


def load(name: str) -> Callable[[], pyspiel.Game]:
    return lambda: pyspiel.load_game(name)


def refused(name: str, load_game: Callable[[], pyspiel.Game], *words: str) -> object:
    return pytest.param(load_game, words, id=name)


CONVERT = "pyspiel.convert_to_turn_based(game)"


REFUSED_AT_ONCE = [
    refused("simultaneous", load("goofspiel(num_cards=3)"), "simultaneous moves", CONVERT),
    refused("simultaneous, long", load("python_iterated_prisoners_dilemma"), "simultaneous moves", CONVERT),
    refused("normal form", load("matrix_rps"), "simultaneous moves", CONVERT),
    refused("extensive to normal form", load("normal_form_extensive_game(game=kuhn_poker())"), "simultaneous", CONVERT),
    refused("mean field", load("mfg_crowd_modelling"), "not a sequential game", "MEAN_FIELD"),
    refused("sampled chance", load("negotiation"), "samples its chance moves", "SAMPLED_STOCHASTIC", "EXPLICIT_STOCHASTIC"),
    refused("no strings", load("coin_game"), "no information-state strings", "Implement information_state_string"),
    refused("no strings, no chance", load("deep_sea"), "no information-state strings", "choose a game that provides it"),
]


REFUSED = [
    *REFUSED_AT_ONCE,
    refused("changing string", games.noisy_string_game, "differs between two calls", "[]", "function of the history"),
    refused(
        "imperfect recall",
        games.forgetful_game,
        *("player 0", "infostate '0-0-2-later'", "does not have perfect recall", "1 at '0-0-1-early'", "0 at '0-0-1-early'"),
        "information_state_string must distinguish the two histories",
    ),
    refused(
        "imperfect recall of a claim",  # a die of 1 and a die of 2 become one
        load("liars_dice_ir(dice_sides=3)"),
        *("player 1", "does not have perfect recall", "at 'P1 1 1-1'", "at 'P1 1 1-2'", "must distinguish the two histories"),
    ),
    refused("absent-minded", games.absent_minded, "player 0", "'0-0-1-junction'", "history [1]", "absent-mindedness"),
    refused(
        "different actions",
        games.different_actions_game,
        *("'same' of player 0", "[0, 1]", "[0, 1, 2]", "history [1]", "must distinguish the two histories"),
    ),
    refused("returns of NaN", lambda: games.bad_returns_game(NAN), "history [1]", "nan", "not finite"),
    refused("infinite returns", lambda: games.bad_returns_game(-INFINITY), "history [1]", "-inf", "not finite"),
    refused(
        "chance short of 1", lambda: games.bad_chance_game([0.25, 0.25]), "history []", "sum to 0.5", "chance_outcomes() of the"
    ),
    refused("chance beyond 1", lambda: games.bad_chance_game([0.75, 0.5]), "history []", "sum to 1.25", "chance_outcomes()"),
    refused("negative chance", lambda: games.bad_chance_game([1.5, -0.5]), "history []", "not a probability distribution"),
    refused("no actions", games.no_legal_actions_game, "player 1", "history [1]", "no legal actions"),
    refused("no actions, one row", load("dark_hex(num_cols=3,num_rows=1)"), "[0, 0, 1, 1, 2, 2]", "no legal actions"),
]


@pytest.mark.parametrize("solver_type", SOLVERS.values())
@pytest.mark.parametrize(("load_game", "words"), REFUSED)
def test_a_solver_refuses_with_the_game_the_reason_and_the_remedy(load_game, words, solver_type):
    game = load_game()
    with pytest.raises(ValueError, match=mentions(str(game), *words)) as error:
        solver_type(game)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("load_game", "words"), REFUSED_AT_ONCE)
def test_unsupported_game_types_are_refused_before_the_walk(load_game, words, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise AssertionError("the tree was walked")

    monkeypatch.setattr(walk, "TreeWalk", refuse)
    with pytest.raises(AssertionError, match="the tree was walked"):
        compile_game(GAMES["kuhn_poker"]())
    with pytest.raises(ValueError, match=mentions(*words)):
        compile_game(load_game())


@pytest.mark.parametrize(("load_game", "words"), REFUSED[::7])
def test_evaluation_raises_the_same_errors(load_game, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        evaluate(load_game(), {})


def test_a_chance_outcome_of_probability_0_causes_no_nan():
    solvers = [solver_type(games.zero_chance_game()) for solver_type in SOLVERS.values()]
    for solver in solvers:
        assert solver.game.tree.chance_probability.tolist().count(0.0) == 1
        solver.run(100)
        evaluation = solver.evaluate()
        for array in (
            *solver.self_play.state_dict().values(),
            solver.game.payoffs,
            evaluation.values,
            evaluation.best_response_values,
        ):
            assert np.isfinite(array).all()
        assert np.isfinite(solver.average_policy().action_probability_array).all()
        assert 0 < solver.nash_conv() < 0.1


def count_moves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the moves made in python_kuhn_poker."""
    moves: list[int] = []
    state_type = games.python_kuhn_poker.KuhnPokerState
    original = state_type._apply_action
    monkeypatch.setattr(state_type, "_apply_action", lambda state, action: (moves.append(action), original(state, action))[1])
    return moves


def test_a_tree_beyond_the_limit_is_refused_as_soon_as_it_is_counted(monkeypatch):
    game, moves = GAMES["python_kuhn_poker"](), count_moves(monkeypatch)
    words = [str(game), "max_histories=10", "counted 11", "raise the limit or choose smaller game parameters"]
    with pytest.raises(ValueError, match=mentions(*words)):
        compile_game(game, max_histories=10)
    # 10 histories have at most 3 children each; the whole tree has 57 moves.
    assert 10 <= len(moves) <= 30
    assert compile_game(game, max_histories=58).tree.num_histories == 58


def test_deep_trees_work_under_the_default_recursion_limit():
    assert sys.getrecursionlimit() <= 1000
    solver = CFRPlusSolver(games.python_chain(20_000))
    solver.run(10)
    assert solver.game.num_infostates == 20_000
    assert 0 < solver.nash_conv() < evaluate(solver.game, CFRSolver(solver.game).current_profile()).nash_conv


def test_unknown_averaging_is_refused_before_the_walk(monkeypatch):
    moves = count_moves(monkeypatch)
    with pytest.raises(ValueError, match=mentions("'papers'", "paper, openspiel")):
        CFRPlusSolver(GAMES["python_kuhn_poker"](), averaging="papers")
    assert moves == []


# Numbers, players and policies of the wrong kind.


def test_arguments_that_are_not_solvers_are_named(kuhn):
    for call in (lambda: convergence(kuhn, 3), lambda: TheoryChecks(kuhn)):
        with pytest.raises(TypeError, match=mentions("expected a solver, such as CFRPlusSolver(game), got Seq")):
            call()
    for minimizer in ("cfr_hedge", None):
        with pytest.raises(TypeError, match=mentions("expected a function that makes a minimizer", repr(minimizer))):
            Solver.of_minimizers(kuhn, minimizer)


def test_the_advice_about_pickling_applies_to_drop_in_solvers():
    for solver in (openspiel_cfr.CFRSolver(games.python_chain(3)), CFRSolver(games.python_chain(3))):
        with pytest.raises(ValueError, match=mentions("cannot be pickled", "Pickle results", "a spiel_cfrplus solver")):
            pickle.dumps(solver)
        assert type(copy.copy(solver)) is type(solver)


def test_arguments_that_are_not_games_are_refused_by_every_solver():
    """The drop-in solvers raise what OpenSpiel's raise."""
    for solver_type in (*SOLVERS.values(), CFRBRSolver):
        for wrong in (None, "kuhn_poker"):
            with pytest.raises(TypeError, match=mentions(f"expected a pyspiel.Game, got {wrong!r}; load a game with")):
                solver_type(wrong)


def test_the_error_for_a_state_in_place_of_a_game_names_compile_subgame(kuhn):
    state = kuhn.tree.game.new_initial_state()
    for use in (CFRPlusSolver, compile_game, lambda wrong: evaluate(wrong, {})):
        with pytest.raises(TypeError, match=mentions("got a state (", "of kuhn_poker()", "compile_subgame(state)")):
            use(state)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([1], "runs must be a dictionary from names to rows, got [1]"),
        ({"cfr": 1}, "the run 'cfr' must be an iterable of rows, as convergence yields them, got 1"),
        ({"cfr": [1]}, "the run 'cfr' must contain rows only, as convergence yields them, got 1"),
    ],
)
def test_invalid_runs_are_named(runs, words, tmp_path):
    with pytest.raises(TypeError, match=mentions(words)):
        plot_convergence(runs, tmp_path / "picture.png")
    assert list(tmp_path.iterdir()) == []
