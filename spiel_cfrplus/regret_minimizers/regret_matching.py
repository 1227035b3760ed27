"""The regret-matching family of local rules, whose members differ in two factors per iteration.

All members store a table of regrets per infostate and play its normalized positive part (uniform if it is zero). After
iteration t with counterfactual values v and strategy sigma they replace the table x by

    x <- x + v - sigma . v,   then   x_a <- x_a * (positive factor if x_a > 0 else negative factor).

Factors 1 and 1 are regret matching, 1 and 0 are regret matching+.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from spiel_cfrplus._utils.arrays import powers
from spiel_cfrplus._utils.validation import checked_number, checked_positive
from spiel_cfrplus.kernels import regret_matching as kernels
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.minimizer import checked_weight


@runtime_checkable
class DiscountSchedule(Protocol):
    """A member of the family above."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        """Positive and negative factor of each of `iterations` (1, 2, ...), float64 (T, 2)."""


def checked_discounts(rule: DiscountSchedule, iterations: np.ndarray) -> np.ndarray:
    """The factors of `rule`, float64 (T, 2).

    Raises:
      ValueError: they have another shape, or are negative or not finite.
    """
    factors = np.asarray(rule.discounts(iterations), np.float64)
    if factors.shape != (len(iterations), 2) or not np.all((factors >= 0) & (factors < np.inf)):
        raise ValueError(
            f"{rule!r} did not return two finite, nonnegative factors for each of {len(iterations)} iterations: {factors!r}"
        )
    return factors


@dataclasses.dataclass(frozen=True)
class RegretMatching:
    """Regret matching (Hart and Mas-Colell 2000; CFR+ paper, Eq. 1 and 4): tables are sums of regrets."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 1.0], (len(iterations), 1))


