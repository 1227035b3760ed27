"""Suppression of the messages that OpenSpiel prints to standard error before it raises an error, up to hundreds of lines."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import pyspiel

# The descriptor is shared by all threads, so only one thread at a time may redirect it.
_redirect_lock = threading.RLock()
_STANDARD_ERROR = 2


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Discards what OpenSpiel prints to standard error in the body of the `with`, but not what Python prints there.

    OpenSpiel writes to the file descriptor, which is redirected. Python writes to `sys.stderr`, which uses a copy of the
    original descriptor. For short calls only: messages of child processes and of interpreter crashes are discarded as well.
    """
    with _redirect_lock, contextlib.ExitStack() as undo:
        try:
            saved = os.dup(_STANDARD_ERROR)
        except OSError:  # standard error is closed, so there is nothing to redirect
            yield
            return
        undo.callback(os.close, saved)
        undo.enter_context(_python_writes_to(saved))
        with open(os.devnull, "wb") as null_device:
            os.dup2(null_device.fileno(), _STANDARD_ERROR)
        undo.callback(os.dup2, saved, _STANDARD_ERROR)
        yield


@contextlib.contextmanager
def _python_writes_to(descriptor: int) -> Iterator[None]:
    """Redirects `sys.stderr` to `descriptor` if it writes to standard error; in notebooks, for example, it does not."""
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
    """Whether OpenSpiel can load a game with the same string from the string of this game."""
    try:
        with silent_stderr():
            return str(pyspiel.load_game(str(game))) == str(game)
    except (pyspiel.SpielError, RuntimeError, ValueError):
        return False
