"""Signals that stop a job, such as batch systems send, and Ctrl-C, as exceptions at places where they do no harm.

An exception that a signal handler raises may come anywhere: in a library's callback, where it is lost or crashes the process,
or between two steps that belong together. So where there is something to lose signals are deferred until they are asked for.

This module imports nothing but small modules of Python, so that a command can handle signals before its long imports.
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

# Where the system has them.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
# A signal whose exception was lost in a callback comes again after so many seconds, outside the callback.
_AGAIN_AFTER_SECONDS = 0.01


class Stopped(KeyboardInterrupt):
    """A signal asks the process to stop.

    Attributes:
      number: of the signal.
    """

    def __init__(self, number: int, where: str = ""):
        """Tells of a signal, and `where` it was heard."""
        word = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        super().__init__(" ".join([word, where]).strip())
        self.number = number

    @classmethod
    def at(cls, where: str, interrupt: KeyboardInterrupt) -> Stopped:
        """The same interrupt, with the place where it was heard."""
        return cls(interrupt.number if isinstance(interrupt, Stopped) else signal.SIGINT, where)

    @property
    def exit_code(self) -> int:
        """As a shell reports a process that the signal ends."""
        return 128 + self.number


def end_at_once() -> None:
    """From now on a signal ends the process with one line on standard error: for work that has nothing to lose, as imports.

    Signals that are ignored or handled by the program already stay so.
    """
    for number in _unhandled():
        signal.signal(number, _end)


def ignore() -> None:
    """From now on signals are ignored, except those that the program handles: for a process that is about to end by itself."""
    for number in _unhandled():
        signal.signal(number, signal.SIG_IGN)


def _unhandled() -> list[int]:
    """The signals that have their default handlers, or those of `end_at_once`; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in _SIGNALS if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _end)]


def _send(number: signal.Signals) -> None:
    """Has the main thread handle a signal, and wakes it where the system can."""
    thread = threading.main_thread().ident
    if thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, number)
    else:
        _thread.interrupt_main(number)


def _end(number: int, frame: object) -> None:
    stopped = Stopped(number)
    if sys.stderr is not None:  # it is None where the descriptor is closed
        with contextlib.suppress(OSError):
            os.write(2, f"{stopped}\n".encode())
    os._exit(stopped.exit_code)


class StopSignals:
    """Hears the first signal of a process that asks it to stop. Later ones are ignored, except that Ctrl-C raises again."""

    def __init__(self) -> None:
        """Hears nothing yet."""
        self._number: int | None = None
        self._deferring = False

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Within this a signal raises `Stopped` in the main thread, at once or when it is asked for.

        Signals that are ignored (as `nohup` has it) or handled by the program already stay so. Handlers are restored
        afterwards; after a signal further ones stay ignored, as the process is about to end. A `Stopped` that is lost in a
        callback, such as that of the garbage collector, is raised again after it.
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
        """Within this a signal raises `Stopped` at the next `check`, or at the end."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        self.check()

    def check(self) -> None:
        """Raises what was deferred.

        Raises:
          Stopped: a signal has come.
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
        """What Python calls with exceptions that it cannot raise: `previous`, except that signals come again."""

        def raise_later(unraisable: UnraisableHookArgs) -> None:
            lost = unraisable.exc_value
            if not isinstance(lost, Stopped):
                previous(unraisable)
                return
            self._number = None
            threading.Timer(_AGAIN_AFTER_SECONDS, _send, [signal.Signals(lost.number)]).start()

        return raise_later
