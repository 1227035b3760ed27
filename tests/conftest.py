"""Compiled games that several test files use."""

import pytest
from games import GAMES

from spiel_cfrplus import SequenceFormGame, compile_game


@pytest.fixture(scope="session")
def kuhn() -> SequenceFormGame:
    return compile_game(GAMES["kuhn_poker"]())


@pytest.fixture(scope="session")
def leduc() -> SequenceFormGame:
    return compile_game(GAMES["leduc_poker"]())
