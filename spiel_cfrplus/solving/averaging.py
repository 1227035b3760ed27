"""Averaging conventions: which strategies are averaged, and with what weights.

Iteration t = 1, 2, ... updates the strategies sigma^{t-1} to sigma^t; sigma^0 is uniform. After T iterations the output for
player p is the average of T of its strategies in sequence form (that is, weighted by the player's own reach), with weight
i ** power for the i-th of them (max(i - delay, 0) ** power with a `delay`), or the last of them. The i-th strategy depends on
the convention:

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
>>> Averaging.late(1000)
Averaging(power=2.0, convention='paper', delay=500, decrease=0.0, horizon=0, only_last=False)
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


def check_delay(delay: int, num_iterations: int) -> None:
    """Refuses a delay that omits all iterations of a run.

    Raises:
      ValueError: it does.
    """
    if delay >= num_iterations:
        raise ValueError(f"averaging_delay={delay} omits all iterations from the average, of which there are {num_iterations}")


@dataclasses.dataclass(frozen=True)
class Averaging:
    """An averaging convention with weights max(i - delay, 0) ** power; the first `delay` iterations have weight 0.

    With a `decrease`, the weight of iteration i + 1 is ((i + 1) / i) ** (power - decrease * min(i / horizon, 1)) times that of
    iteration i, which is the schedule of Zhang, McAleer, Sandholm 2026 up to iteration `horizon`.

    Attributes:
      power: 0 for the uniform average of CFR, 1 for the linear average of CFR+; any finite number >= 0.
      convention: "paper" or "openspiel".
      delay: number of initial iterations that are not averaged (Tammelin 2014 defines CFR+ with a delay); the average policy
        is uniform until then.
      decrease: the power decreases by this number, at most `power`, until iteration `horizon`, and is constant afterwards.
      horizon: the number of iterations that are planned; has an effect only on `decrease`, which requires it.
      only_last: the "average" is the last strategy; excludes weights, that is, the other numbers must be 0.

    Raises:
      TypeError: the power is not a number, or the delay is not an integer.
      ValueError: unknown convention, a negative or non-finite power, a delay that is negative or greater than 2**62, a decrease
        without horizon or a horizon without decrease, a decrease that is negative or greater than the power, or weights with
        `only_last`.
    """

    power: float = 0.0
    convention: str = "paper"
    delay: int = 0
    decrease: float = 0.0
    horizon: int = 0
    only_last: bool = False

    def __post_init__(self) -> None:
        if self.convention not in CONVENTIONS:
            raise ValueError(f"unknown averaging convention {self.convention!r}; choose one of {', '.join(CONVENTIONS)}")
        object.__setattr__(self, "power", checked_number(self.power, "the averaging power"))
        if not 0 <= self.power < math.inf:
            raise ValueError(f"the averaging power must be finite and at least 0, got {self.power}")
        object.__setattr__(self, "delay", checked_count(self.delay, "iterations to skip"))
        self._check_schedule()

    def _check_schedule(self) -> None:
        object.__setattr__(self, "decrease", checked_number(self.decrease, "the decrease of the averaging power"))
        object.__setattr__(self, "horizon", checked_count(self.horizon, "planned iterations"))
        if not 0 <= self.decrease <= self.power:
            raise ValueError(f"the decrease of the averaging power must be from 0 to {self.power}, got {self.decrease}")
        if (self.decrease > 0) != (self.horizon > 0):
            raise ValueError("an averaging power that decreases and its horizon require each other")
        if not isinstance(self.only_last, bool):
            raise TypeError(f"only_last must be True or False, got {self.only_last!r}")
        if self.only_last and (self.power, self.delay) != (0, 0):
            raise ValueError("only_last excludes weights: power and delay must be 0")

    @classmethod
    def late(cls, num_iterations: int, share: float = 0.5, power: float = 2.0, convention: str = "paper") -> Averaging:
        """The average of the last iterations of a run, with weights (i - delay) ** power.

        Args:
          num_iterations: the planned number of iterations.
          share: the share of them, from 0 to less than 1, that are not averaged.
          power, convention: as in `Averaging`.

        Raises:
          TypeError, ValueError: as for `Averaging`, or a share out of range.
        """
        if not 0 <= checked_number(share, "the share of omitted iterations") < 1:
            raise ValueError(f"the share of omitted iterations must be at least 0 and less than 1, got {share}")
        return cls(power, convention, int(share * checked_count(num_iterations, "planned iterations")))

    @property
    def kept(self) -> float:
        """The factor of earlier sums when strategies are added to the average: 0 with `only_last`, otherwise 1."""
        return 0.0 if self.only_last else 1.0

    def weights(self, iterations: np.ndarray) -> np.ndarray:
        """float64, the weight of each of `iterations` (1, 2, ...) in the average after the last of them.

        Raises:
          ValueError: a weight is too large to be summed.
        """
        iterations = np.asarray(iterations)
        if self.only_last:
            return np.asarray(iterations == iterations[-1], np.float64)
        averaged, numbers = iterations > self.delay, np.maximum(iterations - self.delay, 1)
        return checked_weights(np.where(averaged, powers(numbers, self.power) * self._decay(numbers), 0.0), iterations)

    def _decay(self, numbers: np.ndarray) -> np.ndarray:
        """The factor of the weights that `decrease` causes, float64 (T,).

        The sum of s log((s + 1) / s) over s < i is (i - 1) log i - log (i - 1)!.
        """
        if not self.decrease:
            return np.ones(len(numbers))
        within = np.minimum(numbers, self.horizon)
        sums = (within - 1) * np.log(within) - np.fromiter(map(math.lgamma, within), np.float64, len(within))
        beyond = self.horizon * np.log(numbers / within)
        return np.asarray(np.exp(-self.decrease / self.horizon * (sums + beyond)))

    def first_iterate(self, num_players: int, alternating: bool) -> np.ndarray:
        """uint32 (n,), the superscript of the first strategy of each player that is averaged, 0 or 1."""
        first = np.zeros(num_players, INDEX)
        first[0] = self.convention == "paper" and alternating
        return first
