"""Chance probabilities that do not sum to 1: when they are normalized and when not."""

import warnings

import numpy as np
import pyspiel
import pytest
from chance_games import guess_the_outcome
from games import mentions

from spiel_cfrplus import CFRPlusSolver, compile_game, compile_subgame
from spiel_cfrplus.game.parallel_walk import walk_whole_game
from spiel_cfrplus.openspiel import cfr


def test_chance_probabilities_with_six_decimals_are_normalized_with_one_warning():
    with pytest.warns(UserWarning, match=mentions("test_bad_chance", "history []", "sum to 0.999999")) as notes:
        solver = CFRPlusSolver(guess_the_outcome([0.333333] * 3))
    solver.run(10)
    assert len(notes) == 1
    assert notes[0].filename == __file__
    assert str(notes[0].message).endswith("divided by their sum here")
    tree = solver.game.tree
    assert tree.chance_probability[tree.parent == 0].tolist() == [1 / 3] * 3
    assert solver.evaluate().values[0] == pytest.approx(10 / 3, abs=1e-15)


@pytest.mark.parametrize("probabilities", [[0.019231] * 52, [0.5, 0.5 + 1e-6], [0.5, 0.5 - 9e-7], [0.25, 0.5, 0.250001]])
def test_sums_within_the_tolerance_are_accepted(probabilities):
    with pytest.warns(UserWarning, match="divided by their sum"):
        game = compile_game(guess_the_outcome(probabilities))
    children = game.tree.parent == 0
    np.testing.assert_allclose(game.tree.chance_probability[children], np.array(probabilities) / sum(probabilities), rtol=1e-15)


@pytest.mark.parametrize("probabilities", [[1 / 49] * 49, [0.1] * 10, [1 / 3, 1 / 3, 1 / 3 + 5e-13]])
def test_sums_that_differ_from_1_by_rounding_are_not_normalized(probabilities):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = compile_game(guess_the_outcome(probabilities)).tree
    assert tree.chance_probability[tree.parent == 0].tolist() == probabilities


def test_subgames_have_normalized_probabilities():
    game = guess_the_outcome([0.166667, 0.333333, 0.499999])
    states = [game.new_initial_state().child(outcome) for outcome in range(3)]
    tree = compile_subgame(states).tree
    np.testing.assert_allclose(
        tree.chance_probability[tree.parent == 0], np.array([166667, 333333, 499999]) / 999999, rtol=1e-15
    )


def test_the_drop_in_solver_does_not_normalize_probabilities():
    game = guess_the_outcome([0.333333] * 3)
    mine, theirs = cfr.CFRPlusSolver(game), pyspiel.CFRPlusSolver(game)
    for _ in range(5):
        mine.evaluate_and_update_policy()
        theirs.evaluate_and_update_policy()
    policy = theirs.average_policy()
    for state in (game.new_initial_state().child(0),):
        key = state.information_state_string(0)
        assert mine.average_policy().policy_for_key(key).tolist()[:3] == [p for _, p in policy.get_state_policy(key)]
    tree = mine._histories.tree
    assert tree.chance_probability[tree.parent == 0].tolist() == [0.333333] * 3


def test_walks_do_not_normalize_probabilities():
    record = walk_whole_game(guess_the_outcome([0.333333] * 3))
    assert record.outcome_probabilities.tolist() == [0.333333] * 3
