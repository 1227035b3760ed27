"""Step sizes of Hedge, gradient ascent and mirror ascent, and the bound on their regret.

The regret of these minimizers after T iterations is at most

    radius / step_T + sum over t of step_t / 2 * error_t^2

with errors ||utility_t - prediction_t|| in a norm that depends on the minimizer, provided that steps never increase. Steps are
either given or adaptive (*tuned* to the observed errors, Rakhlin and Sridharan 2013):

    step_{t+1} = sqrt(radius / (error_1^2 + ... + error_t^2)),

which requires neither the number of iterations nor the unit of the utilities, and bounds the regret by a multiple of
sqrt(radius * sum of squared errors). The first strategy does not depend on the step, so step_1 may be chosen afterwards: it is
the value of the formula for t = 1.
"""

import math
from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit

# Sums of millions of such numbers are finite in float64.
LARGEST = 1e300

_LARGEST_STEP = np.finfo(np.float64).max


class StepAccount(NamedTuple):
    """The sums of P minimizers, one for each infostate or one for each player: float64 (P,) each, initially zeros.

    The memory of a rule contains these arrays under these names.

    Attributes:
      radius: the radius of the decision set, in the measure of the minimizer.
      error: the square root of the sum of squared errors.
      step: the step with which the next strategy was chosen.
      last_step: the step with which the strategy before it was chosen.
      paid: the sum over t of step_t / 2 * error_t^2.
    """

    radius: np.ndarray
    error: np.ndarray
    step: np.ndarray
    last_step: np.ndarray
    paid: np.ndarray


@jit
def saturate(number):
    """The number, limited to the magnitude `LARGEST`."""
    return min(max(number, -LARGEST), LARGEST)


@jit
def tuned_step(radius, error):
    """The formula above; 1 if all errors are zero, when the step has no effect."""
    if error > 0.0:
        # For tiny errors the quotient is infinite; a step must be finite, because it may be multiplied by zero.
        return min(math.sqrt(radius) / error, _LARGEST_STEP)
    return 1.0


@jit
def advance(account, i, radius, error, step_size):
    """Adds an iteration of minimizer i to its sums.

    Args:
      account: `StepAccount`, or a memory with its arrays.
      i: the minimizer.
      radius: the radius of its decision set.
      error: ||utility - prediction||.
      step_size: a number, or None for adaptive steps.

    Returns:
      The step of the last strategy, for the update, and the step for choosing the next strategy.
    """
    account.radius[i] = radius
    before = account.error[i]
    # hypot, because squares may exceed the range of a float64.
    account.error[i] = math.hypot(before, error)
    step = tuned_step(radius, account.error[i]) if step_size is None else step_size
    last_step = account.step[i] if before > 0.0 else step
    account.step[i] = step
    account.last_step[i] = last_step
    account.paid[i] += last_step * error * error / 2.0
    return last_step, step


@jit
def largest_error(utility, prediction, positions):
    """The largest |utility - prediction| at the positions."""
    largest = 0.0
    for s in positions:
        largest = max(largest, abs(saturate(utility[s]) - prediction[s]))
    return largest


@jit
def euclidean_error(utility, prediction, positions):
    """The Euclidean norm of utility - prediction at the positions, a `range`, with saturated utilities."""
    largest = largest_error(utility, prediction, positions)
    if largest == 0.0:
        return 0.0
    squares = 0.0
    for s in positions:
        scaled = (saturate(utility[s]) - prediction[s]) / largest  # squares of errors may exceed the range of a float64
        squares += scaled * scaled
    return largest * math.sqrt(squares)
