"""Situations against OpenSpiel's public observations, and against the players' actions where these are public."""

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES, Chance, End, Turn
from open_spiel.python import observation

from spiel_cfrplus import compile_game
from spiel_cfrplus.display.situations import situations_of

HAND = Chance(
    [0.5, 0.5],
    [Turn(0, f"saw {card}", {2: End([0, 0]), 3: Turn(1, "other", {5: End([1, -1]), 7: End([2, -2])})}) for card in "ab"],
)


def decisions(game):
    """The numbers of the decision histories in preorder, and their states."""
    return game.tree.states(np.flatnonzero(game.tree.actor >= 0))


def assert_same_partition(numbers, keys):
    pairs = set(zip(numbers, keys, strict=True))
    assert len(pairs) == len({number for number, _ in pairs}) == len({key for _, key in pairs})


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "leduc_poker", "python_kuhn_poker"])
def test_situations_are_the_sequences_of_public_observations(name):
    game = compile_game(GAMES[name]())
    public = pyspiel.IIGObservationType(public_info=True, perfect_recall=False, private_info=pyspiel.PrivateInfoType.NONE)
    observer = observation.make_observation(game.tree.game, public)
    found = situations_of(game)
    numbers, keys = [], []
    for history, state in decisions(game):
        past = [game.tree.game.new_initial_state()]
        for action in state.history():
            past.append(past[-1].child(action))
        numbers.append(int(found.of_history[history]))
        keys.append(tuple(observer.string_from(earlier, 0) for earlier in past))
    assert_same_partition(numbers, keys)


@pytest.mark.parametrize("name", ["liars_dice_3", "tiny_hanabi"])
def test_situations_are_the_public_actions_where_chance_is_hidden(name):
    game = compile_game(GAMES[name]())
    found = situations_of(game)
    numbers, keys = [], []
    for history, state in decisions(game):
        numbers.append(int(found.of_history[history]))
        keys.append(tuple(move.action for move in state.full_history() if move.player >= 0))
    assert_same_partition(numbers, keys)


def test_a_hidden_move_leads_to_one_situation():
    """Matching pennies: player 1 does not see the move of player 0."""
    game = compile_game(games.matrix_game([[1, -1], [-1, 1]]))
    found = situations_of(game)
    assert found.child_start.tolist()[:3] == [1, 2, 4]
    assert found.labels[found.label[1]].startswith("hidden: ")
    assert np.diff(found.infostate_start).tolist() == [1, 1, 0, 0]


def test_totals_are_those_of_the_situations_below(leduc):
    found = situations_of(leduc)
    ends = np.zeros(leduc.tree.num_histories)
    ends[leduc.tree.terminal] = 1
    totals = found.totals(ends)
    assert totals[0] == leduc.tree.num_terminals
    for situation in (0, 3, 40):
        history = int(np.flatnonzero(found.of_history == situation)[0])
        while history >= 0 and found.of_history[history] != 0:
            history = int(leduc.tree.parent[history])
        children = slice(*found.child_start[situation : situation + 2])
        inside = ends[found.of_history == situation].sum()
        assert totals[situation] == inside + totals[children].sum()


def test_names_of_actions_are_labels():
    """Player 1 does not see the card, and the test's Python games give both players the string of the player to move."""
    found = situations_of(compile_game(games.python_game("test_situations", HAND)))
    assert {"2", "3", "5", "7"} < set(found.labels)
    assert found.num_situations == len(found.label) == found.child_start[-1]
