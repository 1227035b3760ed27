"""CFR over histories in OpenSpiel's order of operations, so that its doubles come out the same.

Tables have one entry per infostate and action, infostates being what OpenSpiel's solvers key by: information-state strings,
pooled across players where two have the same. The table entries of chance histories stand behind them in the vector of
probabilities, so that one rule gives the probability of any edge.

What decides about the last bits: a history's value is summed over its children in action order from 0.0; regrets and weights
are added history by history in preorder; the reach of the other players is multiplied from 1.0 in player order, chance last;
regret matching sums in action order. (The C++ solver recurses and adds a history's regrets after its children's; no two
histories of an infostate lie on one path, so the order within a table is the same.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import match_regrets


class HistoryArrays(NamedTuple):
    """A game tree of H histories in preorder, Z of them terminal, with J infostates and A table entries.

    Attributes:
      mover: uint8 (H,), the player to move, n for chance, n + 1 at the end.
      first_table_index: uint32 (H,), table index of the first child's edge; the other children follow in order. Not read at
        the end.
      subtree_end: uint32 (H,), one past the last history below; the first child of h is h + 1, its next sibling is where the
        first child's subtree ends.
      terminal: uint32 (Z,).
      returns: float64 (n, Z).
      table_start: uint32 (J + 1,), infostate j has the table entries `table_start[j] : table_start[j + 1]`.
      owner: uint8 (J,), the player who meets the infostate first.
    """

    mover: np.ndarray
    first_table_index: np.ndarray
    subtree_end: np.ndarray
    terminal: np.ndarray
    returns: np.ndarray
    table_start: np.ndarray
    owner: np.ndarray


class PathArrays(NamedTuple):
    """The way back up the tree, for best responses.

    Attributes:
      parent: uint32 (H,); of the root, the root.
      edge_table_index: uint32 (H,), the table_index of the edge that leads to a history; not read at the root.
      own_depth: int32 (n, H), how often each player has moved above each history.
    """

    parent: np.ndarray
    edge_table_index: np.ndarray
    own_depth: np.ndarray


class HistoryState(NamedTuple):
    """What a solver over histories remembers.

    Attributes:
      cumulative_regrets, cumulative_policy: float64 (A,).
      probabilities: float64 (A + number of chance edges,), the current strategies, then chance.
      reach: float64 (H, n + 1), scratch.
      value: float64 (H,), scratch.
      iteration: int64 (1,).
    """

    cumulative_regrets: np.ndarray
    cumulative_policy: np.ndarray
    probabilities: np.ndarray
    reach: np.ndarray
    value: np.ndarray
    iteration: np.ndarray


@jit
def compute_reach(tree, probabilities, reach):
    """Top-down: `reach[h, q]` is the product of q's probabilities on the path to h; chance is column n."""
    num_movers = reach.shape[1]
    reach[0] = 1.0
    for h in range(tree.mover.size):
        if tree.mover[h] < num_movers:
            table_index = tree.first_table_index[h]
            child = h + 1
            while child < tree.subtree_end[h]:
                for q in range(num_movers):
                    reach[child, q] = reach[h, q]
                reach[child, tree.mover[h]] *= probabilities[table_index]
                table_index += 1
                child = tree.subtree_end[child]


@jit
def mean_value(tree, probabilities, value, h):
    """The mean over h's children, summed in action order."""
    total = 0.0
    table_index = tree.first_table_index[h]
    child = h + 1
    while child < tree.subtree_end[h]:
        total += probabilities[table_index] * value[child]
        table_index += 1
        child = tree.subtree_end[child]
    return total


@jit
def set_returns(tree, player, value):
    """The player's returns at the ends."""
    for z in range(tree.terminal.size):
        value[tree.terminal[z]] = tree.returns[player, z]


@jit
def gather_values(tree, player, probabilities, value):
    """Bottom-up: the player's expected utility at each history."""
    set_returns(tree, player, value)
    for h in range(tree.mover.size - 1, -1, -1):
        if h + 1 < tree.subtree_end[h]:
            value[h] = mean_value(tree, probabilities, value, h)


@jit
def add_regrets(tree, player, probabilities, reach, value, cumulative_regrets, cumulative_policy, weight, weigh_last):
    """Adds the player's regrets and weighted strategies, history by history, to the tables."""
    for h in range(tree.mover.size):
        if tree.mover[h] == player:
            others_reach = 1.0
            for q in range(reach.shape[1]):
                if q != player:
                    others_reach *= reach[h, q]
            first, last = (reach[h, player], weight) if weigh_last else (weight * reach[h, player], 1.0)
            table_index = tree.first_table_index[h]
            child = h + 1
            while child < tree.subtree_end[h]:
                cumulative_regrets[table_index] += others_reach * (value[child] - value[h])
                cumulative_policy[table_index] += first * probabilities[table_index] * last
                table_index += 1
                child = tree.subtree_end[child]


@jit
def discount_regrets(tree, discounted, cumulative_regrets, positive_factor, negative_factor):
    """Multiplies the regrets of the infostates in the mask `discounted` (J,) by the factor of their sign; zero is positive."""
    for j in range(discounted.size):
        if discounted[j]:
            for table_index in range(tree.table_start[j], tree.table_start[j + 1]):
                factor = positive_factor if cumulative_regrets[table_index] >= 0.0 else negative_factor
                # Adding zero turns the -0.0 that a factor of 0 makes into the 0.0 that OpenSpiel stores.
                cumulative_regrets[table_index] = cumulative_regrets[table_index] * factor + 0.0


