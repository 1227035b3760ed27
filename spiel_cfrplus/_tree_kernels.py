"""Compiled passes that turn the record of a walk into the arrays of a game."""

from spiel_cfrplus._kernels import ROUNDING, jit


@jit
def lay_out(group, edge_start, edge_action, edge_probability, next_edge, parent, action, chance_probability):
    """Finds the parents in a tree in preorder, and what leads from them to their children.

    Args:
      group: int32 (H,), the group of edges by which each history goes on; -1 at terminal ones.
      edge_start: int32 (G + 1,), group g has the edges `edge_start[g] : edge_start[g + 1]`, one at least.
      edge_action, edge_probability: what to write where an edge leads to.
      next_edge: int32 (H,), scratch.
      parent, action, chance_probability: (H,), filled but for the root's.
    """
    above = 0
    for h in range(group.size):
        if h > 0:
            while next_edge[above] == edge_start[group[above] + 1]:
                above = parent[above]
            parent[h] = above
            action[h] = edge_action[next_edge[above]]
            chance_probability[h] = edge_probability[next_edge[above]]
            next_edge[above] += 1
        if group[h] >= 0:
            next_edge[h] = edge_start[group[h]]
            above = h


@jit
def add_runs(order, run_start, weights, values, sums):
    """Adds up `weights` (Z,) times the rows of `values` (Z, n), run after run; sums that are zero but for rounding are zero.

    Run r is `order[run_start[r] : run_start[r + 1]]`, and is added in this order to row r of `sums` (R, n).
    """
    for run in range(sums.shape[0]):
        for column in range(values.shape[1]):
            total, magnitude = 0.0, 0.0
            for place in range(run_start[run], run_start[run + 1]):
                summand = weights[order[place]] * values[order[place], column]
                total += summand
                magnitude += abs(summand)
            sums[run, column] = total if abs(total) > ROUNDING * magnitude else 0.0


@jit
def place_in_order(keys, order, next_place, placed):
    """One pass of a radix sort: `placed` becomes `order`, uint32 (Z,), sorted stably by `keys`, uint32 (Z,).

    `next_place`, int64 (K,), holds on entry where the first of each key goes.
    """
    for i in range(order.size):
        row = order[i]
        placed[next_place[keys[row]]] = row
        next_place[keys[row]] += 1
