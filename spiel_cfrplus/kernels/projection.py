"""Kernels of the Euclidean projection onto the sequence-form polytope, over the arrays of `layouts`.

The projection of a point y is computed from marginal costs. The marginal cost of reach t at sequence s, distributed optimally
among the sequences that follow, is

    F_s(t) = t - y[s] + sum of G_j(t) over the decision points j whose parent sequence is s.

At decision point j, all actions with positive probability have the same marginal cost G_j(t), and the others have at least this
cost, so

    inverse of G_j = sum over the actions s at j of the inverse of F_s,

where the inverse of F_s is 0 up to F_s(0). These functions are increasing and piecewise linear. Each sequence adds one
breakpoint to every function above it, the point from which the sequence has positive reach. So a function is a linked list of
sequences that is passed from function to function, and the memory is a few numbers per sequence. At the end, breakpoints are
expressed as reach at the player's first decision point on the path. That reach is 1, so the sequences with positive reach are
those with a breakpoint below 1. For these the constraints are linear equations on a tree, solved by one pass up and one pass
down.

Slopes are added and inverted but never subtracted, so there is no cancellation for any length of the lists. The
breakpoints of a sequence and of the cheapest actions directly after it are equal to the last bit, so rounding cannot separate
them.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.kernels.passes import match_regrets, player_sequences

END = INDEX(0)  # end of a list: sequence 0 is an empty sequence, which no list contains


class PiecewiseLinear(NamedTuple):
    """Increasing piecewise-linear functions, each identified by the first sequence of its list.

    Attributes:
      breakpoint: float64 (S,), ascending along a list.
      slope: float64 (S,), the slope from this breakpoint to the next one; without a next one, to infinity.
      following: uint32 (S,), the sequence with the next breakpoint of the function, or `END`.
      next_function: uint32 (S,), at the first sequence of a function: the next function in a list of functions, or `END`.
    """

    breakpoint: np.ndarray
    slope: np.ndarray
    following: np.ndarray
    next_function: np.ndarray


class Scratch(NamedTuple):
    """What a projection works with, (S,) each.

    Attributes:
      breakpoint, slope, following, next_function: of `PiecewiseLinear`.
      summands: uint32 (S,), see `find_breakpoints`.
      cost: float64 (S,).
    """

    breakpoint: np.ndarray
    slope: np.ndarray
    following: np.ndarray
    next_function: np.ndarray
    summands: np.ndarray
    cost: np.ndarray


def allocate_scratch(size: int) -> Scratch:
    """Allocates a `Scratch` for this number of sequences."""
    numbers, lists = np.zeros((3, size)), np.zeros((3, size), INDEX)
    return Scratch(numbers[0], numbers[1], lists[0], lists[1], lists[2], numbers[2])


@jit
def add(functions, first, second):
    """Merges two functions into their sum and returns its first sequence. Both have slope 0 before their first breakpoint."""
    breakpoint, slope, following, _ = functions
    first_slope = second_slope = 0.0
    last = END  # `following[END]` is used as the head of the list
    while first != END or second != END:
        if second == END or (first != END and breakpoint[first] <= breakpoint[second]):
            taken, first_slope = first, slope[first]
            first = following[first]
        else:
            taken, second_slope = second, slope[second]
            second = following[second]
        slope[taken] = first_slope + second_slope
        following[last] = taken
        last = taken
    following[last] = END
    return following[END]


@jit
def add_all(functions, first):
    """The sum of the list of functions that starts with `first`, by pairwise merging."""
    next_function = functions.next_function
    while next_function[first] != END:
        left, first = first, END
        while left != END:
            partner = next_function[left]
            rest = next_function[partner]
            total = add(functions, left, partner)
            next_function[total] = first
            first, left = total, rest
    return first


@jit
def invert(functions, first, value):
    """Replaces the function by its inverse, given its value at its first breakpoint."""
    breakpoint, slope, following, _ = functions
    before, rate = breakpoint[first], 0.0
    s = first
    while s != END:
        value += (breakpoint[s] - before) * rate
        before, rate = breakpoint[s], slope[s]
        breakpoint[s], slope[s] = value, 1.0 / rate
        s = following[s]


@jit
def find_breakpoints(treeplexes, player, functions, summands, cost):
    """Bottom-up: computes in `functions.breakpoint` the reach at the top from which each sequence has positive reach.

    Args:
      treeplexes, player: the treeplex.
      functions: on entry each sequence is a separate function, the identity: breakpoint 0, slope 1, followed by `END`.
      summands: uint32 (S,), on entry each sequence itself. Overwritten by the list of functions whose sum is F_s.
      cost: float64 (S,), -y on entry. Overwritten by F_s(0).
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        actions = END
        for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
            first = add_all(functions, summands[s])
            invert(functions, first, cost[s])
            functions.next_function[first] = actions
            actions = first
        first = add_all(functions, actions)
        parent = treeplexes.parent_sequence[j]
        cost[parent] += functions.breakpoint[first]
        invert(functions, first, 0.0)
        functions.next_function[first] = summands[parent]
        summands[parent] = first


