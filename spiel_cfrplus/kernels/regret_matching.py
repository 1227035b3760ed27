"""Regret matching and its relatives as local rules, and the functions that such rules are written with.

A *local rule* is called at every decision point of a player, after the player's counterfactual values there are known:

    rule(point, values, policy, memory, parameters, t)

Args:
  point: a `layouts.DecisionPoint`.
  values: float64 (S,), counterfactual values; read at `point.actions`.
  policy: float64 (S,), at `point.actions` the strategy that was just played, to be overwritten with the next one.
  memory: a NamedTuple of the arrays that the rule has asked for, and `tie_tolerance` and `uniform_policy`, see below.
  parameters: a NamedTuple of float64 numbers of this iteration.
  t: int64, the number of this update of the player: 1, 2, ...

`memory.tie_tolerance` is float64 (S,), the regret that rounding errors may leave where there is none, or None if regrets are
to be taken as they are. `memory.uniform_policy` is float64 (S,) where an action may stand for several equal ones of its
infostate: the probability of all of them together in the uniform policy; else None. None is a type, for which each case is
compiled apart: a test inside the loops would cost a third of a small game's speed.
"""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import normalize


@jit
def action_weight(uniform_policy, a):
    """How much the regret of an action counts: as `uniform_policy` has it where actions are merged, otherwise all alike."""
    return 1.0 if uniform_policy is None else uniform_policy[a]


@jit
def instantaneous_regret(point, values, memory, a):
    """The counterfactual value of an action less that of the policy, times the weight of the action."""
    return action_weight(memory.uniform_policy, a) * (values[a] - point.value)


@jit
def tie_of_change(tie_tolerance, a, change):
    """How large a stored regret may be and still count as zero: what rounding leaves, if ties are to be exact.

    A regret that discounting has reduced to that, and to which the latest change adds less, counts.
    """
    return 0.0 if tie_tolerance is None else min(tie_tolerance[a], abs(change))


@jit
def add_regret(memory, stored, change, a):
    """The stored regret of an action plus a change; 0 if rounding errors may have made what is left."""
    regret = stored + change
    return regret if abs(regret) > tie_of_change(memory.tie_tolerance, a, change) else 0.0


@jit
def play_in_proportion(point, table, total, policy, memory):
    """The policy becomes the positive part of `table`, of which `total` is the sum; uniform if that is zero."""
    normalize(table, total, point.actions.start, point.actions.stop, policy, memory.uniform_policy)


@jit
def regret_matching(point, values, policy, memory, parameters, t):
    """Regret matching with discounted regrets: all members of the family without prediction.

    The regrets of this update are added to `memory.regrets`; then positive regrets are multiplied by
    `parameters.positive_factor`, negative ones by `parameters.negative_factor`.
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
    """The same, but the next policy is the one that would follow if these regrets came once more.

    They come with `parameters.prediction_weight` (Farina, Kroer, Sandholm 2021, Algorithm 2, which has the weight 1). The table
    that would result is `memory.predicted_regrets`.
    """
    regrets, predicted = memory.regrets, memory.predicted_regrets
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
