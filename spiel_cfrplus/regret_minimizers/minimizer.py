"""The protocol of regret minimizers.

A regret minimizer has a decision set and the two methods of the lecture: `next_strategy()` returns a point of the set, the same
one until the next utility is observed; `observe_utility(utility)` receives the gradient of the utility in it. The regret after
T iterations is the value of the best fixed strategy minus the value of the strategies played.

The built-in minimizers can be *predictive*: the next strategy is chosen with the prediction that the last utility, times
`prediction_weight`, is repeated (a *prediction* as in Farina, Kroer and Sandholm 2021). The prediction does not change the
observed utilities. Each computes a bound on its regret from the observed utilities: `regret_bound`.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.validation import checked_number


@runtime_checkable
class RegretMinimizer(Protocol):
    """The protocol that self-play and CFR require of a minimizer, on a simplex or on a treeplex."""

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The current strategy."""

    def observe_utility(self, utility: np.ndarray) -> None:
        """Observes the gradient of the utility in the current strategy."""


class StaticStrategy:
    """Always plays the same strategy: an opponent against whom others learn a best response."""

    def __init__(self, strategy: npt.ArrayLike):
        """Stores a copy of the strategy."""
        self._strategy = np.array(strategy, np.float64)

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The strategy."""
        return self._strategy.copy()

    def observe_utility(self, utility: np.ndarray) -> None:
        """Does nothing."""


def regret_bound(minimizer: RegretMinimizer) -> float:
    """The attribute `regret_bound`: an upper bound on the regret for the observed utilities.

    Raises:
      TypeError: the minimizer has no such attribute.
    """
    bound = getattr(minimizer, "regret_bound", None)
    if bound is None:
        raise TypeError(f"{minimizer!r} has no bound on its regret")
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
