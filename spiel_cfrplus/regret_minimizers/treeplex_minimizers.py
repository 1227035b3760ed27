"""Regret minimizers that take a player's whole treeplex at once, beside CFR (Lecture 8, introduction).

* `TreeplexGradientAscent` is online projected gradient ascent, with the exact projection onto the sequence-form polytope.
* `DilatedEntropyAscent` and `DilatedEuclideanAscent` are online mirror ascent with regularizers for which a step is one
  bottom-up pass, because they are *dilated* (Hoda, Gilpin, Pena, Sandholm 2010): for a behavioral policy b of the strategy x,

      psi(x) = sum over decision points j of weight_j x[p_j] phi_j(b_j)

  with a regularizer phi_j on each simplex. With the weights of `strongly_convex_weights`, psi is 1-strongly convex on the
  polytope in the Euclidean norm.
* `MultiplicativeWeights` runs on the reduced normal form, whose strategies are the vertices of the polytope. There are
  exponentially many; the recursion over the treeplex (the kernel trick of Farina, Lee, Luo and Kroer 2022) never lists them.

>>> import math
>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> treeplex = compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0]
>>> round(math.exp(MultiplicativeWeights(treeplex).log_num_strategies))  # 3 for each card: bet, pass-fold, pass-call
27
"""

from __future__ import annotations

import math

import numpy as np

from spiel_cfrplus._utils.arrays import saturated
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, Treeplex
from spiel_cfrplus.kernels import simplex as simplex_kernels
from spiel_cfrplus.regret_minimizers.minimizer import SteppingMinimizer
from spiel_cfrplus.regret_minimizers.projections import project_onto_treeplex

_LARGEST_WEIGHT = 1e150  # squares of such weights still fit a float64


class TreeplexGradientAscent(SteppingMinimizer):
    """Online projected gradient ascent on the sequence-form polytope (Zinkevich 2003).

    The predictive form keeps a base point that takes every step, and plays the base plus one step along the prediction (Rakhlin
    and Sridharan 2013).

    Regret after T iterations with a fixed step size: at most M / step_size + step_size G^2 T / 2, where M is the largest number
    of decision points that one pure strategy can come to (the largest sum of a strategy, hence a bound on half the squared
    diameter of the polytope), and G bounds the Euclidean norm of utility less prediction. In general that of `StepSizes`, with
    radius M and errors in that norm.

    Attributes:
      treeplex: the decision problem.
    """

    def __init__(self, treeplex: Treeplex, step_size: float | None = None, *, prediction_weight: float = 0.0):
        """Starts from the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size: positive, in one over the unit of the utilities; by default tuned to them, see `StepSizes`.
          prediction_weight: see the module `minimizer`.
        """
        self.treeplex = treeplex
        self._base = treeplex.sequence_form(treeplex.uniform_policy())
        radius = treeplex.best_value(np.ones(treeplex.num_sequences)) - 1
        super().__init__(treeplex, radius, step_size, prediction_weight)

    def _norm(self, error: np.ndarray) -> float:
        return _norm_of_decisions(error)

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._base = project_onto_treeplex(self.treeplex, self._base + self._stepped(step, utility))

    def _choose(self) -> np.ndarray:
        if not self.prediction_weight:
            return self._base
        return project_onto_treeplex(self.treeplex, self._base + self._stepped(self._steps.current, self._prediction))


def _norm_of_decisions(utility: np.ndarray) -> float:
    """The Euclidean norm of the utility without that of the empty sequence, which no decision changes."""
    decisions = utility[EMPTY_SEQUENCE + 1 :]
    largest = float(np.abs(decisions).max(initial=0.0))
    # Scaled, as squares might leave the range of a float64.
    return largest * float(np.linalg.norm(decisions / largest)) if largest > 0 else 0.0


