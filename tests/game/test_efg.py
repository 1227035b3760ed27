"""Games as `.efg` files, read back by OpenSpiel, and by pygambit where it is installed."""

import fractions

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES, Chance, End, Turn

from spiel_cfrplus import CFRPlusSolver, StrategyProfile, compile_game, compile_subgame, evaluate, lock, write_efg


def subgame_below_two_states():
    states = []
    for second in (1, 2):
        state = GAMES["kuhn_poker"]().new_initial_state()
        for action in (0, second):
            state.apply_action(action)
        states.append(state)
    return compile_subgame(states)


ODD_NUMBERS = Chance(
    [0.1, 0.2, 0.7],
    [End((1e-300, 1e300)), Turn(0, "k", {0: End((1 / 3, -0.0)), 1: End((-1e17, 12345.678))}), End((0.0, 1.0))],
)

CASES = {
    **{
        name: make
        for name, make in GAMES.items()
        if name not in ("leduc_poker", "liars_dice_3", "goofspiel_4", "universal_poker")
    },
    "leduc_poker": GAMES["leduc_poker"],
    "subgame": subgame_below_two_states,
    "locked": lambda: lock(GAMES["kuhn_poker"](), {(0, "0"): {0: 0.7, 1: 0.3}, (1, "2p"): {0: 0.0, 1: 1.0}}),
    "zero_chance": games.zero_chance_game,
    "lone_player": games.lone_player_game,
    "shared_string": games.shared_string_game,
    "odd_numbers": lambda: games.efg_game(ODD_NUMBERS),
}


def written(game, tmp_path):
    write_efg(game, tmp_path / "game.efg")
    return (tmp_path / "game.efg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_openspiel_reads_the_same_game(name, tmp_path):
    game = compile_game(CASES[name]())
    again = compile_game(pyspiel.load_efg_game(written(game, tmp_path)))
    np.testing.assert_array_equal(again.tree.actor, game.tree.actor)
    np.testing.assert_array_equal(again.tree.infostate, game.tree.infostate)
    np.testing.assert_array_equal(again.tree.returns, game.tree.returns)
    np.testing.assert_allclose(again.tree.chance_probability, game.tree.chance_probability, rtol=1e-15, atol=0)
    for treeplex, other in zip(again.treeplexes, game.treeplexes, strict=True):
        np.testing.assert_array_equal(treeplex.parent_sequence, other.parent_sequence)
    solver = CFRPlusSolver(game)
    solver.run(5)
    profile = solver.average_profile()
    values, expected = evaluate(again, StrategyProfile(again, profile.probabilities)), evaluate(game, profile)
    scale = np.abs(game.tree.returns).max()
    np.testing.assert_allclose(values.values, expected.values, rtol=1e-12, atol=1e-12 * scale)
    assert values.nash_conv == pytest.approx(expected.nash_conv, rel=1e-12, abs=1e-12 * scale)


@pytest.mark.parametrize("name", CASES)
def test_chance_probabilities_sum_to_exactly_one(name, tmp_path):
    for line in written(compile_game(CASES[name]()), tmp_path).splitlines():
        if line.startswith("c "):
            numbers = line.partition("{")[2].partition("}")[0].split('"')[2::2]
            assert sum(fractions.Fraction(number.strip()) for number in numbers) == 1


def test_labels_are_distinct_and_on_one_line(tmp_path):
    root = Turn(0, 'a "key"\nof \\ two lines', {2: End((1.0, -1.0)), 5: End((0.0, 0.0))})
    text = written(games.python_game("python_labels", root), tmp_path)
    assert len(text.splitlines()) == 4
    (line,) = [line for line in text.splitlines() if line.startswith("p ")]
    assert line.startswith("""p "" 1 1 "a 'key' of / two lines" { """)
    labels = line.partition("{")[2].split('"')[1::2]
    assert len(labels) == len(set(labels)) == 2
    assert all(labels)


def test_numbers_of_any_size_are_written_without_an_exponent(tmp_path):
    text = written(CASES["odd_numbers"](), tmp_path)
    assert "e-" not in text
    assert "e+" not in text


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "game.efg"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(ValueError, match="simultaneous"):
        write_efg(pyspiel.load_game("matrix_rps"), path)
    assert path.read_text(encoding="utf-8") == "before"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["kuhn_poker", "kuhn_poker_3p", "goofspiel_3", "tiny_hanabi", "subgame", "locked", "odd_numbers"]
)
def test_gambit_reads_the_same_game(name, tmp_path):
    pygambit = pytest.importorskip("pygambit")
    game = compile_game(CASES[name]())
    write_efg(game, tmp_path / "game.efg")
    read = pygambit.read_efg(str(tmp_path / "game.efg"))
    assert [len(player.infosets) for player in read.players] == [treeplex.num_decision_points for treeplex in game.treeplexes]
    profile = read.mixed_behavior_profile()
    values = [float(profile.payoff(player)) for player in read.players]
    expected = evaluate(game, StrategyProfile.uniform(game)).values
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12 * np.abs(game.tree.returns).max())
