"""CFR over histories in OpenSpiel's order of operations, so that the float64 results are identical.

Tables have one entry per infostate and action. Infostates are identified by their information-state strings, as in OpenSpiel's
solvers, so infostates of two players with the same string are merged. In the vector of probabilities, the entries of the chance
outcomes follow those of the infostates, so the probability of any edge is found by the same rule.

The following orders determine the last bits. The value of a history is summed over its children in action order, from 0.0.
Regrets and weights are added history by history in preorder. The reach of the other players is multiplied from 1.0 in player
order, with chance last. Regret matching sums in action order. (The C++ solver recurses and adds the regrets of a history after
those of its children; no two histories of an infostate lie on one path, so the order within a table entry is the same.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import match_regrets


class HistoryArrays(NamedTuple):
    """A game tree of H histories in preorder, Z of them terminal, with J infostates and A table entries.

    Attributes:
      mover: uint8 (H,), the player to move, n for chance, n + 1 at terminal histories.
      first_table_index: uint32 (H,), table index of the edge to the first child; the other children follow in order. Not read
        at terminal histories.
      subtree_end: uint32 (H,), one past the last history of the subtree. The first child of h is h + 1, and the next sibling of
        a child c is `subtree_end[c]`.
      terminal: uint32 (Z,).
      returns: float64 (n, Z).
      table_start: uint32 (J + 1,), infostate j has the table entries `table_start[j] : table_start[j + 1]`.
      owner: uint8 (J,), the player of the first history of each infostate.
    """

    mover: np.ndarray
    first_table_index: np.ndarray
    subtree_end: np.ndarray
    terminal: np.ndarray
    returns: np.ndarray
    table_start: np.ndarray
    owner: np.ndarray


class PathArrays(NamedTuple):
    """The path from each history to the root, for best responses.

    Attributes:
      parent: uint32 (H,); the parent of the root is the root.
      edge_table_index: uint32 (H,), the table index of the edge from the parent; not read at the root.
      own_depth: int32 (n, H), the number of moves of each player before each history.
    """

    parent: np.ndarray
    edge_table_index: np.ndarray
    own_depth: np.ndarray


class HistoryState(NamedTuple):
    """The state of a solver over histories.

    Attributes:
      cumulative_regrets, cumulative_policy: float64 (A,).
      probabilities: float64 (A + number of chance edges,), the current strategies, followed by the chance probabilities.
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
    """Top-down: sets `reach[h, q]` to the product of q's probabilities on the path to h; chance is column n."""
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
    """The expected value over the children of h, summed in action order."""
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
    """Sets the value of each terminal history to the player's return."""
    for z in range(tree.terminal.size):
        value[tree.terminal[z]] = tree.returns[player, z]


@jit
def gather_values(tree, player, probabilities, value):
    """Bottom-up: computes the player's expected utility at each history."""
    set_returns(tree, player, value)
    for h in range(tree.mover.size - 1, -1, -1):
        if h + 1 < tree.subtree_end[h]:
            value[h] = mean_value(tree, probabilities, value, h)


@jit
def add_regrets(tree, player, probabilities, reach, value, cumulative_regrets, cumulative_policy, weight, weigh_last):
    """Adds the player's regrets and weighted strategies to the tables, history by history."""
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
    """Multiplies regrets by the factor for their sign (zero counts as positive) where the mask `discounted` (J,) is true."""
    for j in range(discounted.size):
        if discounted[j]:
            for table_index in range(tree.table_start[j], tree.table_start[j + 1]):
                factor = positive_factor if cumulative_regrets[table_index] >= 0.0 else negative_factor
                # A factor of 0 may produce -0.0; adding 0.0 gives 0.0, which OpenSpiel stores.
                cumulative_regrets[table_index] = cumulative_regrets[table_index] * factor + 0.0


@jit
def match_table(tree, cumulative_regrets, probabilities):
    """Regret matching at every infostate."""
    for j in range(tree.table_start.size - 1):
        match_regrets(cumulative_regrets, tree.table_start[j], tree.table_start[j + 1], probabilities)


@jit
def traverse(tree, player, state, probabilities, weight, weigh_last):
    """One pass over the tree for one player: computes reach and values, and adds regrets, under `probabilities`."""
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
    """Runs T iterations of CFR, one per row of `discounts` and `weights`.

    Args:
      tree: the histories.
      state: updated in place; `probabilities` contains the current strategies on entry and on return.
      alternating: bool; if false, all players' regrets are added before any strategy changes.
      discounted: bool (n, J), the infostates that are discounted after each player's pass.
      discounts: float64 (T, 2), factors for positive and for negative regrets.
      weights: float64 (T,), weights in the average.
      weigh_last: bool, whether a strategy is multiplied by the weight after the reach.
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
    """Runs one iteration in which each player has different opponent strategies; all strategies change at the end.

    Args:
      tree, state: as for `iterate`.
      strategies: float64 (n, A + number of chance edges); row p contains player p's current strategy and its opponents'
        strategies.
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
    """Top-down: fills `paths`; `own_depth` of the root is 0 on entry."""
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
def others_reach(tree, paths, player, probabilities, h):
    """The product of the others' probabilities on the path to h, multiplied from the last move to the first."""
    reach = 1.0
    while h > 0:
        above = paths.parent[h]
        if tree.mover[above] != player:
            reach *= probabilities[paths.edge_table_index[h]]
        h = above
    return reach


@jit
def weigh_actions(tree, paths, player, level, probabilities, value, action_value):
    """Computes the value of each action at the player's infostates of one level, summed over their histories."""
    for h in range(tree.mover.size):
        if tree.mover[h] == player and paths.own_depth[player, h] == level:
            reach = others_reach(tree, paths, player, probabilities, h)
            table_index = tree.first_table_index[h]
            child = h + 1
            while child < tree.subtree_end[h]:
                action_value[table_index] += reach * value[child]
                table_index += 1
                child = tree.subtree_end[child]


@jit
def choose_best(tree, h, action_value, strategy):
    """Writes a strategy that plays the first action with the largest value at h."""
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
def largest_depth(paths, player):
    """The largest number of moves of the player on a path."""
    depth = 0
    for h in range(paths.own_depth.shape[1]):
        depth = max(depth, paths.own_depth[player, h])
    return depth


@jit
def best_response(tree, paths, player, strategy, value, action_value):
    """Writes the player's best response to `strategy`, in the order of operations of OpenSpiel's Python best response.

    Levels are processed from the last to the first, because the values of earlier actions depend on the later choices.

    Args:
      tree: the histories; the player has perfect recall.
      paths: the paths to the root.
      player: the player.
      strategy: float64 (A + number of chance edges,), contains the others' strategies on entry.
      value: float64 (H,), scratch.
      action_value: float64 (A,), scratch, zeros on entry.
    """
    set_returns(tree, player, value)
    for level in range(largest_depth(paths, player), -1, -1):
        weigh_actions(tree, paths, player, level, strategy, value, action_value)
        for h in range(tree.mover.size - 1, -1, -1):
            if paths.own_depth[player, h] == level and h + 1 < tree.subtree_end[h]:
                if tree.mover[h] == player:
                    choose_best(tree, h, action_value, strategy)
                value[h] = mean_value(tree, strategy, value, h)
