"""Comparison of the first iterations with those of OpenSpiel's solver.

Both solvers start from uniform strategies and do the same updates, so in exact arithmetic all policies agree at every
iteration. In float64 they agree to many digits at first. Two effects make correct solvers diverge: exact ties, where a regret
that should be zero is computed as plus or minus 1e-17 and regret matching turns it into a pure action; and, on some games,
chaos: CFR+ on Leduc poker amplifies small differences, which become visible after some hundred iterations.

Where the linear program of `solving.exact` is small, the value of the average policy is also compared with the exact value.

>>> import pyspiel
>>> check = crosscheck(pyspiel.load_game("kuhn_poker"), "cfr+", num_iterations=20)
>>> [row.iteration for row in check], all(row.difference < 1e-12 for row in check)
([1, 2, 5, 10, 20], True)
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyspiel

from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.policies.evaluation import nash_conv
from spiel_cfrplus.policies.reading import read_policy
from spiel_cfrplus.solving.exact import program_size, solve_exactly
from spiel_cfrplus.solving.solvers import make_solver
from spiel_cfrplus.solving.symmetry import reduce_game

# Linear programs with at most this many nonzeros take tenths of a second.
_CHEAP_NONZEROS = 20_000


class _OpenSpielSolver(Protocol):
    def evaluate_and_update_policy(self) -> None: ...
    def current_policy(self) -> Any: ...
    def average_policy(self) -> Any: ...


def _python_solver(module: str, name: str, **options: bool) -> Callable[[pyspiel.Game], _OpenSpielSolver]:
    """The constructor of a solver of OpenSpiel in Python, whose module is imported when it is called."""

    def make(game: pyspiel.Game) -> _OpenSpielSolver:
        solver: _OpenSpielSolver = getattr(importlib.import_module(f"open_spiel.python.algorithms.{module}"), name)(
            game, **options
        )
        return solver

    return make


# By algorithm and order of updates.
_OPENSPIEL_SOLVERS: dict[tuple[str, bool], Callable[[pyspiel.Game], _OpenSpielSolver]] = {
    ("cfr", True): pyspiel.CFRSolver,
    ("cfr+", True): pyspiel.CFRPlusSolver,
    ("cfr", False): _python_solver(
        "cfr", "_CFRSolver", alternating_updates=False, linear_averaging=False, regret_matching_plus=False
    ),
    ("cfr+", False): _python_solver(
        "cfr", "_CFRSolver", alternating_updates=False, linear_averaging=True, regret_matching_plus=True
    ),
    ("lcfr", True): _python_solver("discounted_cfr", "LCFRSolver"),
    ("dcfr", True): _python_solver("discounted_cfr", "DCFRSolver"),
}
COMPARABLE = tuple(dict.fromkeys(algorithm for algorithm, _ in _OPENSPIEL_SOLVERS))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The differences between the two solvers after `iteration` iterations.

    Attributes:
      iteration: iterations done by both.
      current_policy: largest difference between action probabilities of the current policies.
      average_policy: the same for the average policies.
      nash_conv: difference between the NashConvs of the average policies, in game units.
      value_error: distance of the value of the package's average policy from the exact value, in game units; None if the game
        is not a two-player constant-sum game, or its linear program is large. It is not one of the differences.
    """

    iteration: int
    current_policy: float
    average_policy: float
    nash_conv: float
    value_error: float | None

    @property
    def difference(self) -> float:
        """The largest of the three differences."""
        return max(self.current_policy, self.average_policy, self.nash_conv)


def crosscheck(
    game: pyspiel.Game | SequenceFormGame, algorithm: str, *, num_iterations: int, alternating: bool = True
) -> list[Comparison]:
    """Compares with OpenSpiel's C++ solver, or with its Python solver for simultaneous updates and discounts.

    OpenSpiel's averaging convention is used on both sides.

    Args:
      game: a game, or a compiled game.
      algorithm: one of `COMPARABLE`.
      num_iterations: the number of iterations.
      alternating: the order of updates.

    Returns:
      A comparison after 1, 2, 5, 10, 20, 50, ... iterations and after the last.

    Raises:
      TypeError, ValueError: `num_iterations` is not a positive integer.
      ValueError: OpenSpiel has no such solver, or the game cannot be compiled.
    """
    num_iterations = checked_count(num_iterations, least=1)
    make_theirs = _OPENSPIEL_SOLVERS.get((algorithm, alternating))
    if make_theirs is None:
        order = "alternating" if alternating else "simultaneous"
        raise ValueError(
            f"OpenSpiel has no solver for {algorithm!r} with {order} updates; choose one of {', '.join(COMPARABLE)}"
        )
    game = compile_game(game)
    ours = make_solver(algorithm, game, alternating=alternating, averaging="openspiel")
    theirs = make_theirs(game.tree.game)
    exact_value = _cheap_exact_value(game)
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
                value_error=None if exact_value is None else abs(row.value - exact_value),
            )
        )
    return comparisons


def _cheap_exact_value(game: SequenceFormGame) -> float | None:
    """The exact value, if its computation takes little time."""
    if not game.is_two_player_constant_sum or program_size(reduce_game(game)).nonzeros > _CHEAP_NONZEROS:
        return None
    return solve_exactly(game).value


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).max())
