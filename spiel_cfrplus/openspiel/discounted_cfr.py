"""A compiled replacement for `open_spiel.python.algorithms.discounted_cfr`.

Discounted CFR (Brown and Sandholm 2019) with OpenSpiel's averages, in which iteration t averages the strategies from before its
updates. Options that OpenSpiel accepts and ignores have an effect here: simultaneous updates, `regret_matching_plus`, infinite
exponents.

>>> import pyspiel
>>> solver = DCFRSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(100)
>>> f"{pyspiel.nash_conv(pyspiel.load_game('kuhn_poker'), solver.tabular_average_policy()):.6f}"
'0.003333'
"""

from __future__ import annotations

import math

import numpy as np
import pyspiel

from spiel_cfrplus.openspiel import cfr
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountedRegretMatching, DiscountSchedule
from spiel_cfrplus.solving.averaging import checked_weights


def _python_powers(iterations: np.ndarray, exponent: float) -> np.ndarray:
    """Powers computed by Python's `**`, as in OpenSpiel; the last bit of NumPy's power depends on the machine."""

    def power(iteration: int) -> float:
        try:
            result: float = float(iteration) ** exponent
        except OverflowError:
            return math.inf
        return result

    return np.array([power(iteration) for iteration in iterations.tolist()])


class _Discounting(DiscountedRegretMatching):
    def _powers(self, iterations: np.ndarray, exponent: float) -> np.ndarray:
        return _python_powers(iterations, exponent)


class _DCFRSolver(cfr._CFRSolver):
    """Discounted CFR with OpenSpiel's flags and exponents."""

    _weigh_last = True

    def __init__(
        self,
        game: pyspiel.Game,
        alternating_updates: bool,
        linear_averaging: bool,
        regret_matching_plus: bool,
        alpha: float,
        beta: float,
        gamma: float,
    ):
        """As `cfr._CFRSolver`, with additional arguments.

        Args:
          game, alternating_updates: see `cfr._CFRSolver`.
          linear_averaging: iteration t has weight t ** gamma in the average, otherwise 1.
          regret_matching_plus: negative regrets are set to 0; `beta` is ignored.
          alpha: exponent of the discount of positive regrets.
          beta: exponent of the discount of negative regrets.
          gamma: see `linear_averaging`.

        Raises:
          ValueError: an exponent is not a number, or gamma is infinite.
        """
        _Discounting(alpha, beta)  # checks the exponents before the walk
        if not math.isfinite(gamma):
            raise ValueError(f"the exponent of the averaging weights must be finite, got gamma={gamma}")
        super().__init__(game, alternating_updates, linear_averaging, regret_matching_plus)
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma

    def _local_rule(self) -> DiscountSchedule:
        return _Discounting(self.alpha, -math.inf if self._regret_matching_plus else self.beta)

    def _weights(self, iterations: np.ndarray) -> np.ndarray:
        return checked_weights(_python_powers(iterations, self.gamma if self._linear_averaging else 0.0), iterations)

    def _discounted(self) -> np.ndarray:
        # If two players share a string, OpenSpiel discounts once, in the pass of the player who visits it first.
        return np.asarray(np.equal.outer(np.arange(self._num_players), self._histories.arrays.owner))


class DCFRSolver(_DCFRSolver):
    """Discounted CFR with the exponents that the paper recommends."""

    def __init__(self, game: pyspiel.Game, alpha: float = 3 / 2, beta: float = 0, gamma: float = 2):
        super().__init__(
            game,
            alternating_updates=True,
            linear_averaging=True,
            regret_matching_plus=False,
            alpha=alpha,
            beta=beta,
            gamma=gamma,
        )


class LCFRSolver(_DCFRSolver):
    """Linear CFR: discounted CFR with all exponents 1."""

    def __init__(self, game: pyspiel.Game):
        super().__init__(
            game, alternating_updates=True, linear_averaging=True, regret_matching_plus=False, alpha=1, beta=1, gamma=1
        )