@dataclasses.dataclass(frozen=True)
class RegretMatchingPlus:
    """Regret matching+ (Tammelin 2014; CFR+ paper, Eq. 5 and 6): negative stored values are set to 0 after an update."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 0.0], (len(iterations), 1))


@dataclasses.dataclass(frozen=True)
class DiscountedRegretMatching:
    """Regret matching with discounted regrets (Brown and Sandholm 2019, section 4).

    After iteration t positive regrets are multiplied by t^alpha / (t^alpha + 1), negative ones by t^beta / (t^beta + 1). An
    exponent of infinity means the factor 1, minus infinity the factor 0, at every t: (inf, -inf) is regret matching+.

    Attributes:
      alpha, beta: the exponents; 3/2 and 0 are the paper's recommendation, 1 and 1 are linear CFR.

    Raises:
      TypeError, ValueError: an exponent is not a number.
    """

    alpha: float = 1.5
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, checked_number(getattr(self, name), f"the exponent {name}"))
        if math.isnan(self.alpha) or math.isnan(self.beta):
            raise ValueError(f"the exponents of discounting must be numbers, got alpha={self.alpha}, beta={self.beta}")

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        return np.stack([self._discount(iterations, exponent) for exponent in (self.alpha, self.beta)], axis=1)

    def _discount(self, iterations: np.ndarray, exponent: float) -> np.ndarray:
        if math.isinf(exponent):
            return np.full(len(iterations), float(exponent > 0))
        with np.errstate(invalid="ignore"):
            power = self._powers(iterations, exponent)
            return np.where(np.isinf(power), 1.0, power / (power + 1))

    def _powers(self, iterations: np.ndarray, exponent: float) -> np.ndarray:
        return powers(iterations, exponent)


@dataclasses.dataclass(frozen=True)
class ScheduledRegretMatching:
    """Regret matching with discounts whose exponents change linearly until a horizon (Zhang, McAleer, Sandholm 2026).

    After iteration t regrets are multiplied by the factors of `DiscountedRegretMatching` with exponents that are interpolated
    between the first and the last ones at t / horizon. Deviation: after iteration `horizon` the last exponents remain, so that
    a run can be continued.

    Attributes:
      horizon: the number of iterations that are planned.
      first_alpha, last_alpha: the exponents of positive regrets at t = 0 and t = `horizon`.
      first_beta, last_beta: the exponents of negative regrets.

    Raises:
      TypeError, ValueError: an exponent is not a finite number, or the horizon is not a positive integer.
    """

    horizon: int = 1000
    first_alpha: float = 1.0
    last_alpha: float = 4.0
    first_beta: float = -1.0
    last_beta: float = -3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", checked_positive(self.horizon, "planned iterations"))
        for name in ("first_alpha", "last_alpha", "first_beta", "last_beta"):
            object.__setattr__(self, name, checked_number(getattr(self, name), f"the exponent {name}"))
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"the exponents of scheduled discounting must be finite, got {name}={getattr(self, name)}")

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        progress = np.minimum(iterations / self.horizon, 1.0)
        pairs = ((self.first_alpha, self.last_alpha), (self.first_beta, self.last_beta))
        # The factor t^a / (t^a + 1), without overflow.
        powers_of_t = [np.exp(-(first + (last - first) * progress) * np.log(iterations)) for first, last in pairs]
        return np.stack([1.0 / (1.0 + inverse) for inverse in powers_of_t], axis=1)


@dataclasses.dataclass(frozen=True, repr=False)
class RegretMatchingRule(LocalRule):
    """A member of the family as a local rule, with or without prediction.

    Attributes:
      discounts: the factors of the member.
    """

    discounts: DiscountSchedule = RegretMatching()

    matches_regrets = True

    @classmethod
    def of(cls, discounts: DiscountSchedule, prediction_weight: float = 0.0) -> RegretMatchingRule:
        """The rule with these discounts, which predicts regrets with this weight.

        Raises:
          TypeError, ValueError: the weight is not a number between 0 and 1.
        """
        weight = checked_weight(prediction_weight)
        return cls(
            name=f"{'predictive ' if weight > 0 else ''}{discounts!r}",
            function=kernels.predictive_regret_matching if weight > 0 else kernels.regret_matching,
            parameters=(("prediction_weight", weight),) if weight > 0 else (),
            per_action=("regrets",),
            scale_free=True,
            weighs_actions=True,
            discounts=discounts,
        )

    def with_prediction_weight(self, weight: float) -> RegretMatchingRule:
        return RegretMatchingRule.of(self.discounts, weight)

    def statement_refusal(self, statement: str, iteration: int) -> str:
        """Depends on the factors only, because the proofs do."""
        if self.prediction_weight:
            return "predictive strategies are not matched to the stored values alone"
        if statement == "cfr_plus_bound":
            factors = checked_discounts(self.discounts, np.arange(1, iteration + 1))
            return "it is proved for regret matching+" if (factors != [1, 0]).any() else ""
        factors = checked_discounts(self.discounts, np.array([max(iteration, 1)]))
        return "positive regrets are discounted to zero" if factors[0, 0] <= 0 else ""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("positive_factor", "negative_factor", *(name for name, _ in self.parameters))

    def parameter_table(self, iterations: np.ndarray) -> np.ndarray:
        factors = checked_discounts(self.discounts, iterations)
        if self.prediction_weight == 0:
            return factors
        return np.column_stack([factors, np.full(len(iterations), self.prediction_weight)])

    def skips_unreached(self, table: np.ndarray) -> np.ndarray:
        """Without prediction, if the factor is 1 for positive regrets and 0 or 1 for negative ones, as in the last iteration.

        Then an update with zero values changes neither regrets nor policy.
        """
        skips = np.zeros(len(table), bool)
        if self.prediction_weight == 0 and len(table) > 1:
            positive, negative = table[1:].T
            skips[1:] = (positive == 1) & (negative == table[:-1, 1]) & ((negative == 0) | (negative == 1))
        return skips


def as_local_rule(rule: Any, prediction_weight: float | None = None) -> LocalRule:
    """Returns a `LocalRule` itself, or regret matching with a schedule of discounts.

    Args:
      rule: the rule.
      prediction_weight: the parameter of this name; by default unchanged.

    Raises:
      TypeError: it is not a rule, or has no such parameter.
      ValueError: the weight is not between 0 and 1.
    """
    if isinstance(rule, LocalRule):
        return rule if prediction_weight is None else rule.with_prediction_weight(prediction_weight)
    if isinstance(rule, type) or not isinstance(rule, DiscountSchedule):
        raise TypeError(f"expected a function with the decorator local_rule, or discounts of regret matching, got {rule!r}")
    return RegretMatchingRule.of(rule, 0.0 if prediction_weight is None else prediction_weight)
