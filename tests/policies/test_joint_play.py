"""Joint play: expectations against OpenSpiel and hand computation, marginals, draws."""

import collections
import copy
import itertools
import pickle

import games
import numpy as np
import pyspiel
import pytest
import reference

from spiel_cfrplus import JointPlay, StrategyProfile, compile_game, evaluate

KUHN_3P = compile_game(pyspiel.load_game("kuhn_poker(players=3)"))


def random_play(game, num_profiles=4):
    """Random profiles with random probabilities."""
    policies = [reference.random_probabilities(game, seed) for seed in range(num_profiles)]
    weights = np.random.default_rng(1).random(num_profiles)
    return JointPlay(game, np.array(policies), weights / weights.sum(), np.arange(1, num_profiles + 1), num_profiles)


def in_turn(game):
    """Both players of a 2 x 2 game play their first action, or both their second one, with equal probabilities."""
    game = compile_game(game)
    return JointPlay(game, np.array([[1, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1.0]]), np.array([0.5, 0.5]), np.array([1, 2]), 2)


@pytest.mark.parametrize(
    "name", ["kuhn_poker(players=3)", "sheriff(max_bribe=2,max_items=3,num_rounds=1)", "first_sealed_auction(max_value=3)"]
)
def test_regrets_are_openspiels_deviation_incentives(name):
    game = pyspiel.load_game(name)
    play = random_play(compile_game(game))
    expected = pyspiel.cce_dist(game, play.to_pyspiel()).deviation_incentives
    np.testing.assert_allclose(np.maximum(play.regrets(), 0), expected, rtol=0, atol=1e-12)
    assert play.cce_gap() == pytest.approx(max(expected), abs=1e-12)
    assert max(expected) > 1e-3


def test_values_are_the_means_of_the_profiles():
    play = random_play(KUHN_3P)
    values = [evaluate(KUHN_3P, play.profile(number)).values for number in range(len(play))]
    np.testing.assert_allclose(play.expected_values(), play.probabilities @ values, rtol=0, atol=1e-14)


def test_marginals_are_means_in_sequence_form():
    play = random_play(KUHN_3P)
    marginal = play.marginal_profile()
    for player in range(3):
        strategies = [play.profile(number).sequence_form(player) for number in range(len(play))]
        np.testing.assert_allclose(marginal.sequence_form(player), play.probabilities @ strategies, rtol=0, atol=1e-14)


def test_battle_of_the_sexes_by_hand():
    # Meeting at either place earns (2, 1) or (1, 2), apart 0: the play earns 3/2, the best fixed action 1 for either player.
    # The marginal strategies meet with probability 1/2 and earn 3/4.
    play = in_turn(games.matrix_game([[2, 0], [0, 1]], [[1, 0], [0, 2]]))
    assert play.expected_values().tolist() == [1.5, 1.5]
    assert play.regrets().tolist() == [-0.5, -0.5]
    assert play.cce_gap() == 0
    assert evaluate(play.game, play.marginal_profile()).values.tolist() == [0.75, 0.75]


def test_reweighted_play():
    play = in_turn(games.matrix_game([[2, 0], [0, 1]], [[1, 0], [0, 2]]))
    # The first place with probability 3/4: player 0 earns 7/4 and by going there always 3/2, player 1
    # earns 5/4 and by always going there 3/4.
    other = play.reweighted([3e300, 1e300])
    assert other.probabilities.tolist() == [0.75, 0.25]
    assert other.expected_values().tolist() == [1.75, 1.25]
    assert other.regrets().tolist() == [-0.25, -0.5]
    assert play.probabilities.tolist() == [0.5, 0.5]
    for weights, words in (([1.0], "expected 2 finite numbers"), ([1, -1], "must not be negative"), ([0, 0], "one must be")):
        with pytest.raises(ValueError, match=words):
            play.reweighted(weights)


def test_draws_are_profiles_of_the_play_with_their_probabilities():
    play = random_play(KUHN_3P)
    drawn = list(itertools.islice(play.sampler(seed=3), 400))
    assert all(type(profile) is StrategyProfile for profile in drawn)
    number_of = {play.policies[number].tobytes(): number for number in range(len(play))}
    counts = collections.Counter(number_of[profile.probabilities.tobytes()] for profile in drawn)
    for number, probability in enumerate(play.probabilities.tolist()):
        # Five standard deviations.
        assert counts[number] / 400 == pytest.approx(probability, abs=5 * np.sqrt(probability * (1 - probability) / 400))
    again = list(itertools.islice(play.sampler(seed=3), 20))
    assert [profile.probabilities.tolist() for profile in again] == [p.probabilities.tolist() for p in drawn[:20]]
    with pytest.raises(ValueError, match="seed must be from 0"):
        play.sampler(seed=-1)


def test_plays_are_read_only_and_can_be_pickled():
    play = random_play(KUHN_3P).reweighted([1, 2, 3, 4])
    assert repr(play) == "JointPlay(kuhn_poker(players=3), 4 profiles of 4 iterations)"
    assert play.is_complete
    assert len(play) == 4
    assert copy.deepcopy(play) is play
    twin = pickle.loads(pickle.dumps(play))
    assert twin.cce_gap() == play.cce_gap()
    assert not twin.policies.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        play.probabilities[0] = 1
    values = play.expected_values()
    values[:] = 0
    assert play.expected_values().any()
