"""What bad input gets: one specific ValueError that names the game, the reason and the remedy, before any long work."""

import inspect
import pickle
import re
import sys
import types
from collections.abc import Callable

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES, mentions
from open_spiel.python import policy as openspiel_policy

from spiel_cfrplus import (
    ALGORITHMS,
    LEARNERS,
    Averaging,
    CFRBRSolver,
    CFRPlusSolver,
    CFRSolver,
    LearningSolver,
    Solver,
    StrategyProfile,
    compile_game,
    compile_subgame,
    evaluate,
    lock,
    read_policy,
)
from spiel_cfrplus._utils import validation
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.analysis.crosscheck import crosscheck
from spiel_cfrplus.analysis.plotting import plot_convergence
from spiel_cfrplus.analysis.theory import TheoryChecks
from spiel_cfrplus.game import walk
from spiel_cfrplus.openspiel import cfr as openspiel_cfr
from spiel_cfrplus.openspiel import cfr_br, discounted_cfr
from spiel_cfrplus.regret_minimizers import CFR, DiscountedRegretMatching
from spiel_cfrplus.solving.best_response_play import BestResponsePlay
from spiel_cfrplus.solving.solvers import CompiledSolver

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
    refused("changing string", games.noisy_string_game, "information_state_string changes", "[]", "function of the history"),
    refused(
        "imperfect recall",
        games.forgetful_game,
        *("player 0", "infostate '0-0-2-later'", "does not recall", "1 at '0-0-1-early'", "0 at '0-0-1-early'"),
        "let information_state_string tell the two apart",
    ),
    refused(
        "imperfect recall of a claim",  # a die of 1 and a die of 2 become one
        load("liars_dice_ir(dice_sides=3)"),
        *("player 1", "does not recall", "at 'P1 1 1-1'", "at 'P1 1 1-2'", "let information_state_string tell the two apart"),
    ),
    refused("absent-minded", games.absent_minded, "player 0", "'0-0-1-junction'", "history [1]", "absent-mindedness"),
    refused(
        "different actions",
        games.different_actions_game,
        *("'same' of player 0", "[0, 1]", "[0, 1, 2]", "history [1]", "information_state_string must tell them apart"),
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


@pytest.mark.parametrize("solver_type", ALGORITHMS.values())
@pytest.mark.parametrize(("load_game", "words"), REFUSED)
def test_a_solver_refuses_with_the_game_the_reason_and_the_remedy(load_game, words, solver_type):
    game = load_game()
    with pytest.raises(ValueError, match=mentions(str(game), *words)) as error:
        solver_type(game)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("load_game", "words"), REFUSED_AT_ONCE)
