"""Every ready-made regret minimizer under a name, for a whole treeplex, and the solver made of any minimizers.

>>> import pyspiel
>>> solver = LearningSolver(pyspiel.load_game("kuhn_poker"), LEARNERS["predictive_dilated_euclidean"])
>>> solver.run(500)
>>> solver.nash_conv() < 1e-3
True
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.regret_minimizers.cfr import ComposedCFR
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, checked_step_size
from spiel_cfrplus.regret_minimizers.simplex import Hedge, ProjectedGradientAscent, SimplexRegretMatching
from spiel_cfrplus.regret_minimizers.treeplex_minimizers import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    TreeplexGradientAscent,
)
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.solvers import ALGORITHMS, Solver, checked_options


@dataclasses.dataclass(frozen=True, eq=False)
class Learner:
    """How to make a minimizer for a treeplex.

    Attributes:
      name: as in `LEARNERS`.
      make: gives a minimizer for a treeplex and the options below.
      options: keyword arguments of `make` that make the learner what its name says.
      averaging_power: weights t ** power suit it; 1, as for CFR+, unless its paper has something else.
      takes_step_size: whether `make` has an argument `step_size`.
      takes_tie_tolerance: whether `make` has an argument `tie_tolerance`, see `SequenceFormGame.tie_tolerance`.
    """

    name: str
    make: Callable[..., RegretMinimizer]
    options: dict[str, Any]
    averaging_power: float
    takes_step_size: bool = False
    takes_tie_tolerance: bool = False

    def __call__(self, treeplex: Treeplex) -> RegretMinimizer:
        """A minimizer for `treeplex`."""
        return self.make(treeplex, **self.options)

    def in_game(self, game: SequenceFormGame) -> Callable[[Treeplex], RegretMinimizer]:
        """The same for the treeplexes of `game`, where regret matching knows how much of a regret may be rounding."""
        if not self.takes_tie_tolerance:
            return self

        def make(treeplex: Treeplex) -> RegretMinimizer:
            return self.make(treeplex, tie_tolerance=game.tie_tolerance[game.player_slices[treeplex.player]], **self.options)

        return make

    def with_step_size(self, step_size: float | None) -> Learner:
        """The same with a fixed step size, or with its own for None.

        Raises:
          ValueError: it takes none, or not this one.
        """
        if step_size is None:
            return self
        if not self.takes_step_size:
            raise ValueError(f"{self.name} takes no step size")
        return dataclasses.replace(self, options={**self.options, "step_size": checked_step_size(step_size)})


class LearningSolver(Solver):
    """Self-play of any regret minimizers, one made for each player; iterations run in Python.

    `self_play` is a `SelfPlay`, which also knows every player's regret and the distance from a coarse correlated equilibrium.
    """

    self_play: SelfPlay

    def __init__(
        self,
        game: pyspiel.Game | SequenceFormGame,
        minimizer: Callable[[Treeplex], RegretMinimizer],
        *,
        alternating: bool = True,
        averaging: str | Averaging = "paper",
    ):
        """Compiles the game if it is not yet compiled, makes the minimizers and asks them for their first strategies.

        Args:
          game: a game, or what `compile_game` made of one.
          minimizer: makes a minimizer for a player's treeplex: one of `LEARNERS`, a class, any function.
          alternating: as for `CompiledSolver`.
          averaging: a convention, "paper" or "openspiel", with the weights that the learner names, uniform if it is none of
            `LEARNERS`; or an `Averaging`.

        Raises:
          TypeError: `minimizer` is no function, `averaging` is neither, or `alternating` is no bool.
          ValueError: unknown convention, a game that cannot be compiled, or a first strategy that is none of its player's.
        """
        if not callable(minimizer):
            raise TypeError(
                f"expected a function that makes a minimizer for a treeplex, such as LEARNERS['cfr_hedge'], got {minimizer!r}"
            )
        averaging, alternating = checked_options(averaging, getattr(minimizer, "averaging_power", 0.0), alternating)
        self.algorithm = str(getattr(minimizer, "name", minimizer))
        game = compile_game(game)
        make = minimizer.in_game(game) if isinstance(minimizer, Learner) else minimizer
        minimizers = [make(treeplex) for treeplex in game.treeplexes]
        super().__init__(SelfPlay(game, minimizers, averaging, alternating))


def _cfr_with(local_minimizer: Callable[..., RegretMinimizer], treeplex: Treeplex, **options: Any) -> ComposedCFR:
    """CFR with one kind of local minimizer at all decision points."""
    return ComposedCFR(treeplex, local_minimizer(treeplex.num_actions, **options))


def _cfr_with_regret_matching(treeplex: Treeplex, *, tie_tolerance: np.ndarray | None = None, **options: Any) -> ComposedCFR:
    local_tie_tolerance = 0.0 if tie_tolerance is None else tie_tolerance[1:]
    return ComposedCFR(treeplex, SimplexRegretMatching(treeplex.num_actions, tie_tolerance=local_tie_tolerance, **options))


def _family() -> list[Learner]:
    learners = [
        Learner(
            solver.algorithm,
            _cfr_with_regret_matching,
            {"rule": solver.local_rule, "prediction_weight": solver.prediction_weight},
            solver.averaging_power,
            takes_tie_tolerance=True,
        )
        for solver in ALGORITHMS.values()
    ]
    for name, make in (
        ("cfr_hedge", functools.partial(_cfr_with, Hedge)),
        ("cfr_gradient_ascent", functools.partial(_cfr_with, ProjectedGradientAscent)),
        ("gradient_ascent", TreeplexGradientAscent),
        ("dilated_entropy", DilatedEntropyAscent),
        ("dilated_euclidean", DilatedEuclideanAscent),
        ("multiplicative_weights", MultiplicativeWeights),
    ):
        learners.append(Learner(name, make, {}, 1.0, takes_step_size=True))
        learners.append(Learner(f"predictive_{name}", make, {"prediction_weight": 1.0}, 1.0, takes_step_size=True))
    return learners


LEARNERS: dict[str, Learner] = {learner.name: learner for learner in _family()}
