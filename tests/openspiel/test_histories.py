"""The histories of drop-in solvers: merged infostates, deep trees, outcomes of probability 0."""

import games
import numpy as np
import pytest
from games import End, Turn
from open_spiel.python.algorithms import cfr as upstream_cfr

from spiel_cfrplus.openspiel import cfr, cfr_br


def test_deep_trees():
    game = games.chain(2000)
    solver = cfr.CFRPlusSolver(game)
    solver.run(3)
    with pytest.raises(RecursionError):
        upstream_cfr.CFRPlusSolver(game)
    assert solver.iteration == 3


def test_chance_outcomes_of_probability_zero():
    game = games.zero_chance_game()
    ours = cfr.CFRPlusSolver(game)
    ours.run(50)
    assert np.isfinite(ours.average_policy().action_probability_array).all()
    theirs = upstream_cfr.CFRPlusSolver(game)
    with pytest.raises(AssertionError):
        theirs.evaluate_and_update_policy()


def test_infostates_of_players_with_the_same_string_are_merged_as_in_openspiel():
    game = games.shared_string_game()
    solver = cfr.CFRPlusSolver(game)
    solver.run(200)
    assert len(solver._info_state_nodes) == 1
    # One table for both players cannot hold the equilibrium (3/7, 4/7), (2/7, 5/7).
    probability = solver.average_policy().action_probability_array[0, 0]
    assert max(abs(probability - 3 / 7), abs(probability - 2 / 7)) > 0.05
    with pytest.raises(ValueError, match="share information-state strings"):
        cfr_br.CFRBRSolver(game)


@pytest.mark.parametrize("second", [(0, 2), (0, 1, 2)], ids=str)
def test_shared_strings_with_different_actions_are_refused(second):
    ends = {action: End([action, -action]) for action in second}
    root = Turn(0, "my turn", {action: Turn(1, "my turn", ends) for action in (0, 1)})
    game = games.python_game(f"test_shared_string_{len(second)}", root)
    with pytest.raises(ValueError, match=games.mentions("string 'my turn'", "different actions")):
        cfr.CFRSolver(game)
