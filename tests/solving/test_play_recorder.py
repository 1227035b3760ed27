"""Recorded play: all iterations against the solver's own regrets and OpenSpiel, uniform samples, interrupts."""

import functools

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES

from spiel_cfrplus import (
    CFRBRSolver,
    CFRSolver,
    PlayRecorder,
    Solver,
    StrategyProfile,
    compile_game,
    evaluate,
    make_solver,
)
from spiel_cfrplus.regret_minimizers import CFR, RegretMatching
from spiel_cfrplus.solving import play_recorder

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))


def recorded(solver, num_iterations, **options):
    recorder = PlayRecorder(solver, **options)
    recorder.run(num_iterations)
    return recorder.play()


def cfr_with_exact_ties(game, treeplex):
    return CFR(treeplex, RegretMatching(), tie_tolerance=game.tie_tolerance[game.player_slices[treeplex.player]])


@pytest.mark.parametrize("name", ["kuhn_poker_3p", "leduc_poker", "tiny_hanabi", "sheriff"])
def test_compiled_and_python_solvers_and_openspiel_agree(name):
    game = compile_game(GAMES[name]())
    compiled = CFRSolver(game, alternating=False, record_regrets=True)
    in_python = Solver.of_minimizers(game, functools.partial(cfr_with_exact_ties, game), alternating=False)
    plays = [recorded(solver, 5) for solver in (compiled, in_python)]
    expected = pyspiel.cce_dist(game.tree.game, plays[0].to_pyspiel()).deviation_incentives
    assert max(expected) > 1e-3
    for gap in (compiled.self_play.cce_gap(), in_python.self_play.cce_gap(), *(play.cce_gap() for play in plays)):
        assert gap == pytest.approx(max(expected), abs=1e-12)
    for play, solver in zip(plays, (compiled, in_python), strict=True):
        assert play.is_complete
        assert play.iterations.tolist() == [1, 2, 3, 4, 5]
        np.testing.assert_allclose(5 * play.regrets(), solver.self_play.regrets(), rtol=0, atol=1e-11)
        np.testing.assert_allclose(
            play.marginal_profile().probabilities, solver.average_profile().probabilities, rtol=0, atol=1e-12
        )


def test_the_first_profile_is_the_first_strategy_and_iterations_are_the_same():
    solver, alone = (CFRSolver(KUHN, alternating=False) for _ in range(2))
    play = recorded(solver, 30)
    alone.run(30)
    np.testing.assert_array_equal(play.policies[0], StrategyProfile.uniform(KUHN).probabilities)
    np.testing.assert_array_equal(solver.average_profile().probabilities, alone.average_profile().probabilities)


def test_weighted_play_has_the_marginals_of_a_weighted_average():
    solver = make_solver("cfr+", KUHN, alternating=False)
    play = recorded(solver, 20)
    weighted = play.reweighted(solver.averaging.weights(play.iterations))
    np.testing.assert_allclose(
        weighted.marginal_profile().probabilities, solver.average_profile().probabilities, rtol=0, atol=1e-12
    )
    assert np.abs(play.marginal_profile().probabilities - solver.average_profile().probabilities).max() > 1e-2


