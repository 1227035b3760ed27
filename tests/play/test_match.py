"""Matches, compared with OpenSpiel's expected values, and with standard deviations by enumeration of the tree."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, End, Node, mentions, tree_of
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from open_spiel.python.bots import uniform_random

from spiel_cfrplus import Match, ProfileBot, StrategyProfile, compile_game, compile_subgame, lock, play_match, restrict

NAMES = ["kuhn_poker", "kuhn_poker_3p", "sheriff", "goofspiel_3", "python_kuhn_poker"]
NUM_GAMES = 100_000


@functools.cache
def random_profile(name: str, seed: int) -> StrategyProfile:
    game = compile_game(GAMES[name]())
    return StrategyProfile(game, reference.random_probabilities(game, seed))


def openspiel_values(profiles: list[StrategyProfile]) -> list[float]:
    """The players' expected utilities, by OpenSpiel, if player p plays its part of the p-th profile."""
    state = profiles[0].game.tree.game.new_initial_state()
    return list(expected_game_score.policy_value(state, [profile.to_pyspiel_policy() for profile in profiles]))


def standard_deviation(root: Node, policy: reference.Policy, player: int) -> float:
    def moments(node: Node) -> np.ndarray:
        if isinstance(node, End):
            return np.array([node.returns[player], node.returns[player] ** 2])
        return sum(p * moments(child) for p, child in reference.branches(node, policy))

    mean, square = moments(root)
    return math.sqrt(square - mean**2)


def assert_plausible(match: Match) -> None:
    """The means are within five standard errors of the expected values."""
    for score in match.scores + match.by_seat:
        assert score.expected is not None
        assert abs(score.mean - score.expected) <= 5 * score.standard_error


# Policies.


@pytest.mark.parametrize("name", NAMES)
def test_means_and_expected_values(name):
    profile = random_profile(name, 1)
    match = play_match(profile.game, profile, NUM_GAMES, seed=2)
    assert [score.expected for score in match.scores] == pytest.approx(openspiel_values([profile] * profile.game.num_players))
    assert [score.participant for score in match.scores] == list(range(profile.game.num_players))
    assert [score.num_games for score in match.scores] == [NUM_GAMES] * profile.game.num_players
    assert match.by_seat == match.scores
    assert_plausible(match)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "goofspiel_3"])
def test_standard_errors(name):
    profile = random_profile(name, 1)
    root, policy = tree_of(profile.game.tree.game), reference.policy_of(profile)
    for player, score in enumerate(play_match(profile.game, profile, NUM_GAMES).scores):
        sigma = standard_deviation(root, policy, player)
        assert score.standard_error == pytest.approx(sigma / math.sqrt(NUM_GAMES), rel=0.02)
        # the two-sided 95 % quantile of the normal distribution is 1.959964
        low, high = score.confidence_interval
        assert (low, high) == pytest.approx((score.mean - 1.959964 * score.standard_error, 2 * score.mean - low))


def test_confidence_intervals_contain_the_expected_value_with_their_probability(kuhn):
    """Of 400 intervals of 80 %, 320 do on average, with a standard deviation of 8."""
    uniform = StrategyProfile.uniform(kuhn)
    matches = [play_match(kuhn, uniform, 1000, seed, confidence=0.8).scores[0] for seed in range(400)]
    hits = sum(score.confidence_interval[0] <= score.expected <= score.confidence_interval[1] for score in matches)
    assert abs(hits - 320) <= 4 * 8


def test_the_seed_determines_the_match(kuhn):
    uniform = StrategyProfile.uniform(kuhn)
    assert play_match(kuhn, uniform, 1000, 3) == play_match(kuhn, uniform, 1000, 3)
    assert play_match(kuhn, uniform, 1000, 3) != play_match(kuhn, uniform, 1000, 4)


def test_a_billion_games(leduc):
    match = play_match(leduc, StrategyProfile.uniform(leduc), 10**9)
    assert match.scores[0].standard_error < 2e-4
    assert_plausible(match)


def test_a_certain_result_has_no_error():
    """Rock against paper loses 1."""
    game = pyspiel.load_game("matrix_rps")
    state = game.new_initial_state()
    rock, paper = ({state.information_state_string(action): {action: 1.0}} for action in (0, 1))
    score = play_match(game, [rock, paper], 10).scores[0]
    assert (score.mean, score.standard_error, score.confidence_interval, score.expected) == (-1, 0, (-1, -1), -1)


