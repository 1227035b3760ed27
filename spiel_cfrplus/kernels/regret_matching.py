"""Regret matching and its variants as local rules, and functions for writing such rules.

A *local rule* is called at every decision point of a player, after the player's counterfactual values there are known:

    rule(point, values, policy, memory, parameters, t)

Args:
  point: a `layouts.DecisionPoint`.
  values: float64 (S,), counterfactual values; read at `point.actions`, where the rule may overwrite them afterwards.
  policy: float64 (S,); at `point.actions` the current strategy, which the rule overwrites with the next one.
  memory: a NamedTuple of the arrays that the rule declares, and `tie_tolerance` and `uniform_policy`, see below.
  parameters: a NamedTuple of float64 numbers of this iteration.
  t: int64, the number of this update of the player: 1, 2, ...

`memory.tie_tolerance` is float64 (S,), a bound on the rounding error of a regret that is zero, or None if regrets are not set
to zero. `memory.uniform_policy` is float64 (S,) if an action may represent several merged actions of its infostate: their total
probability in the uniform policy; otherwise None. Each case is compiled separately, because None has its own type: a test in
the loops would cost a third of the speed on a small game.
"""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import DecisionPoint
from spiel_cfrplus.kernels.passes import normalize


@jit
def action_weight(uniform_policy, a):
    """The weight of the regret of an action: `uniform_policy` if actions are merged, otherwise 1."""
    return 1.0 if uniform_policy is None else uniform_policy[a]


@jit
def instantaneous_regret(point, values, memory, a):
    """The counterfactual value of an action minus that of the policy, times the weight of the action."""
    return action_weight(memory.uniform_policy, a) * (values[a] - point.value)


@jit
def tie_of_change(tie_tolerance, a, change):
    """The largest absolute value at which a stored regret is set to zero; 0 without `tie_tolerance`.

    It is at most the latest change, so that a small regret that discounting has produced is kept if the change is smaller.
    """
    return 0.0 if tie_tolerance is None else min(tie_tolerance[a], abs(change))


@jit
def add_regret(memory, stored, change, a):
    """The stored regret of an action plus a change; 0 if the sum may consist of rounding errors."""
    regret = stored + change
    return regret if abs(regret) > tie_of_change(memory.tie_tolerance, a, change) else 0.0


@jit
def play_in_proportion(point, table, total, policy, memory):
    """Sets the policy to the positive part of `table` divided by its sum `total`; uniform if that is zero."""
    normalize(table, total, point.actions.start, point.actions.stop, policy, memory.uniform_policy)


@jit
def regret_matching(point, values, policy, memory, parameters, t):
    """Regret matching with discounted regrets, without prediction.

    Adds the regrets of this update to `memory.regrets`; then multiplies positive regrets by `parameters.positive_factor`,
    negative ones by `parameters.negative_factor`.
    """
    regrets = memory.regrets
    total = 0.0
    for a in point.actions:
        change = instantaneous_regret(point, values, memory, a)
        regret, tie = regrets[a] + change, tie_of_change(memory.tie_tolerance, a, change)
        positive = regret * parameters.positive_factor if regret > tie else 0.0
        negative = regret * parameters.negative_factor if regret < -tie else 0.0
        regrets[a] = positive + negative
        total += positive
    play_in_proportion(point, regrets, total, policy, memory)


@jit
def predictive_regret_matching(point, values, policy, memory, parameters, t):
    """Regret matching with discounted regrets and the prediction that the regrets of this update are repeated.

    The prediction has weight `parameters.prediction_weight` (1 in Farina, Kroer, Sandholm 2021, Algorithm 2). The table with
    the prediction, from which the next policy is computed, overwrites `values`: writing another array would take longer.
    """
    regrets, predicted = memory.regrets, values
    total = 0.0
    for a in point.actions:
        change = instantaneous_regret(point, values, memory, a)
        regret, tie = regrets[a] + change, tie_of_change(memory.tie_tolerance, a, change)
        positive = regret * parameters.positive_factor if regret > tie else 0.0
        negative = regret * parameters.negative_factor if regret < -tie else 0.0
        regrets[a] = positive + negative
        predicted[a] = add_regret(memory, regrets[a], parameters.prediction_weight * change, a)
        total += max(predicted[a], 0.0)
    play_in_proportion(point, predicted, total, policy, memory)


@jit
def trembling_regret_matching(point, values, policy, memory, parameters, t):
    """`predictive_regret_matching` among policies in which every action has at least the probability `parameters.tremble`.

    With k actions such a policy is tremble + (1 - k tremble) q for a policy q. The values of q are those of the actions times
    1 - k tremble, plus a constant, so q is the policy of the rule without trembles, which is scale-free.
    """
    free, total = 1.0 - parameters.tremble * len(point.actions), 0.0
    for a in point.actions:
        total += values[a]
    value = (point.value - parameters.tremble * total) / free
    predictive_regret_matching(DecisionPoint(point.infostate, point.actions, value), values, policy, memory, parameters, t)
    for a in point.actions:
        policy[a] = parameters.tremble + free * policy[a]
