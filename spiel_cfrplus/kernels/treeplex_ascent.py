"""Treeplex rules: updates on a player's whole treeplex other than CFR.

An update reads the gradient of the player's sequences in `values`, which it may overwrite, and writes the player's next
behavioral strategy to `policy`. The memory contains the arrays of `StepAccount` (n,), and

* `divergence_bound`: float64 (n,), the radius of each player's polytope: the largest divergence from the first strategy.
* `prediction`: float64 (S,), the predicted utility, `prediction_weight` times the last one.
* `total`: float64 (S,), the sum of the utilities (dilated entropy, multiplicative weights).
* `base`: float64 (S,), the point that every utility updates, which is the strategy without prediction: in sequence form
  (gradient ascent) or as a behavioral policy (dilated squared distance).
* `weights`: float64 (J,), of the dilated regularizer; those of roots are not read.
* `prior`: float64 (S,), logarithms of a behavioral policy, see `entropic_response`.
* `modulus`: float64 (n,), the modulus of strong convexity of the dilated regularizer in the Euclidean norm.
* `scratch`: float64 (S,).
* the arrays of `projection.Scratch`, under their names there (gradient ascent).

Errors exclude the empty sequence, whose utility does not depend on decisions.
"""

import math

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.kernels.passes import best_response, match_all_regrets, player_sequences, sequence_form
from spiel_cfrplus.kernels.projection import Scratch, project_onto_treeplex
from spiel_cfrplus.kernels.simplex import project_onto_simplex
from spiel_cfrplus.kernels.step_sizes import advance, euclidean_error, saturate


@jit
def entropic_response(treeplexes, player, weights, prior, utility, policy):
    """Bottom-up: maximizes utility . x - sum over j of weights[j] x[p_j] sum over a of b[a] (log b[a] - prior[ja]).

    Reads `weights` (J,) and `prior` (S,). Adds to `utility` (S,) at ja the values of the decision points after it, and at the
    empty sequence the maximum. Writes the maximizing `policy` (S,).
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop, weight = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], weights[j]
        largest = -np.inf
        for s in range(start, stop):
            largest = max(largest, utility[s] / weight + prior[s])
        total = 0.0
        for s in range(start, stop):
            policy[s] = np.exp(utility[s] / weight + prior[s] - largest)
            total += policy[s]
        for s in range(start, stop):
            policy[s] /= total
        utility[treeplexes.parent_sequence[j]] += weight * (largest + np.log(total))


@jit
def quadratic_response(treeplexes, player, weights, center, utility, scratch, policy):
    """Bottom-up: maximizes utility . x - sum over j of weights[j] x[p_j] / 2 sum over a of (b[a] - center[ja])^2.

    Reads `weights` (J,) and `center` (S,), a policy. Updates `utility` (S,) like `entropic_response`. Writes `scratch` (S,) and
    the maximizing `policy` (S,).
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop, weight = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], weights[j]
        for s in range(start, stop):
            scratch[s] = center[s] + utility[s] / weight
        project_onto_simplex(scratch, start, stop, policy)
        value = 0.0
        for s in range(start, stop):
            value += policy[s] * utility[s] - weight / 2.0 * (policy[s] - center[s]) ** 2
        utility[treeplexes.parent_sequence[j]] += value


@jit
def find_convex_weights(treeplexes, player, weights, after):
    """Bottom-up: weights[j] = 2 + 2 max over a of after[ja], the sum of the weights of the decision points after ja.

    Writes the player's part of `weights` (J,) without the root; `after` (S,) must be zero.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        largest = 0.0
        for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
            largest = max(largest, after[s])
        weights[j] = 2.0 + 2.0 * largest
        after[treeplexes.parent_sequence[j]] += weights[j]


@jit
def decisions(treeplexes, player):
    """The player's sequences without the empty one."""
    start, stop = player_sequences(treeplexes, player)
    return range(start + INDEX(1), stop)


@jit
def euclidean_error_of_decisions(treeplexes, player, values, memory):
    """The Euclidean norm of utility - prediction."""
    return euclidean_error(values, memory.prediction, decisions(treeplexes, player))


@jit
def error_range(treeplexes, player, values, memory, policy):
    """The range of (utility - prediction) . x over the player's strategies x. Overwrites `policy`."""
    start, _ = player_sequences(treeplexes, player)
    total = 0.0
    for sign in (1.0, -1.0):
        memory.scratch[start] = 0.0
        for s in decisions(treeplexes, player):
            memory.scratch[s] = sign * (saturate(values[s]) - memory.prediction[s])
        best_response(treeplexes, player, memory.scratch, policy)
        total += memory.scratch[start]
    return total


@jit
def take_in(treeplexes, player, values, memory, prediction_weight):
    """Adds the utility to the total and stores the prediction."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        utility = saturate(values[s])
        memory.total[s] = saturate(memory.total[s] + utility)
        memory.prediction[s] = prediction_weight * utility


@jit
def respond_to_total(treeplexes, player, values, policy, memory, step):
    """The entropic response to step times (summed utilities + prediction)."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        values[s] = saturate(step * (memory.total[s] + memory.prediction[s]))
    entropic_response(treeplexes, player, memory.weights, memory.prior, values, policy)


@jit
def step_along_total(treeplexes, player, values, policy, memory, error, step_size, prediction_weight):
    """Dual averaging: adds the utility, with the given error, and responds to the total."""
    take_in(treeplexes, player, values, memory, prediction_weight)
    _, step = advance(memory, player, memory.divergence_bound[player], error, step_size)
    respond_to_total(treeplexes, player, values, policy, memory, step)


