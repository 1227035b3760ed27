"""Tables of running solvers: against OpenSpiel's solver, on reduced games, and for learners without regrets."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import cfr

from spiel_cfrplus import CFRPlusSolver, CFRSolver, Solver, infostate_table, make_solver, solver_table
from spiel_cfrplus.regret_minimizers import CFR, RegretMatching

COLUMNS = [
    "player",
    "infostate",
    "action",
    "action_name",
    "current_probability",
    "average_probability",
    "cumulative_regret",
]


@pytest.mark.parametrize("name", ["kuhn_poker", "liars_dice(dice_sides=3)"])
def test_regrets_and_policies_are_openspiels(name):
    """Liar's dice iterates on a reduction."""
    game = pyspiel.load_game(name)
    solver, theirs = CFRSolver(game), cfr.CFRSolver(game)
    solver.run(3)
    for _ in range(3):
        theirs.evaluate_and_update_policy()
    assert (solver.reduction is None) == (name == "kuhn_poker")
    table, nodes = solver_table(solver), theirs._info_state_nodes
    assert list(table.columns) == COLUMNS
    assert len(table) == sum(len(node.legal_actions) for node in nodes.values())
    current = theirs.current_policy()
    rows = zip(
        *(table[name].tolist() for name in ("infostate", "action", "current_probability", "cumulative_regret")), strict=True
    )
    for infostate, action, probability, regret in rows:
        assert regret == pytest.approx(nodes[infostate].cumulative_regret[action], abs=1e-12)
        assert probability == pytest.approx(current.policy_for_key(infostate)[action], abs=1e-12)
    assert np.abs(table["cumulative_regret"]).max() > 0.1


def test_rows_are_those_of_infostate_tables(leduc):
    solver = CFRPlusSolver(leduc)
    solver.run(10)
    table, of_average = solver_table(solver), infostate_table(solver.average_profile())
    for name in COLUMNS[:4]:
        assert table[name].tolist() == of_average[name].tolist()
    assert table["average_probability"].tolist() == of_average["probability"].tolist()
    assert table["cumulative_regret"].min() == 0
    solver.run(1)
    assert table["average_probability"].tolist() == of_average["probability"].tolist()


def test_solvers_in_python_have_tables(kuhn):
    solver = Solver.of_minimizers(kuhn, lambda treeplex: CFR(treeplex, RegretMatching()))
    compiled = CFRSolver(kuhn)
    for each in (solver, compiled):
        each.run(7)
    tables = [solver_table(each) for each in (solver, compiled)]
    np.testing.assert_allclose(*(table["cumulative_regret"] for table in tables), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["cfr_hedge", "multiplicative_weights"])
def test_learners_without_regrets_have_a_table_that_says_so(kuhn, name):
    table = solver_table(make_solver(name, kuhn))
    assert list(table.columns) == COLUMNS[:-1]
    with pytest.raises(KeyError, match="no column cumulative_regret: its regret minimizers have no regret for each action"):
        table["cumulative_regret"]
    assert str(table).splitlines()[-1] == "(no cumulative_regret: its regret minimizers have no regret for each action)"
    assert table.of_infostate(0, "1").no_regrets


def test_large_tables_print_some_rows(leduc):
    lines = str(solver_table(CFRSolver(leduc))).splitlines()
    assert lines[-1] == "(60 of 2184 rows)"
    assert lines[0].split() == COLUMNS


def test_only_solvers_have_solver_tables(kuhn):
    with pytest.raises(TypeError, match=r"expected a solver, .*infostate_table is for profiles"):
        solver_table(CFRSolver(kuhn).average_profile())
