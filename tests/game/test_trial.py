"""The trial of games in a forked process."""

import os
import signal
import time

import pyspiel
import pytest

from spiel_cfrplus.game import trial
from spiel_cfrplus.game.trial import fault_of


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "tic_tac_toe", "goofspiel(num_cards=3)", "negotiation", "catch"])
def test_valid_games_have_no_fault(name):
    assert fault_of(lambda: pyspiel.load_game(name)) is None


def test_an_exception_is_not_a_fault(capfd):
    """The exception is raised when the game is loaded."""
    assert fault_of(lambda: pyspiel.load_game("no_such_game")) is None
    assert fault_of(lambda: 1 / 0) is None
    assert capfd.readouterr() == ("", "")


def test_a_game_that_crashes_is_a_fault(capfd):
    assert fault_of(lambda: pyspiel.load_game("connect_four(rows=0)")) == "OpenSpiel ends the process with SIGSEGV"
    assert fault_of(lambda: os.kill(os.getpid(), signal.SIGABRT)) == "OpenSpiel ends the process with SIGABRT"
    assert capfd.readouterr() == ("", "")


def test_a_game_that_takes_all_memory_is_a_fault():
    assert "more than 2 GB" in fault_of(lambda: pyspiel.load_game("hex(board_size=100000)"))
    assert "more than 2 GB" in fault_of(lambda: bytearray(10**10))


def test_a_slow_game_is_not_a_fault(monkeypatch):
    monkeypatch.setattr(trial, "_MAX_SECONDS", 1)
    assert fault_of(lambda: time.sleep(60)) is None


def test_without_fork_there_is_no_trial(monkeypatch):
    monkeypatch.delattr(os, "fork")
    assert fault_of(lambda: os.kill(os.getpid(), signal.SIGABRT)) is None


def test_an_interrupt_ends_the_trial(monkeypatch):
    wait, children = os.waitpid, []

    def interrupted(child: int, options: int) -> tuple[int, int]:
        if child not in children:
            children.append(child)
            raise KeyboardInterrupt
        return wait(child, options)

    monkeypatch.setattr(os, "waitpid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fault_of(lambda: time.sleep(60))
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
