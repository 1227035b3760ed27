"""Names of actions."""

import games
import pyspiel
import pytest
from games import GAMES, End, Turn

from spiel_cfrplus import compile_game
from spiel_cfrplus.game.action_names import action_name, action_names


@pytest.mark.parametrize("name", ["leduc_poker", "tiny_hanabi", "goofspiel_3", "python_kuhn_poker"])
def test_names_are_openspiels(name):
    tree = compile_game(GAMES[name]()).tree
    expected = []
    for _, state in tree.states(tree.first_history):
        expected += [state.action_to_string(state.current_player(), action) for action in state.legal_actions()]
    assert list(action_names(tree)) == expected


def test_a_game_without_names_has_empty_ones():
    class Nameless(games._TreeState):
        def _action_to_string(self, player, action):
            raise NotImplementedError

    game = games.python_game("python_nameless", Turn(0, "k", {0: End((1.0, -1.0)), 1: End((0.0, 0.0))}), state=Nameless)
    assert action_names(compile_game(game).tree) == ("", "")


def test_chance_has_names():
    assert action_name(pyspiel.load_game("kuhn_poker").new_initial_state(), 2) == "Deal:2"
