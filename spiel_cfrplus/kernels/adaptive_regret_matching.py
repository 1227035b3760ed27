"""Predictive variants of regret matching that adapt to the regrets of each decision point, as local rules.

For the arguments see `regret_matching`. In this module r is the vector of instantaneous regrets of an update, R that of stored
regrets; both are multiplied by the weights of merged actions, and norms are those of the game without merged actions.
"""

import math

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.regret_matching import action_weight, add_regret, instantaneous_regret, play_in_proportion

# Powers of numbers between the first two, with exponents up to 5, are float64, also as sums; the reciprocals of smaller numbers
# than the third one may overflow.
LEAST_BASE, LARGEST_BASE, SMALLEST_NORMAL = 1e-60, 1e60, 2.0**-1022


@jit
def squared_norm_term(memory, regret, a):
    """The term of an action in a squared 2-norm, up to a factor that is the same for all actions of the decision point.

    An action that represents k of n actions stores k / n times the regret x of one of them, and adds k x^2 to the squared norm.
    """
    return regret * regret / action_weight(memory.uniform_policy, a)


# Asymmetric step sizes.


@jit
def prediction_weight_of(error, movement, largest_asymmetry):
    """1 / (1 + alpha), where alpha = min(sqrt(error / movement), largest_asymmetry); see `asymmetric_regret_matching`.

    If a sum is zero or overflows, alpha is `largest_asymmetry`.
    """
    is_small = error < largest_asymmetry * largest_asymmetry * movement
    return 1.0 / (1.0 + (math.sqrt(error / movement) if is_small else largest_asymmetry))


@jit
def asymmetric_regret_matching(point, values, policy, memory, parameters, t):
    """Predictive regret matching+ whose prediction has a weight that depends on the errors of earlier predictions.

    Adds |r - previous r|^2 to `memory.error` and |change of R|^2 to `memory.movement`, from which `prediction_weight_of`
    computes the weight. `memory.last_regrets` is r. The table with the prediction overwrites `values`.
    """
    regrets, predicted, last = memory.regrets, values, memory.last_regrets
    error, movement = memory.error[point.infostate], memory.movement[point.infostate]
    for a in point.actions:
        change = instantaneous_regret(point, values, memory, a)
        error += squared_norm_term(memory, change - last[a], a)
        regret = max(add_regret(memory, regrets[a], change, a), 0.0)
        movement += squared_norm_term(memory, regret - regrets[a], a)
        regrets[a], last[a] = regret, change
    memory.error[point.infostate], memory.movement[point.infostate] = error, movement
    weight = prediction_weight_of(error, movement, parameters.largest_asymmetry)
    total = 0.0
    for a in point.actions:
        predicted[a] = add_regret(memory, regrets[a], weight * last[a], a)
        total += max(predicted[a], 0.0)
    play_in_proportion(point, predicted, total, policy, memory)


# Norms that do not decrease.


@jit
def growth(before, after):
    """The factor by which a vector with the squared norm `after` is multiplied so that the norm is at least that `before`.

    It is 1 if the vector is zero, or if the squares overflow.
    """
    return math.sqrt(before / after) if 0.0 < after < before else 1.0


@jit
def increasing_regret_matching(point, values, policy, memory, parameters, t):
    """Predictive regret matching+ in which the 2-norm of the stored regrets never decreases.

    Where an update decreases the norm, the updated regrets are multiplied by a factor that restores it. The prediction has the
    weight `parameters.prediction_weight`; the table with the prediction overwrites `values`.
    """
    regrets, predicted = memory.regrets, values
    before = after = 0.0
    for a in point.actions:
        before += squared_norm_term(memory, regrets[a], a)
        predicted[a] = instantaneous_regret(point, values, memory, a)
        regrets[a] = max(add_regret(memory, regrets[a], predicted[a], a), 0.0)
        after += squared_norm_term(memory, regrets[a], a)
    factor, total = growth(before, after), 0.0
    for a in point.actions:
        regrets[a] *= factor
        predicted[a] = add_regret(memory, regrets[a], parameters.prediction_weight * predicted[a], a)
        total += max(predicted[a], 0.0)
    play_in_proportion(point, predicted, total, policy, memory)


