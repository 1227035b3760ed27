"""Step sizes of minimizers that take steps along utilities, and the bound on regret that comes with them.

The regret of these minimizers after T iterations is at most

    radius / step_T + sum over t of step_t / 2 * error_t^2

with errors in the norm of the minimizer's own, ||utility_t - prediction_t||, provided that steps never grow. Steps are either
given or *tuned* to what was observed (Rakhlin and Sridharan 2013):

    step_{t+1} = sqrt(radius / (error_1^2 + ... + error_t^2)),

which needs neither the number of iterations nor the unit of the utilities, and keeps the regret of order sqrt(radius * sum of
squared errors). The first strategy is the same for every step, so step_1 may be chosen afterwards; it is what the formula gives
for t = 1.
"""

import math
from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit

# Sums of millions of such numbers fit a float64.
LARGEST = 1e300

_LARGEST_STEP = np.finfo(np.float64).max


class StepAccount(NamedTuple):
    """The accounts of P minimizers: one for each infostate, or one for each player. float64 (P,) each, zeros at first.

    Rules have these arrays under these names in their memory.

    Attributes:
      radius: of the decision set, as the minimizer measures it.
      error: the root of the sum of squared errors.
      step: with which the strategy to be played next was chosen.
      last_step: with which the strategy before it was chosen.
      paid: the sum over t of step_t / 2 * error_t^2.
    """

    radius: np.ndarray
    error: np.ndarray
    step: np.ndarray
    last_step: np.ndarray
    paid: np.ndarray


@jit
def saturate(number):
    """The number, but not beyond `LARGEST` in magnitude; infinities become that."""
    return min(max(number, -LARGEST), LARGEST)


@jit
def tuned_step(radius, error):
    """The formula above; 1 as long as all errors were zero, when any step will do."""
    if error > 0.0:
        # Errors may be so small that the quotient is infinite; a step must be a number, as it may be multiplied by zero.
        return min(math.sqrt(radius) / error, _LARGEST_STEP)
    return 1.0


@jit
def advance(account, i, radius, error, step_size):
    """Enters an iteration of minimizer i into its account.

    Args:
      account: `StepAccount`, or a memory that has its arrays.
      i: the minimizer.
      radius: of its decision set, as the minimizer measures it.
      error: ||utility - prediction||.
      step_size: a number, or None for tuned steps.

    Returns:
      The step of the strategy that was played, with which to learn, and the step for choosing the next strategy.
    """
    account.radius[i] = radius
    before = account.error[i]
    # Not the root of a sum of squares, which may leave the range of a float64.
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
        scaled = (saturate(utility[s]) - prediction[s]) / largest  # squares of errors may leave the range of a float64
        squares += scaled * scaled
    return largest * math.sqrt(squares)
