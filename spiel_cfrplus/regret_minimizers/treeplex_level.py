"""Regret minimisers that take a player's whole treeplex at once, beside CFR (Lecture 8, introduction).

* `MultiplicativeWeights` runs on the reduced normal form, whose strategies are the vertices of the sequence-form polytope.
  There are exponentially many; the recursion over the treeplex (the kernel trick of Farina, Lee, Luo and Kroer 2022) never
  lists them.
* `TreeplexGradientAscent` is online projected gradient ascent, with the exact projection onto the polytope.

With `optimistic=True` the last utility is expected to come again, as in `simplex`.

>>> import math
>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> treeplex = compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0]
>>> round(math.exp(MultiplicativeWeights(treeplex, 1.0).log_num_strategies))  # 3 for each card: bet, pass-fold, pass-call
27
"""

from __future__ import annotations

import numpy as np

from spiel_cfrplus import _kernels
from spiel_cfrplus.regret_minimizers.simplex import checked_positive
from spiel_cfrplus.treeplex import EMPTY_SEQUENCE, Treeplex


class _TreeplexMinimizer:
    """The current strategy and the checks; subclasses say what is learned and what is played.

    Attributes:
      treeplex: the decision problem.
      optimistic: whether the last utility is predicted to come again.
      iteration: utilities observed.
    """

    def __init__(self, treeplex: Treeplex, optimistic: bool):
        self.treeplex = treeplex
        self.optimistic = optimistic
        self.iteration = 0
        self._strategy = self._choose(np.zeros(treeplex.num_sequences))

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now, in sequence form, float64 (S,), the caller's to keep."""
        return self._strategy.copy()

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes the gradient of the utility in the strategy, float64 (S,).

        Raises:
          ValueError: wrong shape or numbers that are not finite; nothing is changed.
        """
        utility = self.treeplex.checked_utility(utility)
        self.iteration += 1
        self._learn(utility)
        self._strategy = self._choose(utility if self.optimistic else np.zeros(len(utility)))

    def _learn(self, utility: np.ndarray) -> None:
        raise NotImplementedError

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class MultiplicativeWeights(_TreeplexMinimizer):
    """Multiplicative weights on the reduced normal form: vertex v has weight exp(learning_rate * v . summed utility).

    Regret after T iterations: at most log(N) / learning_rate + learning_rate L^2 T / 8, where N is the number of vertices and L
    bounds the range of the utility over strategies.
    """

    def __init__(self, treeplex: Treeplex, learning_rate: float, *, optimistic: bool = False):
        """Starts with all vertices alike, which is not the uniform behavioural policy.

        Args:
          treeplex: the decision problem.
          learning_rate: positive, in one over the unit of the utilities.
          optimistic: see the module.
        """
        self.learning_rate = checked_positive(learning_rate, "learning_rate")
        self.cumulative_utility = np.zeros(treeplex.num_sequences)
        super().__init__(treeplex, optimistic)

    @property
    def log_num_strategies(self) -> float:
        """The logarithm of the number of reduced normal-form strategies."""
        exponents = np.zeros(self.treeplex.num_sequences)
        _kernels.soft_response(self.treeplex.arrays, 0, exponents, np.empty_like(exponents))
        return float(exponents[EMPTY_SEQUENCE])

    def _learn(self, utility: np.ndarray) -> None:
        self.cumulative_utility += utility

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        exponents = self.learning_rate * (self.cumulative_utility + prediction)
        policy = np.ones(self.treeplex.num_sequences)
        _kernels.soft_response(self.treeplex.arrays, 0, exponents, policy)
        return self.treeplex.sequence_form(policy)


class TreeplexGradientAscent(_TreeplexMinimizer):
    """Online projected gradient ascent on the sequence-form polytope (Zinkevich 2003).

    Regret after T iterations: at most D^2 / (2 step_size) + step_size G^2 T / 2, where D bounds the Euclidean distance of a
    strategy from the first one and G the norm of the utilities. A projection works through lists of numbers in Python, and
    is much dearer than an iteration of compiled CFR.
    """

    def __init__(self, treeplex: Treeplex, step_size: float, *, optimistic: bool = False):
        """Starts from the uniform behavioural policy.

        Args:
          treeplex: the decision problem.
          step_size: positive, in one over the unit of the utilities.
          optimistic: see the module.
        """
        self.step_size = checked_positive(step_size, "step_size")
        self._base = treeplex.sequence_form(treeplex.uniform_policy())
        super().__init__(treeplex, optimistic)

    def _learn(self, utility: np.ndarray) -> None:
        self._base = project_onto_treeplex(self.treeplex, self._base + self.step_size * utility)

    def _choose(self, prediction: np.ndarray) -> np.ndarray:
        if not prediction.any():
            return self._base
        return project_onto_treeplex(self.treeplex, self._base + self.step_size * prediction)


class _PiecewiseLinear:
    """An increasing function by its knots: straight on beyond the last one, constant before the first."""

    def __init__(self, knots: np.ndarray, values: np.ndarray, slope_at_end: float):
        self.knots, self.values, self.slope_at_end = knots, values, slope_at_end

    def __call__(self, x: np.ndarray | float) -> np.ndarray:
        beyond = np.maximum(x - self.knots[-1], 0.0)
        return np.interp(x, self.knots, self.values) + self.slope_at_end * beyond

    def inverse(self) -> _PiecewiseLinear:
        return _PiecewiseLinear(self.values, self.knots, 1 / self.slope_at_end)

    @staticmethod
    def sum(functions: list[_PiecewiseLinear]) -> _PiecewiseLinear:
        knots = np.unique(np.concatenate([function.knots for function in functions]))
        values = np.sum([function(knots) for function in functions], axis=0)
        return _PiecewiseLinear(knots, values, sum(function.slope_at_end for function in functions))


def project_onto_treeplex(treeplex: Treeplex, point: np.ndarray) -> np.ndarray:
    """The sequence-form strategy nearest to `point`, float64 (S,), exactly.

    Bottom-up: the marginal cost of the cheapest way to spend a reach t at decision point j, as a function of t, which increases
    and is piecewise linear; at the optimum all actions that are played have the same marginal cost. Then top-down with the
    reach known. (The idea is that of Gilpin, Pena and Sandholm 2012 for other distances on the polytope.)

    Raises:
      ValueError: wrong shape.
    """
    point = np.array(point, np.float64)
    if point.shape != (treeplex.num_sequences,):
        raise ValueError(f"expected one number for each of {treeplex.num_sequences} sequences, got shape {point.shape}")
    # Marginal costs of reach at each sequence: of itself, then of the decision points below.
    costs = [[_PiecewiseLinear(np.zeros(1), np.array([-target]), 1.0)] for target in point]
    reach_at_cost: dict[int, list[_PiecewiseLinear]] = {}
    cost_of_reach: dict[int, _PiecewiseLinear] = {}
    for j in reversed(range(treeplex.num_decision_points)):
        reach_at_cost[j] = [_PiecewiseLinear.sum(costs[sequence]).inverse() for sequence in treeplex.sequences(j)]
        cost_of_reach[j] = _PiecewiseLinear.sum(reach_at_cost[j]).inverse()
        costs[treeplex.parent_sequence[j]].append(cost_of_reach[j])
    reach = np.ones(treeplex.num_sequences)
    for j in range(treeplex.num_decision_points):
        cost = cost_of_reach[j](reach[treeplex.parent_sequence[j]])
        for sequence, reach_at in zip(treeplex.sequences(j), reach_at_cost[j], strict=True):
            reach[sequence] = reach_at(cost)
    # What rounding has left of the constraints' violation goes.
    return treeplex.sequence_form(treeplex.behavioural_policy(reach))