@jit
def follow_entropy(treeplexes, player, values, policy, memory, step_size, prediction_weight):
    """Mirror ascent with dilated entropy: argmax step * (summed utilities + prediction) . x - psi(x)."""
    error = euclidean_error_of_decisions(treeplexes, player, values, memory) / math.sqrt(memory.modulus[player])
    step_along_total(treeplexes, player, values, policy, memory, error, step_size, prediction_weight)


@jit
def follow_vertices(treeplexes, player, values, policy, memory, step_size, prediction_weight):
    """Multiplicative weights on the vertices: their mixture is the entropic response with weights 1 and prior 0."""
    error = error_range(treeplexes, player, values, memory, policy) / 2.0
    step_along_total(treeplexes, player, values, policy, memory, error, step_size, prediction_weight)


@jit
def predict(treeplexes, player, values, memory, prediction_weight):
    """Saturates the utility and stores the prediction."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        values[s] = saturate(values[s])
        memory.prediction[s] = prediction_weight * values[s]


@jit
def step_from_policy(treeplexes, player, direction, step, values, policy, memory):
    """A step from the base policy along `direction`, written to `policy`: argmax step * direction . x - D(x || base)."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        values[s] = saturate(step * direction[s])
    quadratic_response(treeplexes, player, memory.weights, memory.base, values, memory.scratch, policy)


@jit
def copy_sequences(treeplexes, player, source, target):
    """Copies the player's part of `source` to `target`."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        target[s] = source[s]


@jit
def follow_distance(treeplexes, player, values, policy, memory, step_size, prediction_weight, t):
    """Mirror ascent with dilated squared distance: a step from the base policy, then another one along the prediction."""
    if t == 1:  # the first strategy is the base
        copy_sequences(treeplexes, player, policy, memory.base)
    error = euclidean_error_of_decisions(treeplexes, player, values, memory) / math.sqrt(memory.modulus[player])
    last_step, step = advance(memory, player, memory.divergence_bound[player], error, step_size)
    predict(treeplexes, player, values, memory, prediction_weight)
    step_from_policy(treeplexes, player, values, last_step, values, policy, memory)
    copy_sequences(treeplexes, player, policy, memory.base)
    if prediction_weight != 0.0:
        step_from_policy(treeplexes, player, memory.prediction, step, values, policy, memory)


@jit
def step_from_strategy(treeplexes, player, direction, step, values, memory, nearest):
    """A step from the base strategy along `direction` and a projection, written to `nearest`, which may be the base."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        values[s] = memory.base[s] + saturate(step * direction[s])
    lists = (memory.following, memory.next_function, memory.summands)
    scratch = Scratch(memory.breakpoint, memory.slope, *lists, memory.cost)
    project_onto_treeplex(treeplexes, player, values, scratch, nearest)


@jit
def follow_gradient(treeplexes, player, values, policy, memory, step_size, prediction_weight, t):
    """Projected gradient ascent on the polytope: a step from the base, then another one along the prediction."""
    start, _ = player_sequences(treeplexes, player)
    if t == 1:  # the first strategy is the base
        memory.base[start] = 1.0
        sequence_form(treeplexes, player, policy, memory.base)
    error = euclidean_error_of_decisions(treeplexes, player, values, memory)
    last_step, step = advance(memory, player, memory.divergence_bound[player], error, step_size)
    predict(treeplexes, player, values, memory, prediction_weight)
    step_from_strategy(treeplexes, player, values, last_step, values, memory, memory.base)
    copy_sequences(treeplexes, player, memory.base, memory.scratch)
    if prediction_weight != 0.0:
        step_from_strategy(treeplexes, player, memory.prediction, step, values, memory, memory.scratch)
    match_all_regrets(treeplexes, player, memory.scratch, policy)  # to a policy; uniform at infostates that are not reached


@jit
def treeplex_gradient_ascent(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_gradient` with the step size `parameters.step_size`."""
    follow_gradient(treeplexes, player, values, policy, memory, parameters.step_size, parameters.prediction_weight, t)


@jit
def tuned_treeplex_gradient_ascent(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_gradient` with adaptive step sizes."""
    follow_gradient(treeplexes, player, values, policy, memory, None, parameters.prediction_weight, t)


@jit
def dilated_entropy(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_entropy` with the step size `parameters.step_size`."""
    follow_entropy(treeplexes, player, values, policy, memory, parameters.step_size, parameters.prediction_weight)


@jit
def tuned_dilated_entropy(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_entropy` with adaptive step sizes."""
    follow_entropy(treeplexes, player, values, policy, memory, None, parameters.prediction_weight)


@jit
def dilated_euclidean(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_distance` with the step size `parameters.step_size`."""
    follow_distance(treeplexes, player, values, policy, memory, parameters.step_size, parameters.prediction_weight, t)


@jit
def tuned_dilated_euclidean(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_distance` with adaptive step sizes."""
    follow_distance(treeplexes, player, values, policy, memory, None, parameters.prediction_weight, t)


@jit
def multiplicative_weights(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_vertices` with the step size `parameters.step_size`."""
    follow_vertices(treeplexes, player, values, policy, memory, parameters.step_size, parameters.prediction_weight)


@jit
def tuned_multiplicative_weights(treeplexes, player, values, policy, memory, parameters, t):
    """`follow_vertices` with adaptive step sizes."""
    follow_vertices(treeplexes, player, values, policy, memory, None, parameters.prediction_weight)
