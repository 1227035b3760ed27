"""Keys of simultaneous-move games and of their turn-based forms."""

import pyspiel
import pytest

from spiel_cfrplus.game.turn_based import infostate_prefix, is_turn_based_form, is_turn_based_form_of

NAMES = [
    "goofspiel(imp_info=true,num_cards=3)",
    "oshi_zumo(coins=4,size=1,horizon=4)",
    "matching_pennies_3p",
    "matrix_rpsw",
    "blotto",
    "python_iterated_prisoners_dilemma(max_game_length=3)",
]


@pytest.mark.parametrize("name", NAMES)
def test_openspiel_puts_one_line_before_the_string(name):
    game = pyspiel.load_game(name)
    state, turns = game.new_initial_state(), pyspiel.convert_to_turn_based(game).new_initial_state()
    for _ in range(3):
        while turns.is_chance_node():
            action = turns.chance_outcomes()[-1][0]
            turns.apply_action(action)
            state.apply_action(action)
        if turns.is_terminal():
            break
        actions = []
        for player in range(game.num_players()):
            assert turns.current_player() == player
            expected = infostate_prefix(player) + state.information_state_string(player)
            assert turns.information_state_string(player) == expected
            assert turns.legal_actions() == state.legal_actions(player)
            actions.append(turns.legal_actions()[-1])
            turns.apply_action(actions[-1])
        state.apply_actions(actions)


def test_only_the_turn_based_form_of_the_same_game_is_one():
    game = pyspiel.load_game("matrix_rps")
    turn_based = pyspiel.convert_to_turn_based(game)
    assert is_turn_based_form(turn_based)
    assert is_turn_based_form_of(turn_based, game)
    assert not is_turn_based_form_of(turn_based, pyspiel.load_game("matrix_mp"))
    assert not is_turn_based_form_of(turn_based, turn_based)
    assert not is_turn_based_form_of(pyspiel.load_game("kuhn_poker"), pyspiel.load_game("kuhn_poker"))
