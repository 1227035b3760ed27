"""What a regret minimizer is, and what the ready-made ones have in common.

A regret minimizer has a decision set and the two calls of the lecture: `next_strategy()` gives a point of the set, and asking
again before the next utility gives the same one; `observe_utility(utility)` takes the gradient of the utility in it. The regret
after T iterations is what the best fixed strategy would have earned more than those that were played.

The ready-made ones can be *predictive*: the next strategy is chosen as if the last utility would come again (a *prediction*, in
the words of Farina, Kroer and Sandholm 2021). What is learned is the same. Each knows a bound on its regret, computed from the
utilities that came: `regret_bound`.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import saturated
from spiel_cfrplus._utils.validation import checked_number


@runtime_checkable
class RegretMinimizer(Protocol):
    """What self-play and CFR ask of a minimizer, on a simplex as on a treeplex. Any class with these two methods will do."""

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now."""

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes the gradient of the utility in the strategy that was played."""


class StaticStrategy:
    """Plays one strategy whatever happens: an opponent to whom others learn a best response."""

    def __init__(self, strategy: npt.ArrayLike):
        """Keeps a copy of the strategy."""
        self._strategy = np.array(strategy, np.float64)

    def next_strategy(self) -> np.ndarray:
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


class DecisionSet(Protocol):
    """What the ready-made minimizers ask of a simplex or a treeplex."""

    @property
    def dimension(self) -> int:
        """Numbers in a strategy."""

    def checked_utility(self, utility: npt.ArrayLike) -> np.ndarray:
        """A copy of a utility, or a ValueError."""


def checked_weight(prediction_weight: float) -> float:
    """The weight of a prediction, 1 for True and 0 for False.

    Raises:
      TypeError, ValueError: it is not a number between 0 and 1.
    """
    weight = checked_number(prediction_weight, "prediction_weight")
    if not 0 <= weight <= 1:
        raise ValueError(f"prediction_weight must be between 0 and 1, got {prediction_weight}")
    return weight


class PredictiveMinimizer:
    """The two calls around what a subclass says is learned from a utility, and what is chosen with a prediction.

    Attributes:
      prediction_weight: whether the last utility is predicted to come again; otherwise the prediction is zero.
      iteration: utilities observed.
    """

    def __init__(self, decision_set: DecisionSet, prediction_weight: float):
        """Chooses the first strategy, with the prediction zero."""
        self.prediction_weight = prediction_weight
        self.iteration = 0
        self._checked_utility = decision_set.checked_utility
        self._prediction = np.zeros(decision_set.dimension)
        self._strategy = self._choose()

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now, float64, the caller's to keep."""
        return self._strategy.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Takes the gradient of the utility in the strategy that `next_strategy` gives, float64 of the same shape.

        Numbers beyond 1e300 in magnitude count as 1e300.

        Raises:
          ValueError: wrong shape or numbers that are not finite; nothing is changed.
        """
        checked = saturated(self._checked_utility(utility))
        self._learn(checked)
        self.iteration += 1
        if self.prediction_weight:
            self._prediction = checked
        self._strategy = self._choose()

    @property
    def regret_bound(self) -> float:
        """No sequence of utilities like the one observed gives more regret than this, in their unit."""
        raise NotImplementedError

    def _learn(self, utility: np.ndarray) -> None:
        """Takes in the utility of `_strategy`, which was chosen with `_prediction`."""
        raise NotImplementedError

    def _choose(self) -> np.ndarray:
        """The next strategy, for `_prediction`."""
        raise NotImplementedError


def checked_step_size(step_size: float) -> float:
    """The step size.

    Raises:
      TypeError, ValueError: it is not a number, positive and finite.
    """
    number = checked_number(step_size, "step_size")
    if not 0 < number < math.inf:
        raise ValueError(f"step_size must be positive and finite, got {step_size}")
    return number


class StepSizes:
    """The step sizes of a minimizer, or of several side by side, and the bound on regret that comes with them.

    For the minimizers that use this, the regret after T iterations is at most

        radius / step_T + sum over t of step_t / 2 * error_t^2

    with errors in the norm of the minimizer's own, ||utility_t - prediction_t||, provided that steps never grow. They are
    either fixed or, by default, tuned to what has come (Rakhlin and Sridharan 2013):

        step_{t+1} = sqrt(radius / (error_1^2 + ... + error_t^2)),

    which asks neither for the number of iterations nor for the unit of the utilities, and keeps the regret of order
    sqrt(radius * sum of squared errors). The first strategy is the same for every step, so step_1 may be chosen afterwards; it
    is what the formula gives for t = 1.

    Attributes:
      current: the step for choosing the next strategy, float64 (P,) for P minimizers.
    """

    def __init__(self, radius: npt.ArrayLike, step_size: float | None):
        """Starts before the first utility.

        Args:
          radius: of the decision set as seen by the minimizer, (P,).
          step_size: positive, the same for all; None for tuned steps.

        Raises:
          ValueError: a step that is not positive and finite.
        """
        if step_size is not None:
            checked_step_size(step_size)
        self._radius = np.atleast_1d(np.asarray(radius, np.float64))
        self._tuned = step_size is None
        self.current = np.full(len(self._radius), 1.0 if step_size is None else step_size)
        self._last = self.current
        self._errors = np.zeros(len(self._radius))  # the root of the sum of their squares
        self._paid = np.zeros(len(self._radius))

    def advance(self, error: np.ndarray | float) -> np.ndarray:
        """Enters an iteration into the account; returns the step to learn with, that of the strategy that was played."""
        before = self._errors
        self._errors = np.hypot(before, error)
        tuned = self._tune() if self._tuned else self.current
        self._last = np.where(before > 0, self.current, tuned)
        self.current = tuned
        with np.errstate(over="ignore"):  # a fixed step may be any number
            self._paid += self._last * error * error / 2
        return self._last

    def _tune(self) -> np.ndarray:
        """The formula; as long as all utilities were zero, any step does. At most the largest float64."""
        with np.errstate(over="ignore"):  # errors may be as small as numbers can be
            steps = np.divide(np.sqrt(self._radius), self._errors, out=np.ones_like(self._radius), where=self._errors > 0)
        return np.minimum(steps, np.finfo(np.float64).max)

    @property
    def regret_bound(self) -> float:
        """The bound above, summed over the minimizers; infinite where a step is too small for a float64."""
        at_zero = np.where(self._radius > 0, math.inf, 0.0)
        first = np.divide(self._radius, self._last, out=at_zero, where=self._last > 0)
        return float((first + self._paid).sum())


class SteppingMinimizer(PredictiveMinimizer):
    """A minimizer that takes steps along utilities. A subclass says what a step is, and in what norm errors count."""

    def __init__(self, decision_set: DecisionSet, radius: npt.ArrayLike, step_size: float | None, prediction_weight: float):
        self._steps = StepSizes(radius, step_size)
        super().__init__(decision_set, prediction_weight)

    @property
    def step_sizes(self) -> np.ndarray:
        """The current step, float64, one for each simplex or one for the treeplex, in one over the unit of the utilities."""
        return self._steps.current.copy()

    @property
    def regret_bound(self) -> float:
        return self._steps.regret_bound if self.iteration else 0.0

    def _stepped(self, step: np.ndarray, utility: np.ndarray) -> np.ndarray:
        """Step times utility, saturated: a step may be any number, fixed or tuned to tiny utilities."""
        with np.errstate(over="ignore"):
            return saturated(step * utility)

    def _learn(self, utility: np.ndarray) -> None:
        self._step(self._steps.advance(self._norm(utility - self._prediction)), utility)

    def _norm(self, error: np.ndarray) -> np.ndarray | float:
        raise NotImplementedError

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        raise NotImplementedError
