"""Compiled functions of `partition` and `distributed`: the grouping of infostates into parts, and iterations in parts."""

from spiel_cfrplus.kernels.barrier import MAX_SPINS, arrive, release_team, wait
from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import average_strategy, payoff_gradient, sequence_form
from spiel_cfrplus.kernels.self_play import RuleFunctions, row_of_parameters, update_player


@jit
def leader(above, node):
    """The representative of the node in the union-find structure `above`; shortens the path (path halving)."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@jit
def unite_subtrees(payoffs, infostate_of_entry, in_top_tree, above):
    """Unites all infostates with an entry in the same row of payoffs, except those of top trees.

    Args:
      payoffs: `PayoffArrays`.
      infostate_of_entry: int64 (E,).
      in_top_tree: bool (J,).
      above: int64 (J,), the union-find structure; on entry each infostate points to the first one of its subtree.
    """
    for row in range(payoffs.entry_start.size - 1):
        common = -1
        for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
            if not in_top_tree[infostate_of_entry[entry]]:
                first = leader(above, infostate_of_entry[entry])
                common = first if common < 0 else common
                above[first] = common


@jit
def update_block(treeplexes, state, block, functions, memory, parameters, skip_unreached, weight):
    """Adds the block's strategy to the average if `weight` is not zero; then updates the block."""
    if weight != 0.0:
        average_strategy(treeplexes, block, state, weight)
    update_player(treeplexes, block, state, functions, memory, parameters, skip_unreached)


@jit
def play_block(treeplexes, state, block, weight):
    """Computes the block's `sequence_form`; then adds it to the average if `weight` is not zero."""
    sequence_form(treeplexes, block, state.policy, state.reach)
    if weight != 0.0:
        average_strategy(treeplexes, block, state, weight)


@jit
def update_with_boundary(
    treeplexes,
    payoffs,
    state,
    player,
    boundary,
    received,
    update,
    rule,
    schedule,
    memory,
    parameters,
    steps,
    step,
    weight,
):
    """The update of a player in a top tree or in the parts of one process, see `distributed`; `play_block` follows.

    Without steps it does nothing.

    Args:
      treeplexes, payoffs, state: a top tree, or the parts of a process, as a game.
      player: the player.
      boundary, received: int64 (B,) and float64 (B,), boundary sequences of a top tree and their counterfactual values in the
        parts, which are added to the payoff gradient in this order; empty for parts.
      update, rule, schedule, memory, parameters, steps: see `self_play`.
      step: the row of `steps`.
      weight: of the current strategy in the average; 0 if it is not averaged.
    """
    if steps.weights.size == 0:
        return
    payoff_gradient(treeplexes, payoffs, player, state.reach, state.values)
    for place in range(boundary.size):
        state.values[boundary[place]] += received[place]
    functions, current = RuleFunctions(update, rule, schedule), row_of_parameters(parameters, steps.parameters, step)
    update_block(treeplexes, state, player, functions, memory, current, steps.skip_unreached[step], weight)


@jit
def self_play_in_parts(
    treeplexes,
    payoffs,
    state,
    num_parts,
    barrier,
    member,
    num_members,
    update,
    rule,
    schedule,
    memory,
    parameters,
    steps,
    alternating,
    first_iterate,
):
    """The work of one thread of a team in `self_play`; the results are the same doubles as with one thread.

    Each thread always has the same parts. The last thread to arrive at a barrier processes the top trees: at the first barrier
    their gradients, before the parts add values to them, and at the second barrier their update.

    Args:
      treeplexes, payoffs, state: of a game with top trees and parts as players, see `partition`.
      num_parts: the number of parts of each player.
      barrier: int64, see `kernels.barrier`; in its initial state.
      member, num_members: the number of this thread, and the number of threads.
      update, rule, schedule, memory, parameters, steps, alternating, first_iterate: see `self_play`.
    """
    functions, num_players = RuleFunctions(update, rule, schedule), first_iterate.size
    together = 1 if alternating else num_players
    this_round, spins = 0, MAX_SPINS
    for step in range(steps.weights.size):
        weight, skip_unreached = steps.weights[step], steps.skip_unreached[step]
        current = row_of_parameters(parameters, steps.parameters, step)
        for first in range(0, num_players, together):
            players = range(first, first + together)
            if arrive(barrier, num_members):
                for player in players:
                    payoff_gradient(treeplexes, payoffs, player * (num_parts + 1), state.reach, state.values)
                release_team(barrier, num_members)
            else:
                spins = wait(barrier, member, this_round, spins)
            for player in players:
                before = weight if first_iterate[player] == 0 else 0.0
                for part in range(1 + member, 1 + num_parts, num_members):
                    block = player * (num_parts + 1) + part
                    payoff_gradient(treeplexes, payoffs, block, state.reach, state.values)
                    update_block(treeplexes, state, block, functions, memory, current, skip_unreached, before)
            if arrive(barrier, num_members):
                for player in players:
                    before, after = (weight, 0.0) if first_iterate[player] == 0 else (0.0, weight)
                    update_block(
                        treeplexes, state, player * (num_parts + 1), functions, memory, current, skip_unreached, before
                    )
                    play_block(treeplexes, state, player * (num_parts + 1), after)
                release_team(barrier, num_members)
            else:
                spins = wait(barrier, member, this_round + 1, spins)
            this_round += 2
            for player in players:
                after = 0.0 if first_iterate[player] == 0 else weight
                for part in range(1 + member, 1 + num_parts, num_members):
                    play_block(treeplexes, state, player * (num_parts + 1) + part, after)
