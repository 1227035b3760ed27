"""A trial of a game in a forked process, so that a crash of OpenSpiel does not end this process.

Some OpenSpiel games do not check their parameters. With invalid parameters they crash the interpreter, or allocate all memory,
when the game is loaded or the first moves are made. The forked process loads the game and makes some random moves. Faults that
occur later in a game, or at random, may be missed. On systems without `fork`, such as Windows, there is no trial.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable

import psutil
import pyspiel

from spiel_cfrplus._utils.forks import status_of_fork

_PLAYOUTS = 20
# Moves that also copy the state; copies are slow in Python games.
_MOVES_WITH_COPIES = 10
_MAX_MOVES = 200
_MAX_SECONDS = 5
# Far more than one state of a game, or the tables that a game creates when it is loaded, take.
_MAX_BYTES = 2 * 10**9
_OUT_OF_MEMORY = 3


def fault_of(load: Callable[[], pyspiel.Game]) -> str | None:
    """A description of the crash or excessive memory use in a trial; None if there is none, or if there is no `fork`.

    Args:
      load: loads the game. It is called in the forked process only; an exception that it raises is not a fault.
    """
    if not hasattr(os, "fork"):
        return None
    status = status_of_fork(lambda: _try(load), seconds=_MAX_SECONDS)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGALRM:
        return f"OpenSpiel ends the process with {signal.Signals(os.WTERMSIG(status)).name}"
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _OUT_OF_MEMORY:
        return f"loading it or making a few moves takes more than {_MAX_BYTES / 1e9:g} GB"
    return None


def _try(load: Callable[[], pyspiel.Game]) -> int:
    """Runs the trial in the forked process, and returns the exit code."""
    try:
        _limit_memory()
        _play(load())
    except MemoryError:
        return _OUT_OF_MEMORY
    return 0


def _limit_memory() -> None:
    import resource

    limit = psutil.Process().memory_info().vms + _MAX_BYTES
    with contextlib.suppress(OSError, ValueError):  # the process may already have a lower limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _play(game: pyspiel.Game) -> None:
    """Makes random moves and calls the methods that a walk calls at each state."""
    generator = random.Random(0)
    for _ in range(_PLAYOUTS):
        state = game.new_initial_state()
        for move in range(_MAX_MOVES):
            if state.is_terminal():
                state.returns()
                break
            if state.is_chance_node():
                actions = [action for action, _ in state.chance_outcomes()]
            else:
                state.information_state_string(state.current_player())
                actions = state.legal_actions()
            action = generator.choice(actions)
            if move < _MOVES_WITH_COPIES:
                state = state.child(action)
            else:
                state.apply_action(action)
