"""Signals that stop a job, such as batch systems send, and Ctrl-C, as exceptions at places where they do no harm.

An exception that a signal handler raises may come anywhere: in a library's callback, where it is lost or crashes the process,
or between two steps that belong together. So where there is something to lose signals are deferred until they are asked for.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

# Where the system has them.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
_DEFAULT_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)


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
        afterwards; after a signal further ones stay ignored, as the process is about to end.
        """
        self._number = None
        mine = threading.current_thread() is threading.main_thread()
        previous = {number: signal.getsignal(number) for number in _SIGNALS if mine}
        numbers = [number for number, handler in previous.items() if handler in _DEFAULT_HANDLERS]
        try:
            for number in numbers:
                signal.signal(number, self._hear)
            yield
        finally:
            for number in numbers:
                ignored = self._number is not None and number != signal.SIGINT
                signal.signal(number, signal.SIG_IGN if ignored else previous[number])

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Within this a signal raises `Stopped` at the next `check`, or at the end."""
        self._deferring = True
        try:
            yield
            self.check()
        finally:
            self._deferring = False

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
