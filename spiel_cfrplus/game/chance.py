"""Validation of chance outcomes, and the tolerance for probabilities that do not sum to 1.

OpenSpiel's functions that check a sum of chance probabilities (its `.efg` loader, C++ NashConv, sampling) accept a difference
of 1e-6 from 1; its CFR solvers do not check. The sum of probabilities that are written with six decimals, such as 0.333333 for
1/3, may differ from 1 by 0.5e-6 per outcome. This module accepts sums within either bound:

    |sum - 1| <= 1e-6 max(1, k / 2)    for k outcomes, up to rounding.

A `GameTree` stores the probabilities as the game gives them. The solvers of `spiel_cfrplus.openspiel` use these, as OpenSpiel
does. A compiled game stores them divided by their sum, unless the sum differs from 1 by floating-point rounding only; then they
are unchanged.
"""

from __future__ import annotations

import math

import numpy as np
import pyspiel

_TOLERANCE = 1e-6
# Upper bound on the rounding error in the sum of computed probabilities, such as n times 1 / n.
ROUNDING = 1e-12
# OpenSpiel actions are 64-bit integers; negative values mean that there is no action.
_ACTION_LIMIT = 2**63
_INTEGERS = (int, np.integer)


def at(state: pyspiel.State) -> str:
    """The game and the history of a state, as the first words of an error message."""
    return f"{state.get_game()}, history {state.history()}:"


def checked_outcomes(state: pyspiel.State) -> list[tuple[int, float]]:
    """The (action, probability) pairs of a chance state.

    Raises:
      ValueError: they are not such pairs, the list is empty, an action is not a valid id, an action occurs twice, or the
        probabilities are not a distribution.
    """
    outcomes: list[tuple[int, float]] = state.chance_outcomes()
    if not outcomes:
        raise ValueError(f"{at(state)} chance is to move but there are no chance outcomes; fix chance_outcomes() of the game")
    try:
        actions, probabilities = zip(*outcomes, strict=True)
        total = math.fsum(probabilities)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{at(state)} chance_outcomes() returns {outcomes!r}, not (action, probability) pairs") from error
    invalid = [action for action in actions if not (isinstance(action, _INTEGERS) and 0 <= action < _ACTION_LIMIT)]
    if invalid:
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} contain the action {invalid[0]!r}; actions must be integers from 0 to "
            "2**63 - 1"
        )
    if len(set(actions)) < len(actions):
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} contain the same action twice, so only the first of them can be "
            "played; give each outcome a distinct action id (in an .efg file, label the outcomes)"
        )
    if not abs(total - 1) <= _TOLERANCE * max(1.0, len(outcomes) / 2) + ROUNDING or min(probabilities) < 0:
        raise ValueError(
            f"{at(state)} the chance outcomes {outcomes} sum to {total} and are not a probability distribution; fix "
            "chance_outcomes() of the game"
        )
    return outcomes


def chance_probability(state: pyspiel.State, action: int) -> float:
    """The normalized probability of an outcome at a chance state, as in a compiled game.

    Raises:
      ValueError: see `checked_outcomes`; or the outcome does not exist.
    """
    by_action = dict(checked_outcomes(state))
    if action not in by_action:
        raise ValueError(f"{at(state)} chance has no outcome {action}; the outcomes are {list(by_action)}")
    total = math.fsum(by_action.values())
    return by_action[action] / (1.0 if abs(total - 1) <= ROUNDING else total)
