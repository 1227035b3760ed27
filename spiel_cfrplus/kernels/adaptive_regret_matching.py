"""Predictive variants of regret matching that adapt to the regrets of each decision point, as local rules.

For the arguments see `regret_matching`. In this module r is the vector of instantaneous regrets of an update, R that of stored
regrets; both are multiplied by the weights of merged actions, and norms are those of the game without merged actions.
"""

import math

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.regret_matching import action_weight, add_regret, instantaneous_regret, play_in_proportion


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


# Powers of regrets, and discounts that depend on the volatility of regrets.


@jit
def discount(exponent, log_t):
    """t^exponent / (t^exponent + 1)."""
    return 1.0 / (1.0 + math.exp(-exponent * log_t))


@jit
def discounted(regret, positive_factor, negative_factor):
    """The regret times the factor of its sign."""
    return regret * (positive_factor if regret >= 0.0 else negative_factor)


@jit
def boosted(change, boost):
    """The change, multiplied by `boost` if it is positive."""
    return change * boost if change > 0.0 else change


@jit
def power_of_regret(memory, regret, largest, exponent, a):
    """(regret / largest)^exponent, or 0 if the regret is not positive, times the number of merged actions up to a factor.

    The square root is several times as fast as a power.
    """
    if regret <= 0.0:
        return 0.0
    weight = action_weight(memory.uniform_policy, a)
    ratio = regret / largest / weight
    return weight * (ratio * math.sqrt(ratio) if exponent == 1.5 else ratio**exponent)


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
    total = 0.0
    for a in point.actions:
        preferences[a] = power_of_regret(memory, preferences[a], largest, parameters.exponent, a)
        total += preferences[a]
    play_in_proportion(point, preferences, total, policy, memory)


@jit
def sharpened_regret_matching(point, values, policy, memory, parameters, t):
    """`update_sharpened` with discounts t^alpha / (t^alpha + 1) and t^beta / (t^beta + 1)."""
    positive = discount(parameters.alpha, parameters.log_t)
    negative = discount(parameters.beta, parameters.log_t)
    update_sharpened(point, values, policy, memory, parameters, positive, negative, parameters.prediction_weight, -math.inf)


@jit
def volatility(point, values, memory, parameters, t):
    """The moving average of max |r| at the decision point, `memory.magnitude`, relative to `parameters.unit` and at most 1."""
    largest = 0.0
    for a in point.actions:
        largest = max(largest, abs(values[a] - point.value))
    share = parameters.smoothing if t > 1 else 1.0
    magnitude = share * largest + (1.0 - share) * memory.magnitude[point.infostate]
    memory.magnitude[point.infostate] = magnitude
    return min(1.0, magnitude / parameters.unit)


@jit
def volatile_regret_matching(point, values, policy, memory, parameters, t):
    """`update_sharpened` with discounts and a prediction that decrease with the volatility of the regrets.

    The exponents are a = max(0.1, alpha - reduction) and b = min(a, beta - reduction). Of the exponentials only one depends on
    the decision point; the others are computed once.
    """
    reduction, log_t = parameters.sensitivity * volatility(point, values, memory, parameters, t), parameters.log_t
    decay = math.exp(-reduction * log_t)
    power_a = max(math.exp(0.1 * log_t), math.exp(parameters.alpha * log_t) * decay)
    power_b = min(power_a, math.exp(parameters.beta * log_t) * decay)
    positive, negative = power_a / (power_a + 1.0), power_b / (power_b + 1.0)
    weight = parameters.prediction_weight * max(0.0, 1.0 - reduction)
    update_sharpened(point, values, policy, memory, parameters, positive, negative, weight, parameters.floor)
