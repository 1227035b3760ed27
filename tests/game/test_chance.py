"""Chance moves: lists of outcomes that are refused or accepted."""

import games
import numpy as np
import pyspiel
import pytest
from chance_games import guess_the_outcome
from games import Chance, End, Turn, mentions

from spiel_cfrplus import CFRPlusSolver, compile_subgame
from spiel_cfrplus.game.chance import chance_probability
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.size_estimate import estimate_size
from spiel_cfrplus.openspiel import cfr

_UNLABELED = """EFG 2 R "unlabeled outcomes" { "A" "B" } ""
c "" 1 "" { OUTCOMES } 0
p "" 1 1 "left" { "a" "b" } 0
t "" 1 "" { 3 -3 }
t "" 2 "" { 1 -1 }
p "" 1 2 "right" { "a" "b" } 0
t "" 3 "" { 0 0 }
t "" 4 "" { 4 -4 }
"""


def _two_halves(outcomes: str) -> pyspiel.Game:
    """Chance selects a choice between 3 and 1 or one between 0 and 4: the value for player 0 is (3 + 4) / 2."""
    return pyspiel.load_efg_game(_UNLABELED.replace("OUTCOMES", outcomes))


@pytest.mark.parametrize(
    "use",
    [
        GameTree.from_game,
        estimate_size,
        CFRPlusSolver,
        cfr.CFRPlusSolver,
        lambda game: compile_subgame(game.new_initial_state().child(0)),
        lambda game: compile_subgame(game.new_initial_state()),
    ],
    ids=["walk", "estimate", "solver", "drop-in", "subgame below", "subgame from the start"],
)
@pytest.mark.parametrize("outcomes", ['"" 1/2 "" 1/2', '"same" 1/2 "same" 1/2'])
def test_chance_outcomes_with_one_action_id_are_refused(use, outcomes):
    game = _two_halves(outcomes)
    assert [action for action, _ in game.new_initial_state().chance_outcomes()] == [0, 0]
    with pytest.raises(ValueError, match=mentions("efg_game()", "history []", "same action twice", "label the outcomes")):
        use(game)


def test_labeled_chance_outcomes_lead_to_different_branches():
    solver = CFRPlusSolver(_two_halves('"heads" 1/2 "tails" 1/2'))
    solver.run(100)
    assert solver.evaluate().values.tolist() == pytest.approx([3.5, -3.5], abs=1e-2)


class _OddOutcomes(games._TreeState):
    """Chance outcomes that are not (action, probability) pairs."""

    def chance_outcomes(self):
        return self._place.node.probabilities


@pytest.mark.parametrize("outcomes", [[0, 1], [(0, 0.5, 1), (1, 0.5, 1)], [(0, "half"), (1, "half")]])
def test_chance_outcomes_that_are_not_pairs_are_refused(outcomes):
    ends = [Turn(0, "pick", {0: End([1, -1]), 1: End([0, 0])})] * 2
    game = games.python_game("test_odd_outcomes", Chance(outcomes, ends), state=_OddOutcomes)
    with pytest.raises(ValueError, match=mentions("test_odd_outcomes", "history []", "not (action, probability) pairs")):
        GameTree.from_game(game)


@pytest.mark.parametrize("action", [1.5, -1, "1", None, 2**63])
def test_invalid_chance_actions_are_refused(action):
    ends = [Turn(0, "pick", {0: End([1, -1]), 1: End([0, 0])})] * 2
    game = games.python_game("test_odd_outcomes", Chance([(0, 0.5), (action, 0.5)], ends), state=_OddOutcomes)
    for use in (GameTree.from_game, estimate_size):
        with pytest.raises(
            ValueError, match=mentions("test_odd_outcomes", "history []", f"the action {action!r}; actions must be")
        ):
            use(game)


@pytest.mark.parametrize("probabilities", [[0.5, 0.50001], [0.33333] * 3, [0.5, 0.4985], [0.1] * 9, [0.5, float("nan")]])
def test_sums_beyond_the_tolerance_are_refused(probabilities):
    with pytest.raises(ValueError, match=mentions("test_bad_chance", "history []", "not a probability distribution")):
        GameTree.from_game(guess_the_outcome(probabilities))


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([0.166667, 0.333333, 0.499999], [166667 / 999999, 333333 / 999999, 499999 / 999999]),
        ([0.333334, 0.333333, 0.333334], [333334 / 1000001, 333333 / 1000001, 333334 / 1000001]),
        ([0.1] * 10, [0.1] * 10),
    ],
)
def test_the_probability_of_one_outcome_is_that_of_the_compiled_game(probabilities, expected):
    state = guess_the_outcome(probabilities).new_initial_state()
    found = [chance_probability(state, outcome) for outcome in range(len(probabilities))]
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    if expected == probabilities:
        assert found == probabilities
    with pytest.raises(ValueError, match=mentions("history []", "chance has no outcome 10")):
        chance_probability(state, 10)
