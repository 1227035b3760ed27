"""Tries a game in a process of its own, where a fault of OpenSpiel does no harm.

Some games of OpenSpiel do not check their parameters. With senseless ones they end the interpreter, or ask for all the memory
of the machine, when they are loaded or when their first moves are made. A forked process makes some moves first. Faults that
come later in the game, or at random, are not found for certain, and on systems without `fork`, such as Windows, there is no
trial.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import signal
import warnings
from collections.abc import Callable

import psutil
import pyspiel

_PLAYOUTS = 20
# Each of these goes on with a copy of the state while the state itself is dropped; copies take long in Python games.
_MOVES_WITH_COPIES = 10
_MOST_MOVES = 200
_MOST_SECONDS = 5
# One state of a game, and the tables that a game makes when it is loaded, are far smaller.
_MOST_BYTES = 2 * 10**9
_OUT_OF_MEMORY = 3


def fault_of(load: Callable[[], pyspiel.Game]) -> str | None:
    """What goes wrong with a game beyond an exception, in words; None if nothing does, or if there cannot be a trial.

    Args:
      load: makes the game. It is called in the forked process only; what it raises there is no fault.
    """
    if not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child calls OpenSpiel only
        child = os.fork()
    if child == 0:
        _try_and_exit(load)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGALRM:
        return f"OpenSpiel ends the process with {signal.Signals(os.WTERMSIG(status)).name}"
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _OUT_OF_MEMORY:
        return f"loading it or a few moves take more than {_MOST_BYTES / 1e9:g} GB"
    return None


def _try_and_exit(load: Callable[[], pyspiel.Game]) -> None:
    """In the forked process: never returns."""
    exit_code = 0
    try:
        faulthandler.disable()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.alarm(_MOST_SECONDS)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        _limit_memory()
        _play(load())
    except MemoryError:
        exit_code = _OUT_OF_MEMORY
    finally:
        os._exit(exit_code)


def _limit_memory() -> None:
    import resource

    limit = psutil.Process().memory_info().vms + _MOST_BYTES
    with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _play(game: pyspiel.Game) -> None:
    """Makes random moves, and asks at each state what a walk asks."""
    generator = random.Random(0)
    for _ in range(_PLAYOUTS):
        state = game.new_initial_state()
        for move in range(_MOST_MOVES):
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
