"""States that are replayed on access, in exports of games that are too deep to store them."""

import tracemalloc

import games
import numpy as np
import pytest
from games import GAMES
from open_spiel.python import policy as openspiel_policy

from spiel_cfrplus import StrategyProfile, compile_game


def test_the_table_of_a_deep_game_stores_no_states(monkeypatch):
    game = games.python_chain(300)
    expected = openspiel_policy.TabularPolicy(game)
    monkeypatch.setattr("spiel_cfrplus.game.replayed_states._MAX_ACTIONS", 1000)
    table = StrategyProfile.uniform(compile_game(game)).to_tabular_policy()
    assert table.state_lookup == expected.state_lookup
    assert table.states_per_player == expected.states_per_player
    np.testing.assert_array_equal(table.action_probability_array, expected.action_probability_array)
    np.testing.assert_array_equal(table.legal_actions_mask, expected.legal_actions_mask)
    assert len(table.states) == 300
    for ours, theirs in zip(table.states[250:], expected.states[250:], strict=True):
        assert ours.history() == theirs.history()
        assert table.action_probabilities(ours) == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize("name", ["leduc_poker", "tiny_hanabi"])
def test_the_table_of_a_deep_game_has_the_tensors_of_its_states(name, monkeypatch):
    monkeypatch.setattr("spiel_cfrplus.game.replayed_states._MAX_ACTIONS", 0)
    game = GAMES[name]()
    table, expected = StrategyProfile.uniform(compile_game(game)).to_tabular_policy(), openspiel_policy.TabularPolicy(game)
    np.testing.assert_array_equal(table.state_in, expected.state_in)
    assert [state.history() for state in table.states] == [state.history() for state in expected.states]


@pytest.mark.slow
def test_a_python_chain_of_20000_plies_is_exported_in_little_memory():
    game = compile_game(games.python_chain(20_000))
    tracemalloc.start()
    table = StrategyProfile.uniform(game).to_tabular_policy()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.action_probability_array.shape == (20_000, 4)
    assert peak < 100e6
    assert table.states[19_999].current_player() in (0, 1)
