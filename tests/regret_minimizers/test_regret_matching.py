"""Discounts whose exponents change until a horizon; for the rest of the family see tests/integration/test_variants.py."""

import functools

import games
import numpy as np
import pytest
from games import GAMES
from published_rules import Scheduled, last_policy
from reference import distance, policy_of

from spiel_cfrplus import ALGORITHMS, Averaging, Solver, make_solver
from spiel_cfrplus.regret_minimizers import ScheduledRegretMatching


def test_scheduled_discounts_in_closed_form():
    # At t = n / 2 = 4 the exponents are 2.5 and -2: 4^2.5 = 32 and 4^-2 = 1/16. At t = n = 8 and later they are 4 and -3.
    factors = ScheduledRegretMatching(8).discounts(np.array([4, 8, 16]))
    expected = [[32 / 33, 1 / 17], [4096 / 4097, 1 / 513], [65536 / 65537, 1 / 4097]]
    assert factors == pytest.approx(np.array(expected), rel=1e-14)


@pytest.mark.parametrize("game", ["kuhn_poker", "random", pytest.param("leduc_poker", marks=pytest.mark.slow)])
def test_scheduled_rules_do_what_the_paper_writes(game):
    loaded = games.random_efg(1) if game == "random" else GAMES[game]()
    solver = make_solver("dcfr", loaded, rule=ScheduledRegretMatching(40), reduce=False)
    solver.run(40)
    expected = last_policy(games.tree_of(loaded), functools.partial(Scheduled, horizon=40), 40)
    assert distance(policy_of(solver.current_profile()), expected) < 1e-9


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"horizon": 0}, ValueError, "planned iterations"),
        ({"horizon": 2.5}, ValueError, "planned iterations"),
        ({"last_alpha": float("inf")}, ValueError, "must be finite, got last_alpha=inf"),
        ({"first_beta": "1"}, TypeError, "the exponent first_beta"),
    ],
)
def test_invalid_schedules_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        ScheduledRegretMatching(**arguments)


@pytest.mark.parametrize("name", ["hs-dcfr", "hs-pcfr+", "hs-pdcfr+"])
def test_rows_with_schedules_have_the_averages_of_the_paper(name, tmp_path):
    assert ALGORITHMS[name].default_averaging == Averaging(30, decrease=5, horizon=1000)
    solver = make_solver(name, GAMES["kuhn_poker"](), averaging="openspiel")
    assert solver.averaging == Averaging(30, "openspiel", decrease=5, horizon=1000)
    solver.run(10)
    solver.save(tmp_path / "saved.npz")
    loaded = Solver.load(tmp_path / "saved.npz", solver.game)
    for each in (solver, loaded):
        each.run(10)
    assert loaded.nash_conv() == solver.nash_conv()