# Sums that have a lower bound.


@jit
def shift_to_sum(point, table, memory, total):
    """The number c with which max(x - c w, 0) has the positive sum `total`, where x is the table and w the weights of actions.

    Michelot 1986: actions that are zero for a smaller c remain zero, so c increases until none is added.
    """
    shift = -math.inf
    while True:
        excess, weights = -total, 0.0
        for a in point.actions:
            weight = action_weight(memory.uniform_policy, a)
            if table[a] > shift * weight:
                excess += table[a]
                weights += weight
        if not excess / weights > shift:
            return shift
        shift = excess / weights


@jit
def project_above(point, table, memory, least):
    """Projects the table onto {x >= 0, sum of x >= least}; returns the sum."""
    total = 0.0
    for a in point.actions:
        total += max(table[a], 0.0)
    shift = 0.0 if total >= least else shift_to_sum(point, table, memory, least)
    total = 0.0
    for a in point.actions:
        table[a] = max(table[a] - shift * action_weight(memory.uniform_policy, a), 0.0)
        total += table[a]
    return total


@jit
def smooth_regret_matching(point, values, policy, memory, parameters, t):
    """Predictive regret matching+ whose tables, with and without the prediction, have at least a sum L; see `project_above`.

    L is the larger one of `parameters.floor` times the number of actions times the largest |r| until now, `memory.unit`, and of
    `parameters.kept` times the sum of the stored regrets. The table with the prediction overwrites `values`.
    """
    regrets, predicted, stored, weights, unit = memory.regrets, values, 0.0, 0.0, memory.unit[point.infostate]
    for a in point.actions:
        unit = max(unit, abs(values[a] - point.value))
        weights += action_weight(memory.uniform_policy, a)
        stored += regrets[a]
        predicted[a] = instantaneous_regret(point, values, memory, a)
        regrets[a] = add_regret(memory, regrets[a], predicted[a], a)
    memory.unit[point.infostate] = unit
    least = max(parameters.floor * unit * weights, parameters.kept * stored)
    least = max(least, parameters.kept * project_above(point, regrets, memory, least))
    for a in point.actions:
        predicted[a] = add_regret(memory, regrets[a], predicted[a], a)
    play_in_proportion(point, predicted, project_above(point, predicted, memory, least), policy, memory)


# Powers of regrets, and discounts that depend on the volatility of regrets. The update of one decision point is a long chain of
# operations that wait for each other, so its time is their latency: divisions are few, and selections are maxima.


@jit
def discount(exponent, log_t):
    """t^exponent / (t^exponent + 1)."""
    return 1.0 / (1.0 + math.exp(-exponent * log_t))


@jit
def discounted(regret, positive_factor, negative_factor):
    """The regret times the factor of its sign; the negative factor is at most the positive one."""
    return max(regret * positive_factor, regret * negative_factor)


@jit
def boosted(change, boost):
    """The change, multiplied by `boost` if it is positive."""
    return change * boost if change > 0.0 else change


@jit
def take_powers(point, preferences, memory, scale, exponent):
    """Replaces each preference x by (scale x)^exponent, or 0 if it is negative; returns their sum.

    An action that represents k of n actions has the preference k / n x and the power k / n (scale x)^exponent. The square root
    is several times as fast as a power.
    """
    total = 0.0
    for a in point.actions:
        ratio, weight = max(preferences[a], 0.0) * scale, action_weight(memory.uniform_policy, a)
        power = ratio * math.sqrt(ratio / weight) if exponent == 1.5 else weight * (ratio / weight) ** exponent
        preferences[a] = power
        total += power
    return total


