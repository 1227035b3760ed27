"""Regret minimizers on the simplex, for use at the decision points of CFR or alone.

A strategy is a point of the simplex, float64 (k,), and a utility has one number for each action, in any unit. The regret for
action a is the sum over time of utility[a] - strategy . utility.

>>> from spiel_cfrplus.regret_minimizers import RegretMatchingPlus
>>> minimizer = SimplexRegretMatching(3, RegretMatchingPlus())
>>> minimizer.observe_utility([1.0, 0.0, 0.5])  # mean 0.5: regrets 0.5, -0.5, 0; the negative one is set to 0
>>> minimizer.next_strategy()
array([1., 0., 0.])

A product of several simplices is also a decision set: with a list of numbers of actions, each class here operates on the
concatenated vectors and learns separately on every simplex. CFR with thousands of decision points then needs one object and one
call.

>>> pair = Hedge([2, 3], step_size=1.0)
>>> pair.observe_utility([0.0, 100.0, 0.0, 0.0, 0.0])
>>> pair.next_strategy().round(2)
array([0.  , 1.  , 0.33, 0.33, 0.33])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import finite_vector, frozen, saturated
from spiel_cfrplus.kernels import simplex as simplex_kernels
from spiel_cfrplus.kernels.layouts import INDEX, TreeplexArrays
from spiel_cfrplus.regret_minimizers.compiled_rules import compile_errors_name
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountSchedule,
    RegretMatching,
    RegretMatchingRule,
    as_local_rule,
    checked_discounts,
)
from spiel_cfrplus.regret_minimizers.rule_trial import try_rule
from spiel_cfrplus.regret_minimizers.step_rules import Stepping, gradient_ascent, hedge


class SimplexProduct:
    """The decision set: the product of P simplices, with S actions in total.

    Attributes:
      num_actions: int64 (P,), at least 1 each.
      starts: uint32 (P + 1,), where each simplex begins in a concatenated vector.
    """

    def __init__(self, num_actions: int | Sequence[int] | np.ndarray):
        self.num_actions = np.array([operator.index(size) for size in np.atleast_1d(num_actions)], np.int64)
        if (self.num_actions < 1).any():
            raise ValueError(f"a simplex has at least one action, got {num_actions}")
        self.starts = np.concatenate([[0], np.cumsum(self.num_actions)]).astype(INDEX)

    @property
    def dimension(self) -> int:
        """S."""
        return int(self.starts[-1])

    @property
    def arrays(self) -> TreeplexArrays:
        """The simplices as decision points of one player, which determine the sizes of a rule's arrays."""
        num_simplices = len(self.num_actions)
        return TreeplexArrays(np.array([0, num_simplices], INDEX), self.starts, np.zeros(num_simplices, INDEX))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Repeats one number per simplex (P,) for each action (S,)."""
        return np.repeat(values, self.num_actions)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over each simplex, (P,)."""
        return np.add.reduceat(values, self.starts[:-1])

    def max(self, values: np.ndarray) -> np.ndarray:
        """The largest number on each simplex, (P,)."""
        largest: np.ndarray = np.maximum.reduceat(values, self.starts[:-1])
        return largest

    def norm(self, values: np.ndarray) -> np.ndarray:
        """The Euclidean norm on each simplex, (P,), also if squares are outside the range of a float64."""
        largest = self.max(np.abs(values))
        scale = np.where(largest > 0, largest, 1.0)
        norm: np.ndarray = scale * np.sqrt(self.sum((values / self.spread(scale)) ** 2))
        return norm

    def checked_utility(self, utility: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """A copy of a utility.

        Raises:
          ValueError: wrong shape, or numbers that are not finite.
        """
        return finite_vector(utility, self.dimension)


class SimplexMinimizer:
    """A local rule on the simplex, or on a product of simplices.

    Attributes:
      rule: the rule.
      iteration: utilities observed.
    """

    def __init__(self, num_actions: int | Sequence[int] | np.ndarray, rule: LocalRule, tie_tolerance: npt.ArrayLike = 0.0):
        """Starts with the uniform strategy.

        Args:
          num_actions: k, or one number for each simplex.
          rule: made by `local_rule`.
          tie_tolerance: passed to the rule, one number, or one for each action (S,), equal on each simplex; see
            `SequenceFormGame.tie_tolerance`.

        Raises:
          TypeError: it is not a rule.
          ValueError: `tie_tolerance` is negative, not finite, or has another shape.
        """
        self._simplices = SimplexProduct(num_actions)
        self.rule = as_local_rule(rule)
        self.tie_tolerance = checked_tie_tolerance(tie_tolerance, self._simplices.dimension)
        self.iteration = 0
        self._memory = self.rule.memory(self._simplices.arrays, self.tie_tolerance)
        self._strategy = self._simplices.spread(1 / self._simplices.num_actions)

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """A copy of the current strategy, float64 (S,)."""
        return self._strategy.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Observes the utility of each action, float64 (S,). Magnitudes above 1e300 are replaced by 1e300.

        Raises:
          ValueError: wrong shape, numbers that are not finite, or invalid parameters of the rule; nothing is changed.
        """
        self._observe(saturated(self._simplices.checked_utility(utility)))

    def _observe(self, utility: np.ndarray) -> None:
        if not self.rule.is_built_in:
            try_rule(self.rule)
        t = self.iteration + 1
        table = self.rule.parameter_table(np.array([t]))
        parameters = self.rule.empty_parameters()
        # The rule may overwrite the utilities.
        arguments = (utility.copy(), self._strategy, self.rule.function, self._memory, parameters, table, t)
        with compile_errors_name(self.rule):
            simplex_kernels.update_simplices(self._simplices.starts, *arguments)
        self.iteration = t


class SimplexRegretMatching(SimplexMinimizer):
    """Regret matching and its variants, with the discounts of `rule`.

    The predictive forms are predictive regret matching (Farina, Kroer, Sandholm 2021, Algorithms 1 and 2): strategies are
    matched to the table plus the predicted regrets of the last strategy. A weight below 1, as in simple asymmetric predictive
    regret matching+ (Meng, Zhang, Ge, Yang, Gao 2025), reduces the effect of wrong predictions.

    Regret after T iterations: at most L sqrt(k T) for regret matching and regret matching+, where L bounds the range of the
    utilities (CFR+ paper; Tammelin et al. 2015). For all rules with factors in [0, 1] and all predictions, with the vectors of
    regrets r_t, predicted regrets m_t, and the positive factors d_t of the rule,

        sqrt(P_T) + sum over t < T of (1 - d_t) sqrt(P_t),    P_t = d_{t-1}^2 P_{t-1} + |r_t - m_t|^2.

    (The squared norm h of the positive part of a table is smooth, and r_t is orthogonal to the strategy, which has the
    direction of the gradient of h at table + m_t. Therefore h(table + r_t) <= h(table) + |r_t - m_t|^2. The amount that
    discounting removes from a table is added to the bound.) With two actions the bound can be attained, so rounding may exceed
    it in the last digit.

    Attributes:
      discounts: the factors of the member of the family.
    """

    rule: RegretMatchingRule

    def __init__(
        self,
        num_actions: int | Sequence[int] | np.ndarray,
        rule: DiscountSchedule | None = None,
        *,
        prediction_weight: float = 0.0,
        tie_tolerance: npt.ArrayLike = 0.0,
    ):
        """Starts with the uniform strategy.

        Args:
          num_actions, tie_tolerance: as for `SimplexMinimizer`.
          rule: regret matching by default.
          prediction_weight: the weight of the predicted regrets, between 0 and 1.

        Raises:
          TypeError: `rule` has no discounts.
          ValueError: as for `SimplexMinimizer`, or `prediction_weight` is not between 0 and 1.
        """
        self.discounts = RegretMatching() if rule is None else rule
        super().__init__(num_actions, RegretMatchingRule.of(self.discounts, prediction_weight), tie_tolerance)
        self._predicted_regrets = np.zeros(self._simplices.dimension)
        # The terms of the bound: sqrt(P_T), d_T sqrt(P_T), the sum over t < T, and the term for t = T.
        self._root, self._discounted_root, self._paid, self._due = np.zeros((4, len(self._simplices.num_actions)))

    def cumulative_regrets(self) -> npt.NDArray[np.float64]:
        """A copy of the table, float64 (S,)."""
        return np.array(self._memory.regrets)

    @property
    def regret_bound(self) -> float:
        return float((self._root + self._paid).sum())

    def _observe(self, utility: np.ndarray) -> None:
        strategy = self._strategy.copy()
        super()._observe(utility)
        # After 1e8 utilities of 1e300 the table would exceed the range of a float64.
        self._memory.regrets[:] = saturated(self._memory.regrets)
        regrets = utility - self._simplices.spread(self._simplices.sum(strategy * utility))
        ((positive, negative),) = checked_discounts(self.discounts, np.array([self.iteration]))
        self._paid = self._paid + self._due
        self._root = np.hypot(self._discounted_root, self._simplices.norm(regrets - self._predicted_regrets))
        self._discounted_root = positive * self._root
        bounded = min(positive, negative) >= 0 and max(positive, negative) <= 1
        self._due = (1 - positive) * self._root if bounded else np.full(len(self._root), math.inf)
        self._predicted_regrets = self.rule.prediction_weight * regrets


class Hedge(Stepping, SimplexMinimizer):
    """Multiplicative weights (Freund and Schapire 1997): the strategy is the softmax of step size times summed utilities.

    Regret after T iterations with a fixed step size: at most log(k) / step_size + step_size L^2 T / 8, where L bounds the range
    of the utilities; with step_size = sqrt(8 log(k) / T) / L that is L sqrt(T log(k) / 2). With predictions, L is the range of
    utility minus prediction (Rakhlin and Sridharan 2013). The general bound is that of `kernels.step_sizes`, with radius log(k)
    and error range / 2.
    """

    def __init__(
        self, num_actions: int | Sequence[int] | np.ndarray, step_size: float | None = None, *, prediction_weight: float = 0.0
    ):
        """Starts with the uniform strategy.

        Args:
          num_actions: k, or one number for each simplex.
          step_size, prediction_weight: see `hedge`.
        """
        super().__init__(num_actions, hedge(step_size, prediction_weight))


class ProjectedGradientAscent(Stepping, SimplexMinimizer):
    """Online projected gradient ascent (Zinkevich 2003): a step along the utility, then a projection onto the simplex.

    The predictive form updates a base point with every utility, and plays the base plus a step along the prediction (Rakhlin
    and Sridharan 2013).

    Regret after T iterations with a fixed step size: at most 1 / step_size + step_size G^2 T / 2, where G bounds the Euclidean
    norm of utility minus prediction. The general bound is that of `kernels.step_sizes`, with radius 1, half the squared
    diameter of the simplex, and errors in this norm.
    """

    def __init__(
        self, num_actions: int | Sequence[int] | np.ndarray, step_size: float | None = None, *, prediction_weight: float = 0.0
    ):
        """Starts with the uniform strategy.

        Args:
          num_actions: k, or one number for each simplex.
          step_size, prediction_weight: see `hedge`.
        """
        super().__init__(num_actions, gradient_ascent(step_size, prediction_weight))


def checked_tie_tolerance(tie_tolerance: npt.ArrayLike, size: int) -> np.ndarray:
    """`tie_tolerance` as float64 (size,), from one number or `size` of them.

    Raises:
      ValueError: another shape, or numbers that are negative or not finite.
    """
    checked = np.array(tie_tolerance, np.float64)
    if checked.shape not in ((), (size,)) or not np.all((checked >= 0) & (checked < math.inf)):
        raise ValueError(f"tie_tolerance must be nonnegative and finite, one number or {size} of them, got {tie_tolerance!r}")
    return frozen(np.broadcast_to(checked, size), np.float64)