def test_what_a_type_tells_is_refused_before_the_walk(load_game, words, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise AssertionError("the tree was walked")

    monkeypatch.setattr(walk, "TreeWalk", refuse)
    with pytest.raises(AssertionError, match="the tree was walked"):
        compile_game(GAMES["kuhn_poker"]())
    with pytest.raises(ValueError, match=mentions(*words)):
        compile_game(load_game())


@pytest.mark.parametrize(("load_game", "words"), REFUSED[::7])
def test_evaluation_refuses_in_the_same_words(load_game, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        evaluate(load_game(), {})


def test_a_chance_outcome_of_probability_0_leaves_no_nan_anywhere():
    solvers = [solver_type(games.zero_chance_game()) for solver_type in ALGORITHMS.values()]
    for solver in solvers:
        assert solver.game.tree.chance_probability.tolist().count(0.0) == 1
        solver.run(100)
        evaluation = solver.evaluate()
        for array in (*solver.self_play.state, solver.game.payoffs, evaluation.values, evaluation.best_response_values):
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


@pytest.mark.parametrize("number", [1e3, np.float64(10), None, "3"])
def test_counts_that_are_no_integers_are_refused_at_once(number, kuhn):
    solver = CFRPlusSolver(kuhn)
    calls = [
        lambda: solver.run(number),
        lambda: convergence(solver, number),
        lambda: crosscheck("no game", "cfr", num_iterations=number),
        lambda: BestResponsePlay(kuhn, [CFR(treeplex) for treeplex in kuhn.treeplexes]).run(number),
        lambda: openspiel_cfr.CFRSolver(kuhn.tree.game).run(number),
        lambda: TheoryChecks(solver).run(number),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=mentions("the number of iterations must be an integer", repr(number))):
            call()
    with pytest.raises(TypeError, match=mentions("iterations of a warm start must be an integer", repr(number))):
        solver.warm_start(StrategyProfile.uniform(kuhn), number)
    assert solver.iteration == 0
    if number is not None:
        with pytest.raises(TypeError, match=mentions("iterations between rows must be an integer", repr(number))):
            convergence(solver, 10, report_every=number)
        with pytest.raises(TypeError, match=mentions("iterations that are left out must be an integer", repr(number))):
            Averaging(delay=number)


@pytest.mark.parametrize("number", [2**62 + 1, 2**63, 10**30])
def test_counts_beyond_what_compiled_code_counts_are_refused(number, kuhn):
    solver = CFRPlusSolver(kuhn)
    for call in (
        lambda: solver.run(number),
        lambda: convergence(solver, number),
        lambda: Averaging(delay=number),
    ):
        with pytest.raises(ValueError, match=rf"must be at most 2\*\*62, got {number}"):
            call()


def test_integers_of_numpy_are_integers(kuhn):
    solver = CFRPlusSolver(kuhn)
    solver.run(np.uint8(2))
    assert [row.iteration for row in convergence(solver, np.int64(3), report_every=np.int32(1))] == [3, 4, 5]
    locked = lock(kuhn, {(np.int64(0), np.str_("0")): {np.int8(0): np.float32(0.5), 1: 0.5}})
    assert locked.num_infostates == 11
    profile = StrategyProfile.uniform(kuhn)
    for player in (0, 1):
        assert (profile.sequence_form(np.int16(player)) == profile.sequence_form(player)).all()
        assert (profile.of_player(np.uint64(player)) == profile.of_player(player)).all()


@pytest.mark.parametrize(
    ("player", "error", "words"),
    [
        (-1, ValueError, "kuhn_poker() has players 0 to 1, got -1"),
        (2, ValueError, "kuhn_poker() has players 0 to 1, got 2"),
        (1.0, TypeError, "a player is an integer from 0 to 1, got 1.0"),
        (None, TypeError, "a player is an integer from 0 to 1, got None"),
        ("0", TypeError, "a player is an integer from 0 to 1, got '0'"),
    ],
)
def test_players_that_there_are_not_are_refused(player, error, words, kuhn):
    profile = StrategyProfile.uniform(kuhn)
    for call in (
        lambda: profile.of_player(player),
        lambda: profile.sequence_form(player),
        lambda: kuhn.payoff_gradient(player, [profile.sequence_form(0), profile.sequence_form(1)]),
        lambda: lock(kuhn, {(player, "0"): {0: 1.0}}),
    ):
        with pytest.raises(error, match=mentions(words)):
            call()


@pytest.mark.parametrize("value", ["2", None, [1.0]])
def test_what_is_no_number_is_named(value, kuhn):
    calls = {
        "the averaging power": lambda: Averaging(value),
        "the exponent alpha": lambda: DiscountedRegretMatching(value),
        "the exponent beta": lambda: DiscountedRegretMatching(0.0, value),
        "prediction_weight": lambda: CFR(kuhn.treeplexes[0], prediction_weight=value),
    }
    if value is not None:
        calls["time_limit"] = lambda: convergence(CFRSolver(kuhn), 1, time_limit=value)
        calls["target_nash_conv"] = lambda: convergence(CFRSolver(kuhn), 1, target_nash_conv=value)
        calls["step_size"] = lambda: LEARNERS["cfr_hedge"].with_step_size(value)
    for name, call in calls.items():
        with pytest.raises(TypeError, match=mentions(f"{name} must be a number, got {value!r}")):
            call()


def test_more_threads_or_processes_than_cores_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(validation, "num_cores", lambda: 2)
    for number in (3, 100_000, 2**63 - 1, 2**70):
        words = f"the number of threads must be at most 2, the number of cores of this machine, got {number}"
        with pytest.raises(ValueError, match=words):
            CFRSolver(games.interrupting_game(), threads=number)
        with pytest.raises(ValueError, match=words):
            Solver.load("no_such_file", threads=number)
        with pytest.raises(ValueError, match=f"the number of processes must be at most 2, .* got {number}"):
            compile_game(games.python_chain(10), processes=number)
    assert CFRSolver(GAMES["kuhn_poker"](), threads=2).partition is not None


def test_read_policy_takes_a_game_that_is_not_compiled():
    game = GAMES["kuhn_poker"]()
    profile = read_policy(game, openspiel_policy.UniformRandomPolicy(game))
    assert (profile.probabilities == StrategyProfile.uniform(compile_game(game)).probabilities).all()
    with pytest.raises(TypeError, match=mentions("expected a pyspiel.Game, got None")):
        read_policy(None, {})


def test_a_list_of_policies_says_whose_is_missing(kuhn):
    profile = StrategyProfile.uniform(kuhn)
    for policies, words in (
        ([profile], "kuhn_poker() has 2 players, got 1 policies: none for player 1"),
        ([], "kuhn_poker() has 2 players, got 0 policies: none for player 0, 1"),
        ([profile] * 3, "kuhn_poker() has 2 players, got 3 policies; give one for each player"),
    ):
        with pytest.raises(ValueError, match=mentions(words)):
            evaluate(kuhn, policies)
    with pytest.raises(TypeError, match=mentions("kuhn_poker()", "got None for player 1")):
        evaluate(kuhn, [profile, None])


def test_a_profile_of_another_part_of_the_game_is_told_apart(kuhn):
    state = kuhn.tree.game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    part = StrategyProfile.uniform(compile_subgame(state))
    words = ["another game, kuhn_poker() below [0, 1], ", "than kuhn_poker(), 12 infostates, "]
    with pytest.raises(ValueError, match=mentions(*words)):
        read_policy(kuhn, part)


def test_what_is_no_solver_is_named(kuhn):
    for call in (lambda: convergence(kuhn, 3), lambda: TheoryChecks(kuhn)):
        with pytest.raises(TypeError, match=mentions("expected a solver, such as CFRPlusSolver(game), got Seq")):
            call()
    for minimizer in ("cfr_hedge", None):
        with pytest.raises(TypeError, match=mentions("expected a function that makes a minimizer", repr(minimizer))):
            LearningSolver(kuhn, minimizer)


@pytest.mark.parametrize(
    "solver_type",
    [
        *ALGORITHMS.values(),
        CFRBRSolver,
        LearningSolver,
        type("MySolver", (CFRSolver,), {}),
        *(openspiel_cfr.CFRSolver, openspiel_cfr.CFRPlusSolver, openspiel_cfr._CFRSolver, cfr_br.CFRBRSolver),
        *(discounted_cfr.DCFRSolver, discounted_cfr.LCFRSolver),
    ],
)
def test_a_misspelled_keyword_is_reported_for_the_class_that_was_called(solver_type, kuhn):
    name = f"{solver_type.__name__}.__init__()"
    with pytest.raises(TypeError, match=f"^{re.escape(name)} got an unexpected keyword argument 'averging'"):
        solver_type(kuhn, averging="paper")
    assert inspect.signature(CFRPlusSolver) == inspect.signature(CompiledSolver)
    assert CFRPlusSolver.__init__.__doc__ == CompiledSolver.__init__.__doc__


@pytest.mark.parametrize("number", [1e3, "1000", [5]])
def test_limits_of_a_walk_are_numbers(number):
    with pytest.raises(TypeError, match=mentions("the number of histories in max_histories must be an integer", repr(number))):
        compile_game(GAMES["kuhn_poker"](), max_histories=number)
    if not isinstance(number, float):
        with pytest.raises(TypeError, match=mentions("time_limit must be a number, got", repr(number))):
            compile_game(GAMES["kuhn_poker"](), time_limit=number)


@pytest.mark.parametrize("observer", ["absent", "none", "refused", "without a string"])
def test_a_python_game_without_an_observer_is_told_of_it(observer, monkeypatch):
    game = games.python_game("unobserved", games.Turn(0, "here", {0: games.End((1, -1)), 1: games.End((-1, 1))}))

    def make_py_observer(self: object, iig_obs_type: object = None, params: object = None) -> object:
        if observer == "refused":
            raise NotImplementedError
        return types.SimpleNamespace(string_from=lambda state, player: None) if observer == "without a string" else None

    if observer == "absent":
        for kind in type(game).__mro__:
            if "make_py_observer" in vars(kind):
                monkeypatch.delattr(kind, "make_py_observer")
    else:
        monkeypatch.setattr(type(game), "make_py_observer", make_py_observer)
    with pytest.raises(
        ValueError, match=mentions("unobserved()", "no information-state strings (", "make_py_observer() of")
    ) as error:
        compile_game(game)
    assert "()," not in str(error.value).replace("unobserved()", "")
    assert "strings ()" not in str(error.value)


def test_games_that_cannot_start_are_refused():
    for name, reason in (("go(board_size=-1)", "unsupported board size"), ("connect_four(rows=-3)", "larger than max_size")):
        with pytest.raises(ValueError, match=mentions(f"{name} has no initial state", reason, "choose other game parameters")):
            compile_game(pyspiel.load_game(name))


def test_memory_that_a_first_state_cannot_have_is_an_error_that_names_the_game(monkeypatch):
    game = games.python_game("enormous", games.End((1, -1)))

    def fail(self: object) -> None:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(type(game), "new_initial_state", fail)
    with pytest.raises(MemoryError, match=mentions("enormous(), its initial state: memory ran out", "choose smaller game")):
        compile_game(game)


def test_advice_about_pickling_fits_drop_in_solvers_too():
    game = games.chain(3)
    for solver in (openspiel_cfr.CFRSolver(game), CFRSolver(game)):
        with pytest.raises(
            ValueError, match=mentions("cannot be pickled", "Pickle what was computed", "spiel_cfrplus.CFRSolver")
        ):
            pickle.dumps(solver)


def test_what_is_no_game_is_refused_by_every_solver():
    """The drop-in solvers raise what OpenSpiel's raise."""
    for solver_type in (*ALGORITHMS.values(), CFRBRSolver):
        for wrong in (None, "kuhn_poker"):
            with pytest.raises(TypeError, match=mentions(f"expected a pyspiel.Game, got {wrong!r}; load one with")):
                solver_type(wrong)


def test_a_state_in_place_of_a_game_is_told_of_compile_subgame(kuhn):
    state = kuhn.tree.game.new_initial_state()
    for use in (CFRPlusSolver, compile_game, lambda wrong: evaluate(wrong, {})):
        with pytest.raises(TypeError, match=mentions("got a state (", "of kuhn_poker()", "compile_subgame(state)")):
            use(state)


@pytest.mark.parametrize("path", [5, None, b"bytes", ["list"]], ids=repr)
def test_what_is_no_path_is_named(path, kuhn):
    rows = list(convergence(CFRSolver(kuhn), 1))
    calls = {
        "path": [
            CFRPlusSolver(kuhn).save,
            CFRPlusSolver.load,
            CheckpointedRun.resume,
            lambda wrong: CheckpointedRun(CFRPlusSolver(kuhn), wrong),
            lambda wrong: plot_convergence({"cfr": rows}, wrong),
        ],
        "cache": [lambda wrong: compile_game(kuhn.tree.game, cache=wrong)] if path is not None else [],
    }
    for name, uses in calls.items():
        for use in uses:
            with pytest.raises(TypeError, match=mentions(f"{name} must be a str or a pathlib.Path, got {path!r}")):
                use(path)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([1], "runs must be a dictionary from names to rows, got [1]"),
        ({"cfr": 1}, "the run 'cfr' must be rows, as convergence yields them, got 1"),
        ({"cfr": [1]}, "the run 'cfr' must be rows, as convergence yields them, got 1 among them"),
    ],
)
def test_what_is_no_run_to_draw_is_named(runs, words, tmp_path):
    with pytest.raises(TypeError, match=mentions(words)):
        plot_convergence(runs, tmp_path / "picture.png")
    assert list(tmp_path.iterdir()) == []
