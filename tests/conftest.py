"""Compiled games that several test files use, and the number of cores that the tests assume."""

import signal

import pytest
from games import GAMES

from spiel_cfrplus import SequenceFormGame, compile_game
from spiel_cfrplus._utils import validation

# Helpers contain no tests, and importing `ready_command` takes seconds.
collect_ignore = ["helpers"]

# The workers of pytest-xdist ignore Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests use up to eight threads or processes on any machine. The command line is not affected."""
    monkeypatch.setattr(validation, "num_cores", lambda: 8)


@pytest.fixture(scope="session")
def kuhn() -> SequenceFormGame:
    return compile_game(GAMES["kuhn_poker"]())


@pytest.fixture(scope="session")
def leduc() -> SequenceFormGame:
    return compile_game(GAMES["leduc_poker"]())
