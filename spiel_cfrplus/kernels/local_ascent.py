"""Local rules with step sizes: Hedge and projected gradient ascent on the simplex of each infostate.

Their memory contains the arrays of `StepAccount` (J,), and (S,):

* `prediction`: the predicted utility, `prediction_weight` times the last one.
* `total`: the sum of the utilities (Hedge).
* `base`: the point that every utility updates (gradient ascent), which is the strategy without prediction.

Each rule exists with adaptive (`tuned`) steps and with steps that are a parameter; kernels are compiled separately for None.
"""

import math

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.kernels.simplex import project_onto_simplex
from spiel_cfrplus.kernels.step_sizes import advance, euclidean_error, saturate

GRADIENT_RADIUS = 1.0  # half the squared diameter of a simplex


@jit
def hedge_radius(num_actions):
    """The range of entropy on a simplex."""
    return math.log(num_actions)


@jit
def softmax(actions, policy):
    """Turns exponents in `policy` into the distribution proportional to their exponentials."""
    largest = -np.inf
    for a in actions:
        largest = max(largest, policy[a])
    total = 0.0
    for a in actions:
        policy[a] = math.exp(policy[a] - largest)
        total += policy[a]
    for a in actions:
        policy[a] /= total


@jit
def follow_weighted(point, values, policy, memory, step_size, prediction_weight):
    """Hedge: the softmax of step times (summed utilities + prediction). Errors are half the range of utility - prediction."""
    total, prediction = memory.total, memory.prediction
    lowest, highest = np.inf, -np.inf
    for a in point.actions:
        utility = saturate(values[a])
        lowest, highest = min(lowest, utility - prediction[a]), max(highest, utility - prediction[a])
        total[a] = saturate(total[a] + utility)
        prediction[a] = prediction_weight * utility
    radius, error = hedge_radius(len(point.actions)), (highest - lowest) / 2.0
    _, step = advance(memory, point.infostate, radius, error, step_size)
    for a in point.actions:
        policy[a] = saturate(step * (total[a] + prediction[a]))
    softmax(point.actions, policy)


@jit
def step_and_project(actions, point, step, utility, nearest):
    """Writes the distribution nearest to `point` plus step times utility to `nearest`, which may be `point`.

    A step of length zero does not change the point, because another projection would add rounding errors.
    """
    moves = False
    for a in actions:
        length = saturate(step * saturate(utility[a]))
        moves = moves or length != 0.0
        nearest[a] = point[a] + length
    if moves:
        project_onto_simplex(nearest, INDEX(actions.start), INDEX(actions.stop), nearest)


@jit
def follow_gradient(point, values, policy, memory, step_size, prediction_weight, t):
    """Projected gradient ascent: a step from the base along the utility; the strategy is another step along the prediction."""
    base, prediction = memory.base, memory.prediction
    error = euclidean_error(values, prediction, point.actions)
    last_step, step = advance(memory, point.infostate, GRADIENT_RADIUS, error, step_size)
    for a in point.actions:
        if t == 1:  # the first strategy is the base
            base[a] = policy[a]
        prediction[a] = prediction_weight * saturate(values[a])
    step_and_project(point.actions, base, last_step, values, base)
    step_and_project(point.actions, base, step, prediction, policy)


@jit
def hedge(point, values, policy, memory, parameters, t):
    """Hedge with the step size `parameters.step_size`."""
    follow_weighted(point, values, policy, memory, parameters.step_size, parameters.prediction_weight)


@jit
def tuned_hedge(point, values, policy, memory, parameters, t):
    """Hedge with adaptive step sizes."""
    follow_weighted(point, values, policy, memory, None, parameters.prediction_weight)


@jit
def gradient_ascent(point, values, policy, memory, parameters, t):
    """Projected gradient ascent with the step size `parameters.step_size`."""
    follow_gradient(point, values, policy, memory, parameters.step_size, parameters.prediction_weight, t)


@jit
def tuned_gradient_ascent(point, values, policy, memory, parameters, t):
    """Projected gradient ascent with adaptive step sizes."""
    follow_gradient(point, values, policy, memory, None, parameters.prediction_weight, t)