def test_every_kind_of_policy(kuhn):
    game, uniform = kuhn.tree.game, StrategyProfile.uniform(kuhn)
    expected = play_match(kuhn, uniform, 1000)
    for policy in (
        uniform.to_tabular_policy(),
        uniform.to_pyspiel_policy(),
        uniform.to_dict(),
        openspiel_policy.UniformRandomPolicy(game),
        pyspiel.UniformRandomPolicy(game),
    ):
        assert play_match(game, policy, 1000) == expected
        assert play_match(kuhn, [policy, uniform], 1000) == expected


def test_a_policy_for_one_player_needs_its_infostates_only(kuhn):
    passes, bets = ({key: {action: 1.0} for key in kuhn.treeplexes[action].infostate_keys} for action in (0, 1))
    assert play_match(kuhn, [passes, bets], 10).scores[0].mean == -1  # folds to every bet
    with pytest.raises(ValueError, match="no entry for infostate"):
        play_match(kuhn, [passes, bets], 10, swap_seats=True)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p"])
def test_swapped_seats(name):
    profiles = [random_profile(name, seed) for seed in (1, 100, 200)][: compile_game(GAMES[name]()).num_players]
    n = len(profiles)
    match = play_match(profiles[0].game, profiles, NUM_GAMES + 1, swap_seats=True)
    assert [(score.participant, score.seat) for score in match.by_seat] == [(i, seat) for i in range(n) for seat in range(n)]
    assert_plausible(match)
    expected = np.zeros((n, n))
    for rotation in range(n):
        values = openspiel_values([profiles[(seat - rotation) % n] for seat in range(n)])
        for seat in range(n):
            expected[(seat - rotation) % n, seat] = values[seat]
    assert np.reshape([score.expected for score in match.by_seat], (n, n)) == pytest.approx(expected)
    assert [score.expected for score in match.scores] == pytest.approx(expected.mean(axis=1))
    for i, score in enumerate(match.scores):
        own = match.by_seat[n * i : n * (i + 1)]
        assert score.seat is None
        assert score.num_games == sum(one.num_games for one in own) == NUM_GAMES + 1
        assert score.mean == pytest.approx(sum(one.mean for one in own) / n)
        assert score.standard_error == pytest.approx(math.sqrt(sum(one.standard_error**2 for one in own)) / n)


def test_subgames_and_changed_games(kuhn):
    state = kuhn.tree.game.new_initial_state()
    for action in (2, 0, 1):  # player 0 has the king and bets
        state.apply_action(action)
    # Player 1 has the jack, and folds or calls: player 0 wins 1 or 2.
    below = compile_subgame(state)
    match = play_match(below, StrategyProfile.uniform(below), NUM_GAMES)
    assert match.scores[0].expected == 1.5
    assert "below" in match.game
    assert_plausible(match)
    model = random_profile("kuhn_poker", 1)
    for game in (lock(kuhn, {(0, "0"): {0: 0.25, 1: 0.75}}), restrict(kuhn, model, 0.3, 0)):
        match = play_match(game, StrategyProfile.uniform(game), NUM_GAMES)
        assert match.game == game.description
        assert_plausible(match)


# Bots.


def bot_of(profile: StrategyProfile, seed: int = 1):
    return lambda player: ProfileBot(profile, player, seed + player)


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "python_kuhn_poker"])
def test_bots_earn_what_their_policies_earn(name):
    profile = random_profile(name, 1)
    match = play_match(profile.game.tree.game, bot_of(profile), 2000)
    values = openspiel_values([profile] * profile.game.num_players)
    root, policy = tree_of(profile.game.tree.game), reference.policy_of(profile)
    for player, (score, value) in enumerate(zip(match.scores, values, strict=True)):
        assert score.expected is None
        sigma = standard_deviation(root, policy, player)
        assert score.standard_error == pytest.approx(sigma / math.sqrt(2000), rel=0.1)
        assert abs(score.mean - value) <= 4 * score.standard_error


def test_bots_against_policies_with_swapped_seats():
    profile, opponent = random_profile("kuhn_poker", 1), random_profile("kuhn_poker", 100)
    match = play_match(profile.game, [bot_of(profile), opponent], 4000, swap_seats=True)
    exact = play_match(profile.game, [profile, opponent], 4, swap_seats=True)
    for score, other in zip(match.scores + match.by_seat, exact.scores + exact.by_seat, strict=True):
        assert (score.participant, score.seat) == (other.participant, other.seat)
        assert abs(score.mean - other.expected) <= 4 * score.standard_error
    assert match == play_match(profile.game, [bot_of(profile), opponent], 4000, swap_seats=True)