@jit
def play_powers(point, preferences, largest, policy, memory, exponent):
    """Sets the policy in proportion to the powers of the positive preferences, of which the largest is given.

    They are divided by the largest one, or by the smallest number with a reciprocal, if their powers may not be float64.
    """
    if LEAST_BASE < largest < LARGEST_BASE:
        total = take_powers(point, preferences, memory, 1.0, exponent)
    else:
        total = take_powers(point, preferences, memory, 1.0 / max(largest, SMALLEST_NORMAL), exponent)
    play_in_proportion(point, preferences, total, policy, memory)


@jit
def update_sharpened(point, values, policy, memory, parameters, positive_factor, negative_factor, prediction_weight, floor):
    """R = max(floor, d R + b r), then the policy proportional to the positive part of d R + prediction_weight b r, to a power.

    d is the factor of the sign of an element of R; b is `parameters.boost` for positive elements of r and 1 for others; the
    power is `parameters.exponent`. R is `memory.regrets`; what the policy is proportional to overwrites `values`.
    """
    regrets, preferences = memory.regrets, values
    largest = 0.0
    for a in point.actions:
        change = boosted(instantaneous_regret(point, values, memory, a), parameters.boost)
        regret = add_regret(memory, discounted(regrets[a], positive_factor, negative_factor), change, a)
        regrets[a] = max(regret, floor)
        projected = discounted(regrets[a], positive_factor, negative_factor)
        preferences[a] = add_regret(memory, projected, prediction_weight * change, a)
        largest = max(largest, preferences[a])
    play_powers(point, preferences, largest, policy, memory, parameters.exponent)


@jit
def sharpened_regret_matching(point, values, policy, memory, parameters, t):
    """`update_sharpened` with discounts t^alpha / (t^alpha + 1) and t^b / (t^b + 1), where b = min(alpha, beta)."""
    positive = discount(parameters.alpha, parameters.log_t)
    negative = min(positive, discount(parameters.beta, parameters.log_t))
    update_sharpened(point, values, policy, memory, parameters, positive, negative, parameters.prediction_weight, -math.inf)


@jit
def average_magnitude(point, values, memory, parameters, t):
    """The moving average of max |r| at the decision point, in `memory.magnitude`.

    The largest and the smallest value do not wait for the value of the policy; rounding preserves order, so the maximum is the
    same float64.
    """
    share = parameters.smoothing if t > 1 else 1.0
    earlier = (1.0 - share) * memory.magnitude[point.infostate]
    highest, lowest = -math.inf, math.inf
    for a in point.actions:
        highest, lowest = max(highest, values[a]), min(lowest, values[a])
    magnitude = share * max(highest - point.value, point.value - lowest) + earlier
    memory.magnitude[point.infostate] = magnitude
    return magnitude


@jit
def volatile_regret_matching(point, values, policy, memory, parameters, t):
    """`update_sharpened` with discounts and a prediction that decrease with the volatility of the regrets.

    With v = min(1, magnitude / unit) the exponents of t are a = max(0.1, alpha - sensitivity v) and
    b = min(a, beta - sensitivity v), and the factors 1 / (1 + t^-a) and 1 / (1 + t^-b). Of the exponentials only one depends on
    the decision point; the others, and divisions of parameters, are computed once.
    """
    sensitivity, log_t = parameters.sensitivity, parameters.log_t
    magnitude = average_magnitude(point, values, memory, parameters, t)
    volatility = min(1.0, magnitude * (1.0 / parameters.unit))
    increase = math.exp(volatility * (sensitivity * log_t))
    inverse_a = min(math.exp(-0.1 * log_t), math.exp(-parameters.alpha * log_t) * increase)
    inverse_b = max(inverse_a, math.exp(-parameters.beta * log_t) * increase)
    positive, negative = 1.0 / (1.0 + inverse_a), 1.0 / (1.0 + inverse_b)
    weight = parameters.prediction_weight * max(0.0, 1.0 - sensitivity * volatility)
    update_sharpened(point, values, policy, memory, parameters, positive, negative, weight, parameters.floor)