@jit
def match_table(tree, cumulative_regrets, probabilities):
    """Regret matching at every infostate."""
    for j in range(tree.table_start.size - 1):
        match_regrets(cumulative_regrets, tree.table_start[j], tree.table_start[j + 1], probabilities)


@jit
def traverse(tree, player, state, probabilities, weight, weigh_last):
    """One pass over the tree for one player: reach, values, regrets against `probabilities`."""
    compute_reach(tree, probabilities, state.reach)
    gather_values(tree, player, probabilities, state.value)
    add_regrets(
        tree,
        player,
        probabilities,
        state.reach,
        state.value,
        state.cumulative_regrets,
        state.cumulative_policy,
        weight,
        weigh_last,
    )


@jit
def iterate(tree, state, alternating, discounted, discounts, weights, weigh_last):
    """CFR iterations, one per row of `discounts` and `weights`.

    Args:
      tree: the histories.
      state: updated in place; `probabilities` hold the current strategies on entry and return.
      alternating: bool; otherwise all players' regrets are added before any strategy changes.
      discounted: bool (n, J), which infostates are discounted after each player's pass.
      discounts: float64 (T, 2), factors for positive and for negative regrets.
      weights: float64 (T,), weight in the average.
      weigh_last: bool, the order in which a strategy is multiplied by reach and weight.
    """
    for t in range(weights.size):
        for player in range(tree.returns.shape[0]):
            traverse(tree, player, state, state.probabilities, weights[t], weigh_last)
            if alternating:
                discount_regrets(tree, discounted[player], state.cumulative_regrets, discounts[t, 0], discounts[t, 1])
                match_table(tree, state.cumulative_regrets, state.probabilities)
        if not alternating:
            for player in range(tree.returns.shape[0]):
                discount_regrets(tree, discounted[player], state.cumulative_regrets, discounts[t, 0], discounts[t, 1])
            match_table(tree, state.cumulative_regrets, state.probabilities)
        state.iteration[0] += 1


@jit
def iterate_against(tree, state, strategies, discounted, discounts, weight):
    """One iteration in which each player meets strategies of its own; all players' strategies change at the end.

    Args:
      tree, state: as for `iterate`.
      strategies: float64 (n, A + number of chance edges); row p has player p's current strategy and what it plays against.
      discounted: bool (n, J).
      discounts: float64 (2,).
      weight: weight in the average.
    """
    for player in range(tree.returns.shape[0]):
        traverse(tree, player, state, strategies[player], weight, False)
        discount_regrets(tree, discounted[player], state.cumulative_regrets, discounts[0], discounts[1])
    match_table(tree, state.cumulative_regrets, state.probabilities)
    state.iteration[0] += 1


@jit
def trace_paths(tree, paths):
    """Fills `paths`, top-down; `own_depth` of the root is 0 on entry."""
    paths.parent[0] = 0
    for h in range(tree.mover.size):
        if h + 1 < tree.subtree_end[h]:
            table_index = tree.first_table_index[h]
            child = h + 1
            while child < tree.subtree_end[h]:
                paths.parent[child] = h
                paths.edge_table_index[child] = table_index
                for player in range(paths.own_depth.shape[0]):
                    paths.own_depth[player, child] = paths.own_depth[player, h] + (tree.mover[h] == player)
                table_index += 1
                child = tree.subtree_end[child]


@jit
def others_reach_from_below(tree, paths, player, probabilities, h):
    """Product of the others' probabilities on the path to h, multiplied from the last move to the first."""
    reach = 1.0
    while h > 0:
        above = paths.parent[h]
        if tree.mover[above] != player:
            reach *= probabilities[paths.edge_table_index[h]]
        h = above
    return reach


@jit
def weigh_actions(tree, paths, player, level, probabilities, value, action_value):
    """At the player's infostates of one level: what each action is worth, summed over their histories."""
    for h in range(tree.mover.size):
        if tree.mover[h] == player and paths.own_depth[player, h] == level:
            reach = others_reach_from_below(tree, paths, player, probabilities, h)
            table_index = tree.first_table_index[h]
            child = h + 1
            while child < tree.subtree_end[h]:
                action_value[table_index] += reach * value[child]
                table_index += 1
                child = tree.subtree_end[child]


@jit
def choose_best(tree, h, action_value, strategy):
    """Plays the first best action at h."""
    table_index = best = tree.first_table_index[h]
    child = h + 1
    while child < tree.subtree_end[h]:
        strategy[table_index] = 0.0
        if action_value[table_index] > action_value[best]:
            best = table_index
        table_index += 1
        child = tree.subtree_end[child]
    strategy[best] = 1.0


@jit
def respond(tree, paths, player, strategy, value, action_value):
    """Writes the player's best response into `strategy`, in the order of operations of OpenSpiel's Python best response.

    Levels are taken from the last to the first, so that a player's later choices are made before earlier ones are weighed.

    Args:
      tree: the histories; the player has perfect recall.
      paths: the way back up.
      player: whose response.
      strategy: float64 (A + number of chance edges,), what the others play on entry.
      value: float64 (H,), scratch.
      action_value: float64 (A,), scratch, zeros on entry.
    """
    set_returns(tree, player, value)
    for level in range(paths.own_depth[player].max(), -1, -1):
        weigh_actions(tree, paths, player, level, strategy, value, action_value)
        for h in range(tree.mover.size - 1, -1, -1):
            if paths.own_depth[player, h] == level and h + 1 < tree.subtree_end[h]:
                if tree.mover[h] == player:
                    choose_best(tree, h, action_value, strategy)
                value[h] = mean_value(tree, strategy, value, h)
