"""Compiled functions of the Euclidean projection onto the sequence-form polytope, over the arrays of `layouts`.

To project a point y, ask what reach costs at the margin. A reach t at sequence s, spent in the
best way on all that follows, costs

    F_s(t) = t - y[s] + sum of G_j(t) over the decision points j whose parent sequence is s,

and at decision point j all actions that are played cost the same at the margin, the others at least as much, so that

    inverse of G_j = sum over the actions s at j of the inverse of F_s,

where the inverse of F_s is 0 up to F_s(0). These functions increase and are piecewise linear. A sequence brings one breakpoint
into each function above it: where that sequence begins to be played. So a function is a linked list of sequences, which is
handed on from function to function, and a few numbers for each sequence are all the memory there is. In the end breakpoints are
in terms of the reach at the player's first decision point above. That reach is 1, so the sequences that are played are those
with a breakpoint below 1. On these the constraints are linear equations on a tree, solved by one pass up and one down.

Slopes are added and inverted but never subtracted, so they keep their digits however long the lists. A sequence and the
cheapest actions right after it begin to be played together; their breakpoints stay equal to the last bit, so that rounding
cannot part them.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.kernels.passes import match_regrets

END = INDEX(0)  # ends all lists: sequence 0 is an empty sequence, which is in none


class PiecewiseLinear(NamedTuple):
    """Increasing piecewise-linear functions, each known by the first sequence of its list.

    Attributes:
      breakpoint: float64 (S,), ascending along a list.
      slope: float64 (S,), of the function from this breakpoint to the next one, or for ever after the last.
      following: uint32 (S,), the sequence with the next breakpoint of the function, or `END`.
      next_function: uint32 (S,), at the first of a list: the next one of several functions, or `END`.
    """

    breakpoint: np.ndarray
    slope: np.ndarray
    following: np.ndarray
    next_function: np.ndarray


@jit
def add(functions, first, second):
    """Merges two functions into their sum, of which it returns the first sequence. Either has slope 0 before its list."""
    breakpoint, slope, following, _ = functions
    first_slope = second_slope = 0.0
    last = END  # whose `following` serves as the place before the list
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
    """The sum of the list of functions that begins with `first`: two and two, until one is left."""
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
    """Turns the function into its inverse, given its value at its first breakpoint."""
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
    """Bottom-up: leaves in `functions.breakpoint` the reach at the top from which on each sequence is played.

    Args:
      treeplexes, player: the decision problem.
      functions: on entry each sequence is a function alone, t itself: breakpoint 0, slope 1, `END` after it.
      summands: uint32 (S,), on entry each sequence itself. Becomes the list of functions that F_s is the sum of.
      cost: float64 (S,), on entry -y. Becomes F_s(0).
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
    """What reach t costs at a decision point some of whose actions are played: lowest + (t + lag) / rate.

    Played action s costs `cost[s] + slope[s] * t`. `rate` is 0 if none is played.
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
    """Bottom-up, then top-down: the nearest strategy, given that the sequences with breakpoints below 1 are played.

    `cost` is -y and `slope` 1 on entry; fills `reach` but for the empty sequence, where it must be 1.
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
        match_regrets(reach, start, stop, reach)  # what rounding has left of a violation of the constraints goes
        for s in range(start, stop):
            reach[s] *= reach[parent]
