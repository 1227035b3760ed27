"""The choice between the walks; the native walk is replaced by one that counts, so no compiler is needed."""

import logging
import re

import pyspiel
import pytest

from spiel_cfrplus import compile_game, compile_subgame
from spiel_cfrplus.game import native_walk, parallel_walk, walk_choice
from spiel_cfrplus.game.walk import walk_game
from spiel_cfrplus.game.walk_choice import walk_in_one_process
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits

LEDUC = pyspiel.load_game("leduc_poker")  # 9,457 histories
REASON = "there is no compiler"


@pytest.fixture
def native(monkeypatch):
    """The threads of each native walk; Leduc poker is large from 4,000 histories, and medium from 2,000."""
    calls = []

    def counted(game, *roots, threads, limits, advance):
        calls.append(threads)
        return walk_game(game, *roots, limits=limits, advance=advance)

    monkeypatch.setattr(native_walk, "walk_natively", counted)
    monkeypatch.setattr(native_walk, "why_unavailable", lambda game: None)
    monkeypatch.setattr(native_walk, "is_ready", lambda game: True)
    monkeypatch.setattr(walk_choice, "LARGE_GAME", 4000)
    monkeypatch.setattr(walk_choice, "_MEDIUM_GAME", 2000)
    return calls


def walk_leduc(walk, limits=NO_LIMITS, advance=lambda steps: None):
    return walk_in_one_process(LEDUC, walk=walk, limits=limits, advance=advance)


def test_each_choice(native):
    for walk, calls in (("python", 0), ("native", 1), ("auto", 2)):
        assert len(walk_leduc(walk).nodes) == 9457
        assert len(native) == calls


def test_auto_walks_small_games_in_python(native):
    walk_in_one_process(pyspiel.load_game("kuhn_poker"), walk="auto", limits=NO_LIMITS, advance=lambda steps: None)
    assert native == []


def test_progress_counts_each_history_once(native):
    plain, switched = [], []
    walk_leduc("python", advance=plain.append)
    walk_leduc("auto", advance=switched.append)
    assert sum(switched) == sum(plain) > 0


@pytest.mark.parametrize(("seconds", "calls"), [(20, 0), (1000, 1)])
def test_auto_compiles_for_large_games_if_there_is_time(native, monkeypatch, seconds, calls):
    monkeypatch.setattr(native_walk, "is_ready", lambda game: False)
    walk_leduc("auto", WalkLimits.starting_now(time_limit=seconds))
    assert len(native) == calls


def test_auto_says_in_one_line_why_a_large_game_is_walked_in_python(native, monkeypatch, caplog):
    monkeypatch.setattr(native_walk, "is_ready", lambda game: False)
    monkeypatch.setattr(native_walk, "why_unavailable", lambda game: REASON)
    with caplog.at_level(logging.WARNING, "spiel_cfrplus"):
        walk_leduc("auto")
    assert caplog.messages == [f"leduc_poker() is walked in Python, which takes several times as long as in C++: {REASON}"]
    assert native == []


def test_native_is_an_error_if_it_is_not_available(native, monkeypatch):
    monkeypatch.setattr(native_walk, "why_unavailable", lambda game: REASON)
    with pytest.raises(ValueError, match=rf"leduc_poker\(\) cannot be walked natively: {REASON}; use walk='auto'"):
        compile_game(LEDUC, walk="native")


def test_the_walk_in_python_follows_if_the_native_one_finds_a_fault(native, monkeypatch):
    monkeypatch.setattr(native_walk, "walk_natively", lambda *arguments, **options: None)
    for walk in ("native", "auto"):
        assert len(walk_leduc(walk).nodes) == 9457


def test_processes_are_the_threads_of_a_native_walk(native, monkeypatch):
    monkeypatch.setattr(parallel_walk, "_workers", lambda *arguments: pytest.fail("worker processes were started"))
    for walk in ("native", "auto"):
        assert compile_game(LEDUC, walk=walk, processes=2).tree.num_histories == 9457
    assert native == [2, 2]


def test_auto_uses_processes_for_small_games(native, monkeypatch):
    assert not walk_choice.prefers_native(pyspiel.load_game("kuhn_poker"), NO_LIMITS)
    monkeypatch.setattr(native_walk, "is_ready", lambda game: False)
    monkeypatch.setattr(walk_choice, "LARGE_GAME", 20_000)
    assert not walk_choice.prefers_native(LEDUC, NO_LIMITS)


@pytest.mark.parametrize("walk", ["", "c++", None, 1])
def test_other_walks_are_refused(walk, tmp_path):
    state = LEDUC.new_initial_state()
    for compiled in (
        lambda: compile_game(LEDUC, walk=walk),
        lambda: compile_game(LEDUC, walk=walk, cache=tmp_path),
        lambda: compile_subgame(state, walk=walk),
    ):
        with pytest.raises(ValueError, match=f"walk must be one of auto, native, python, got {re.escape(repr(walk))}"):
            compiled()
