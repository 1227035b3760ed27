"""Game trees that are walked once per game object and kept as long as the object.

Games are compared by identity, because OpenSpiel compares them by their strings, which do not determine Python games and matrix
games.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import TypeVar, cast

import pyspiel

from spiel_cfrplus.game.game_tree import GameTree

T = TypeVar("T")


def once_per_game(make: Callable[[pyspiel.Game], T]) -> Callable[[pyspiel.Game], T]:
    """Keeps the result of `make` for every game object; the result must not refer to the game except weakly."""
    kept: dict[int, tuple[weakref.ref[pyspiel.Game], T]] = {}

    @functools.wraps(make)
    def made_before(game: pyspiel.Game) -> T:
        if id(game) not in kept:
            made = make(game)
            number = id(game)
            kept[number] = weakref.ref(game, lambda _: kept.pop(number, None)), made
        return kept[id(game)][1]

    return made_before


@once_per_game
def _weak_tree(game: pyspiel.Game) -> GameTree:
    return dataclasses.replace(GameTree.from_game(game), game=cast(pyspiel.Game, weakref.proxy(game)))


def weak_tree(game: pyspiel.Game) -> GameTree:
    """The tree of the game, whose attribute `game` is a weak proxy. Raises the errors of `GameTree.from_game`."""
    if not isinstance(game, pyspiel.Game):
        return GameTree.from_game(game)  # raises an error
    return _weak_tree(game)


def kept_tree(game: pyspiel.Game) -> GameTree:
    """The tree of the game; shares the arrays of `weak_tree`, but keeps the game alive."""
    return dataclasses.replace(weak_tree(game), game=game)
