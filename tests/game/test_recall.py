"""Perfect recall: errors name the player and two histories that show the violation."""

import games
import pytest
from games import Chance, End, Node, Turn

from spiel_cfrplus import GameTree, SequenceFormGame, compile_game
from spiel_cfrplus.game.recall import AbsentMindedError, ImperfectRecallError


def test_the_error_names_a_forgotten_move():
    # After [0, 0] player 0 remembers nothing of its action 0 at "early", which is action 1 in history [1, 0].
    words = ["player 0", "'0-0-2-later'", "[1, 0]", "[0, 0]", "1 at '0-0-1-early'", "0 at '0-0-1-early'", "perfect recall"]
    with pytest.raises(ImperfectRecallError, match=games.mentions(*words)):
        compile_game(games.forgetful_game())


def test_the_error_names_a_forgotten_decision():
    """Player 1 reaches "late" with or without an earlier decision, which is imperfect recall."""

    def late() -> Node:
        return Turn(1, "late", {0: End([1, -1]), 1: End([-1, 1])})

    game = games.efg_game(Turn(0, "fork", {0: late(), 1: Turn(1, "first", {0: late(), 1: End([0, 0])})}))
    words = ["player 1", "late'", "history [1, 0]", "[0 at '1-1-2-first']", "[] at history [0]", "information_state_string"]
    with pytest.raises(ImperfectRecallError, match=games.mentions(*words)):
        compile_game(game)


def test_the_error_names_an_absent_minded_player():
    words = ["player 0", "'0-0-1-junction'", "history [1]", "absent-minded"]
    with pytest.raises(AbsentMindedError, match=games.mentions(*words)):
        compile_game(games.absent_minded())


def test_absent_mindedness_has_precedence_over_imperfect_recall():
    forgetful, absent_minded = (games.tree_of(load()) for load in (games.forgetful_game, games.absent_minded))
    game = games.efg_game(Chance([0.5, 0.5], [forgetful, absent_minded]))
    with pytest.raises(AbsentMindedError, match=r"history \[1, 1\]: player 0 at infostate '[-0-9]*junction'"):
        compile_game(game)


@pytest.mark.parametrize("error", [ImperfectRecallError, AbsentMindedError])
def test_recall_errors_are_value_errors(error):
    assert issubclass(error, ValueError)


def test_imperfect_recall_is_detected_before_compilation():
    tree = GameTree.from_game(games.forgetful_game())
    assert tree.num_infostates == 3
    with pytest.raises(ImperfectRecallError):
        SequenceFormGame.from_tree(tree)
