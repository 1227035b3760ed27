"""Regret matching+ written as a rule by a user: the last example of docs/local_rules.md."""

from spiel_cfrplus import local_rule
from spiel_cfrplus.kernels.regret_matching import add_regret, instantaneous_regret, play_in_proportion


@local_rule(per_action=("regrets",), scale_free=True, weighs_actions=True, unchanged_by_zeros=True)
def regret_matching_plus(point, values, policy, memory, parameters, t):
    """As a table of regrets that never become negative."""
    total = 0.0
    for a in point.actions:
        change = instantaneous_regret(point, values, memory, a)
        memory.regrets[a] = max(add_regret(memory, memory.regrets[a], change, a), 0.0)
        total += memory.regrets[a]
    play_in_proportion(point, memory.regrets, total, policy, memory)
