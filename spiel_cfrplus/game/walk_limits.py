"""Limits of a walk: on the number of histories, on the time, and errors when memory runs out.

Every loop over the states of a game that may not terminate checks a `WalkLimits`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator

import pyspiel

from spiel_cfrplus._utils.validation import checked_count, checked_number

# The default and the upper bound of the limit, because histories are numbered with 32 bits.
MOST_HISTORIES = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class WalkLimits:
    """The largest number of histories of a walk, and its deadline.

    Attributes:
      max_histories: the largest number of histories.
      deadline: time at which the walk stops, in seconds of `time.monotonic()`.
    """

    max_histories: int = MOST_HISTORIES
    deadline: float = math.inf

    @classmethod
    def starting_now(cls, max_histories: int | None = None, time_limit: float | None = None) -> WalkLimits:
        """The limits of a walk that starts now.

        Args:
          max_histories: the largest number of histories; `MOST_HISTORIES` by default.
          time_limit: the largest number of seconds; no limit by default.

        Raises:
          TypeError: `max_histories` is not an integer, or `time_limit` is not a number.
          ValueError: `max_histories` is less than 1, or `time_limit` is negative or NaN.
        """
        if max_histories is not None:
            max_histories = checked_count(max_histories, "histories in max_histories", least=1, most=math.inf)
        if time_limit is not None and not checked_number(time_limit, "time_limit") >= 0:
            raise ValueError(f"time_limit must be a non-negative number of seconds, got {time_limit}")
        most = MOST_HISTORIES if max_histories is None else min(max_histories, MOST_HISTORIES)
        return cls(most, math.inf if time_limit is None else time.monotonic() + time_limit)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; infinity if there is no deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def check_count(self, game: pyspiel.Game, counted: int) -> None:
        """Checks the number of histories.

        Raises:
          ValueError: `counted` exceeds the limit.
        """
        if counted > self.max_histories:
            raise ValueError(
                f"{game} has more than max_histories={self.max_histories} histories (counted "
                f"{self.max_histories + 1} so far); raise the limit or choose smaller game parameters"
            )

    def check_time(self, game: pyspiel.Game, counted: int) -> None:
        """Checks the deadline; `counted` histories have been visited.

        Raises:
          TimeoutError: the deadline has passed.
        """
        if time.monotonic() >= self.deadline:
            raise TimeoutError(
                f"{game}: the walk reached the time limit after {counted} histories; raise the limit or choose smaller game "
                "parameters"
            )


NO_LIMITS = WalkLimits()


@contextlib.contextmanager
def memory_errors_name(subject: Callable[[], str]) -> Iterator[None]:
    """Adds a description of the data that memory was needed for to a MemoryError.

    Args:
      subject: returns the description, with a size.

    Raises:
      MemoryError: memory ran out.
    """
    try:
        yield
    except MemoryError as error:
        remedy = "choose smaller game parameters, or set max_histories to stop before memory runs out"
        raise MemoryError(f"{subject()}: memory ran out; {remedy} ({error})") from error
