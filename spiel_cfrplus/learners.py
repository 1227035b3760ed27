"""Every ready-made regret minimiser under a name, as a player of a game needs it: for a whole treeplex.

>>> import pyspiel
>>> from spiel_cfrplus.solvers import LearningSolver
>>> solver = LearningSolver(pyspiel.load_game("kuhn_poker"), LEARNERS["optimistic_dilated_euclidean"])
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

from spiel_cfrplus.regret_minimizers.cfr import ComposedCFR
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, checked_step_size
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountedRegretMatching, RegretMatching, RegretMatchingPlus
from spiel_cfrplus.regret_minimizers.simplex import Hedge, ProjectedGradientAscent, SimplexRegretMatching
from spiel_cfrplus.regret_minimizers.treeplex_level import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    TreeplexGradientAscent,
)
from spiel_cfrplus.sequence_form import SequenceFormGame
from spiel_cfrplus.treeplex import Treeplex


@dataclasses.dataclass(frozen=True, eq=False)
class Learner:
    """How to make a minimiser for a treeplex.

    Attributes:
      name: as in `LEARNERS`.
      make: gives a minimiser for a treeplex and the options below.
      options: keyword arguments of `make` that make the learner what its name says.
      averaging_power: weights t ** power suit it; 1, as for CFR+, unless its paper has something else.
      takes_step_size: whether `make` has an argument `step_size`.
      takes_rounding: whether `make` has an argument `rounding`, see `SequenceFormGame.rounding`.
    """

    name: str
    make: Callable[..., RegretMinimizer]
    options: dict[str, Any]
    averaging_power: float
    takes_step_size: bool = False
    takes_rounding: bool = False

    def __call__(self, treeplex: Treeplex) -> RegretMinimizer:
        """A minimiser for `treeplex`."""
        return self.make(treeplex, **self.options)

    def in_game(self, game: SequenceFormGame) -> Callable[[Treeplex], RegretMinimizer]:
        """The same for the treeplexes of `game`, where regret matching knows how much of a regret may be rounding."""
        if not self.takes_rounding:
            return self

        def make(treeplex: Treeplex) -> RegretMinimizer:
            return self.make(treeplex, rounding=game.rounding[game.player_slices[treeplex.player]], **self.options)

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


def _cfr_with(local_minimizer: Callable[..., RegretMinimizer], treeplex: Treeplex, **options: Any) -> ComposedCFR:
    """CFR with one kind of local minimiser at all decision points."""
    return ComposedCFR(treeplex, local_minimizer(treeplex.num_actions, **options))


def _cfr_with_regret_matching(treeplex: Treeplex, *, rounding: np.ndarray | None = None, **options: Any) -> ComposedCFR:
    local_rounding = 0.0 if rounding is None else rounding[1:]
    return ComposedCFR(treeplex, SimplexRegretMatching(treeplex.num_actions, rounding=local_rounding, **options))


def _family() -> list[Learner]:
    learners = []
    for name, rule, optimistic, power in (
        ("cfr", RegretMatching(), False, 0.0),
        ("predictive_cfr", RegretMatching(), True, 2.0),
        ("cfr+", RegretMatchingPlus(), False, 1.0),
        ("predictive_cfr+", RegretMatchingPlus(), True, 2.0),
        ("discounted_cfr", DiscountedRegretMatching(), False, 2.0),
    ):
        options = {"rule": rule, "optimistic": optimistic}
        learners.append(Learner(name, _cfr_with_regret_matching, options, power, takes_rounding=True))
    for name, make in (
        ("cfr_hedge", functools.partial(_cfr_with, Hedge)),
        ("cfr_gradient_ascent", functools.partial(_cfr_with, ProjectedGradientAscent)),
        ("gradient_ascent", TreeplexGradientAscent),
        ("dilated_entropy", DilatedEntropyAscent),
        ("dilated_euclidean", DilatedEuclideanAscent),
        ("multiplicative_weights", MultiplicativeWeights),
    ):
        learners.append(Learner(name, make, {}, 1.0, takes_step_size=True))
        learners.append(Learner(f"optimistic_{name}", make, {"optimistic": True}, 1.0, takes_step_size=True))
    return learners


LEARNERS: dict[str, Learner] = {learner.name: learner for learner in _family()}
