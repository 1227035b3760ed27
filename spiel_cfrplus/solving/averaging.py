"""Averaging conventions: which strategies are averaged, and with what weights.

Iteration t = 1, 2, ... updates the strategies sigma^{t-1} to sigma^t; sigma^0 is uniform. After T iterations the output for
player p is the average of T of its strategies in sequence form (that is, weighted by the player's own reach), with weight
i ** power for the i-th of them (max(i - delay, 0) ** power with a `delay`). The i-th strategy depends on the convention:

| convention    | player 0                | every other player      |
|---------------|-------------------------|-------------------------|
| `"paper"`     | sigma^1 .. sigma^T      | sigma^0 .. sigma^{T-1}  |
| `"openspiel"` | sigma^0 .. sigma^{T-1}  | sigma^0 .. sigma^{T-1}  |

The first row is the output of CFR (power 0) and CFR+ (power 1) in Burch, Moravcik and Schmid, "Revisiting CFR+ and Alternating
Updates", section 2, where player 0 updates first; it pairs each player's strategy with the opponent's strategy that it was
played against. The paper is for two players; with more players, the row of the second player is used for all others. The paper
is for alternating updates; with simultaneous updates, regret bounds are for the average of sigma^0 .. sigma^{T-1} of every
player, so both conventions average these. OpenSpiel's solvers use the second row for both orders of updates.

>>> import numpy as np
>>> Averaging(power=1).weights(np.arange(1, 5))
array([1., 2., 3., 4.])
>>> Averaging().first_iterate(num_players=2, alternating=True)
array([1, 0], dtype=uint32)
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from spiel_cfrplus._utils.arrays import powers
from spiel_cfrplus._utils.validation import checked_count, checked_number
from spiel_cfrplus.kernels.layouts import INDEX

CONVENTIONS = ("paper", "openspiel")

# Sums of millions of weights up to this bound stay finite in float64, whose largest value is 1.8e308.
_MAX_WEIGHT = 1e300


def checked_weights(weights: np.ndarray, iterations: np.ndarray) -> np.ndarray:
    """Returns `weights`, one for each of `iterations`, after a check.

    Raises:
      ValueError: a weight is NaN or too large to be summed.
    """
    too_large = ~(weights <= _MAX_WEIGHT)
    if too_large.any():
        first = iterations[np.argmax(too_large)]
        raise ValueError(f"the averaging weights are too large for a float64 sum from iteration {first} on")
    return weights


@dataclasses.dataclass(frozen=True)
class Averaging:
    """An averaging convention with weights max(i - delay, 0) ** power; the first `delay` iterations have weight 0.

    Attributes:
      power: 0 for the uniform average of CFR, 1 for the linear average of CFR+; any finite number >= 0.
      convention: "paper" or "openspiel".
      delay: number of initial iterations that are not averaged (Tammelin 2014 defines CFR+ with a delay); the average policy
        is uniform until then.

    Raises:
      TypeError: the power is not a number, or the delay is not an integer.
      ValueError: unknown convention, a negative or non-finite power, or a delay that is negative or greater than 2**62.
    """

    power: float = 0.0
    convention: str = "paper"
    delay: int = 0

    def __post_init__(self) -> None:
        if self.convention not in CONVENTIONS:
            raise ValueError(f"unknown averaging convention {self.convention!r}; choose one of {', '.join(CONVENTIONS)}")
        object.__setattr__(self, "power", checked_number(self.power, "the averaging power"))
        if not 0 <= self.power < math.inf:
            raise ValueError(f"the averaging power must be finite and at least 0, got {self.power}")
        object.__setattr__(self, "delay", checked_count(self.delay, "iterations to skip"))

    def weights(self, iterations: np.ndarray) -> np.ndarray:
        """float64, the weight of each of `iterations` (1, 2, ...) in the average.

        Raises:
          ValueError: a weight is too large to be summed.
        """
        iterations = np.asarray(iterations)
        averaged = iterations > self.delay
        return checked_weights(np.where(averaged, powers(np.maximum(iterations - self.delay, 1), self.power), 0.0), iterations)

    def first_iterate(self, num_players: int, alternating: bool) -> np.ndarray:
        """uint32 (n,), the superscript of the first strategy of each player that is averaged, 0 or 1."""
        first = np.zeros(num_players, INDEX)
        first[0] = self.convention == "paper" and alternating
        return first