def test_simultaneous_moves():
    """Goofspiel in its simultaneous form: bots and policies earn what the profile of the turn-based form earns."""
    game = pyspiel.load_game("goofspiel(imp_info=True,num_cards=3,points_order=descending)")
    profile = random_profile("goofspiel_3", 1)
    [value, _] = openspiel_values([profile] * 2)
    exact = play_match(game, profile, NUM_GAMES)
    assert exact.scores[0].expected == pytest.approx(value)
    assert_plausible(exact)
    bots = play_match(game, [bot_of(profile), profile], 2000)
    assert abs(bots.scores[0].mean - value) <= 4 * bots.scores[0].standard_error


def test_openspiels_bots_play_games_that_are_too_large_to_compile():
    game = pyspiel.load_game("connect_four")
    bots = [pyspiel.make_uniform_random_bot(0, 1), uniform_random.UniformRandomBot(1, np.random.RandomState(1))]
    match = play_match(game, bots, 20)
    assert -1 <= match.scores[0].mean == -match.scores[1].mean <= 1


# What is printed.


def test_the_result_prints_as_a_table(kuhn):
    passes, bets = ({key: {action: 1.0} for key in kuhn.treeplexes[action].infostate_keys} for action in (0, 1))
    assert str(play_match(kuhn, [passes, bets], 10, 7, confidence=0.9)).splitlines() == [
        "kuhn_poker(), seed 7",
        "participant  seat  games       mean  standard error            90% interval   expected",
        "          0     0     10  -1.000000        0.000000  [-1.000000, -1.000000]  -1.000000",
        "          1     1     10   1.000000        0.000000    [1.000000, 1.000000]   1.000000",
    ]
    swapped = repr(play_match(kuhn, StrategyProfile.uniform(kuhn), 10, swap_seats=True)).splitlines()
    assert len(swapped) == 2 + 4 + 2
    assert [line.split()[:3] for line in swapped[-2:]] == [["0", "all", "10"], ["1", "all", "10"]]
    bots = repr(play_match(kuhn, bot_of(StrategyProfile.uniform(kuhn)), 10)).splitlines()
    assert [line.split()[-1] for line in bots[-2:]] == ["-", "-"]


# Errors.


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_games": 1}, ValueError, "number of games must be 2 or more"),
        ({"num_games": 3, "swap_seats": True}, ValueError, "number of games must be 4 or more"),
        ({"num_games": 1e6}, TypeError, "number of games must be an integer"),
        ({"seed": -1}, ValueError, "seed"),
        ({"confidence": 1}, ValueError, "confidence must be between 0 and 1"),
        ({"confidence": 0.0}, ValueError, "confidence must be between 0 and 1"),
        ({"confidence": float("nan")}, ValueError, "confidence must be between 0 and 1"),
        ({"game": "kuhn_poker"}, TypeError, "expected a pyspiel.Game or a compiled game"),
        ({"participants": []}, ValueError, "has 2 players, got 0 participants"),
        ({"participants": pyspiel.make_uniform_random_bot(0, 1)}, ValueError, "has 2 players, got 1 participants"),
        ({"participants": "uniform"}, TypeError, "expected a StrategyProfile"),
        ({"participants": lambda player: "bot"}, TypeError, "the bot of player 0 is 'bot', not a pyspiel.Bot"),
    ],
)
def test_bad_arguments(kuhn, options, error, words):
    arguments = {"game": kuhn, "participants": StrategyProfile.uniform(kuhn), "num_games": 10, **options}
    with pytest.raises(error, match=mentions(words)):
        play_match(**arguments)


def test_bots_that_cannot_play_are_refused(kuhn):
    uniform = StrategyProfile.uniform(kuhn)
    with pytest.raises(ValueError, match=mentions("swap_seats", "function that makes the bot")):
        play_match(kuhn, [ProfileBot(uniform, 0), uniform], 10, swap_seats=True)
    locked = lock(kuhn, {(0, "0"): {0: 0.25, 1: 0.75}})
    with pytest.raises(ValueError, match=mentions("whole games only", "1 infostates locked")):
        play_match(locked, [bot_of(uniform), uniform], 10)
