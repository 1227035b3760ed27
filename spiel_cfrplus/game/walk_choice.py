"""The choice between the walk in C++ and the walk in Python, which make the same record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pyspiel

from spiel_cfrplus._utils.progress import Advance
from spiel_cfrplus.game import native_walk
from spiel_cfrplus.game.size_estimate import LARGE_GAME, estimate_size
from spiel_cfrplus.game.subgames import History
from spiel_cfrplus.game.walk import WalkRecord, walk_game
from spiel_cfrplus.game.walk_limits import WalkLimits

WALKS = ("auto", "native", "python")
# With "auto", a walk in Python that has reached this number of histories is replaced by a native walk, if that needs no
# compilation; after `LARGE_GAME` histories the library is compiled first.
_MEDIUM_GAME = 65_536
# The library is not compiled if less time is left.
_COMPILE_SECONDS = 30


class _SwitchError(Exception):
    """The walk in Python shall be replaced by a native one."""


def checked_walk(walk: Any) -> str:
    """One of `WALKS`.

    Raises:
      ValueError: another value.
    """
    if walk not in WALKS:
        raise ValueError(f"walk must be one of {', '.join(WALKS)}, got {walk!r}")
    return str(walk)


def walk_in_one_process(
    game: pyspiel.Game,
    roots: Sequence[History] = ((),),
    root_probabilities: Sequence[float] = (1.0,),
    *,
    walk: str,
    threads: int = 1,
    limits: WalkLimits,
    advance: Advance,
) -> WalkRecord:
    """Walks as `walk.walk_game` does.

    Args:
      game, roots, root_probabilities, limits, advance: as for `walk.walk_game`.
      walk: one of `WALKS`.
      threads: number of threads of a native walk.

    Raises:
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game`.
    """
    if walk == "auto":
        with_switch = _Switch(game, limits, advance)
        try:
            return walk_game(game, roots, root_probabilities, limits=limits, advance=with_switch)
        except _SwitchError:
            advance = with_switch.without_repetition
    if walk == "native":
        _check_available(game)
    if walk != "python":
        record = native_walk.walk_natively(game, roots, root_probabilities, threads=threads, limits=limits, advance=advance)
        if record is not None:
            return record
    return walk_game(game, roots, root_probabilities, limits=limits, advance=advance)


def prefers_native(game: pyspiel.Game, limits: WalkLimits) -> bool:
    """Whether "auto" replaces a walk in several processes by a native one: the same rule for the estimated size.

    Compiles the library if necessary, and logs the reason if a large game is not walked natively.
    """
    size = estimate_size(game, time_limit=limits.seconds_left).num_histories
    if size < _MEDIUM_GAME:
        return False
    return native_walk.is_ready(game) if size < LARGE_GAME else _is_available_or_logged(game, limits)


def _check_available(game: pyspiel.Game) -> None:
    reason = native_walk.why_unavailable(game)
    if reason is not None:
        raise ValueError(f"{game} cannot be walked natively: {reason}; use walk='auto' or walk='python'")


def _is_available_or_logged(game: pyspiel.Game, limits: WalkLimits) -> bool:
    if limits.seconds_left < _COMPILE_SECONDS and not native_walk.is_ready(game):
        return False
    reason = native_walk.why_unavailable(game)
    if reason is not None:
        logging.getLogger("spiel_cfrplus").warning(
            "%s is walked in Python, which takes several times as long as in C++: %s", game, reason
        )
    return reason is None


class _Switch:
    """A progress callback that ends a walk in Python when a native one should replace it."""

    def __init__(self, game: pyspiel.Game, limits: WalkLimits, advance: Advance):
        """The callback of a walk of `game` within `limits`; calls are passed on to `advance`."""
        self._game = game
        self._limits = limits
        self._advance = advance
        self._counted = 0
        self._passed_on = 0

    def __call__(self, steps: int) -> None:
        """Passes on the steps.

        Raises:
          _SwitchError: a native walk should replace the walk.
        """
        before, self._counted = self._counted, self._counted + steps
        if before < _MEDIUM_GAME <= self._counted and native_walk.is_ready(self._game):
            raise _SwitchError
        if before < LARGE_GAME <= self._counted and _is_available_or_logged(self._game, self._limits):
            raise _SwitchError
        self._passed_on += steps
        self._advance(steps)

    def without_repetition(self, steps: int) -> None:
        """The callback of the walk that starts again: passes on only the steps that the first walk did not make."""
        repeated = min(self._passed_on, steps)
        self._passed_on -= repeated
        if steps > repeated:
            self._advance(steps - repeated)
