"""Converts Ctrl-C and the signals of batch systems to exceptions that are raised at safe places.

A signal handler may raise an exception anywhere: in a library's callback, where the exception is lost or crashes the process,
or between two steps that must happen together. Signals are therefore deferred during such work, and checked for explicitly.

This module imports small modules of the standard library only, so that a command can handle signals before its long imports.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# Systems have different signals.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
# If the exception of a signal was lost in a callback, the signal is sent again after this time, outside the callback.
_AGAIN_AFTER_SECONDS = 0.01


class Stopped(KeyboardInterrupt):
    """Raised when a signal requests that the process stop.

    Attributes:
      number: the number of the signal.
    """

    def __init__(self, number: int, where: str = ""):
        """Names the signal, and `where` it was received."""
        word = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        super().__init__(" ".join([word, where]).strip())
        self.number = number

    @classmethod
    def at(cls, where: str, interrupt: KeyboardInterrupt) -> Stopped:
        """The same interrupt, with the place where it was received."""
        return cls(interrupt.number if isinstance(interrupt, Stopped) else signal.SIGINT, where)

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for a process ended by the signal."""
        return 128 + self.number


def end_at_once() -> None:
    """Makes signals end the process with one line on standard error, during work that can be lost, such as imports.

    Signals that the program already ignores or handles are unchanged.
    """
    for number in _unhandled():
        signal.signal(number, _end)


def ignore() -> None:
    """Ignores signals, except those that the program handles, in a process that is about to exit."""
    for number in _unhandled():
        signal.signal(number, signal.SIG_IGN)


def _unhandled() -> list[int]:
    """The signals with default handlers or those of `end_at_once`; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in _SIGNALS if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _end)]


def _send(number: signal.Signals) -> None:
    """Sends a signal to the main thread, and wakes it if the system supports this."""
    thread = threading.main_thread().ident
    if thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, number)
    else:
        _thread.interrupt_main(number)


def _end(number: int, frame: object) -> None:
    stopped = Stopped(number)
    if sys.stderr is not None:  # None if the descriptor is closed
        with contextlib.suppress(OSError):
            os.write(2, f"{stopped}\n".encode())
    os._exit(stopped.exit_code)


class StopSignals:
    """Handles the first signal that requests a stop. Later ones are ignored, except that Ctrl-C raises again."""

    def __init__(self) -> None:
        """Installs no handlers yet."""
        self._number: int | None = None
        self._deferring = False

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """In this context a signal raises `Stopped` in the main thread, at once or at the next `check`.

        Signals that the program already ignores (as with `nohup`) or handles are unchanged. Handlers are restored at the end;
        after a signal, further ones stay ignored, because the process is about to exit. If a `Stopped` is lost in a callback,
        such as that of the garbage collector, it is raised again after the callback.
        """
        self._number = None
        previous = {number: signal.getsignal(number) for number in _unhandled()}
        previous_hook = sys.unraisablehook
        try:
            sys.unraisablehook = self._hook(previous_hook)
            for number in previous:
                signal.signal(number, self._hear)
            yield
        finally:
            sys.unraisablehook = previous_hook
            for number in previous:
                ignored = self._number is not None and number != signal.SIGINT
                signal.signal(number, signal.SIG_IGN if ignored else previous[number])

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """In this context a signal raises `Stopped` at the next `check`, or at the end."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        self.check()

    def check(self) -> None:
        """Raises the exception of a deferred signal.

        Raises:
          Stopped: a signal was received.
        """
        if self._number is not None:
            raise Stopped(self._number)

    def checked(self, run: Callable[[int], object]) -> Callable[[int], None]:
        """`run`, with a `check` after each call."""

        def run_and_check(num_iterations: int) -> None:
            run(num_iterations)
            self.check()

        return run_and_check

    def _hear(self, number: int, frame: object) -> None:
        first, self._number = self._number is None, number if self._number is None else self._number
        if (first and not self._deferring) or (not first and number == signal.SIGINT):
            raise Stopped(number)

    def _hook(self, previous: Callable[[UnraisableHookArgs], object]) -> Callable[[UnraisableHookArgs], None]:
        """Replaces `sys.unraisablehook`: calls `previous`, or sends the signal of a lost `Stopped` again."""

        def raise_later(unraisable: UnraisableHookArgs) -> None:
            lost = unraisable.exc_value
            if not isinstance(lost, Stopped):
                previous(unraisable)
                return
            self._number = None
            threading.Timer(_AGAIN_AFTER_SECONDS, _send, [signal.Signals(lost.number)]).start()

        return raise_later
