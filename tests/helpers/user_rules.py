"""Rules as a user writes them, in a module that another process can import."""

import numpy as np

from spiel_cfrplus.kernels.regret_matching import add_regret, instantaneous_regret, play_in_proportion
from spiel_cfrplus.regret_minimizers import local_rule


@local_rule(per_action=("regrets",), scale_free=True, weighs_actions=True, unchanged_by_zeros=True)
def matching_plus(point, values, policy, memory, parameters, t):
    """Regret matching+ that respects ties and merged actions: the built-in one."""
    total = 0.0
    for a in point.actions:
        change = instantaneous_regret(point, values, memory, a)
        memory.regrets[a] = max(add_regret(memory, memory.regrets[a], change, a), 0.0)
        total += memory.regrets[a]
    play_in_proportion(point, memory.regrets, total, policy, memory)


@local_rule(per_action=("regrets",), scale_free=True)
def plain_plus(point, values, policy, memory, parameters, t):
    """Regret matching+ that knows neither ties nor merged actions."""
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + (values[a] - point.value), 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)


@local_rule(per_action=("total",), per_infostate=("updates",), parameters={"rate": 0.3})
def counted_hedge(point, values, policy, memory, parameters, t):
    """Hedge with a fixed rate, so that the unit of the values matters; it counts its updates."""
    memory.updates[point.infostate] += 1.0
    largest = -np.inf
    for a in point.actions:
        memory.total[a] += values[a]
        largest = max(largest, memory.total[a])
    total = 0.0
    for a in point.actions:
        policy[a] = np.exp(parameters.rate * (memory.total[a] - largest))
        total += policy[a]
    for a in point.actions:
        policy[a] /= total


def keep_by_time(actions, values, memory, parameters, t):
    """What the table of `discounted_plus` has, computed in the loop; and it counts, at player 0's first place, its calls."""
    memory.calls[0] += 1.0
    return (t / (t + 1.0),)


def _discounted_plus(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = parameters.keep * max(memory.regrets[a] + (values[a] - point.value), 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)


discounted_plus = local_rule(
    _discounted_plus, name="discounted_plus", per_action=("regrets",), parameters={"keep": lambda t: t / (t + 1)}
)
scheduled_plus = local_rule(
    _discounted_plus,
    name="scheduled_plus",
    per_action=("regrets",),
    per_player=("calls",),
    parameters={"keep": 7.0},
    schedule=keep_by_time,
)