@jit
def marginal_cost(breakpoint, cost, slope, start, stop):
    """The marginal cost of reach t at a decision point is lowest + (t + lag) / rate; returns (lowest, lag, rate).

    The marginal cost of reach t at an action s with positive reach is `cost[s] + slope[s] * t`. `rate` is 0 if no action has
    positive reach.
    """
    lowest = np.inf
    for s in range(start, stop):
        if breakpoint[s] < 1.0:
            lowest = min(lowest, cost[s])
    lag = rate = 0.0
    for s in range(start, stop):
        if breakpoint[s] < 1.0:
            lag += (cost[s] - lowest) / slope[s]
            rate += 1.0 / slope[s]
    return lowest, lag, rate


@jit
def share_reach(treeplexes, player, breakpoint, cost, slope, reach):
    """Bottom-up, then top-down: the projection, given that the sequences with breakpoints below 1 have positive reach.

    On entry `cost` is -y, `slope` is 1, and `reach` is 1 at the empty sequence; writes the other entries of `reach`.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop, parent = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], treeplexes.parent_sequence[j]
        lowest, lag, rate = marginal_cost(breakpoint, cost, slope, start, stop)
        if rate > 0.0:
            cost[parent] += lowest + lag / rate
            slope[parent] += 1.0 / rate
    for j in range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1]):
        start, stop, parent = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], treeplexes.parent_sequence[j]
        lowest, lag, rate = marginal_cost(breakpoint, cost, slope, start, stop)
        for s in range(start, stop):
            reach[s] = ((reach[parent] + lag) / rate - (cost[s] - lowest)) / slope[s] if breakpoint[s] < 1.0 else 0.0
        match_regrets(reach, start, stop, reach)  # normalizes: rounding may have violated the constraints slightly
        for s in range(start, stop):
            reach[s] *= reach[parent]


@jit
def project_onto_treeplex(treeplexes, player, point, scratch, nearest):
    """The player's strategy nearest to `point`, to `nearest`; either float64 (S,). They must be two arrays.

    What is in `scratch`, a `Scratch`, makes no difference, but for the zeros at sequence 0.
    """
    start, stop = player_sequences(treeplexes, player)
    functions = PiecewiseLinear(scratch.breakpoint, scratch.slope, scratch.following, scratch.next_function)
    for s in range(start, stop):
        functions.breakpoint[s], functions.slope[s] = 0.0, 1.0
        functions.following[s] = functions.next_function[s] = END
        scratch.summands[s], scratch.cost[s] = s, -point[s]
    find_breakpoints(treeplexes, player, functions, scratch.summands, scratch.cost)
    for s in range(start, stop):
        functions.slope[s], scratch.cost[s] = 1.0, -point[s]
    nearest[start] = 1.0
    share_reach(treeplexes, player, functions.breakpoint, scratch.cost, functions.slope, nearest)
