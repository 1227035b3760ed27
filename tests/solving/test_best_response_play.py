"""CFR-BR, against OpenSpiel's doubles and against what its papers promise."""

import games
import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import Averaging, CFRBRSolver, StrategyProfile, compile_game, evaluate, read_policy
from spiel_cfrplus.analysis.theory import TheoryChecks
from spiel_cfrplus.openspiel import cfr_br
from spiel_cfrplus.regret_minimizers import CFR, ComposedCFR, Hedge, RegretMatching, RegretMatchingPlus
from spiel_cfrplus.solving.best_response_play import BestResponsePlay

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))


@pytest.mark.parametrize(
    ("game", "num_iterations"),
    [(pyspiel.load_game("kuhn_poker"), 4), (pyspiel.load_game("leduc_poker"), 20), (games.biased_rock_paper_scissors(), 30)],
    ids=str,
)
def test_follows_openspiel(game, num_iterations):
    # The drop-in has OpenSpiel's doubles. It sums in another order, so that later best responses to ties are others.
    ours, theirs = CFRBRSolver(game), cfr_br.CFRBRSolver(game)
    for _ in range(num_iterations):
        ours.run(1)
        theirs.run(1)
        expected = read_policy(ours.game, theirs.average_policy()).probabilities
        np.testing.assert_allclose(ours.average_profile().probabilities, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_the_average_is_within_the_regrets_of_an_equilibrium(name):
    game = compile_game(pyspiel.load_game(name))
    solver = CFRBRSolver(game, rule=RegretMatchingPlus(), averaging=Averaging(1))
    solver.run(500)
    assert solver.nash_conv() < 0.1 * evaluate(game, CFRBRSolver(game).average_profile()).nash_conv
    assert solver.alternating is False
    assert solver.average_policy().action_probability_array.sum() == pytest.approx(game.num_infostates)


def test_any_minimizers_will_do():
    session = BestResponsePlay(KUHN, [ComposedCFR(t, Hedge(t.num_actions)) for t in KUHN.treeplexes])
    assert evaluate(KUHN, StrategyProfile(KUHN, session.current_policy())).nash_conv == pytest.approx(11 / 12)
    session.run(500)
    assert evaluate(KUHN, StrategyProfile(KUHN, session.average_policy())).nash_conv < 0.05


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="CFR-BR is for two-player constant-sum games only"):
        CFRBRSolver(pyspiel.load_game("kuhn_poker(players=3)"))
    with pytest.raises(ValueError, match="CFR-BR is for two-player constant-sum games only"):
        CFRBRSolver(games.battle_of_the_sexes())
    with pytest.raises(ValueError, match="expected two minimizers"):
        BestResponsePlay(KUHN, [CFR(KUHN.treeplexes[0])])
    with pytest.raises(TypeError, match="about players who play against each other"):
        TheoryChecks(CFRBRSolver(KUHN))
    for option in ({"alternating": False}, {"reduce": True}, {"threads": 2}, {"record_regrets": True}):
        with pytest.raises(TypeError, match=f"cfr-br takes no {next(iter(option)).replace('_', ' ')}"):
            CFRBRSolver(KUHN, **option)


def test_iterations_are_counted_from_zero():
    solver = CFRBRSolver(KUHN, averaging=Averaging(1))
    assert solver.iteration == 0
    solver.run(3)
    assert solver.iteration == 3


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("rule", [RegretMatching(), RegretMatchingPlus()], ids=str)
def test_compiled_iterations_are_those_of_the_loop_in_python(name, rule):
    game = compile_game(pyspiel.load_game(name))
    solver = CFRBRSolver(game, rule=rule, averaging=Averaging(1))
    pairs = zip(game.treeplexes, game.player_slices, strict=True)
    minimizers = [CFR(treeplex, rule, tie_tolerance=game.tie_tolerance[own]) for treeplex, own in pairs]
    written_out = BestResponsePlay(game, minimizers, Averaging(1))
    solver.run(40)
    written_out.run(40)
    assert solver.average_profile().probabilities.tolist() == written_out.average_policy().tolist()


def test_checkpoints_go_on_to_the_same_doubles(tmp_path):
    solver = CFRBRSolver(KUHN)
    solver.run(10)
    solver.save(tmp_path / "saved.npz")
    resumed = CFRBRSolver.load(tmp_path / "saved.npz")
    for each in (solver, resumed):
        each.run(10)
    assert resumed.average_profile().probabilities.tolist() == solver.average_profile().probabilities.tolist()