def strongly_convex_weights(treeplex: Treeplex) -> np.ndarray:
    """Weights that make dilated entropy and dilated squared distance 1-strongly convex in the Euclidean norm, float64 (J,).

        weight_j = 2 + 2 max over a of the sum of the weights of the decision points after ja

    (Farina, Kroer, Sandholm 2019, "Optimistic regret minimization for extensive-form games via dilated distance-generating
    functions"). As x[ja] - y[ja] = x[p_j] (b - b')[a] + (x[p_j] - y[p_j]) b'[a], the squared difference of two strategies at j
    is at most 2 x[p_j] |b - b'|^2 + 2 (x[p_j] - y[p_j])^2; and so on from the last decision points upwards.

    Raises:
      ValueError: so many decisions in a row that the weights, at least 2 ** depth, leave the range of a float64.
    """
    weights = np.zeros(treeplex.num_decision_points)
    after = np.zeros(treeplex.num_sequences)
    with np.errstate(over="ignore"):
        for j in reversed(range(treeplex.num_decision_points)):
            start, stop = treeplex.sequence_start[j], treeplex.sequence_start[j + 1]
            weights[j] = 2 + 2 * after[start:stop].max()
            after[treeplex.parent_sequence[j]] += weights[j]
    if not np.all(after <= _LARGEST_WEIGHT):
        raise ValueError(f"player {treeplex.player} has too many decisions in a row for weights of at least 2 ** depth")
    return weights


class _DilatedAscent(SteppingMinimizer):
    """The regularizer's weights and norm; subclasses have the step.

    Attributes:
      treeplex: the decision problem.
      weights: of the regularizer, float64 (J,).
    """

    def __init__(
        self,
        treeplex: Treeplex,
        step_size: float | None,
        prediction_weight: float,
        weights: np.ndarray | None,
        ranges: np.ndarray,
    ):
        """Starts from the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size, prediction_weight, weights: see the subclasses.
          ranges: float64 (J,), by how much the regularizer of each simplex varies.
        """
        convex = strongly_convex_weights(treeplex)
        self.treeplex = treeplex
        self.weights = convex if weights is None else _checked_weights(weights, treeplex)
        self._modulus = float(np.min(self.weights / convex, initial=np.inf))
        # The largest sum over j of weight_j x[p_j] range_j.
        at_parents = np.zeros(treeplex.num_sequences)
        np.add.at(at_parents, treeplex.parent_sequence, self.weights * ranges)
        super().__init__(treeplex, treeplex.best_value(at_parents), step_size, prediction_weight)

    def _norm(self, error: np.ndarray) -> float:
        return _norm_of_decisions(error) / math.sqrt(self._modulus)


def _checked_weights(weights: np.ndarray, treeplex: Treeplex) -> np.ndarray:
    weights = np.array(weights, np.float64)
    if weights.shape != (treeplex.num_decision_points,) or not np.all((weights > 0) & np.isfinite(weights)):
        raise ValueError(f"expected {treeplex.num_decision_points} positive weights, one for each decision point")
    return weights


class DilatedEntropyAscent(_DilatedAscent):
    """Mirror ascent with dilated entropy: phi_j(b) = log |A_j| + sum over a of b[a] log b[a].

    The strategy maximizes step_size * (summed utilities + prediction) . x - psi(x): at each decision point the softmax of what
    each action leads to, over the weight. With a fixed step size that is the same as stepping from one strategy to the next,
    argmax step_size * utility . x - D(x || last), because the strategies stay inside the polytope; with tuned step sizes it is
    the form of which the bound holds (lazy mirror ascent, also called dual averaging).

    Regret after T iterations with a fixed step size: at most Omega / step_size + step_size G^2 T / (2 c), where Omega is the
    largest value of psi, G bounds the Euclidean norm of utility less prediction, and c, 1 for the default weights, is the
    smallest ratio of the weights to the default ones. In general that of `StepSizes`, with radius Omega and errors in that
    norm over sqrt(c).
    """

    def __init__(
        self,
        treeplex: Treeplex,
        step_size: float | None = None,
        *,
        prediction_weight: float = 0.0,
        weights: np.ndarray | None = None,
    ):
        """Starts from the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size: positive, in one over the unit of the utilities; by default tuned to them, see `StepSizes`.
          prediction_weight: see the module `minimizer`.
          weights: positive, (J,); by default `strongly_convex_weights`.
        """
        self._total = np.zeros(treeplex.num_sequences)
        num_actions = treeplex.num_actions
        self._prior = np.concatenate([[0.0], np.repeat(-np.log(num_actions), num_actions)])
        super().__init__(treeplex, step_size, prediction_weight, weights, np.log(num_actions))

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._total = saturated(self._total + utility)

    def _choose(self) -> np.ndarray:
        utility = self._stepped(self._steps.current, self._total + self._prediction)
        return self.treeplex.sequence_form(entropic_response(self.treeplex, utility, self.weights, self._prior)[0])


