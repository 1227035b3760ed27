"""Estimates of game sizes compared with sizes counted by independent programs."""

import math
import statistics

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES

from spiel_cfrplus import compile_game
from spiel_cfrplus.game import size_estimate
from spiel_cfrplus.game.size_estimate import SizeEstimate, estimate_size
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES

# Kuhn and Leduc poker and tic-tac-toe were counted by a program that computed game values by linear programming, 617 by hand:
# 1 + 4 + 12 histories before the last card, then 24 deals of 25 histories each. In liars_dice with m-sided dice the bids of a
# deal are any ascending sequence of the 2m that there are, and all but the empty one may be followed by a claim.
SIZES = {
    "kuhn_poker": 58,
    "leduc_poker": 9457,
    "liars_dice": 1 + 6 + 36 * (2**13 - 1),
    "tic_tac_toe": 549946,
    "liars_dice(dice_sides=7)": 1 + 7 + 49 * (2**15 - 1),
    "liars_dice(dice_sides=8)": 1 + 8 + 64 * (2**17 - 1),
    "liars_dice(dice_sides=9)": 1 + 9 + 81 * (2**19 - 1),
    "kuhn_poker(players=3)": 617,
}


@pytest.mark.parametrize("name", SIZES)
def test_estimates_are_accurate(name):
    estimate = estimate_size(pyspiel.load_game(name))
    assert estimate.is_complete
    assert estimate.num_histories == pytest.approx(SIZES[name], rel=0.06)


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel_3", "python_kuhn_poker", "dark_hex_2"])
def test_small_games_are_counted_exactly(name):
    tree = compile_game(GAMES[name]()).tree
    estimate = estimate_size(GAMES[name]())
    assert estimate.num_histories == tree.num_histories
    assert estimate.num_decisions == np.count_nonzero(tree.actor >= 0)


def test_estimates_are_deterministic_and_do_not_use_the_global_generator():
    game = pyspiel.load_game("liars_dice")
    first = estimate_size(game)
    assert estimate_size(game) == first != estimate_size(game, seed=1)


@pytest.mark.parametrize(
    ("load", "probes"), [(GAMES["leduc_poker"], 40), (GAMES["kuhn_poker"], 3), (lambda: games.random_efg(3, depth=7), 7)]
)
def test_estimates_are_unbiased(load, probes, monkeypatch):
    # Few probes, so that all ways of choosing matter: kinds with a probe, with less than one, and edges that are always chosen.
    game = load()
    size = compile_game(game).tree.num_histories
    monkeypatch.setattr(size_estimate, "PROBES", probes)
    estimates = [estimate_size(game, seed).num_histories for seed in range(400)]
    deviation = statistics.stdev(estimates)
    assert deviation > 0.01 * size
    # Four standard errors: by chance once in some 15,000 cases, and the seeds are fixed.
    assert statistics.fmean(estimates) == pytest.approx(size, abs=4 * deviation / math.sqrt(400))


def test_estimates_of_games_that_are_too_large_or_too_deep_are_incomplete():
    chess = estimate_size(pyspiel.load_game("chess"))
    assert not chess.is_complete
    assert chess.num_histories > MOST_HISTORIES
    chain = estimate_size(games.python_chain(20_000))
    assert not chain.is_complete
    assert 10_000 < chain.num_histories < 40_001


def test_games_that_cannot_be_walked_are_refused():
    with pytest.raises(ValueError, match=r"convert it first: pyspiel\.convert_to_turn_based"):
        estimate_size(pyspiel.load_game("goofspiel"))


def test_games_without_information_states_are_refused_as_by_the_walk():
    # Its first decisions are beyond what is looked at before a walk.
    with pytest.raises(ValueError, match=r"crazy_eights\(\) has no information-state strings"):
        estimate_size(pyspiel.load_game("crazy_eights"))


def test_memory_grows_with_infostates():
    estimate = estimate_size(pyspiel.load_game("tic_tac_toe"))
    # All of the 294778 decisions are infostates: that many strings and list entries.
    assert estimate.most_bytes - estimate.least_bytes > 0.9 * 294778 * estimate.key_bytes
    assert estimate.key_bytes > 49  # an empty string
    assert 40 < estimate.least_bytes / estimate.num_histories < 200


@pytest.mark.parametrize(
    ("num_decisions", "words"),
    [
        (0, "10100.0 GB"),  # 45 bytes for a history, 20 for each of two players and 8 for each ordered pair of them
        (1e9, "10100.0 to 10460.0 GB, depending on the number of infostates"),
    ],
)
def test_memory_is_a_range_only_if_its_ends_differ(num_decisions, words):
    size = SizeEstimate(2, num_histories=1e11, num_decisions=num_decisions, key_bytes=0, is_complete=True)
    assert size.memory == words
