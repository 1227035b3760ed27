"""The compiled parts of `division`: what belongs together in a part, and the iterations with several threads."""

import functools

import numba

from spiel_cfrplus._compilation import jit
from spiel_cfrplus._kernels import average_strategy, is_lasting, learn, payoff_gradient, sequence_form

jit_parallel = functools.partial(jit, parallel=True)


@jit
def leader(above, node):
    """Where `above` leads from the node; the way is shortened (union-find with path halving)."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@jit
def unite_subtrees(payoffs, infostate_of_entry, in_trunk, above):
    """Gives all infostates that are paid in one row of payoffs the same leader, but for those of trunks.

    Args:
      payoffs: `PayoffArrays`.
      infostate_of_entry: int64 (E,).
      in_trunk: bool (J,).
      above: int64 (J,), leads from each infostate to the first one of its subtree on entry.
    """
    for row in range(payoffs.entry_start.size - 1):
        common = -1
        for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
            if not in_trunk[infostate_of_entry[entry]]:
                first = leader(above, infostate_of_entry[entry])
                common = first if common < 0 else common
                above[first] = common


@jit_parallel
def learn_in_parts(treeplexes, payoffs, learner, trunk, num_parts, predictive, factors, lasting, weight):
    """A player's `payoff_gradient` and `learn`, block by block; before, the strategy is averaged if `weight` is not zero."""
    payoff_gradient(treeplexes, payoffs, trunk, learner.reach, learner.utility)
    for part in numba.prange(trunk + 1, trunk + 1 + num_parts):
        if weight != 0.0:
            average_strategy(treeplexes, part, learner, weight)
        payoff_gradient(treeplexes, payoffs, part, learner.reach, learner.utility)
        learn(treeplexes, part, learner, predictive, factors[0], factors[1], lasting)
    if weight != 0.0:
        average_strategy(treeplexes, trunk, learner, weight)
    learn(treeplexes, trunk, learner, predictive, factors[0], factors[1], lasting)


@jit_parallel
def sequence_form_in_parts(treeplexes, learner, trunk, num_parts, weight):
    """A player's `sequence_form`, block by block; then it is averaged if `weight` is not zero."""
    sequence_form(treeplexes, trunk, learner.policy, learner.reach)
    if weight != 0.0:
        average_strategy(treeplexes, trunk, learner, weight)
    for part in numba.prange(trunk + 1, trunk + 1 + num_parts):
        sequence_form(treeplexes, part, learner.policy, learner.reach)
        if weight != 0.0:
            average_strategy(treeplexes, part, learner, weight)


@jit
def self_play_in_parts(treeplexes, payoffs, learner, num_parts, alternating, predictive, first_averaged, discounts, weights):
    """`self_play` with several threads, to the same doubles.

    Args:
      treeplexes, payoffs, learner: of a game with trunks and parts as players, see `division`.
      num_parts: of each player.
      alternating, predictive, first_averaged, discounts, weights: see `self_play`.
    """
    for t in range(weights.size):
        lasting = is_lasting(predictive, discounts, t)
        for player in range(first_averaged.size):
            trunk = player * (num_parts + 1)
            before, after = (weights[t], 0.0) if first_averaged[player] == 0 else (0.0, weights[t])
            learn_in_parts(treeplexes, payoffs, learner, trunk, num_parts, predictive, discounts[t], lasting, before)
            if alternating:
                sequence_form_in_parts(treeplexes, learner, trunk, num_parts, after)
        if not alternating:
            for player in range(first_averaged.size):
                after = 0.0 if first_averaged[player] == 0 else weights[t]
                sequence_form_in_parts(treeplexes, learner, player * (num_parts + 1), num_parts, after)
