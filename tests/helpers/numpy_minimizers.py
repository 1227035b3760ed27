"""Minimizers that take steps along utilities, written out in NumPy: what the compiled rules must compute.

Each has `next_strategy()`, `observe_utility(utility)`, `regret_bound` and `step_sizes`. On simplices a strategy is the
concatenation of distributions; on a treeplex it is `policy`, a behavioral policy, or that in sequence form.
"""

import math

import numpy as np

from spiel_cfrplus.regret_minimizers.projections import project_onto_simplex, project_onto_treeplex


def saturated(values):
    return np.clip(values, -1e300, 1e300)


class StepSizes:
    """P step sizes, and the bound of Rakhlin and Sridharan (2013)."""

    def __init__(self, radius, step_size):
        self.radius = np.atleast_1d(np.asarray(radius, np.float64))
        self.tuned = step_size is None
        self.current = np.full(len(self.radius), 1.0 if step_size is None else step_size)
        self.last = self.current
        self.errors = np.zeros(len(self.radius))
        self.paid = np.zeros(len(self.radius))

    def advance(self, error):
        before = self.errors
        self.errors = np.hypot(before, error)
        tuned = self.tune() if self.tuned else self.current
        self.last = np.where(before > 0, self.current, tuned)
        self.current = tuned
        with np.errstate(over="ignore"):
            self.paid = self.paid + self.last * error * error / 2
        return self.last

    def tune(self):
        with np.errstate(over="ignore"):
            steps = np.divide(np.sqrt(self.radius), self.errors, out=np.ones_like(self.radius), where=self.errors > 0)
        return np.minimum(steps, np.finfo(np.float64).max)

    @property
    def regret_bound(self):
        at_zero = np.where(self.radius > 0, math.inf, 0.0)
        return float((np.divide(self.radius, self.last, out=at_zero, where=self.last > 0) + self.paid).sum())


class Minimizer:
    """A subclass has `norm(error)`, `step(step, utility)`, which learns, and `choose()`, which gives the next strategy."""

    def __init__(self, dimension, radius, step_size, prediction_weight):
        self.steps = StepSizes(radius, step_size)
        self.prediction_weight = prediction_weight
        self.prediction = np.zeros(dimension)
        self.iteration = 0
        self.strategy = self.choose()

    @property
    def step_sizes(self):
        return self.steps.current.copy()

    @property
    def regret_bound(self):
        return self.steps.regret_bound if self.iteration else 0.0

    def next_strategy(self):
        return self.strategy.copy()

    def observe_utility(self, utility):
        utility = saturated(np.array(utility, np.float64))
        self.step(self.steps.advance(self.norm(utility - self.prediction)), utility)
        self.prediction = self.prediction_weight * utility
        self.iteration += 1
        self.strategy = self.choose()

    def stepped(self, step, utility):
        with np.errstate(over="ignore"):
            return saturated(step * utility)


class Simplices(Minimizer):
    def __init__(self, num_actions, radius, step_size, prediction_weight):
        self.num_actions = np.atleast_1d(num_actions)
        self.ends = np.cumsum(self.num_actions)[:-1]
        super().__init__(int(self.num_actions.sum()), radius, step_size, prediction_weight)

    def spread(self, values):
        return np.repeat(values, self.num_actions)

    def each(self, function, values):
        return np.array([function(part) for part in np.split(values, self.ends)])


class Hedge(Simplices):
    def __init__(self, num_actions, step_size=None, *, prediction_weight=0.0):
        self.total = np.zeros(int(np.sum(num_actions)))
        super().__init__(num_actions, np.log(np.atleast_1d(num_actions)), step_size, prediction_weight)

    def norm(self, error):
        return (self.each(np.max, error) + self.each(np.max, -error)) / 2

    def step(self, step, utility):
        self.total = saturated(self.total + utility)

    def choose(self):
        exponents = self.stepped(self.spread(self.steps.current), self.total + self.prediction)
        weights = np.exp(exponents - self.spread(self.each(np.max, exponents)))
        return weights / self.spread(self.each(np.sum, weights))


class ProjectedGradientAscent(Simplices):
    def __init__(self, num_actions, step_size=None, *, prediction_weight=0.0):
        num_actions = np.atleast_1d(num_actions)
        self.base = np.repeat(1 / num_actions, num_actions)
        super().__init__(num_actions, np.ones(len(num_actions)), step_size, prediction_weight)

    def norm(self, error):
        return self.each(euclidean_norm, error)

    def step(self, step, utility):
        self.base = self.project(self.base + self.stepped(self.spread(step), utility))

    def choose(self):
        if not self.prediction_weight:
            return self.base
        return self.project(self.base + self.stepped(self.spread(self.steps.current), self.prediction))

    def project(self, point):
        return np.concatenate([project_onto_simplex(part) for part in np.split(point, self.ends)])


