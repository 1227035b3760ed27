"""Compiled functions of the regret minimizers, over the arrays of `layouts`.

For a product of P simplices, `starts` is uint32 (P + 1,), and simplex p is the part `starts[p] : starts[p + 1]` of vectors.
"""

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import DecisionPoint
from spiel_cfrplus.kernels.passes import mean_utility
from spiel_cfrplus.kernels.self_play import row_of_parameters


@jit
def update_simplices(starts, values, policy, rule, memory, parameters, table, t):
    """Calls a local rule on every simplex, with the parameters in the only row of `table`; overwrites `policy`."""
    parameters = row_of_parameters(parameters, table, 0)
    for p in range(starts.size - 1):
        start, stop = starts[p], starts[p + 1]
        rule(
            DecisionPoint(p, range(start, stop), mean_utility(policy, values, start, stop)),
            values,
            policy,
            memory,
            parameters,
            t,
        )


@jit
def project_onto_simplex(point, start, stop, nearest):
    """The distribution nearest to `point` on the sequences `start : stop` (Michelot 1986); `nearest` may be `point` itself.

    It is max(point - threshold, 0) with the threshold at which this sums to 1. Each pass computes the threshold for the actions
    above the previous threshold, so thresholds increase. Numbers are relative to the largest, because for large numbers the 1
    would be lost to rounding.
    """
    largest = point[start]
    for s in range(start, stop):
        largest = max(largest, point[s])
    threshold, higher = -np.inf, -1.0
    while higher > threshold:
        threshold, excess, count = higher, -1.0, 0
        for s in range(start, stop):
            if point[s] - largest > threshold:
                excess += point[s] - largest
                count += 1
        higher = excess / count
    for s in range(start, stop):
        nearest[s] = max(point[s] - largest - threshold, 0.0)


@jit
def project_onto_simplices(starts, point, nearest):
    """`project_onto_simplex` on every simplex."""
    for p in range(starts.size - 1):
        project_onto_simplex(point, starts[p], starts[p + 1], nearest)
