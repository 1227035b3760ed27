"""One player's decision process: the lecture's facts about Kuhn poker, and the sequence-form polytope."""

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES
from reference import random_policy

from spiel_cfrplus import Treeplex, compile_game
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, END, DecisionPoint, ObservationPoint

CHECK = FOLD = 0
RAISE = CALL = 1


@pytest.fixture
def kuhn() -> Treeplex:
    return compile_game(GAMES["kuhn_poker"]()).treeplexes[0]


@pytest.fixture
def j(kuhn) -> list[int]:
    """Decision points by the lecture's numbers: j[1], j[2], j[3] hold jack, queen, king, j[4], j[5], j[6] answer a raise."""
    return [-1, *kuhn.breadth_first()]


def all_treeplexes() -> list:
    return [
        pytest.param(name, player, id=f"{name}-{player}")
        for name in ("kuhn_poker", "leduc_poker", "dark_hex_2", "random_efg", "liars_dice_3")
        for player in (0, 1)
    ] + [pytest.param("kuhn_poker_3p", player, id=f"kuhn_poker_3p-{player}") for player in range(3)]


def load_treeplex(name: str, player: int) -> Treeplex:
    return compile_game(GAMES[name]()).treeplexes[player]


# Example L8.3 of Lecture 8: "the TFDP faced by Player 1 in the game of Kuhn poker". OpenSpiel's cards 0, 1, 2 are jack, queen
# and king; its action 0 is check or fold, its action 1 raise or call; the strings are the card and the moves so far.


def test_kuhn_has_six_decision_and_four_observation_points(kuhn, j):
    assert kuhn.num_decision_points == 6
    assert len(kuhn.observation_points) == 4
    assert [kuhn.infostate_keys[point] for point in j[1:]] == ["0", "1", "2", "0pb", "1pb", "2pb"]
    assert [kuhn.actions[list(kuhn.sequences(point))].tolist() for point in j[1:]] == [[CHECK, RAISE]] * 6


def test_parent_sequences_of_kuhn(kuhn, j):
    assert [kuhn.parent_sequence[point] for point in j[1:4]] == [EMPTY_SEQUENCE] * 3
    assert [kuhn.parent_sequence[point] for point in j[4:]] == [kuhn.sequences(point)[CHECK] for point in j[1:4]]


def test_transitions_of_kuhn(kuhn, j):
    k1 = kuhn.after(EMPTY_SEQUENCE)
    assert kuhn.signals(k1) == tuple(DecisionPoint(point) for point in j[1:4])
    assert kuhn.observation_points[0] == k1
    for card in (1, 2, 3):
        after_check = kuhn.after(kuhn.sequences(j[card])[CHECK])
        assert after_check == ObservationPoint(kuhn.sequences(j[card])[CHECK])
        # The opponent raises, or checks and so ends the game.
        assert kuhn.signals(after_check) == (DecisionPoint(j[card + 3]), END)
        assert kuhn.after(kuhn.sequences(j[card])[RAISE]) == END
        assert [kuhn.after(sequence) for sequence in kuhn.sequences(j[card + 3])] == [END, END]


def test_a_single_next_decision_is_not_an_observation():
    """In the idle player's game there is no observation between player 0's action 1 and its second move."""
    treeplex = compile_game(pyspiel.convert_to_turn_based(games.idle_player_game())).treeplexes[0]
    assert treeplex.after(EMPTY_SEQUENCE) == DecisionPoint(0)
    assert [treeplex.after(sequence) for sequence in treeplex.sequences(0)] == [END, DecisionPoint(1)]
    assert treeplex.observation_points == ()


def test_a_player_who_never_acts_has_the_empty_sequence_only():
    (_, idle) = compile_game(games.bad_chance_game([1.0])).treeplexes
    assert (idle.num_decision_points, idle.num_sequences, idle.after(EMPTY_SEQUENCE)) == (0, 1, END)
    assert idle.sequence_form([1.0]).tolist() == idle.uniform_policy().tolist() == [1.0]
    assert idle.contains([1.0])
    assert not idle.contains([0.5])


def test_describe_uses_the_given_action_names(kuhn):
    lines = kuhn.describe(lambda point, action: ["check", "raise"][action]).splitlines()
    assert lines[0] == "root -> k1"
    assert "j4 '0pb': p = (j1, check), rho(j4, check) = end, rho(j4, raise) = end" in lines
    assert "k3 after (j2, check): j5 or end" in lines
    assert len(lines) == 1 + 6 + 4


# The numbering.


@pytest.mark.parametrize(("name", "player"), all_treeplexes())
def test_sequences_are_contiguous_and_parents_smaller(name, player):
    treeplex = load_treeplex(name, player)
    numbered = [sequence for point in range(treeplex.num_decision_points) for sequence in treeplex.sequences(point)]
    assert numbered == list(range(1, treeplex.num_sequences))
    assert treeplex.actions[EMPTY_SEQUENCE] == treeplex.decision_point_of[EMPTY_SEQUENCE] == -1
    for point in range(treeplex.num_decision_points):
        assert treeplex.parent_sequence[point] < treeplex.sequences(point).start
        assert set(treeplex.decision_point_of[list(treeplex.sequences(point))]) == {point}


