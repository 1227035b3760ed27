"""What a regret minimizer is, and what the ready-made ones have in common.

A regret minimizer has a decision set and the two calls of the lecture: `next_strategy()` gives a point of the set, and asking
again before the next utility gives the same one; `observe_utility(utility)` takes the gradient of the utility in it. The regret
after T iterations is what the best fixed strategy would have earned more than those that were played.

The built-in ones can be *predictive*: the next strategy is chosen as if the last utility, times `prediction_weight`, would
come again (a *prediction*, in the words of Farina, Kroer and Sandholm 2021). What is learned is the same. Each computes a bound
on its regret from the utilities observed: `regret_bound`.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.validation import checked_number


@runtime_checkable
class RegretMinimizer(Protocol):
    """What self-play and CFR ask of a minimizer, on a simplex as on a treeplex. Any class with these two methods will do."""

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The strategy to play now."""

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes the gradient of the utility in the strategy that was played."""


class StaticStrategy:
    """Plays one strategy whatever happens: an opponent to whom others learn a best response."""

    def __init__(self, strategy: npt.ArrayLike):
        """Keeps a copy of the strategy."""
        self._strategy = np.array(strategy, np.float64)

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The strategy."""
        return self._strategy.copy()

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes no notice."""


def regret_bound(minimizer: RegretMinimizer) -> float:
    """What the minimizer says of itself: no utilities like those observed give more regret than its `regret_bound`.

    Raises:
      TypeError: it has no such attribute.
    """
    bound = getattr(minimizer, "regret_bound", None)
    if bound is None:
        raise TypeError(f"{minimizer!r} knows no bound on its regret")
    return float(bound)


def checked_weight(prediction_weight: float) -> float:
    """The weight of a prediction, 1 for True and 0 for False.

    Raises:
      TypeError, ValueError: it is not a number between 0 and 1.
    """
    weight = checked_number(prediction_weight, "prediction_weight")
    if not 0 <= weight <= 1:
        raise ValueError(f"prediction_weight must be between 0 and 1, got {prediction_weight}")
    return weight


def checked_step_size(step_size: float) -> float:
    """The step size.

    Raises:
      TypeError, ValueError: it is not a number, positive and finite.
    """
    number = checked_number(step_size, "step_size")
    if not 0 < number < math.inf:
        raise ValueError(f"step_size must be positive and finite, got {step_size}")
    return number
