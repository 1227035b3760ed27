"""Regret, measured while a minimiser learns.

>>> from spiel_cfrplus.regret_minimizers import SimplexRegretMatching
>>> monitor = RegretMonitor.on_simplex(SimplexRegretMatching(2))
>>> monitor.next_strategy()
array([0.5, 0.5])
>>> monitor.observe_utility([1.0, 0.0])  # earned 0.5, where the better action had 1
>>> monitor.regret
0.5
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt

from spiel_cfrplus.regret_minimizers.simplex import RegretMinimizer
from spiel_cfrplus.treeplex import Treeplex


class RegretMonitor:
    """Passes the two calls on to a minimiser and keeps the account of its external regret.

    When all players of a game learn with simultaneous updates, the largest of their average regrets is exactly the largest gain
    that any player had from a fixed deviation, and so the distance of the empirical distribution of play from a coarse
    correlated equilibrium, for any number of players and any payoffs.

    Attributes:
      minimizer: the minimiser.
      iteration: utilities observed.
      cumulative_utility: their sum.
      earned: the sum of strategy . utility.
    """

    def __init__(self, minimizer: RegretMinimizer, best_value: Callable[[np.ndarray], float]):
        """Starts with nothing observed.

        Args:
          minimizer: the minimiser; it must not have observed anything through other hands if its whole regret is asked for.
          best_value: the largest x . utility over all strategies x, for a given utility.
        """
        self.minimizer = minimizer
        self._best_value = best_value
        self._strategy: np.ndarray | None = None
        self.iteration = 0
        self.cumulative_utility = np.zeros(0)
        self.earned = 0.0

    @classmethod
    def on_simplex(cls, minimizer: RegretMinimizer) -> Self:
        """For a minimiser on the simplex."""
        return cls(minimizer, np.max)

    @classmethod
    def on_treeplex(cls, minimizer: RegretMinimizer, treeplex: Treeplex) -> Self:
        """For a minimiser on the sequence-form polytope of `treeplex`."""
        return cls(minimizer, treeplex.best_value)

    def next_strategy(self) -> np.ndarray:
        """The minimiser's."""
        self._strategy = np.array(self.minimizer.next_strategy(), np.float64)
        return self._strategy.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Enters the utility into the account and passes it on."""
        utility = np.array(utility, np.float64)
        strategy = self.next_strategy() if self._strategy is None else self._strategy
        self.minimizer.observe_utility(utility)
        self.iteration += 1
        self.earned += float(strategy @ utility)
        self.cumulative_utility = utility if self.iteration == 1 else self.cumulative_utility + utility

    @property
    def regret(self) -> float:
        """What the best fixed strategy would have earned more, in the unit of the utilities; 0 before the first."""
        return float(self._best_value(self.cumulative_utility)) - self.earned if self.iteration else 0.0