@pytest.mark.parametrize("field", ["sequence_start", "parent_sequence", "actions", "may_end", "decision_point_of"])
def test_arrays_are_read_only(kuhn, field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(kuhn, field)[0] = 1


# Strategies.


def test_sequence_form_of_kuhn_by_hand(kuhn, j):
    policy = kuhn.uniform_policy()
    policy[list(kuhn.sequences(j[2]))] = [0.75, 0.25]
    policy[list(kuhn.sequences(j[5]))] = [0.4, 0.6]
    reach = kuhn.sequence_form(policy)
    assert reach[EMPTY_SEQUENCE] == 1
    assert reach[list(kuhn.sequences(j[2]))].tolist() == [0.75, 0.25]
    assert reach[list(kuhn.sequences(j[5]))] == pytest.approx([0.75 * 0.4, 0.75 * 0.6], rel=1e-15)
    assert reach[list(kuhn.sequences(j[4]))].tolist() == [0.25, 0.25]


@pytest.mark.parametrize(("name", "player"), all_treeplexes())
def test_conversions_between_behavioral_and_sequence_form_are_inverse(name, player):
    treeplex = load_treeplex(name, player)
    policy = random_policy(treeplex, player)
    reach = treeplex.sequence_form(policy)
    back = treeplex.behavioral_policy(reach)
    for point in range(treeplex.num_decision_points):
        own = treeplex.sequences(point)
        expected = policy[own.start : own.stop] if reach[treeplex.parent_sequence[point]] > 0 else 1 / len(own)
        assert np.allclose(back[own.start : own.stop], expected, rtol=0, atol=1e-14)
    assert np.allclose(treeplex.sequence_form(back), reach, rtol=0, atol=1e-14)
    assert np.allclose(treeplex.behavioral_policy(7 * reach), back, rtol=0, atol=1e-14)


def test_unreached_decision_points_are_uniform(kuhn, j):
    policy = kuhn.uniform_policy()
    policy[list(kuhn.sequences(j[1]))] = [0.0, 1.0]
    policy[list(kuhn.sequences(j[4]))] = policy[list(kuhn.sequences(j[5]))] = [0.9, 0.1]
    back = kuhn.behavioral_policy(kuhn.sequence_form(policy))
    assert back[list(kuhn.sequences(j[4]))].tolist() == [0.5, 0.5]
    assert back[list(kuhn.sequences(j[5]))] == pytest.approx([0.9, 0.1])


def test_the_entry_of_the_empty_sequence_in_a_policy_is_not_read(kuhn):
    policy = random_policy(kuhn, 0)
    expected = kuhn.sequence_form(policy)
    policy[EMPTY_SEQUENCE] = 17
    assert kuhn.sequence_form(policy).tolist() == expected.tolist()


def test_uniform_policy_is_uniform_over_the_actions_of_each_point():
    treeplex = load_treeplex("liars_dice_3", 1)
    for point in range(treeplex.num_decision_points):
        own = treeplex.sequences(point)
        assert treeplex.uniform_policy()[own.start : own.stop].tolist() == [1 / len(own)] * len(own)


def test_conversions_do_not_modify_their_argument(kuhn):
    policy = random_policy(kuhn, 1)
    policy.flags.writeable = False
    reach = kuhn.sequence_form(policy)
    reach.flags.writeable = False
    assert np.shares_memory(reach, kuhn.behavioral_policy(reach)) is False
    assert np.shares_memory(policy, reach) is False


@pytest.mark.parametrize(("name", "player"), all_treeplexes())
def test_the_polytope_contains_every_strategy_and_mixture(name, player):
    treeplex = load_treeplex(name, player)
    strategies = [treeplex.sequence_form(random_policy(treeplex, seed)) for seed in range(5)]
    strategies.append(np.mean(strategies, axis=0))
    assert all(treeplex.contains(strategy) for strategy in strategies)
    assert not treeplex.contains(0.5 * strategies[0])
    assert not treeplex.contains(strategies[0] + strategies[1])


@pytest.mark.parametrize(("name", "player"), [("kuhn_poker", 0), ("dark_hex_2", 1), ("liars_dice_3", 0), ("kuhn_poker_3p", 2)])
def test_the_polytope_excludes_vectors_that_violate_a_constraint(name, player):
    """Exactly one of x[empty] = 1, x >= 0, and sum over a of x[ja] = x[p_j] at each j is violated."""
    treeplex = load_treeplex(name, player)
    violations = []
    for point in range(treeplex.num_decision_points):
        # Play 10 % too much at j, consistently below it: only j's sum is off.
        policy = treeplex.uniform_policy()
        own = treeplex.sequences(point)
        policy[own.start : own.stop] *= 1.1
        violations.append(treeplex.sequence_form(policy))
        if len(own) > 1:  # Sums are right, one probability is negative.
            policy = treeplex.uniform_policy()
            policy[own.start] += 1
            policy[own.start + 1] -= 1
            violations.append(treeplex.sequence_form(policy))
    for factor in (0.9, 1.1):
        violations.append(factor * treeplex.sequence_form(treeplex.uniform_policy()))
    assert [index for index, vector in enumerate(violations) if treeplex.contains(vector)] == []


def test_the_tolerance_of_the_polytope_is_an_argument(kuhn):
    vector = kuhn.sequence_form(kuhn.uniform_policy())
    vector[1] += 1e-6
    assert kuhn.contains(vector, tolerance=1e-5)
    assert not kuhn.contains(vector, tolerance=1e-7)
    assert not kuhn.contains(np.full(kuhn.num_sequences, np.nan))


@pytest.mark.parametrize("method", ["sequence_form", "behavioral_policy", "contains"])
@pytest.mark.parametrize("shape", [(12,), (14,), (1, 13), ()])
def test_vectors_of_another_shape_are_refused(kuhn, method, shape):
    with pytest.raises(ValueError, match="one number for each of 13 sequences"):
        getattr(kuhn, method)(np.ones(shape))
