"""Regret minimisers on the simplex: what CFR runs at a decision point, and usable alone.

Each has the two calls of the lecture. `next_strategy()` gives a point of the simplex, float64 (k,); asking again before the
next utility gives the same one. `observe_utility(utility)` takes the utility of every action, float64 (k,), in any unit; the
regret against action a is the sum over time of utility[a] - strategy . utility. With `optimistic=True` the next strategy is
chosen as if the last utility would come again (a prediction, in the words of Farina, Kroer and Sandholm 2021); what is learned
is the same.

>>> from spiel_cfrplus.regret_minimizers import RegretMatchingPlus
>>> minimizer = SimplexRegretMatching(3, RegretMatchingPlus())
>>> minimizer.observe_utility([1.0, 0.0, 0.5])  # mean 0.5: regrets 0.5, -0.5, 0, of which the negative one is forgotten
>>> minimizer.next_strategy()
array([1., 0., 0.])
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._kernels import INDEX, match_regrets_above, mean_utility
from spiel_cfrplus.regret_minimizers.regret_matching import LocalRule, RegretMatching


class RegretMinimizer(Protocol):
    """What self-play and CFR ask of a minimiser, on a simplex as on a treeplex. Any class with these two methods will do."""

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now."""

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes the gradient of the utility in the strategy that was played."""


class _SimplexMinimizer:
    """The current strategy, the last utility, and the checks; subclasses say what is learned and what is played.

    Attributes:
      num_actions: k.
      optimistic: whether the last utility is predicted to come again.
      iteration: utilities observed.
    """

    def __init__(self, num_actions: int, optimistic: bool):
        if num_actions < 1:
            raise ValueError(f"a simplex has at least one action, got {num_actions}")
        self.num_actions = num_actions
        self.optimistic = optimistic
        self.iteration = 0
        self._strategy = np.full(num_actions, 1 / num_actions)

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now, float64 (k,), the caller's to keep; uniform at first."""
        return self._strategy.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Takes the utility of each action, float64 (k,).

        Raises:
          ValueError: wrong shape or numbers that are not finite; nothing is changed.
        """
        utility = np.array(utility, np.float64)
        if utility.shape != (self.num_actions,) or not np.isfinite(utility).all():
            raise ValueError(f"expected {self.num_actions} finite numbers, got {utility!r}")
        self.iteration += 1
        self._learn(utility)
        self._strategy = self._choose(utility if self.optimistic else np.zeros(self.num_actions))

    def _learn(self, utility: np.ndarray) -> None:
        raise NotImplementedError

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class SimplexRegretMatching(_SimplexMinimizer):
    """Regret matching and its relatives, as `rule` has it.

    The optimistic forms are predictive regret matching (Farina, Kroer, Sandholm 2021, Algorithms 1 and 2): the table that is
    matched includes the regrets that the prediction would bring against the strategy just played.

    Regret after T iterations: at most L sqrt(k T) for regret matching and regret matching+, where L bounds the range of the
    utilities (CFR+ paper; Tammelin et al. 2015).
    """

    def __init__(self, num_actions: int, rule: LocalRule | None = None, *, optimistic: bool = False, rounding: float = 0.0):
        """Starts uniform.

        Args:
          num_actions: k.
          rule: regret matching by default.
          optimistic: see the module.
          rounding: regrets of at most this for each utility observed are read as none; see `SequenceFormGame.rounding`.

        Raises:
          ValueError: `rounding` is negative or not finite.
        """
        super().__init__(num_actions, optimistic)
        self.rule = RegretMatching() if rule is None else rule
        self.rounding = float(checked_rounding(rounding))
        self.cumulative_regrets = np.zeros(num_actions)

    def _learn(self, utility: np.ndarray) -> None:
        table = self.cumulative_regrets + (utility - self._earned(utility))
        ((positive, negative),) = self.rule.discounts(np.array([self.iteration]))
        self.cumulative_regrets = table * np.where(table > 0, positive, negative) + 0.0

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        table = self.cumulative_regrets + (prediction - self._earned(prediction))
        strategy = np.empty(self.num_actions)
        match_regrets_above(table, self.iteration * self.rounding, INDEX(0), INDEX(self.num_actions), strategy)
        return strategy

    def _earned(self, utility: np.ndarray) -> float:
        # The kernels' own sum, so that CFR composed of these gives the doubles of compiled CFR.
        return mean_utility(self._strategy, utility, INDEX(0), INDEX(self.num_actions))


class Hedge(_SimplexMinimizer):
    """Multiplicative weights (Freund and Schapire 1997): the strategy is the softmax of learning_rate times summed utilities.

    Regret after T iterations: at most log(k) / learning_rate + learning_rate L^2 T / 8, where L bounds the range of the
    utilities; with learning_rate = sqrt(8 log(k) / T) / L that is L sqrt(T log(k) / 2).
    """

    def __init__(self, num_actions: int, learning_rate: float, *, optimistic: bool = False):
        """Starts uniform.

        Args:
          num_actions: k.
          learning_rate: positive, in one over the unit of the utilities.
          optimistic: see the module.
        """
        super().__init__(num_actions, optimistic)
        self.learning_rate = checked_positive(learning_rate, "learning_rate")
        self.cumulative_utility = np.zeros(num_actions)

    def _learn(self, utility: np.ndarray) -> None:
        self.cumulative_utility += utility

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        exponents = self.learning_rate * (self.cumulative_utility + prediction)
        weights = np.exp(exponents - exponents.max())
        return weights / weights.sum()


class ProjectedGradientAscent(_SimplexMinimizer):
    """Online projected gradient ascent (Zinkevich 2003): a step along the utility, then back to the nearest strategy.

    The optimistic form keeps a base point that takes every step, and plays the base plus one step along the prediction (Rakhlin
    and Sridharan 2013).

    Regret after T iterations: at most 1 / step_size + step_size G^2 T / 2, where G bounds the Euclidean norm of the utilities.
    """

    def __init__(self, num_actions: int, step_size: float, *, optimistic: bool = False):
        """Starts uniform.

        Args:
          num_actions: k.
          step_size: positive, in one over the unit of the utilities.
          optimistic: see the module.
        """
        super().__init__(num_actions, optimistic)
        self.step_size = checked_positive(step_size, "step_size")
        self._base = self.next_strategy()

    def _learn(self, utility: np.ndarray) -> None:
        self._base = project_onto_simplex(self._base + self.step_size * utility)

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        return project_onto_simplex(self._base + self.step_size * prediction)


def project_onto_simplex(point: npt.ArrayLike) -> np.ndarray:
    """The point of the simplex nearest to `point`, float64 (k,), exactly (Held, Wolfe, Crowder 1974).

    It is max(point - threshold, 0) with the threshold at which that sums to 1.
    """
    coordinates = np.array(point, np.float64)
    coordinates -= coordinates.max()  # moves the nearest point nowhere, and keeps large numbers from swallowing the 1 below
    descending = np.sort(coordinates)[::-1]
    thresholds = (np.cumsum(descending) - 1) / np.arange(1, len(coordinates) + 1)
    support = np.flatnonzero(descending > thresholds)[-1]
    return np.maximum(coordinates - thresholds[support], 0.0)


def checked_positive(number: float, name: str) -> float:
    """`number`, if it can be a learning rate or step size.

    Raises:
      ValueError: it is not positive and finite.
    """
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def checked_rounding(rounding: npt.ArrayLike, size: int = 0) -> np.ndarray:
    """`rounding` as float64: one number, or `size` of them.

    Raises:
      ValueError: another shape, or numbers that are negative or not finite.
    """
    checked = np.array(rounding, np.float64)
    if checked.shape not in ((), (size,)) or not np.all((checked >= 0) & (checked < math.inf)):
        raise ValueError(f"rounding must be not negative and finite, one number or {size} of them, got {rounding!r}")
    return checked
