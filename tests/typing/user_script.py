"""What a user writes, with the types that a type checker finds; `test_user_script` lets mypy check and Python run it.

An expression whose type is `Any` or unknown is an error of `assert_type`. Also: `pyright tests/typing/user_script.py`.
"""

import pathlib
from typing import assert_type

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python.policy import TabularPolicy

import spiel_cfrplus
from spiel_cfrplus import ALGORITHMS, Algorithm, CFRPlusSolver, Evaluation, SequenceFormGame, Solver, StrategyProfile, Treeplex
from spiel_cfrplus.analysis.convergence import Row, convergence
from spiel_cfrplus.play.bots import ProfileBot
from spiel_cfrplus.policies.locking import LockedGame
from spiel_cfrplus.regret_minimizers import CFR, Hedge, LocalRule, RegretMinimizer, local_rule
from spiel_cfrplus.solving.session import Session

Floats = npt.NDArray[np.float64]


def compiling() -> SequenceFormGame:
    game = spiel_cfrplus.compile_game(pyspiel.load_game("kuhn_poker"))
    assert_type(game, SequenceFormGame)
    assert_type(game.num_sequences, int)
    assert_type(game.payoffs, Floats)
    assert_type(game.treeplexes[0], Treeplex)
    assert_type(game.treeplexes[0].uniform_policy(), Floats)
    assert_type(game.treeplexes[0].sequence_start, npt.NDArray[np.int32])
    assert_type(game.tree.returns, Floats)
    locked = spiel_cfrplus.lock(game, {(0, "0"): {0: 1.0}})
    assert_type(locked, LockedGame)
    assert_type(locked.whole, SequenceFormGame)
    return game


def solving(game: SequenceFormGame) -> None:
    solver = CFRPlusSolver(game)
    assert_type(solver, CFRPlusSolver)
    solver.run(10)
    assert_type(solver.iteration, int)
    assert_type(solver.nash_conv(), float)
    assert_type(solver.evaluate(), Evaluation)
    assert_type(solver.average_policy(), TabularPolicy)
    assert_type(solver.current_policy(), TabularPolicy)
    assert_type(solver.average_profile(), StrategyProfile)
    assert_type(solver.average_profile().probabilities, Floats)
    assert_type(solver.average_profile().to_dict(), dict[str, list[tuple[int, float]]])
    assert_type(solver.self_play, Session)
    assert_type(solver.self_play.average_policy(), Floats)
    assert_type(spiel_cfrplus.make_solver("pdcfr+", game, prediction_weight=1 / 3), Solver)
    assert_type(ALGORITHMS["cfr+"], Algorithm)
    assert_type(Solver.of_minimizers(game, CFR), Solver)
    assert_type(CFRPlusSolver.of_minimizers(game, CFR), CFRPlusSolver)


def saving(game: SequenceFormGame, folder: pathlib.Path) -> None:
    solver = CFRPlusSolver(game)
    solver.save(folder / "solver.npz")
    assert_type(CFRPlusSolver.load(folder / "solver.npz"), CFRPlusSolver)


def evaluating(game: SequenceFormGame) -> None:
    profile = StrategyProfile.uniform(game)
    evaluation = spiel_cfrplus.evaluate(game, profile)
    assert_type(evaluation, Evaluation)
    assert_type(evaluation.values, Floats)
    assert_type(evaluation.player_improvements, Floats)
    assert_type(evaluation.best_responses, StrategyProfile)
    assert_type(evaluation.nash_conv, float)
    assert_type(evaluation.exploitability, float)
    assert_type(spiel_cfrplus.nash_conv(game, profile), float)
    assert_type(spiel_cfrplus.exploitability(game, profile), float)
    assert_type(spiel_cfrplus.expected_values(game, profile), Floats)
    assert_type(spiel_cfrplus.read_policy(game, profile), StrategyProfile)


def playing(game: SequenceFormGame) -> None:
    profile = StrategyProfile.uniform(game)
    match = spiel_cfrplus.play_match(game, [profile, lambda player: ProfileBot(profile, player)], 10)
    assert_type(match.scores[0].confidence_interval, tuple[float, float])
    assert_type(match.scores[0].expected, float | None)
    assert_type(ProfileBot(profile, 0).player_id(), int)
    assert_type(spiel_cfrplus.restrict(game, profile, 0.5, 0).whole, SequenceFormGame)
    assert_type(spiel_cfrplus.restricted_nash_response(game, profile, 0.5, 0).gap, float)


def measuring(game: SequenceFormGame) -> None:
    for row in convergence(CFRPlusSolver(game), 10):
        assert_type(row, Row)
        assert_type(row.iteration, int)
        assert_type(row.nash_conv, float)
        assert_type(row.exploitability, float | None)
    # The modules are attributes of the package, without an import of their own.
    assert_type(spiel_cfrplus.analysis.convergence.measure(CFRPlusSolver(game)), Row)


@local_rule
def plain_rule(point, values, policy, memory, parameters, t):  # type: ignore[no-untyped-def]
    for a in point.actions:
        policy[a] = 1.0 / len(point.actions)


@local_rule(per_action=("regrets",), scale_free=True)
def regret_matching_plus(point, values, policy, memory, parameters, t):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)


def ruling(game: SequenceFormGame) -> None:
    assert_type(plain_rule, LocalRule)
    assert_type(regret_matching_plus, LocalRule)
    assert_type(CFRPlusSolver(game, rule=regret_matching_plus), CFRPlusSolver)
    assert_type(spiel_cfrplus.make_solver(regret_matching_plus, game), Solver)


def minimizing(treeplex: Treeplex) -> None:
    minimizer: RegretMinimizer = CFR(treeplex)
    minimizer.observe_utility(np.zeros(treeplex.num_sequences))
    assert_type(CFR(treeplex).next_strategy(), Floats)
    assert_type(Hedge(3).next_strategy(), Floats)


def misspelling(game: SequenceFormGame) -> None:
    """Each comment silences an error; mypy reports one that silences nothing."""
    spiel_cfrplus.CFRPLusSolver  # type: ignore[attr-defined]  # noqa: B018
    spiel_cfrplus.analysis.convergenze  # type: ignore[attr-defined]  # noqa: B018
    CFRPlusSolver(game, alternate=True)  # type: ignore[call-arg]
    CFRPlusSolver(game).run("many")  # type: ignore[arg-type]
