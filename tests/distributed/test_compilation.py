"""Games in parts: no infostate is in two parts; what the cut cannot divide is joined or refused."""

import games
import numpy as np
import pyspiel
import pytest
from games import Chance, End, Turn

from spiel_cfrplus import compile_game
from spiel_cfrplus.distributed import PartError, compile_in_parts
from spiel_cfrplus.distributed.cut import choose_cut
from spiel_cfrplus.distributed.parts import share_of


def infostates(compiled) -> list[tuple[int, str]]:
    """The player and the string of each infostate, of the top tree and of all parts."""
    pieces = [(own.player, own.infostate_keys) for own in compiled.top.game.treeplexes]
    pieces += [(player, own.infostate_keys) for part in compiled.players for player, own in enumerate(part)]
    return [(player, key) for player, keys in pieces for key in keys]


@pytest.mark.parametrize("ply", [None, 4])
def test_parts_and_top_tree_contain_each_infostate_once(leduc, ply):
    compiled = compile_in_parts(leduc.tree.game, num_parts=5, ply=ply)
    expected = [(own.player, key) for own in leduc.treeplexes for key in own.infostate_keys]
    assert sorted(infostates(compiled)) == sorted(expected)
    assert compiled.num_histories == leduc.tree.num_histories
    assert compiled.is_two_player_constant_sum
    sequences = compiled.share.num_sequences - sum(own.stop - own.start + 1 for own in compiled.share.boundary)
    assert compiled.top.game.num_sequences + sequences == leduc.num_sequences


def test_components_at_a_ply_of_leduc_poker():
    # Counted by union-find over all infostates of the game: 2 after the first action, 37 at ply 6.
    game = games.GAMES["leduc_poker"]()
    assert [choose_cut(game, 100, ply).num_parts for ply in (2, 3, 6)] == [1, 2, 37]


def test_components_are_dealt_to_equal_parts():
    cut = choose_cut(games.GAMES["leduc_poker"](), 8, 6)
    assert cut.num_parts == 8
    assert cut.largest_share < 0.25
    assert np.bincount(cut.part).min() > 0


def test_general_sums_are_not_constant():
    assert not compile_in_parts(games.GAMES["sheriff"]()).is_two_player_constant_sum


def hidden(key: str, last: str) -> Turn:
    """A subtree in which the path of first actions and that of last ones do not pass through `last`."""
    below = Turn(1, last, {0: End([1, -1]), 1: End([-1, 1])})
    return Turn(0, key, {0: End([0, 0]), 1: below, 2: End([2, -2])})


def test_parts_that_share_an_infostate_are_joined():
    game = games.efg_game(Chance([0.5, 0.25, 0.25], [hidden("a", "common"), hidden("b", "common"), hidden("c", "alone")]))
    assert choose_cut(game, 10, 1).num_parts == 3
    compiled = compile_in_parts(game, num_parts=10, ply=1)
    assert compiled.cut.num_parts == 2
    assert compiled.cut.component.tolist() == [0, 0, 1]
    assert compiled.cut.part.tolist() == [0, 0, 1]
    assert len(infostates(compiled)) == compile_game(game).num_infostates == 5


def test_imperfect_recall_across_parts_is_found():
    def forgetful(key: str) -> Turn:
        late = Turn(0, "late", {0: End([1, -1]), 1: End([-1, 1])})
        return Turn(
            0, key, {0: End([0, 0]), 1: Turn(1, f"{key} other", {0: End([0, 0]), 1: late, 2: End([0, 0])}), 2: End([0, 0])}
        )

    game = games.efg_game(Chance([0.5, 0.5], [forgetful("left"), forgetful("right")]))
    assert choose_cut(game, 10, 2).num_parts == 2
    words = [
        "process 0",
        "part 0",
        "late'",
        "perfect recall",
        "1 at '0-0-1-left'",
        "1 at '0-0-3-right'",
        "[1, 1, 1]",
        "[0, 1, 1]",
    ]
    with pytest.raises(PartError, match=games.mentions(*words)):
        compile_in_parts(game, ply=2)


def test_an_infostate_above_and_below_the_cut_is_refused():
    def late() -> Turn:
        return Turn(1, "late", {0: End([1, -1]), 1: End([-1, 1])})

    game = games.efg_game(Turn(0, "early", {0: late(), 1: Chance([0.5, 0.5], [late(), late()])}))
    with pytest.raises(PartError, match=games.mentions("late'", "player 1", "above the cut and below it", "another ply")):
        compile_in_parts(game, ply=2)
    # The automatic cut leaves such histories together.
    assert compile_in_parts(game).num_histories == compile_game(game).tree.num_histories


def test_a_process_without_parts_has_empty_players():
    share = share_of([], 2)
    assert share.num_sequences == 2
    assert share.treeplex_arrays.player_block.tolist() == [0, 1, 2]
    assert len(share.payoff_arrays.entry_utility) == 0
    assert [own.stop - own.start for own in share.boundary] == [0, 0]


def test_a_cut_with_too_many_histories_is_refused():
    with pytest.raises(ValueError, match="more than 40000 histories at ply 6"):
        choose_cut(pyspiel.load_game("tic_tac_toe"), 4, ply=6)


def test_a_cut_below_the_end_of_the_game_is_refused(kuhn):
    with pytest.raises(ValueError, match="ends before ply 9"):
        compile_in_parts(kuhn.tree.game, ply=9)


def test_errors_of_games_name_the_part():
    root = Turn(0, "root", {0: Turn(1, "left", {0: End([1, -1])}), 1: Turn(1, "right", {0: End([float("nan"), 0])})})
    with pytest.raises(PartError, match=games.mentions("process 0, part 1 of 2", "history [1, 0]", "not finite")):
        compile_in_parts(games.python_game("faulty", root), ply=1)
