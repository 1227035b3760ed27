"""Chance moves: which lists of outcomes are distributions, and what happens when a sum differs from 1.

OpenSpiel's functions that check a sum of chance probabilities (its `.efg` loader, C++ NashConv, sampling) accept a difference
of 1e-6 from 1; its CFR solvers do not check. Probabilities that are written with six decimals, such as 0.333333 for 1/3,
may miss 1 by half of that for each outcome. Sums within either bound are accepted here:

    |sum - 1| <= 1e-6 max(1, k / 2)    for k outcomes, up to rounding.

A `GameTree` has the probabilities as the game gives them, and the solvers of `spiel_cfrplus.openspiel` compute with these, as
OpenSpiel does. A compiled game has them divided by their sum, except where the sum differs from 1 by floating-point rounding
only: there they stay the same doubles.
"""

from __future__ import annotations

import math

import numpy as np
import pyspiel

_TOLERANCE = 1e-6
# Sums of probabilities that are computed, such as n times 1 / n, differ from 1 by less.
ROUNDING = 1e-12
# OpenSpiel has actions of 64 bits; negative ones stand for none.
_MOST_ACTIONS = 2**63
_INTEGERS = (int, np.integer)


def at(state: pyspiel.State) -> str:
    """The game and the history of a state, to begin an error message."""
    return f"{state.get_game()}, history {state.history()}:"


def checked_outcomes(state: pyspiel.State) -> list[tuple[int, float]]:
    """The (action, probability) pairs of a chance state.

    Raises:
      ValueError: they are no such pairs, there are none, an action is no id, two have the same action, or the probabilities
        are not a distribution.
    """
    outcomes = state.chance_outcomes()
    if not outcomes:
        raise ValueError(f"{at(state)} chance is to move but there are no chance outcomes; mend chance_outcomes()")
    try:
        actions, probabilities = zip(*outcomes, strict=True)
        total = math.fsum(probabilities)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{at(state)} chance_outcomes() are {outcomes!r}, not (action, probability) pairs") from error
    odd = [action for action in actions if not (isinstance(action, _INTEGERS) and 0 <= action < _MOST_ACTIONS)]
    if odd:
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} have the action {odd[0]!r}; actions are integers from 0 to 2**63 - 1"
        )
    if len(set(actions)) < len(actions):
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} have the same action twice, so only the first of them can be played; "
            "give each outcome an action id of its own (in an .efg file, label the outcomes)"
        )
    if not abs(total - 1) <= _TOLERANCE * max(1.0, len(outcomes) / 2) + ROUNDING or min(probabilities) < 0:
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} sum to {total} and are not a probability distribution; mend "
            "chance_outcomes() of the game"
        )
    return outcomes


def chance_probability(state: pyspiel.State, action: int) -> float:
    """The probability of an outcome at a chance state, as in a compiled game.

    Raises:
      ValueError: see `checked_outcomes`; or there is no such outcome.
    """
    by_action = dict(checked_outcomes(state))
    if action not in by_action:
        raise ValueError(f"{at(state)} chance has no outcome {action}, only {list(by_action)}")
    total = math.fsum(by_action.values())
    return by_action[action] / (1.0 if abs(total - 1) <= ROUNDING else total)
