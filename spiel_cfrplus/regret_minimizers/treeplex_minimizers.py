"""Regret minimizers on a player's whole treeplex other than CFR (Lecture 8, introduction).

* `TreeplexGradientAscent` is online projected gradient ascent, with the exact projection onto the sequence-form polytope.
* `DilatedEntropyAscent` and `DilatedEuclideanAscent` are online mirror ascent. A step is one bottom-up pass, because the
  regularizers are *dilated* (Hoda, Gilpin, Pena, Sandholm 2010): for a behavioral policy b of the strategy x,

      psi(x) = sum over decision points j of weight_j x[p_j] phi_j(b_j)

  with a regularizer phi_j on each simplex. With the weights of `strongly_convex_weights`, psi is 1-strongly convex on the
  polytope in the Euclidean norm.
* `MultiplicativeWeights` runs on the reduced normal form, whose strategies are the vertices of the polytope. Their number is
  exponential; the recursion over the treeplex (the kernel trick of Farina, Lee, Luo and Kroer 2022) does not enumerate them.

>>> import math
>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> treeplex = compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0]
>>> round(math.exp(MultiplicativeWeights(treeplex).log_num_strategies))  # 3 for each card: bet, pass-fold, pass-call
27
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import saturated
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, Treeplex
from spiel_cfrplus.kernels import passes, self_play, treeplex_ascent
from spiel_cfrplus.regret_minimizers.compiled_rules import compile_errors_name, start_state
from spiel_cfrplus.regret_minimizers.step_rules import (
    Stepping,
    convex_weights,
    dilated_entropy,
    dilated_euclidean,
    multiplicative_weights,
    prepare_dilated_entropy,
    prepare_dilated_euclidean,
    treeplex_gradient_ascent,
)
from spiel_cfrplus.regret_minimizers.treeplex_rules import TreeplexRule


class TreeplexMinimizer:
    """A rule for a whole treeplex as a regret minimizer.

    Attributes:
      treeplex: the decision problem.
      rule: the rule.
    """

    def __init__(self, treeplex: Treeplex, rule: TreeplexRule):
        """Starts with the first policy of the rule.

        Args:
          treeplex: the decision problem.
          rule: the rule.
        """
        self.treeplex = treeplex
        self.rule = rule
        self._functions = rule.functions
        self._memory = rule.memory(treeplex.arrays)
        self._state = start_state(treeplex.arrays, rule.initial_arrays(treeplex.arrays).get("policy"))

    @property
    def iteration(self) -> int:
        """Utilities observed."""
        return int(self._state.iteration[0])

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current strategy as a behavioral policy, float64 (S,), also at decision points that it does not reach."""
        return self._state.policy.copy()

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The current strategy in sequence form, float64 (S,), the same until the next utility is observed."""
        passes.sequence_form(self.treeplex.arrays, 0, self._state.policy, self._state.reach)
        return self._state.reach.copy()

    def observe_utility(self, utility: npt.ArrayLike) -> None:
        """Observes the gradient of the utility in the current strategy, float64 (S,).

        Magnitudes above 1e300 are replaced by 1e300.

        Raises:
          ValueError: wrong shape, numbers that are not finite, or invalid parameters of the rule; nothing is changed.
        """
        checked = saturated(self.treeplex.checked_utility(utility))
        table = self.rule.parameter_table(np.array([self.iteration + 1]))
        self._state.values[:] = checked
        arguments = (self._state, *self._functions, self._memory, self.rule.empty_parameters(), table)
        with compile_errors_name(self.rule):
            self_play.observe_utility(self.treeplex.arrays, *arguments)


class TreeplexGradientAscent(Stepping, TreeplexMinimizer):
    """Online projected gradient ascent on the sequence-form polytope (Zinkevich 2003).

    The predictive form updates a base point with every utility, and plays the base plus a step along the prediction (Rakhlin
    and Sridharan 2013).

    Regret after T iterations with a fixed step size: at most M / step_size + step_size G^2 T / 2, where M is the largest number
    of decision points that one pure strategy can reach (the largest sum of a strategy, hence a bound on half the squared
    diameter of the polytope), and G bounds the Euclidean norm of utility minus prediction. The general bound is that of
    `kernels.step_sizes`, with radius M and errors in this norm.
    """

    def __init__(self, treeplex: Treeplex, step_size: float | None = None, *, prediction_weight: float = 0.0):
        """Starts with the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size, prediction_weight: see `hedge`.
        """
        super().__init__(treeplex, treeplex_gradient_ascent(step_size, prediction_weight))


def strongly_convex_weights(treeplex: Treeplex) -> npt.NDArray[np.float64]:
    """Weights that make dilated entropy and dilated squared distance 1-strongly convex in the Euclidean norm, float64 (J,).

        weight_j = 2 + 2 max over a of the sum of the weights of the decision points after ja

    (Farina, Kroer, Sandholm 2019, "Optimistic regret minimization for extensive-form games via dilated distance-generating
    functions"). Because x[ja] - y[ja] = x[p_j] (b - b')[a] + (x[p_j] - y[p_j]) b'[a], the squared difference of two strategies
    at j is at most 2 x[p_j] |b - b'|^2 + 2 (x[p_j] - y[p_j])^2; the bound follows by induction from the last decision points.

    Raises:
      ValueError: so many decisions in a row that the weights, at least 2 ** depth, exceed the range of a float64.
    """
    return convex_weights(treeplex.arrays, (treeplex.player,))[1:]


def _with_weights(
    rule: TreeplexRule, prepare: Callable[..., dict[str, np.ndarray]], treeplex: Treeplex, weights: npt.ArrayLike | None
) -> TreeplexRule:
    """The rule with these weights of the regularizer, where `prepare` makes its initial arrays."""
    checked = strongly_convex_weights(treeplex) if weights is None else _checked_weights(weights, treeplex)
    return dataclasses.replace(rule, prepare=functools.partial(prepare, weights=_with_root(checked)))


def _checked_weights(weights: npt.ArrayLike, treeplex: Treeplex) -> np.ndarray:
    checked = np.array(weights, np.float64)
    if checked.shape != (treeplex.num_decision_points,) or not np.all((checked > 0) & np.isfinite(checked)):
        raise ValueError(f"expected {treeplex.num_decision_points} positive weights, one for each decision point")
    return checked


def _with_root(weights: np.ndarray) -> np.ndarray:
    """Adds a weight for the root, which is not read, to the weights of decision points (J,)."""
    return np.concatenate([[1.0], weights])


class DilatedEntropyAscent(Stepping, TreeplexMinimizer):
    """Mirror ascent with dilated entropy: phi_j(b) = log |A_j| + sum over a of b[a] log b[a].

    The strategy maximizes step_size * (summed utilities + prediction) . x - psi(x): at each decision point the softmax of the
    values of the actions divided by the weight. With a fixed step size this is equivalent to steps between strategies, argmax
    step_size * utility . x - D(x || last), because the strategies are in the interior of the polytope; with adaptive step sizes
    the bound holds for this form (lazy mirror ascent, also called dual averaging).

    Regret after T iterations with a fixed step size: at most Omega / step_size + step_size G^2 T / (2 c), where Omega is the
    largest value of psi, G bounds the Euclidean norm of utility minus prediction, and c, 1 for the default weights, is the
    smallest ratio of the weights to the default ones. The general bound is that of `kernels.step_sizes`, with radius Omega and
    errors in this norm divided by sqrt(c).
    """

    def __init__(
        self,
        treeplex: Treeplex,
        step_size: float | None = None,
        *,
        prediction_weight: float = 0.0,
        weights: npt.ArrayLike | None = None,
    ):
        """Starts with the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size, prediction_weight: see `hedge`.
          weights: of the regularizer, positive, (J,); by default `strongly_convex_weights`.

        Raises:
          ValueError: weights that are not positive and finite, or too many decisions in a row for the default.
        """
        rule = dilated_entropy(step_size, prediction_weight)
        super().__init__(treeplex, _with_weights(rule, prepare_dilated_entropy, treeplex, weights))

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Of the regularizer, float64 (J,)."""
        return np.array(self._memory.weights[1:])


class DilatedEuclideanAscent(Stepping, TreeplexMinimizer):
    """Mirror ascent with dilated squared distance: phi_j(b) = sum over a of b[a]^2 / 2.

    A base policy takes the step argmax step_size * utility . x - D(x || base), with the divergence D(x || y) = sum over j of
    weight_j x[p_j] |b_j - b'_j|^2 / 2 of the policies b of x and b' of y: at each decision point a projection onto the simplex.
    The strategy is the base, or in the predictive form another step from it, along the prediction. The step also updates the
    policy of the base at decision points that the base does not reach, so the usual bound holds although strategies reach the
    boundary.

    Regret after T iterations with a fixed step size: at most Omega / step_size + step_size G^2 T / (2 c), where Omega is the
    largest value of the sum over j of weight_j x[p_j], a bound on D; G and c as for `DilatedEntropyAscent`. The general bound
    is that of `kernels.step_sizes`, with radius Omega and errors in this norm divided by sqrt(c).
    """

    def __init__(
        self,
        treeplex: Treeplex,
        step_size: float | None = None,
        *,
        prediction_weight: float = 0.0,
        weights: npt.ArrayLike | None = None,
    ):
        """Starts with the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size, prediction_weight: see `hedge`.
          weights: of the regularizer, positive, (J,); by default `strongly_convex_weights`.

        Raises:
          ValueError: weights that are not positive and finite, or too many decisions in a row for the default.
        """
        rule = dilated_euclidean(step_size, prediction_weight)
        super().__init__(treeplex, _with_weights(rule, prepare_dilated_euclidean, treeplex, weights))

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Of the regularizer, float64 (J,)."""
        return np.array(self._memory.weights[1:])


class MultiplicativeWeights(Stepping, TreeplexMinimizer):
    """Multiplicative weights on the reduced normal form: vertex v has weight exp(step_size * v . summed utility).

    Regret after T iterations with a fixed step size: at most log(N) / step_size + step_size L^2 T / 8, where N is the number of
    vertices and L bounds the range over strategies of utility minus prediction. The general bound is that of
    `kernels.step_sizes`, with radius log(N) and error range / 2.

    Attributes:
      treeplex: the decision problem.
      log_num_strategies: log(N).
    """

    def __init__(self, treeplex: Treeplex, step_size: float | None = None, *, prediction_weight: float = 0.0):
        """Starts with equal weights of all vertices, which is not the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size, prediction_weight: see `hedge`.
        """
        super().__init__(treeplex, multiplicative_weights(step_size, prediction_weight))

    @property
    def log_num_strategies(self) -> float:
        """The logarithm of the number of vertices."""
        return float(self._memory.divergence_bound[0])


def entropic_response(
    treeplex: Treeplex, utility: np.ndarray, weights: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, float]:
    """Maximizes utility . x - sum over j of weights[j] x[p_j] sum over a of b[a] (log b[a] - prior[ja]), in one pass.

    Args:
      treeplex: the decision problem.
      utility: float64 (S,).
      weights: positive, float64 (J,).
      prior: float64 (S,), logarithms; that of the empty sequence is not read.

    Returns:
      The maximizing behavioral policy b, float64 (S,), and the maximum.
    """
    values, policy = np.array(utility, np.float64), np.ones(treeplex.num_sequences)
    treeplex_ascent.entropic_response(treeplex.arrays, 0, _with_root(weights), prior, values, policy)
    return policy, float(values[EMPTY_SEQUENCE])


def quadratic_response(
    treeplex: Treeplex, utility: np.ndarray, weights: np.ndarray, center: np.ndarray
) -> tuple[np.ndarray, float]:
    """Maximizes utility . x - sum over j of weights[j] x[p_j] / 2 sum over a of (b[a] - center[ja])^2, in one pass.

    Args:
      treeplex: the decision problem.
      utility: float64 (S,).
      weights: positive, float64 (J,).
      center: a behavioral policy, float64 (S,).

    Returns:
      The maximizing behavioral policy b, float64 (S,), and the maximum.
    """
    values, policy = np.array(utility, np.float64), np.ones(treeplex.num_sequences)
    weights, scratch = _with_root(weights), np.empty_like(values)
    treeplex_ascent.quadratic_response(treeplex.arrays, 0, weights, center, values, scratch, policy)
    return policy, float(values[EMPTY_SEQUENCE])
