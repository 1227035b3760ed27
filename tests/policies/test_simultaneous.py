"""Policies of simultaneous-move games and of their turn-based forms, one read as the other."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

from spiel_cfrplus import CFRPlusSolver, StrategyProfile, compile_game, expected_values, read_policy

NAMES = ["goofspiel(imp_info=true,num_cards=3)", "matching_pennies_3p", "matrix_rpsw", "nfg", "blotto(coins=3,fields=2)"]


def load(name):
    if name == "nfg":
        return pyspiel.create_matrix_game([[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]])
    return pyspiel.load_game(name)


def random_table(game):
    table = openspiel_policy.TabularPolicy(game)
    weights = table.legal_actions_mask * np.random.default_rng(0).exponential(size=table.action_probability_array.shape)
    table.action_probability_array = weights / weights.sum(axis=1, keepdims=True)
    return table


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_the_simultaneous_game_is_read_and_written(name):
    game = load(name)
    table = random_table(game)
    profile = read_policy(pyspiel.convert_to_turn_based(game), table)
    expected = expected_game_score.policy_value(game.new_initial_state(), table)
    np.testing.assert_allclose(expected_values(profile.game, profile), expected, rtol=0, atol=1e-12)
    again = profile.to_tabular_policy(game)
    assert again.state_lookup == table.state_lookup
    np.testing.assert_array_equal(again.action_probability_array, table.action_probability_array)
    value = expected_game_score.policy_value(game.new_initial_state(), profile)  # asked at states of the simultaneous game
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_dictionaries_of_the_simultaneous_game_are_read_and_written(name):
    game = load(name)
    solver = CFRPlusSolver(pyspiel.convert_to_turn_based(game))
    solver.run(5)
    profile = solver.average_profile()
    for table in (profile.to_dict(game), profile.to_pyspiel_policy(game), profile.to_dict()):
        np.testing.assert_array_equal(read_policy(profile.game, table).probabilities, profile.probabilities)
    assert set(profile.to_dict(game)) == set(openspiel_policy.TabularPolicy(game).state_lookup)


def test_tables_in_which_players_share_a_string_are_refused():
    """OpenSpiel's own table of this game has one row for two players whose legal actions differ."""
    game = pyspiel.load_game("goofspiel(num_cards=3)")
    compiled = compile_game(pyspiel.convert_to_turn_based(game))
    with pytest.raises(ValueError, match="plays the illegal action"):
        read_policy(compiled, openspiel_policy.TabularPolicy(game))
    profile = StrategyProfile.uniform(compiled)
    for write in (profile.to_dict, profile.to_tabular_policy, profile.to_pyspiel_policy):
        with pytest.raises(ValueError, match="two players share the information-state string"):
            write(game)


def test_other_games_are_refused():
    game, other = pyspiel.load_game("matrix_rps"), pyspiel.load_game("matrix_mp")
    profile = StrategyProfile.uniform(compile_game(pyspiel.convert_to_turn_based(game)))
    for write in (profile.to_dict, profile.to_tabular_policy, profile.to_pyspiel_policy):
        with pytest.raises(ValueError, match="belongs to another game"):
            write(other)
    with pytest.raises(ValueError, match="belongs to another game"):
        profile.action_probabilities(other.new_initial_state(), 0)
    with pytest.raises(ValueError, match="no entry for infostate"):
        read_policy(profile.game, random_table(pyspiel.load_game("goofspiel(imp_info=true,num_cards=3)")))


def test_additional_infostates_are_refused():
    game = pyspiel.load_game("matrix_rps")
    profile = StrategyProfile.uniform(compile_game(pyspiel.convert_to_turn_based(game)))
    with pytest.raises(ValueError, match="such as 'more'"):
        read_policy(profile.game, {**profile.to_dict(game), "more": [(0, 1.0)]})
