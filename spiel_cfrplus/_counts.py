"""Numbers of things, as the user gives them."""

from __future__ import annotations

import operator

import numpy as np


def checked_count(num_iterations: int) -> int:
    """A number of iterations.

    Raises:
      TypeError, ValueError: not an integer, or negative.
    """
    num_iterations = operator.index(num_iterations)
    if num_iterations < 0:
        raise ValueError(f"the number of iterations must not be negative, got {num_iterations}")
    return num_iterations


def one_or_more(number: int, things: str) -> int:
    """A number of `things` that there must be.

    Raises:
      ValueError: not an integer, or less than 1.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"the number of {things} must be an integer of 1 or more, got {number!r}")
    return int(number)
