"""Pickles of games that OpenSpiel cannot load from their strings, read in a process that has not made them."""

import pickle
import sys

import games
import numpy as np
import pyspiel
import pytest
from fresh_process import run_python

from spiel_cfrplus import compile_game
from spiel_cfrplus.game.portable_games import recipe

THREE_PLAYERS = 'NFG 1 R "three" { "a" "b" "c" } { 2 2 3 }\n\n' + " ".join(str(number) for number in range(36)) + "\n"
GAMES = {
    "efg": lambda: games.random_efg(1),
    "efg of three players": lambda: games.random_efg(2, num_players=3, zero_sum=False),
    "matrix": games.biased_rock_paper_scissors,
    "general-sum matrix": lambda: games.matrix_game([[3, 0, 1], [0, 2, 1]], [[2, 0, 5], [0, 3, 6]]),
    "tensor": lambda: pyspiel.convert_to_turn_based(pyspiel.load_nfg_game(THREE_PLAYERS)),
    # Has the name of a game of OpenSpiel, but other payoffs.
    "false name": lambda: pyspiel.convert_to_turn_based(
        pyspiel.create_matrix_game("matrix_mp", "", ["a", "b"], ["c", "d"], [[1, 2], [3, 5]], [[-1, -2], [-3, -5]])
    ),
    "python": games.GAMES["python_kuhn_poker"],
}


@pytest.mark.parametrize("name", GAMES)
def test_the_restored_game_has_the_same_tree(name):
    game = compile_game(GAMES[name]())
    restored = pickle.loads(pickle.dumps(game))
    assert restored.tree.game is not game.tree.game
    walked = compile_game(restored.tree.game)
    assert walked.fingerprint == restored.fingerprint == game.fingerprint
    np.testing.assert_array_equal(walked.tree.returns, game.tree.returns)
    for history, state in walked.tree.states(walked.tree.first_history):
        ((_, original),) = game.tree.states(np.array([history]))
        player = state.current_player()
        names = [[own.action_to_string(player, action) for action in own.legal_actions()] for own in (state, original)]
        assert names[0] == names[1]


def test_another_process_restores_games_and_imports_the_module_of_a_python_game(tmp_path, monkeypatch):
    (tmp_path / "module_of_a_game.py").write_text("""
import pyspiel
from open_spiel.python.games import kuhn_poker

class Game(kuhn_poker.KuhnPokerGame):
    def __init__(self, params=None):
        pyspiel.Game.__init__(self, TYPE, kuhn_poker._GAME_INFO, params or {})

NAMES = [name for name in dir(kuhn_poker._GAME_TYPE) if not name.startswith("_")]
ARGUMENTS = [
    "long_name", "dynamics", "chance_mode", "information", "utility", "reward_model", "max_num_players", "min_num_players",
    "provides_information_state_string", "provides_information_state_tensor", "provides_observation_string",
    "provides_observation_tensor", "provides_factored_observation_string",
]
TYPE = pyspiel.GameType(short_name="kuhn_of_a_module", **{name: getattr(kuhn_poker._GAME_TYPE, name) for name in ARGUMENTS})
pyspiel.register_game(TYPE, Game)
""")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    import module_of_a_game  # noqa: F401

    made = [GAMES["efg"](), GAMES["tensor"](), pyspiel.load_game("kuhn_of_a_module")]
    compiled = [compile_game(game) for game in made]
    (tmp_path / "games.pickle").write_bytes(pickle.dumps(compiled))
    output = run_python(f"""
import pickle, sys
sys.path.insert(0, {str(tmp_path)!r})
from spiel_cfrplus import compile_game
for game in pickle.load(open({str(tmp_path / "games.pickle")!r}, "rb")):
    print(compile_game(game.tree.game).fingerprint)
""")
    assert output.split() == [game.fingerprint for game in compiled]


def test_games_that_no_process_can_make_have_no_recipe():
    assert recipe(games.python_chain(3)) is None
