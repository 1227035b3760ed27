"""Regret minimizers on the simplex: what CFR runs at a decision point, and usable alone.

A strategy is a point of the simplex, float64 (k,), and a utility has one number for each action, in any unit; the regret
against action a is the sum over time of utility[a] - strategy . utility.

>>> from spiel_cfrplus.regret_minimizers import RegretMatchingPlus
>>> minimizer = SimplexRegretMatching(3, RegretMatchingPlus())
>>> minimizer.observe_utility([1.0, 0.0, 0.5])  # mean 0.5: regrets 0.5, -0.5, 0, of which the negative one is forgotten
>>> minimizer.next_strategy()
array([1., 0., 0.])

Several simplices side by side are one decision set as well, and their minimizers one object: given a list of numbers of
actions, each class here works on the concatenated vectors, learning separately on every simplex. That is how CFR with thousands
of decision points stays in NumPy.

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

from spiel_cfrplus._utils.arrays import finite_vector, saturated
from spiel_cfrplus.kernels import simplex as simplex_kernels
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.regret_minimizers.minimizer import PredictiveMinimizer, SteppingMinimizer, checked_weight
from spiel_cfrplus.regret_minimizers.regret_matching import LocalRule, RegretMatching, checked_discounts


class SimplexProduct:
    """The decision set: P simplices side by side, S actions in all.

    Attributes:
      num_actions: int64 (P,), at least 1 each.
      starts: uint32 (P + 1,), where each begins in a concatenated vector.
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

    def spread(self, values: np.ndarray) -> np.ndarray:
        """From one number per simplex (P,) to one per action (S,)."""
        return np.repeat(values, self.num_actions)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over each simplex, (P,)."""
        return np.add.reduceat(values, self.starts[:-1])

    def max(self, values: np.ndarray) -> np.ndarray:
        """The largest number on each simplex, (P,)."""
        return np.maximum.reduceat(values, self.starts[:-1])

    def norm(self, values: np.ndarray) -> np.ndarray:
        """The Euclidean norm on each simplex, (P,), also where squares would leave the range of a float64."""
        largest = self.max(np.abs(values))
        scale = np.where(largest > 0, largest, 1.0)
        return scale * np.sqrt(self.sum((values / self.spread(scale)) ** 2))

    def checked_utility(self, utility: npt.ArrayLike) -> np.ndarray:
        """A copy of a utility.

        Raises:
          ValueError: wrong shape, or numbers that are not finite.
        """
        return finite_vector(utility, self.dimension)


class SimplexRegretMatching(PredictiveMinimizer):
    """Regret matching and its relatives, as `rule` has it.

    The predictive forms are predictive regret matching (Farina, Kroer, Sandholm 2021, Algorithms 1 and 2): the table that is
    matched includes the regrets that the prediction would bring against the strategy just played. They may be given a weight
    below 1, as in simple asymmetric predictive regret matching+ (Meng, Zhang, Ge, Yang, Gao 2025): then a prediction that fails
    does less harm.

    Regret after T iterations: at most L sqrt(k T) for regret matching and regret matching+, where L bounds the range of the
    utilities (CFR+ paper; Tammelin et al. 2015). For all rules with factors in [0, 1] and all predictions, with the vectors of
    regrets r_t, those predicted (m_t), and the positive factors d_t of the rule,

        sqrt(P_T) + sum over t < T of (1 - d_t) sqrt(P_t),    P_t = d_{t-1}^2 P_{t-1} + |r_t - m_t|^2.

    (The squared norm h of the positive part of a table is smooth, and r_t is orthogonal to the strategy, which has the
    direction of its gradient at table + m_t: so h(table + r_t) <= h(table) + |r_t - m_t|^2. What discounting takes from a table
    is paid once more.) Two actions can attain it, so that rounding may exceed it by a last digit.

    Attributes:
      rule: the rule.
      cumulative_regrets: the table, float64 (k,).
    """

    def __init__(
        self,
        num_actions: int | Sequence[int] | np.ndarray,
        rule: LocalRule | None = None,
        *,
        prediction_weight: float = 0.0,
        tie_tolerance: npt.ArrayLike = 0.0,
    ):
        """Starts uniform.

        Args:
          num_actions: k, or one for each of several simplices.
          rule: regret matching by default.
          prediction_weight: see the module `minimizer`; or the weight of predicted regrets.
          tie_tolerance: regrets within this are none, one number, or one for each action (S,), the same on each simplex; see
            `SequenceFormGame.tie_tolerance`.

        Raises:
          ValueError: `tie_tolerance` is negative, not finite, or has another shape; or `prediction_weight` is no weight.
        """
        self._weight = checked_weight(prediction_weight)
        self._simplices = SimplexProduct(num_actions)
        self.rule = RegretMatching() if rule is None else rule
        self.tie_tolerance = checked_tie_tolerance(tie_tolerance, self._simplices.dimension)
        self.cumulative_regrets = np.zeros(self._simplices.dimension)
        self._predicted_regrets = np.zeros(self._simplices.dimension)
        # The account of the bound: sqrt(P_T), d_T sqrt(P_T), the sum over t < T, and the term for t = T.
        self._root, self._discounted_root, self._paid, self._due = np.zeros((4, len(self._simplices.num_actions)))
        super().__init__(self._simplices, prediction_weight > 0)

    @property
    def regret_bound(self) -> float:
        return float((self._root + self._paid).sum())

    def _learn(self, utility: np.ndarray) -> None:
        regrets = self._regrets(utility)
        ((positive, negative),) = checked_discounts(self.rule, np.array([self.iteration + 1]))
        table = saturated(self.cumulative_regrets + regrets)
        table[np.abs(table) <= np.minimum(self.tie_tolerance, np.abs(regrets))] = 0.0
        self.cumulative_regrets = table * np.where(table > 0, positive, negative) + 0.0
        self._paid = self._paid + self._due
        self._root = np.hypot(self._discounted_root, self._simplices.norm(regrets - self._predicted_regrets))
        self._discounted_root = positive * self._root
        bounded = min(positive, negative) >= 0 and max(positive, negative) <= 1
        self._due = (1 - positive) * self._root if bounded else np.full(len(self._root), math.inf)

    def _choose(self) -> np.ndarray:
        if self.prediction_weight and self.iteration:
            self._predicted_regrets = self._weight * self._regrets(self._prediction)
        strategy = np.empty(self._simplices.dimension)
        table = self.cumulative_regrets + self._predicted_regrets
        table[np.abs(table) <= np.minimum(self.tie_tolerance, np.abs(self._predicted_regrets))] = 0.0
        simplex_kernels.match_simplices(self._simplices.starts, table, strategy)
        return strategy

    def _regrets(self, utility: np.ndarray) -> np.ndarray:
        # Summed as in compiled CFR, so that CFR composed of these gives its doubles.
        regrets = np.empty(self._simplices.dimension)
        simplex_kernels.regrets_of_simplices(self._simplices.starts, self._strategy, utility, regrets)
        return regrets


class Hedge(SteppingMinimizer):
    """Multiplicative weights (Freund and Schapire 1997): the strategy is the softmax of step size times summed utilities.

    Regret after T iterations with a fixed step size: at most log(k) / step_size + step_size L^2 T / 8, where L bounds the range
    of the utilities; with step_size = sqrt(8 log(k) / T) / L that is L sqrt(T log(k) / 2). With predictions, L is the range of
    utility less prediction (Rakhlin and Sridharan 2013). In general that of `StepSizes`, with radius log(k) and error
    range / 2.
    """

    def __init__(
        self, num_actions: int | Sequence[int] | np.ndarray, step_size: float | None = None, *, prediction_weight: float = 0.0
    ):
        """Starts uniform.

        Args:
          num_actions: k, or one for each of several simplices.
          step_size: positive, in one over the unit of the utilities; by default tuned to them, see `StepSizes`.
          prediction_weight: see the module `minimizer`.
        """
        self._simplices = SimplexProduct(num_actions)
        self._total = np.zeros(self._simplices.dimension)
        super().__init__(self._simplices, np.log(self._simplices.num_actions), step_size, prediction_weight)

    def _norm(self, error: np.ndarray) -> np.ndarray:
        return (self._simplices.max(error) + self._simplices.max(-error)) / 2

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._total = saturated(self._total + utility)

    def _choose(self) -> np.ndarray:
        simplices = self._simplices
        exponents = self._stepped(simplices.spread(self._steps.current), self._total + self._prediction)
        weights = np.exp(exponents - simplices.spread(simplices.max(exponents)))
        return weights / simplices.spread(simplices.sum(weights))


class ProjectedGradientAscent(SteppingMinimizer):
    """Online projected gradient ascent (Zinkevich 2003): a step along the utility, then back to the nearest strategy.

    The predictive form keeps a base point that takes every step, and plays the base plus one step along the prediction (Rakhlin
    and Sridharan 2013).

    Regret after T iterations with a fixed step size: at most 1 / step_size + step_size G^2 T / 2, where G bounds the Euclidean
    norm of utility less prediction. In general that of `StepSizes`, with radius 1, which is half the squared diameter of the
    simplex, and errors in that norm.
    """

    def __init__(
        self, num_actions: int | Sequence[int] | np.ndarray, step_size: float | None = None, *, prediction_weight: float = 0.0
    ):
        """Starts uniform.

        Args:
          num_actions, step_size, prediction_weight: as for `Hedge`.
        """
        self._simplices = SimplexProduct(num_actions)
        self._base = self._simplices.spread(1 / self._simplices.num_actions)
        super().__init__(self._simplices, np.ones(len(self._simplices.num_actions)), step_size, prediction_weight)

    def _norm(self, error: np.ndarray) -> np.ndarray:
        return self._simplices.norm(error)

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._base = self._project(self._base + self._stepped(self._simplices.spread(step), utility))

    def _choose(self) -> np.ndarray:
        if not self.prediction_weight:
            return self._base
        return self._project(self._base + self._stepped(self._simplices.spread(self._steps.current), self._prediction))

    def _project(self, point: np.ndarray) -> np.ndarray:
        nearest = np.empty(self._simplices.dimension)
        simplex_kernels.project_onto_simplices(self._simplices.starts, point, nearest)
        return nearest


def checked_tie_tolerance(tie_tolerance: npt.ArrayLike, size: int) -> np.ndarray:
    """`tie_tolerance` as float64 (size,), from one number or `size` of them.

    Raises:
      ValueError: another shape, or numbers that are negative or not finite.
    """
    checked = np.array(tie_tolerance, np.float64)
    if checked.shape not in ((), (size,)) or not np.all((checked >= 0) & (checked < math.inf)):
        raise ValueError(f"tie_tolerance must be not negative and finite, one number or {size} of them, got {tie_tolerance!r}")
    return np.broadcast_to(checked, size)
