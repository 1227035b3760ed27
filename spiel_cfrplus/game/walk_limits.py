"""When a walk through a game is given up: at a number of histories, after some time, or when memory runs out.

Every loop over the states of a game that need not end by itself asks a `WalkLimits`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator

import pyspiel

from spiel_cfrplus._utils.validation import checked_count, checked_number

# Histories are numbered with 32 bits, so this is a limit where none is set, and cannot be raised.
MOST_HISTORIES = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class WalkLimits:
    """How large a walk may become, and until when.

    Attributes:
      max_histories: the largest number of histories.
      deadline: by `time.monotonic()`, in seconds.
    """

    max_histories: int = MOST_HISTORIES
    deadline: float = math.inf

    @classmethod
    def starting_now(cls, max_histories: int | None = None, time_limit: float | None = None) -> WalkLimits:
        """The limits of a walk that begins now.

        Args:
          max_histories: at most so many histories; `MOST_HISTORIES` by default.
          time_limit: at most so many seconds; no limit by default.

        Raises:
          TypeError: `max_histories` is not an integer, or `time_limit` is not a number.
          ValueError: `max_histories` is less than 1, or `time_limit` is negative or NaN.
        """
        if max_histories is not None:
            max_histories = checked_count(max_histories, "histories in max_histories", least=1, most=math.inf)
        if time_limit is not None and not checked_number(time_limit, "time_limit") >= 0:
            raise ValueError(f"time_limit must be a number of seconds of 0 or more, got {time_limit}")
        most = MOST_HISTORIES if max_histories is None else min(max_histories, MOST_HISTORIES)
        return cls(most, math.inf if time_limit is None else time.monotonic() + time_limit)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, infinity if there is none."""
        return max(0.0, self.deadline - time.monotonic())

    def check_count(self, game: pyspiel.Game, counted: int) -> None:
        """Refuses `counted` histories if these are too many.

        Raises:
          ValueError: they are.
        """
        if counted > self.max_histories:
            raise ValueError(
                f"{game} has more than max_histories={self.max_histories} histories (counted "
                f"{self.max_histories + 1} so far); raise the limit or choose smaller game parameters"
            )

    def check_time(self, game: pyspiel.Game, counted: int) -> None:
        """Stops a walk that has met `counted` histories if the time is over.

        Raises:
          TimeoutError: it is.
        """
        if time.monotonic() >= self.deadline:
            raise TimeoutError(
                f"{game}: the time limit was reached in the walk, after {counted} histories; raise it or choose smaller game "
                "parameters"
            )


NO_LIMITS = WalkLimits()


@contextlib.contextmanager
def memory_errors_name(subject: Callable[[], str]) -> Iterator[None]:
    """Errors for lack of memory say what memory was needed for.

    Args:
      subject: describes it, with its size.

    Raises:
      MemoryError: memory ran out.
    """
    try:
        yield
    except MemoryError as error:
        remedy = "choose smaller game parameters, or set max_histories to stop before memory runs out"
        raise MemoryError(f"{subject()}: memory ran out; {remedy} ({error})") from error
