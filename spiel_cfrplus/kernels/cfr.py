"""CFR for one player: counterfactual values bottom-up, and a local rule at every decision point."""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import DecisionPoint
from spiel_cfrplus.kernels.passes import mean_utility


@jit
def are_zero(values, start, stop):
    """Whether all values at one infostate are zero."""
    while start < stop and values[start] == 0.0:
        start += 1
    return start == stop


@jit
def value_of_one_copy(copies, j, values, start, stop, value):
    """With `copies`, divides the values at an infostate by the number of merged infostates; returns the value divided by it."""
    if copies is None:
        return value
    share = 1.0 / copies[j]
    for s in range(start, stop):
        values[s] *= share
    return value * share


@jit
def update_by_local_rule(treeplexes, player, values, policy, rule, memory, parameters, t, skip_unreached):
    """Lecture 8, Algorithm 1: ObserveUtility and NextStrategy of all decision points in one bottom-up pass.

    Turns the gradient in `values` into counterfactual values g[ja] + V[rho(j, a)]. At each decision point the rule reads them
    and writes its next strategy into `policy`.

    With `skip_unreached`, decision points with only zero values, as where the other players do not reach them, are skipped.
    This is correct for rules that change neither memory nor policy there.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        value = mean_utility(policy, values, start, stop)
        if skip_unreached and value == 0.0 and are_zero(values, start, stop):
            continue
        values[treeplexes.parent_sequence[j]] += value
        value = value_of_one_copy(treeplexes.copies, j, values, start, stop, value)
        rule(DecisionPoint(j, range(start, stop), value), values, policy, memory, parameters, t)
