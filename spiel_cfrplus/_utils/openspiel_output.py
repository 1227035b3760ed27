"""Calls of OpenSpiel, which prints what it throws on standard error: up to hundreds of lines for one error."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import pyspiel

# The descriptor belongs to the whole process, so only one thread at a time may redirect it.
_one_at_a_time = threading.RLock()
_STANDARD_ERROR = 2


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """While this is entered, what OpenSpiel prints on standard error is dropped; what Python prints there is not.

    OpenSpiel writes to the file descriptor, Python to `sys.stderr`, which writes to a copy of the descriptor meanwhile. For
    short calls only: child processes that are started meanwhile, and faults of the interpreter, are silent as well.
    """
    with _one_at_a_time, contextlib.ExitStack() as undo:
        try:
            saved = os.dup(_STANDARD_ERROR)
        except OSError:  # closed, so there is nothing to redirect
            yield
            return
        undo.callback(os.close, saved)
        undo.enter_context(_python_writes_to(saved))
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), _STANDARD_ERROR)
        undo.callback(os.dup2, saved, _STANDARD_ERROR)
        yield


@contextlib.contextmanager
def _python_writes_to(descriptor: int) -> Iterator[None]:
    """Has `sys.stderr` write to `descriptor` if it writes to standard error; in notebooks, for one, it does not."""
    original = sys.stderr
    try:
        on_standard_error = original.fileno() == _STANDARD_ERROR
        original.flush()
    except (AttributeError, OSError, ValueError):
        on_standard_error = False
    if not on_standard_error:
        yield
        return
    with open(descriptor, "w", encoding=original.encoding, errors=original.errors, closefd=False, buffering=1) as copy:
        sys.stderr = copy
        try:
            yield
        finally:
            if sys.stderr is copy:
                sys.stderr = original


def loads_back(game: pyspiel.Game) -> bool:
    """Whether OpenSpiel loads a game with the same string by the game's string."""
    try:
        with silent_stderr():
            return str(pyspiel.load_game(str(game))) == str(game)
    except (pyspiel.SpielError, RuntimeError, ValueError):
        return False
