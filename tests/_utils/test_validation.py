"""Validation of numeric arguments of all public functions: the errors name the argument."""

import games
import numpy as np
import pytest
from games import GAMES, mentions

from spiel_cfrplus import Averaging, CFRPlusSolver, CFRSolver, Solver, StrategyProfile, compile_game, lock, make_solver
from spiel_cfrplus._utils import validation
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.analysis.crosscheck import crosscheck
from spiel_cfrplus.analysis.theory import TheoryChecks
from spiel_cfrplus.openspiel import cfr as openspiel_cfr
from spiel_cfrplus.regret_minimizers import CFR, DiscountedRegretMatching
from spiel_cfrplus.solving.best_response_play import BestResponsePlay


@pytest.mark.parametrize("number", [1e3, np.float64(10), None, "3"])
def test_counts_that_are_not_integers_are_refused(number, kuhn):
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
        with pytest.raises(TypeError, match=mentions("iterations to skip must be an integer", repr(number))):
            Averaging(delay=number)


@pytest.mark.parametrize("number", [2**62 + 1, 2**63, 10**30])
def test_counts_beyond_64_bits_are_refused(number, kuhn):
    solver = CFRPlusSolver(kuhn)
    for call in (
        lambda: solver.run(number),
        lambda: convergence(solver, number),
        lambda: Averaging(delay=number),
    ):
        with pytest.raises(ValueError, match=rf"must be at most 2\*\*62, got {number}"):
            call()


def test_numpy_integers_are_accepted(kuhn):
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
        (1.0, TypeError, "a player must be an integer from 0 to 1, got 1.0"),
        (None, TypeError, "a player must be an integer from 0 to 1, got None"),
        ("0", TypeError, "a player must be an integer from 0 to 1, got '0'"),
    ],
)
def test_players_that_do_not_exist_are_refused(player, error, words, kuhn):
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
def test_arguments_that_are_not_numbers_are_named(value, kuhn):
    calls = {
        "the averaging power": lambda: Averaging(value),
        "the exponent alpha": lambda: DiscountedRegretMatching(value),
        "the exponent beta": lambda: DiscountedRegretMatching(0.0, value),
    }
    if value is not None:
        calls["prediction_weight"] = lambda: CFR(kuhn.treeplexes[0], prediction_weight=value)
        calls["time_limit"] = lambda: convergence(CFRSolver(kuhn), 1, time_limit=value)
        calls["target_nash_conv"] = lambda: convergence(CFRSolver(kuhn), 1, target_nash_conv=value)
        calls["step_size"] = lambda: make_solver("cfr_hedge", kuhn, step_size=value)
    for name, call in calls.items():
        with pytest.raises(TypeError, match=mentions(f"{name} must be a number, got {value!r}")):
            call()


def test_more_threads_or_processes_than_cores_are_refused_in_advance(monkeypatch):
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
