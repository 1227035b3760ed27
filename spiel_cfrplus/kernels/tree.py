"""Kernels over trees and tables that convert the record of a walk into the arrays of a game."""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import RELATIVE_TIE_TOLERANCE


@jit
def link_parents(group, edge_start, edge_action, edge_probability, next_edge, parent, action, chance_probability):
    """Computes the parent of each history of a tree in preorder, and the action and chance probability that lead to it.

    Args:
      group: int32 (H,), the group of outgoing edges of each history; -1 at terminal histories.
      edge_start: int32 (G + 1,), group g has the edges `edge_start[g] : edge_start[g + 1]`, at least one.
      edge_action, edge_probability: the action and the chance probability of each edge.
      next_edge: int32 (H,), scratch.
      parent, action, chance_probability: (H,), output; the entry of the root is not written.
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
def segment_sums(order, run_start, weights, values, sums):
    """Sums `weights` (Z,) times the rows of `values` (Z, n) over each run; sums within rounding error of zero become zero.

    Run r is `order[run_start[r] : run_start[r + 1]]`; its sum, taken in this order, is written to row r of `sums` (R, n).
    """
    for run in range(sums.shape[0]):
        for column in range(values.shape[1]):
            total, magnitude = 0.0, 0.0
            for place in range(run_start[run], run_start[run + 1]):
                summand = weights[order[place]] * values[order[place], column]
                total += summand
                magnitude += abs(summand)
            sums[run, column] = total if abs(total) > RELATIVE_TIE_TOLERANCE * magnitude else 0.0


@jit
def counting_sort_pass(keys, order, next_place, placed):
    """One pass of a radix sort: writes `order`, uint32 (Z,), sorted stably by `keys`, uint32 (Z,), to `placed`.

    `next_place`, int64 (K,), contains on entry the position of the first element with each key; it is overwritten.
    """
    for i in range(order.size):
        row = order[i]
        placed[next_place[keys[row]]] = row
        next_place[keys[row]] += 1


@jit
def trace_sequences(
    parent, actor, infostate, first_sequence, last_sequence, num_children, parent_sequence, root_sequences=None
):
    """Computes the last sequence of each player at each history, and the parent sequence of each infostate.

    Args:
      parent, actor, infostate: arrays of a `GameTree`, H histories.
      first_sequence: int64 (I,), the number of the first sequence of each infostate.
      last_sequence: int32 (H, n), output; on entry, row 0 contains the last sequences at history 0, usually the empty ones.
      num_children: int32 (H,), scratch, zeros on entry.
      parent_sequence: int32 (I,), output, -1 on entry.
      root_sequences: int32 (k, n), the last sequences at the k children of history 0, if they differ from those at history 0.

    Returns:
      The first decision history at which the player's last sequence differs from that at an earlier history of the same
      infostate (no perfect recall; the pass stops there), or -1.
    """
    for h in range(parent.size):
        if h > 0:
            above = parent[h]
            for player in range(last_sequence.shape[1]):
                last_sequence[h, player] = last_sequence[above, player]
            if root_sequences is not None and above == 0:
                for player in range(last_sequence.shape[1]):
                    last_sequence[h, player] = root_sequences[num_children[0], player]
            if actor[above] >= 0:
                last_sequence[h, actor[above]] = first_sequence[infostate[above]] + num_children[above]
            num_children[above] += 1
        if actor[h] >= 0:
            last = last_sequence[h, actor[h]]
            if parent_sequence[infostate[h]] == -1:
                parent_sequence[infostate[h]] = last
            elif parent_sequence[infostate[h]] != last:
                return h
    return -1


@jit
def find_repeated_infostate(infostate, subtree_end, latest):
    """The first history in preorder with an ancestor in its infostate, or -1; `latest`, int64 (I,), is scratch, -1 on entry."""
    for h in range(infostate.size):
        if infostate[h] >= 0:
            # It suffices to check the latest history of the infostate: if an earlier one were an ancestor of h, it would be
            # an ancestor of the latest one too, which the pass would have returned.
            before = latest[infostate[h]]
            if before >= 0 and subtree_end[before] > h:
                return h
            latest[infostate[h]] = h
    return -1


@jit
def chance_reach(parent, chance_probability, reach, first=1.0):
    """The product of `first` and the chance probabilities on the path to each history; `reach` is float64 (H,)."""
    reach[0] = first
    for h in range(1, parent.size):
        reach[h] = reach[parent[h]] * chance_probability[h]


@jit
def add_to_parents(parent, total):
    """Bottom-up over a tree in preorder: adds the total of each node to that of its parent. From ones: subtree sizes."""
    for node in range(parent.size - 1, 0, -1):
        total[parent[node]] += total[node]


@jit
def add_parents(parent, total):
    """Top-down over a tree in preorder: adds the total of the parent to that of each node. From steps: sums along paths."""
    for node in range(1, parent.size):
        total[node] += total[parent[node]]
