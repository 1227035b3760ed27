"""Pictures of Kuhn poker, whose decision process Lecture 8 draws, and of small trees."""

import games
import numpy as np
import pytest
import reference
from games import Chance, End, Turn
from matplotlib.axes import Axes

from spiel_cfrplus import StrategyProfile, compile_game, draw_game, draw_treeplex


def markers(axes: Axes) -> dict[str, int]:
    found = [str(line.get_marker()) for line in axes.lines if line.get_marker() != "None"]
    return {marker: found.count(marker) for marker in found}


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_the_decision_process_of_kuhn_poker(kuhn, tmp_path):
    """Player 0 has 6 decision points and 4 observation points (the deal, and after a pass with each card)."""
    figure = draw_treeplex(kuhn.treeplexes[0], tmp_path / "kuhn.svg")
    # Ends: 3 bets, 3 passes that are followed by a pass, and 2 actions at each of 3 last decision points.
    assert markers(figure.axes[0]) == {"o": 6, "x": 4, "s": 12}
    assert {"j1 0", "j3 2", "j4 0pb", "j6 2pb"} < set(texts(figure.axes[0]))
    assert (tmp_path / "kuhn.svg").read_text().count("<svg") == 1


def test_edges_have_the_probabilities_of_sequences(kuhn):
    profile = StrategyProfile(kuhn, reference.random_probabilities(kuhn, seed=3))
    figure = draw_treeplex(kuhn.treeplexes[1], profile=profile)
    edges = [text.split("\n") for text in texts(figure.axes[0]) if "\n" in text]
    assert {name for name, _ in edges} == {"Pass", "Bet"}
    expected = profile.sequence_form(1)[1:]
    np.testing.assert_allclose(sorted(float(number) for _, number in edges), sorted(expected), rtol=5e-3)


def test_the_tree_of_a_game(tmp_path):
    """A coin that player 0 does not see: its two histories are joined, those of player 1 are not."""
    ends = {0: End([1, -1]), 1: End([2, -2])}
    root = Chance([0.5, 0.5], [Turn(0, "unseen", {0: Turn(1, f"coin {side}", ends), 1: End([0, 0])}) for side in "ht"])
    game = compile_game(games.efg_game(root))
    figure = draw_game(game, tmp_path / "tree.pdf")
    assert markers(figure.axes[0]) == {"D": 1, "o": 4, "s": 6}
    assert texts(figure.axes[0]).count("2\n-2") == 2
    assert sum(line.get_linestyle() == "--" for line in figure.axes[0].lines) == 1
    assert (tmp_path / "tree.pdf").read_bytes().startswith(b"%PDF")


def test_deep_levels_are_omitted(kuhn, leduc):
    assert markers(draw_game(kuhn, depth=2).axes[0]) == {"D": 4, ".": 6}
    assert texts(draw_treeplex(kuhn.treeplexes[0], depth=1).axes[0]).count("...") == 3
    with pytest.raises(ValueError, match=r"would have \d+ leaves, the limit is 300; pass a smaller depth="):
        draw_game(leduc)
    with pytest.raises(ValueError, match="is not one of those"):
        draw_treeplex(kuhn.treeplexes[0], profile=StrategyProfile.uniform(leduc))
    with pytest.raises(ValueError, match=r"must end in one of"):
        draw_game(kuhn, "kuhn.txt")
