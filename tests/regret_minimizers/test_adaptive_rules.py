"""Rules that adapt to regrets against the papers' pseudocode, on whole and reduced games, and in extreme units."""

import functools

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES
from published_rules import VADCFR, APCFRPlus, IncreasingNorm, Smooth, last_policy
from reference import distance, policy_of

from spiel_cfrplus import ALGORITHMS, Averaging, Solver, compile_game, make_solver
from spiel_cfrplus.regret_minimizers import adaptive_rules

WRITTEN_OUT = {
    "apcfr+": APCFRPlus,
    "ireg-pcfr+": functools.partial(IncreasingNorm, prediction_weight=1.0),
    "ireg-cfr+": functools.partial(IncreasingNorm, prediction_weight=0.0),
    "spcfr+": functools.partial(Smooth, kept=0.0),
    "mi-spcfr+": functools.partial(Smooth, kept=1.0),
    "vad-cfr": VADCFR,
    "vad-cfr-core": functools.partial(VADCFR, sensitivity=0.0, boost=1.0, cap=-np.inf),
}
SCALE_FREE = [name for name in WRITTEN_OUT if name != "vad-cfr"]
every_rule = pytest.mark.parametrize("name", WRITTEN_OUT)


def run(name, game, num_iterations, **options):
    solver = make_solver(name, game, **options)
    solver.run(num_iterations)
    return solver


@every_rule
@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        "random",
        "large payoffs",
        pytest.param("leduc_poker", marks=pytest.mark.slow),
    ],
)
def test_rules_do_what_the_papers_write(name, game):
    made = {"random": lambda: games.random_efg(1), "large payoffs": lambda: games.scaled_game(GAMES["kuhn_poker"](), 30.0)}
    loaded = made.get(game, functools.partial(pyspiel.load_game, game))()
    # On Leduc poker a change of one payoff's last bit moves spcfr+ by 3e-8 after 50 iterations.
    num_iterations = 20 if (name, game) == ("spcfr+", "leduc_poker") else 50
    solver = run(name, loaded, num_iterations, reduce=False)
    expected = last_policy(games.tree_of(loaded), WRITTEN_OUT[name], num_iterations)
    assert distance(policy_of(solver.current_profile()), expected) < 1e-9


@pytest.mark.parametrize(
    ("parameters", "same"),
    [({"sensitivity": 0.0, "boost": 1.0, "floor": -1e300}, True), ({"sensitivity": 0.0, "floor": -1e300}, False)],
    ids=["all", "one"],
)
def test_parameters_remove_the_parts_of_vad_cfr(parameters, same):
    rule = adaptive_rules.volatile_predictive_regret_matching.with_parameters(**parameters)
    ablated, core = (run(what, GAMES["kuhn_poker"](), 50, reduce=False) for what in (rule, "vad-cfr-core"))
    difference = np.abs(ablated.current_profile().probabilities - core.current_profile().probabilities).max()
    assert (difference < 1e-12) == same


# Three equal rows of player 0 and two equal columns of player 1, so that merged actions have unequal weights.
TWINS = games.matrix_game([[2, 2, -1], [-1, -1, 1.5], [-1, -1, 1.5], [-1, -1, 1.5]])


@every_rule
def test_a_reduced_game_has_the_same_policies(name):
    whole, reduced = (run(name, TWINS, 50, reduce=reduce) for reduce in (False, True))
    assert reduced.reduction is not None
    profiles = [solver.current_profile().probabilities for solver in (whole, reduced)]
    np.testing.assert_allclose(*profiles, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_rules_do_not_depend_on_the_unit_of_the_payoffs(name, unit):
    # Squares of these payoffs are no float64; where they are computed, only the policies must be valid.
    plain, scaled = (run(name, games.scaled_game(GAMES["kuhn_poker"](), factor), 20, reduce=False) for factor in (1.0, unit))
    probabilities = scaled.current_profile().probabilities
    assert np.isfinite(probabilities).all()
    if name == "vad-cfr-core":
        np.testing.assert_allclose(probabilities, plain.current_profile().probabilities, rtol=0, atol=1e-9)


def test_stored_norms_do_not_decrease():
    solver = make_solver("ireg-pcfr+", GAMES["kuhn_poker"](), reduce=False)
    start = solver.game.treeplex_arrays.sequence_start.astype(int)
    norms = np.zeros(len(start) - 1)
    for _ in range(100):
        solver.run(1)
        squares = np.add.reduceat(solver.self_play.memory.regrets**2, start[:-1])
        assert (np.sqrt(squares) >= norms * (1 - 1e-12)).all()
        norms = np.sqrt(squares)
    assert norms.max() > 0


@every_rule
def test_a_saved_solver_goes_on_alike(name, tmp_path):
    solver = run(name, GAMES["kuhn_poker"](), 10, averaging=Averaging(2))
    solver.save(tmp_path / "saved.npz")
    loaded = Solver.load(tmp_path / "saved.npz", solver.game)
    for each in (solver, loaded):
        each.run(10)
    assert loaded.nash_conv() == solver.nash_conv()
    assert loaded.algorithm.name == name


def test_the_adaptive_rules_of_the_table_are_those_tested():
    rules = {adaptive.function for adaptive in vars(adaptive_rules).values() if hasattr(adaptive, "function")}
    assert {name for name, row in ALGORITHMS.items() if row.rule.function in rules} == set(WRITTEN_OUT)


def test_vad_cfr_is_near_equilibrium_of_kuhn_poker():
    # The listing's average begins at iteration 500.
    assert run("vad-cfr", compile_game(GAMES["kuhn_poker"]()), 1000).nash_conv() < 1e-6
