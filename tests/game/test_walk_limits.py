"""Limits of walks: histories, seconds, memory, Ctrl-C."""

import math
import signal
import time
import warnings

import games
import numpy as np
import pyspiel
import pytest
from games import GAMES, mentions

from spiel_cfrplus import CFRPlusSolver, SequenceFormGame, compile_game, compile_subgame
from spiel_cfrplus.game import size_estimate, walk
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.size_estimate import LargeGameWarning, estimate_size

LEDUC = pyspiel.load_game("leduc_poker")
# Its walk takes hours.
HEARTS = "hearts"


def test_a_game_whose_chance_moves_never_end_is_refused_at_the_limit():
    game = games.endless_chance_game()
    for walk_of in (compile_game, GameTree.from_game, lambda game, **limit: compile_subgame(game.new_initial_state(), **limit)):
        with pytest.raises(ValueError, match=r"test_endless_chance\(\) has more than max_histories=1500 histories"):
            walk_of(game, max_histories=1500)
    with pytest.raises(TimeoutError):
        compile_game(game, time_limit=0.2)
    assert not estimate_size(game, time_limit=0.2).is_complete


def test_the_limit_applies_above_the_cut(monkeypatch):
    monkeypatch.setattr("spiel_cfrplus.game.parallel_walk.why_copies_differ", lambda game: None)
    game = games.endless_chance_game()
    with pytest.raises(ValueError, match="max_histories=20 "):
        compile_game(game, processes=2, max_histories=20)
    with pytest.raises(TimeoutError):
        compile_game(game, processes=2, time_limit=0)


def test_ctrl_c_ends_an_infinite_walk():
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            compile_game(games.endless_chance_game())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.filterwarnings("ignore::spiel_cfrplus.game.size_estimate.LargeGameWarning")
@pytest.mark.parametrize("options", [{}, {"processes": 2}])
def test_the_time_limit_stops_the_walk(options):
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"hearts\(\): the walk reached the time limit after \d+ histories"):
        compile_game(pyspiel.load_game(HEARTS), time_limit=0.5, **options)
    assert 0.5 <= time.monotonic() - started < 30  # the machine may be busy


def test_the_time_limit_stops_a_walk_that_is_to_be_cached(tmp_path):
    game = pyspiel.load_game("liars_dice(dice_sides=8)")
    with pytest.raises(TimeoutError, match=r"liars_dice\(dice_sides=8\): the walk reached the time limit"):
        compile_game(game, time_limit=0.2, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_time_limit_that_is_not_reached_changes_nothing():
    for limit in (60, 1e300, math.inf):
        assert compile_game(LEDUC, time_limit=limit).fingerprint == compile_game(LEDUC).fingerprint
    assert estimate_size(LEDUC, time_limit=1e300) == estimate_size(LEDUC)
    assert compile_game(LEDUC, max_histories=2**70).tree.num_histories == 9457


@pytest.mark.parametrize(
    "limit", [{"time_limit": -1}, {"time_limit": math.nan}, {"max_histories": 0}, {"max_histories": -5}], ids=str
)
def test_invalid_limits_are_refused(limit):
    (name,) = limit
    with pytest.raises(ValueError, match=f"{name} must be"):
        compile_game(LEDUC, **limit)
    with pytest.raises(ValueError, match=f"{name} must be"):
        compile_subgame(LEDUC.new_initial_state(), **limit)


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with so little memory that Leduc poker does not fit."""
    monkeypatch.setattr(size_estimate, "LARGE_GAME", 5000)
    monkeypatch.setattr(size_estimate, "available_bytes", lambda: 600_000)


@pytest.mark.parametrize("options", [{}, {"processes": 2}])
def test_a_game_that_exceeds_the_memory_causes_a_warning(options, small_machine):
    words = games.mentions("leduc_poker()", "histories (estimated)", "0.0 GB are available", "max_histories")
    with pytest.warns(LargeGameWarning, match=words) as caught:
        CFRPlusSolver(LEDUC) if not options else compile_game(LEDUC, **options)
    assert len(caught) == 1


def test_games_that_fit_or_are_limited_or_small_cause_no_warning(small_machine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_game(pyspiel.load_game("kuhn_poker"))
        with pytest.raises(ValueError, match="max_histories=5200"):  # 5200 histories fit
            compile_game(LEDUC, max_histories=5200)


def test_memory_errors_name_the_game_and_the_size(monkeypatch):
    def fail(*args, **options):
        raise MemoryError("Unable to allocate 3.2 TiB")

    tree = GameTree.from_game(LEDUC)
    remedy = r".*memory ran out; choose smaller game parameters.*Unable to allocate 3\.2 TiB"
    with monkeypatch.context() as patch:
        patch.setattr("spiel_cfrplus.game.sequence_form.trace_sequences", fail)
        with pytest.raises(MemoryError, match=r"leduc_poker\(\), compiling 9457 histories" + remedy):
            SequenceFormGame.from_tree(tree)
    with monkeypatch.context() as patch:
        patch.setattr("spiel_cfrplus.kernels.tree.link_parents", fail)
        with pytest.raises(MemoryError, match=r"leduc_poker\(\), a tree of 9457 histories" + remedy):
            compile_game(LEDUC)
    with monkeypatch.context() as patch:
        patch.setattr(walk.TreeWalk, "_visit_end", fail)
        with pytest.raises(MemoryError, match=r"leduc_poker\(\), after \d+ histories and \d+ infostates of the walk" + remedy):
            compile_game(LEDUC)
    with monkeypatch.context() as patch:
        patch.setattr("spiel_cfrplus.solving.compiled_self_play.start_state", fail)
        with pytest.raises(MemoryError, match=r"leduc_poker\(\), a solver of \d+ sequences and \d+ payoffs" + remedy):
            CFRPlusSolver(LEDUC)
    with monkeypatch.context() as patch:
        patch.setattr("spiel_cfrplus.solving.solvers.reduce_game", fail)
        with pytest.raises(MemoryError, match=r"leduc_poker\(\), a solver of \d+ sequences and \d+ payoffs" + remedy):
            CFRPlusSolver(LEDUC)
    assert np.isfinite(CFRPlusSolver(LEDUC).nash_conv())


@pytest.mark.parametrize("number", [1e3, "1000", [5]])
def test_limits_of_a_walk_are_numbers(number):
    with pytest.raises(TypeError, match=mentions("the number of histories in max_histories must be an integer", repr(number))):
        compile_game(GAMES["kuhn_poker"](), max_histories=number)
    if not isinstance(number, float):
        with pytest.raises(TypeError, match=mentions("time_limit must be a number, got", repr(number))):
            compile_game(GAMES["kuhn_poker"](), time_limit=number)
