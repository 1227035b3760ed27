"""Validation of numeric arguments."""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

# Compiled code counts iterations with 64-bit integers; the bound ensures that the sum of two counts does not overflow.
MOST_ITERATIONS = 2**62


def checked_count(number: Any, things: str = "iterations", *, least: int = 0, most: float = MOST_ITERATIONS) -> int:
    """A number of `things` as an `int`; `things` is a plural noun for the error message.

    Raises:
      TypeError: not an integer.
      ValueError: less than `least` or more than `most`.
    """
    try:
        count = operator.index(number)
    except TypeError as error:
        raise TypeError(f"the number of {things} must be an integer, got {number!r}") from error
    if count < least:
        bound = "not be negative" if least == 0 else f"be {least} or more"
        raise ValueError(f"the number of {things} must {bound}, got {count}")
    if count > most:
        raise ValueError(f"the number of {things} must be at most {'2**62' if most == MOST_ITERATIONS else most}, got {count}")
    return count


def checked_number(value: Any, name: str) -> float:
    """A number as a float; NaN and infinity are accepted.

    Args:
      value: the argument of a public function.
      name: the name of the argument.

    Raises:
      TypeError: not a number.
      ValueError: too large for a float64.
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError("strings are not converted")
        return float(value)
    except TypeError as error:
        raise TypeError(f"{name} must be a number, got {value!r}") from error
    except OverflowError as error:
        raise ValueError(f"{name} is too large for a float64") from error


def checked_probability(value: Any, name: str) -> float:
    """A number from 0 to 1 as a float.

    Args:
      value, name: as for `checked_number`.

    Raises:
      TypeError: not a number.
      ValueError: not from 0 to 1.
    """
    probability = checked_number(value, name)
    if not 0 <= probability <= 1:
        raise ValueError(f"{name} is a probability, so it must be from 0 to 1, got {probability}")
    return probability


def checked_positive(number: Any, things: str) -> int:
    """A positive number of `things`.

    Raises:
      ValueError: not an integer, or less than 1.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"the number of {things} must be an integer of 1 or more, got {number!r}")
    return int(number)


def at_most_cores(number: Any, things: str) -> int:
    """A number of `things` that run concurrently.

    Raises:
      ValueError: not an integer, less than 1, or more than the machine has cores.
    """
    count, cores = checked_positive(number, things), num_cores()
    if cores is not None and count > cores:
        raise ValueError(f"the number of {things} must be at most {cores}, the number of cores of this machine, got {count}")
    return count


def num_cores() -> int | None:
    """The number of cores of the machine; None if the system does not provide it."""
    return os.cpu_count()


def checked_seed(seed: Any, most: int = 2**63 - 1) -> int:
    """A seed of a random generator as an `int`.

    Raises:
      TypeError: not an integer.
      ValueError: negative, or more than `most`.
    """
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise TypeError(f"the seed must be an integer, got {seed!r}") from error
    if not 0 <= number <= most:
        raise ValueError(f"the seed must be from 0 to {most}, got {number}")
    return number


def checked_player(player: Any, num_players: int, game: object) -> int:
    """The number of a player of `game` as an `int`.

    Raises:
      TypeError: not an integer.
      ValueError: the player does not exist.
    """
    try:
        number = operator.index(player)
    except TypeError as error:
        raise TypeError(f"a player must be an integer from 0 to {num_players - 1}, got {player!r}") from error
    if not 0 <= number < num_players:
        raise ValueError(f"{game} has players 0 to {num_players - 1}, got {number}")
    return number
