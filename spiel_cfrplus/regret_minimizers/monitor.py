"""Measures the regret of a minimizer.

>>> from spiel_cfrplus.regret_minimizers import SimplexRegretMatching
>>> monitor = RegretMonitor.on_simplex(SimplexRegretMatching(2))
>>> monitor.next_strategy()
array([0.5, 0.5])
>>> monitor.observe_utility([1.0, 0.0])  # value 0.5, the better action has value 1
>>> monitor.regret
0.5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, regret_bound
from spiel_cfrplus.regret_minimizers.simplex import SimplexProduct


class RegretMonitor:
    """Forwards the two calls to a minimizer and computes its external regret.

    If all players of a game learn with simultaneous updates, the largest of their average regrets is exactly the largest gain
    of any player from a fixed deviation, and therefore the distance of the empirical distribution of play from a coarse
    correlated equilibrium, for any number of players and any payoffs.

    Attributes:
      minimizer: the minimizer.
      iteration: utilities observed.
      cumulative_utility: their sum.
      cumulative_value: the sum of strategy . utility, float64 (P,), for each simplex of a product of P simplices; P = 1 for
        other decision sets.
    """

    def __init__(
        self,
        minimizer: RegretMinimizer,
        best_value: Callable[[np.ndarray], Any],
        earnings: Callable[[np.ndarray, np.ndarray], Any] = np.dot,
    ):
        """Starts with no observations.

        Args:
          minimizer: the minimizer; for its total regret, it must not observe utilities outside the monitor.
          best_value: the largest x . utility over all strategies x, for a given utility.
          earnings: strategy . utility.
        """
        self.minimizer = minimizer
        self._best_value = best_value
        self._earnings = earnings
        self._strategy: np.ndarray | None = None
        self.iteration = 0
        self.cumulative_utility = np.zeros(0)
        self.cumulative_value = np.zeros(1)

    @classmethod
    def on_simplex(cls, minimizer: RegretMinimizer) -> Self:
        """For a minimizer on the simplex."""
        return cls(minimizer, np.max)

    @classmethod
    def on_simplices(cls, minimizer: RegretMinimizer, num_actions: Sequence[int] | np.ndarray) -> Self:
        """For a minimizer on a product of simplices with these numbers of actions; `regrets` has one number for each."""
        simplices = SimplexProduct(num_actions)
        return cls(minimizer, simplices.max, lambda strategy, utility: simplices.sum(strategy * utility))

    @classmethod
    def on_treeplex(cls, minimizer: RegretMinimizer, treeplex: Treeplex) -> Self:
        """For a minimizer on the sequence-form polytope of `treeplex`."""
        return cls(minimizer, treeplex.best_value)

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The strategy of the minimizer."""
        self._strategy = np.array(self.minimizer.next_strategy(), np.float64)
        return self._strategy.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Adds the utility to the sums and forwards it.

        Raises:
          ValueError: numbers that are not finite; nothing is changed.
        """
        utility = np.array(utility, np.float64)
        if not np.isfinite(utility).all():
            raise ValueError(f"expected finite numbers, got {utility!r}")
        strategy = self.next_strategy() if self._strategy is None else self._strategy
        value = self.cumulative_value + self._earnings(strategy, utility)
        self.minimizer.observe_utility(utility.copy())
        self._strategy = None
        self.cumulative_value = value
        self.cumulative_utility = utility if self.iteration == 0 else self.cumulative_utility + utility
        self.iteration += 1

    @property
    def regrets(self) -> npt.NDArray[np.float64]:
        """The best fixed value minus the obtained value, float64 (P,), in the unit of the utilities; initially 0."""
        if self.iteration == 0:
            return np.zeros(1)
        return np.asarray(self._best_value(self.cumulative_utility) - self.cumulative_value)

    @property
    def regret(self) -> float:
        """The sum of `regrets`, which is the regret on the whole decision set."""
        return float(self.regrets.sum())

    @property
    def regret_bound(self) -> float:
        """The bound of the minimizer.

        Raises:
          TypeError: it has none.
        """
        return regret_bound(self.minimizer)