def euclidean_norm(vector):
    largest = float(np.abs(vector).max(initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


class OnTreeplex(Minimizer):
    def __init__(self, treeplex, radius, step_size, prediction_weight):
        self.treeplex = treeplex
        super().__init__(treeplex.num_sequences, radius, step_size, prediction_weight)

    def norm(self, error):
        return euclidean_norm(error[1:])


class TreeplexGradientAscent(OnTreeplex):
    def __init__(self, treeplex, step_size=None, *, prediction_weight=0.0):
        self.base = treeplex.sequence_form(treeplex.uniform_policy())
        radius = treeplex.best_value(np.ones(treeplex.num_sequences)) - 1
        super().__init__(treeplex, radius, step_size, prediction_weight)

    def step(self, step, utility):
        self.base = project_onto_treeplex(self.treeplex, self.base + self.stepped(step, utility))

    def choose(self):
        if not self.prediction_weight:
            return self.base
        return project_onto_treeplex(self.treeplex, self.base + self.stepped(self.steps.current, self.prediction))

    @property
    def policy(self):
        return self.treeplex.behavioral_policy(self.strategy)


class Dilated(OnTreeplex):
    def __init__(self, treeplex, step_size, prediction_weight, ranges, weights):
        convex = strongly_convex_weights(treeplex)
        self.weights = convex if weights is None else np.array(weights, np.float64)
        self.modulus = np.min(self.weights / convex, initial=np.inf)
        at_parents = np.zeros(treeplex.num_sequences)
        np.add.at(at_parents, treeplex.parent_sequence, self.weights * ranges)
        super().__init__(treeplex, treeplex.best_value(at_parents), step_size, prediction_weight)

    def norm(self, error):
        return super().norm(error) / math.sqrt(self.modulus)


def strongly_convex_weights(treeplex):
    weights, after = np.zeros(treeplex.num_decision_points), np.zeros(treeplex.num_sequences)
    for j in reversed(range(treeplex.num_decision_points)):
        weights[j] = 2 + 2 * after[treeplex.sequences(j)].max()
        after[treeplex.parent_sequence[j]] += weights[j]
    return weights


class DilatedEntropyAscent(Dilated):
    def __init__(self, treeplex, step_size=None, *, prediction_weight=0.0, weights=None):
        self.total = np.zeros(treeplex.num_sequences)
        self.prior = np.concatenate([[0.0], np.repeat(-np.log(treeplex.num_actions), treeplex.num_actions)])
        super().__init__(treeplex, step_size, prediction_weight, np.log(treeplex.num_actions), weights)

    def step(self, step, utility):
        self.total = saturated(self.total + utility)

    def choose(self):
        utility = self.stepped(self.steps.current, self.total + self.prediction)
        self.policy = entropic_response(self.treeplex, utility, self.weights, self.prior)[0]
        return self.treeplex.sequence_form(self.policy)


class DilatedEuclideanAscent(Dilated):
    def __init__(self, treeplex, step_size=None, *, prediction_weight=0.0, weights=None):
        self.base = treeplex.uniform_policy()
        super().__init__(treeplex, step_size, prediction_weight, np.ones(treeplex.num_decision_points), weights)

    def step(self, step, utility):
        self.base = quadratic_response(self.treeplex, self.stepped(step, utility), self.weights, self.base)

    def choose(self):
        self.policy = self.base
        if self.prediction_weight:
            utility = self.stepped(self.steps.current, self.prediction)
            self.policy = quadratic_response(self.treeplex, utility, self.weights, self.base)
        return self.treeplex.sequence_form(self.policy)


class MultiplicativeWeights(OnTreeplex):
    def __init__(self, treeplex, step_size=None, *, prediction_weight=0.0):
        self.total = np.zeros(treeplex.num_sequences)
        self.weights, self.prior = np.ones(treeplex.num_decision_points), np.zeros(treeplex.num_sequences)
        log_num_strategies = entropic_response(treeplex, self.total, self.weights, self.prior)[1]
        super().__init__(treeplex, log_num_strategies, step_size, prediction_weight)

    def norm(self, error):
        return (self.treeplex.best_value(error) + self.treeplex.best_value(-error)) / 2

    def step(self, step, utility):
        self.total = saturated(self.total + utility)

    def choose(self):
        utility = self.stepped(self.steps.current, self.total + self.prediction)
        self.policy = entropic_response(self.treeplex, utility, self.weights, self.prior)[0]
        return self.treeplex.sequence_form(self.policy)


def entropic_response(treeplex, utility, weights, prior):
    """The policy that maximizes utility . x - sum over j of weights[j] x[p_j] sum of b (log b - prior), and the maximum."""
    values, policy = np.array(utility, np.float64), np.ones(treeplex.num_sequences)
    for j in reversed(range(treeplex.num_decision_points)):
        sequences = slice(*treeplex.sequence_start[j : j + 2])
        exponents = values[sequences] / weights[j] + prior[sequences]
        largest = exponents.max()
        exponentials = np.exp(exponents - largest)
        policy[sequences] = exponentials / exponentials.sum()
        values[treeplex.parent_sequence[j]] += weights[j] * (largest + np.log(exponentials.sum()))
    return policy, float(values[0])


def quadratic_response(treeplex, utility, weights, center):
    """The policy that maximizes utility . x - sum over j of weights[j] x[p_j] / 2 sum of (b - center)^2."""
    values, policy = np.array(utility, np.float64), np.ones(treeplex.num_sequences)
    for j in reversed(range(treeplex.num_decision_points)):
        sequences = slice(*treeplex.sequence_start[j : j + 2])
        policy[sequences] = project_onto_simplex(center[sequences] + values[sequences] / weights[j])
        moved = policy[sequences] - center[sequences]
        values[treeplex.parent_sequence[j]] += policy[sequences] @ values[sequences] - weights[j] / 2 * (moved @ moved)
    return policy