def test_the_play_approaches_a_coarse_correlated_equilibrium_where_the_average_is_no_equilibrium():
    # As in Shapley's game, the best responses form a cycle, and the average strategies do not converge to an equilibrium.
    rows, columns = [[1, 0, 0.1], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    game = compile_game(games.matrix_game(rows, columns))
    play = recorded(CFRSolver(game, alternating=False), 300)
    marginal = evaluate(game, play.marginal_profile())
    assert play.cce_gap() < 0.02
    assert marginal.nash_conv > 0.2
    assert play.expected_values().sum() > marginal.values.sum() + 0.2


# Samples.


@pytest.mark.parametrize(("max_profiles", "runs"), [(5, (20,)), (1, (7, 5)), (3, (2, 2, 9))])
def test_every_iteration_is_kept_with_the_same_probability(max_profiles, runs):
    total, repetitions = sum(runs), 500
    counts = np.zeros(total)
    for seed in range(repetitions):
        recorder = PlayRecorder(Counter(), max_profiles, seed)
        for num_iterations in runs:
            recorder.run(num_iterations)
        play = recorder.play()
        assert len(play) == max_profiles
        assert (play.num_iterations, play.is_complete) == (total, False)
        assert (np.diff(play.iterations) > 0).all()
        counts[play.iterations - 1] += 1
    probability = max_profiles / total
    # Five standard deviations of each count.
    np.testing.assert_allclose(
        counts / repetitions, probability, atol=5 * np.sqrt(probability * (1 - probability) / repetitions)
    )


class Counter(CFRSolver):
    """A solver whose iterations take no time."""

    def __init__(self):
        self.game, self.count = KUHN, 0
        self.self_play = CFRSolver(KUHN, alternating=False).self_play

    @property
    def iteration(self):
        return self.count

    def run(self, num_iterations):
        self.count += num_iterations


def test_a_sample_has_the_strategies_of_its_iterations_and_estimates_the_gap():
    solver = CFRSolver(KUHN, alternating=False)
    complete, sample = recorded(solver, 500), recorded(CFRSolver(KUHN, alternating=False), 500, max_profiles=100, seed=4)
    np.testing.assert_array_equal(sample.policies, complete.policies[sample.iterations - 1])
    assert sample.probabilities.tolist() == [1 / 100] * 100
    assert sample.iterations.max() > 400
    assert np.abs(sample.expected_values() - complete.expected_values()).max() < 0.05


def test_memory_is_bounded_by_default(monkeypatch):
    monkeypatch.setattr(play_recorder, "DEFAULT_BYTES", 8 * KUHN.num_sequences * 10)
    play = recorded(CFRSolver(KUHN, alternating=False), 50)
    assert play.policies.nbytes <= play_recorder.DEFAULT_BYTES
    assert len(play) == 10
    monkeypatch.setattr(play_recorder, "DEFAULT_BYTES", 1)
    assert len(recorded(CFRSolver(KUHN, alternating=False), 3)) == 1


def test_the_same_seed_gives_the_same_sample():
    first, second, other = (
        recorded(CFRSolver(KUHN, alternating=False), 200, max_profiles=20, seed=seed).iterations.tolist() for seed in (1, 1, 2)
    )
    assert first == second != other


def test_a_large_number_of_iterations_takes_one_call_between_kept_ones():
    recorder = PlayRecorder(Counter(), 10, seed=0)
    recorder.run(10**12)
    assert recorder.play().num_iterations == 10**12
    # The expected number of iterations below 1e11 among ten uniform ones is 1; none of 20 seeds has 8 of them.
    assert np.count_nonzero(recorder.play().iterations < 1e11) < 8


# Starting late, interrupts, refusals.


def test_recording_may_start_later():
    solver = CFRSolver(KUHN, alternating=False)
    solver.run(5)
    recorder = PlayRecorder(solver)
    recorder.run(3)
    assert recorder.play().iterations.tolist() == [6, 7, 8]
    assert recorder.play().is_complete
    solver.run(1)
    with pytest.raises(ValueError, match="done iteration 9 without the recorder"):
        recorder.run(1)


class Interrupted(CFRSolver):
    """Ctrl-C arrives before or after the iterations of a call."""

    interrupts = ()

    def run(self, num_iterations):
        if "before" in self.interrupts:
            raise KeyboardInterrupt
        super().run(num_iterations)
        if "after" in self.interrupts:
            raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("max_profiles", [100, 4])
def test_a_recorder_continues_after_an_interrupt(when, max_profiles):
    solver, expected = Interrupted(KUHN, alternating=False), recorded(CFRSolver(KUHN, alternating=False), 30)
    recorder = PlayRecorder(solver, max_profiles)
    while solver.iteration < 30:
        solver.interrupts = (when,)
        with pytest.raises(KeyboardInterrupt):
            recorder.run(30 - solver.iteration)
        if solver.iteration:
            play = recorder.play()
            assert play.iterations.max() <= solver.iteration == play.num_iterations
        solver.interrupts = ()
        recorder.run(min(1, 30 - solver.iteration))
    play = recorder.play()
    assert len(play) == min(max_profiles, 30)
    np.testing.assert_array_equal(play.policies, expected.policies[play.iterations - 1])


def test_solvers_that_do_not_play_together_are_refused():
    with pytest.raises(TypeError, match=r"cannot record the play of cfr: .*needs iterations with simultaneous updates"):
        PlayRecorder(CFRSolver(KUHN))
    with pytest.raises(TypeError, match="cannot record the play of cfr-br: each player learns alone"):
        PlayRecorder(CFRBRSolver(KUHN))
    solver = CFRSolver(KUHN, alternating=False)
    for options, words in (({"max_profiles": 0}, "profiles must be 1 or more"), ({"seed": -1}, "seed must be from 0")):
        with pytest.raises(ValueError, match=words):
            PlayRecorder(solver, **options)
    with pytest.raises(ValueError, match="no iterations have been recorded"):
        PlayRecorder(solver).play()
    with pytest.raises(ValueError, match="must not be negative"):
        PlayRecorder(solver).run(-1)
