"""The same iterations with OpenSpiel's own solver, side by side.

Both start from uniform strategies and do the same updates, so in exact arithmetic all policies agree at every iteration. In
float64 they agree to many digits for a while. Two things part them that are nobody's mistake: exact ties, where a regret that
should be zero comes out as plus or minus 1e-17 and regret matching turns it into a pure action; and, on some games, chaos: CFR+
on Leduc poker enlarges small differences, which show after some hundred iterations.

>>> import pyspiel
>>> check = crosscheck(pyspiel.load_game("kuhn_poker"), "cfr+", num_iterations=20)
>>> [row.iteration for row in check], all(row.difference < 1e-12 for row in check)
([1, 2, 5, 10, 20], True)
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np
import pyspiel
from open_spiel.python.algorithms import cfr as openspiel_cfr

from spiel_cfrplus.convergence import convergence
from spiel_cfrplus.evaluation import nash_conv
from spiel_cfrplus.policy_reading import read_policy
from spiel_cfrplus.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.solvers import ALGORITHMS

_OPENSPIEL_SOLVERS = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}


class _OpenSpielSolver(Protocol):
    def evaluate_and_update_policy(self) -> None: ...
    def current_policy(self) -> Any: ...
    def average_policy(self) -> Any: ...


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How far the two solvers are apart after `iteration` iterations.

    Attributes:
      iteration: iterations done by both.
      current_policy: largest difference between action probabilities of the current policies.
      average_policy: the same for the average policies.
      nash_conv: difference between the NashConvs of the average policies, in game units.
    """

    iteration: int
    current_policy: float
    average_policy: float
    nash_conv: float

    @property
    def difference(self) -> float:
        """The largest of the three."""
        return max(self.current_policy, self.average_policy, self.nash_conv)


def crosscheck(
    game: pyspiel.Game | SequenceFormGame, algorithm: str, *, num_iterations: int, alternating: bool = True
) -> list[Comparison]:
    """Compares with OpenSpiel's C++ solver, or with its Python solver for simultaneous updates, which the C++ one lacks.

    OpenSpiel's averaging convention is used on both sides.

    Args:
      game: a game, or a compiled game.
      algorithm: "cfr" or "cfr+".
      num_iterations: how many to do.
      alternating: the order of updates.

    Returns:
      A comparison after 1, 2, 5, 10, 20, 50, ... iterations and after the last.

    Raises:
      ValueError: OpenSpiel has no such solver, or the game cannot be compiled.
    """
    if algorithm not in _OPENSPIEL_SOLVERS:
        raise ValueError(
            f"OpenSpiel has no solver to compare {algorithm!r} with; choose one of {', '.join(_OPENSPIEL_SOLVERS)}"
        )
    game = compile_game(game)
    ours = ALGORITHMS[algorithm](game, alternating=alternating, averaging="openspiel")
    theirs = _openspiel_solver(game.tree.game, algorithm, alternating)
    comparisons = []
    done = 0
    for row in convergence(ours, num_iterations):
        for _ in range(row.iteration - done):
            theirs.evaluate_and_update_policy()
        done = row.iteration
        their_average = read_policy(game, theirs.average_policy())
        their_current = read_policy(game, theirs.current_policy())
        comparisons.append(
            Comparison(
                iteration=row.iteration,
                current_policy=_distance(ours.current_profile().probabilities, their_current.probabilities),
                average_policy=_distance(ours.average_profile().probabilities, their_average.probabilities),
                nash_conv=abs(row.nash_conv - nash_conv(game, their_average)),
            )
        )
    return comparisons


def _openspiel_solver(game: pyspiel.Game, algorithm: str, alternating: bool) -> _OpenSpielSolver:
    if alternating:
        return _OPENSPIEL_SOLVERS[algorithm](game)
    plus = algorithm == "cfr+"
    return openspiel_cfr._CFRSolver(game, alternating_updates=False, linear_averaging=plus, regret_matching_plus=plus)


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).max())
