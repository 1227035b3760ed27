"""Which strategies the average is made of, and with what weights.

Iteration t = 1, 2, ... turns the strategies sigma^{t-1} into sigma^t; sigma^0 is uniform. After T iterations the output for
player p is the average of T of its strategies in sequence form (that is: weighted by the player's own reach), with weight
i ** power on the i-th of them (or later than that, with a `delay`). What the i-th one is depends on the convention:

| convention    | player 0                | every other player      |
|---------------|-------------------------|-------------------------|
| `"paper"`     | sigma^1 .. sigma^T      | sigma^0 .. sigma^{T-1}  |
| `"openspiel"` | sigma^0 .. sigma^{T-1}  | sigma^0 .. sigma^{T-1}  |

The first row is the output of CFR (power 0) and CFR+ (power 1) in Burch, Moravcik and Schmid, "Revisiting CFR+ and Alternating
Updates", section 2, where player 0 updates first; it pairs each player's strategy with the opponent's strategy that it was
played against. The paper has two players; with more, its row for the second player is used for all the others. It also has
alternating updates only; with simultaneous updates the average that regret bounds speak of is sigma^0 .. sigma^{T-1} for
everybody, so both conventions mean that. OpenSpiel's solvers average by the second row whatever the order of updates.

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

# Sums of millions of numbers of this size still fit a float64.
_LARGEST_WEIGHT = 1e300


def checked_weights(weights: np.ndarray, iterations: np.ndarray) -> np.ndarray:
    """`weights`, one for each of `iterations`.

    Raises:
      ValueError: one is not a number, or too large to be summed.
    """
    too_large = ~(weights <= _LARGEST_WEIGHT)
    if too_large.any():
        first = iterations[np.argmax(too_large)]
        raise ValueError(f"the averaging weights are too large for a float64 sum from iteration {first} on")
    return weights


@dataclasses.dataclass(frozen=True)
class Averaging:
    """Weights max(i - delay, 0) ** power under one of the `CONVENTIONS`, none for the first `delay`.

    Attributes:
      power: 0 for the uniform average of CFR, 1 for the linear average of CFR+; any finite number >= 0.
      convention: "paper" or "openspiel".
      delay: iterations that are left out (Tammelin 2014 has CFR+ with a delay); as long as nothing is averaged, the average
        policy is uniform.

    Raises:
      TypeError: the power is no number, or the delay is no integer.
      ValueError: unknown convention, a power that is negative or not finite, or a delay that is negative or above 2**62.
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
        object.__setattr__(self, "delay", checked_count(self.delay, "iterations that are left out"))

    def weights(self, iterations: np.ndarray) -> np.ndarray:
        """The weight that each of `iterations` (1, 2, ...) adds to the average, float64.

        Raises:
          ValueError: a weight is too large to be summed.
        """
        iterations = np.asarray(iterations)
        averaged = iterations > self.delay
        return checked_weights(np.where(averaged, powers(np.maximum(iterations - self.delay, 1), self.power), 0.0), iterations)

    def first_iterate(self, num_players: int, alternating: bool) -> np.ndarray:
        """For each player the superscript of the first strategy that is averaged, 0 or 1, uint32 (n,)."""
        first = np.zeros(num_players, INDEX)
        first[0] = self.convention == "paper" and alternating
        return first