class DilatedEuclideanAscent(_DilatedAscent):
    """Mirror ascent with dilated squared distance: phi_j(b) = sum over a of b[a]^2 / 2.

    A base policy takes the step argmax step_size * utility . x - D(x || base), with the divergence D(x || y) = sum over j of
    weight_j x[p_j] |b_j - b'_j|^2 / 2 of the policies b of x and b' of y: at each decision point a projection onto the simplex.
    Played is the base, or in the optimistic form one more step from it, along the prediction. Where the base does not come, it
    still has a policy, which is what the same step makes of the policy before; with that the usual bound holds although
    strategies do reach the boundary.

    Regret after T iterations with a fixed step size: at most Omega / step_size + step_size G^2 T / (2 c), where Omega is the
    largest value of the sum over j of weight_j x[p_j], a bound on D; G and c as for `DilatedEntropyAscent`. In general that of
    `StepSizes`, with radius Omega and errors in that norm over sqrt(c).
    """

    def __init__(
        self,
        treeplex: Treeplex,
        step_size: float | None = None,
        *,
        prediction_weight: float = 0.0,
        weights: np.ndarray | None = None,
    ):
        """Starts from the uniform behavioral policy.

        Args:
          treeplex, step_size, prediction_weight, weights: as for `DilatedEntropyAscent`.
        """
        self._base = treeplex.uniform_policy()
        super().__init__(treeplex, step_size, prediction_weight, weights, np.ones(treeplex.num_decision_points))

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._base = quadratic_response(self.treeplex, self._stepped(step, utility), self.weights, self._base)[0]

    def _choose(self) -> np.ndarray:
        policy = self._base
        if self.prediction_weight:
            utility = self._stepped(self._steps.current, self._prediction)
            policy = quadratic_response(self.treeplex, utility, self.weights, self._base)[0]
        return self.treeplex.sequence_form(policy)


class MultiplicativeWeights(SteppingMinimizer):
    """Multiplicative weights on the reduced normal form: vertex v has weight exp(step_size * v . summed utility).

    Regret after T iterations with a fixed step size: at most log(N) / step_size + step_size L^2 T / 8, where N is the number of
    vertices and L bounds the range over strategies of utility less prediction. In general that of `StepSizes`, with radius
    log(N) and error range / 2.

    Attributes:
      treeplex: the decision problem.
      log_num_strategies: log(N).
    """

    def __init__(self, treeplex: Treeplex, step_size: float | None = None, *, prediction_weight: float = 0.0):
        """Starts with all vertices alike, which is not the uniform behavioral policy.

        Args:
          treeplex: the decision problem.
          step_size: positive, in one over the unit of the utilities; by default tuned to them, see `StepSizes`.
          prediction_weight: see the module `minimizer`.
        """
        self.treeplex = treeplex
        self._total = np.zeros(treeplex.num_sequences)
        # The policy of the mixture is an entropic response with all weights 1, summing instead of averaging over actions.
        self._weights, self._prior = np.ones(treeplex.num_decision_points), np.zeros(treeplex.num_sequences)
        self.log_num_strategies = entropic_response(treeplex, self._total, self._weights, self._prior)[1]
        super().__init__(treeplex, self.log_num_strategies, step_size, prediction_weight)

    def _norm(self, error: np.ndarray) -> float:
        return (self.treeplex.best_value(error) + self.treeplex.best_value(-error)) / 2

    def _step(self, step: np.ndarray, utility: np.ndarray) -> None:
        self._total = saturated(self._total + utility)

    def _choose(self) -> np.ndarray:
        utility = self._stepped(self._steps.current, self._total + self._prediction)
        return self.treeplex.sequence_form(entropic_response(self.treeplex, utility, self._weights, self._prior)[0])


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
    simplex_kernels.entropic_response(treeplex.arrays, 0, weights, prior, values, policy)
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
    simplex_kernels.quadratic_response(treeplex.arrays, 0, weights, center, values, np.empty_like(values), policy)
    return policy, float(values[EMPTY_SEQUENCE])
