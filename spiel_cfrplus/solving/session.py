"""Sessions: what iterates on a game, and what each can do.

A session is asked what it can do (`refusal`), never what it is. Theory, convergence rows, checkpoints, warm starts, solvers and
the command line work with any object that has these methods.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> session = CFRPlusSolver(pyspiel.load_game("kuhn_poker")).self_play
>>> session.refusal(Feature.CHECKPOINT)
''
>>> session.refusal(Feature.CCE)
'it keeps no account of what the players earned'
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spiel_cfrplus.game.sequence_form import SequenceFormGame
    from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule
    from spiel_cfrplus.solving.averaging import Averaging
    from spiel_cfrplus.solving.partition import Partition
    from spiel_cfrplus.solving.symmetry import Reduction


class Feature(enum.Enum):
    """What not every session can do. The statements of `analysis.theory` have the values that are their names."""

    CHECKPOINT = "checkpoint"  # `options`, `state_dict` and `load_state_dict`
    WARM_START = "warm start"  # `on_the_whole_game`, and a state that follows from a policy
    REGRETS = "regrets"  # `regrets`, each player's
    CCE = "cce"  # `cce_gap`
    EXACT_TIES = "exact ties"  # a choice of how rounding errors near zero are treated
    REDUCTION = "reduction"  # iterations on a game without its symmetries and forced moves
    THREADS = "threads"  # several threads
    THEORY = "theory"  # statements about players who meet
    LEMMA_2 = "lemma_2"
    THEOREM_5 = "theorem_5"
    THEOREM_6 = "theorem_6"
    CFR_PLUS_BOUND = "cfr_plus_bound"


class Tables(NamedTuple):
    """What the updates of a session are judged by, float64 (S,) each.

    Attributes:
      policy: the current behavioral policies, as the players would play also where they never come.
      cumulative_regrets: the regret tables, in game units; zeros for players who have none.
      tie_tolerance: what regrets must exceed to count, in game units.
    """

    policy: npt.NDArray[np.float64]
    cumulative_regrets: npt.NDArray[np.float64]
    tie_tolerance: npt.NDArray[np.float64]


class SessionOptions(NamedTuple):
    """How a session is played: what another one needs to go on from its `state_dict`.

    Attributes:
      rule: what an update does.
      averaging, alternating, exact_ties: as for `solvers.Solver`.
      reduced: whether iterations are on a reduction of the game.
    """

    rule: CompiledRule
    averaging: Averaging
    alternating: bool
    exact_ties: bool
    reduced: bool


class Session(Protocol):
    """Players who learn in a game.

    Attributes:
      game: the compiled game.
      averaging: the weights of the averages.
      alternating: whether players update in turn.
      reduction: what is iterated on instead of the whole game, or None.
      partition: how that is divided among threads, or None.
    """

    game: SequenceFormGame
    averaging: Averaging
    alternating: bool

    @property
    def reduction(self) -> Reduction | None: ...

    @property
    def partition(self) -> Partition | None: ...

    @property
    def iteration(self) -> int:
        """Iterations done."""

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more."""

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current behavioral policies of all players, float64 (S,)."""

    def average_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform where a player has never come."""

    def tables(self) -> Tables:
        """What the updates are judged by."""

    def refusal(self, feature: Feature) -> str:
        """Why the session, as it stands, cannot do this, or a statement does not hold for it; empty if there is no reason."""

    def options(self) -> SessionOptions:
        """How it is played; see `Feature.CHECKPOINT`."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays from which another session of the same game can go on; see `Feature.CHECKPOINT`."""

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        """Takes over what `state_dict` gave in another session; see `Feature.CHECKPOINT`."""

    def on_the_whole_game(self) -> Session:
        """The same session without iterations and without reduction; see `Feature.WARM_START`."""

    def regrets(self) -> npt.NDArray[np.float64]:
        """Every player's external regret, float64 (n,), in game units; see `Feature.REGRETS`."""

    def cce_gap(self) -> float:
        """The distance of play from a coarse correlated equilibrium, in game units; see `Feature.CCE`."""


# Reasons that several kinds of sessions have.
IN_PYTHON = "its minimizers are Python objects"
NO_ACCOUNT = "it keeps no account of what the players earned"
ALONE = "each player learns alone, against best responses"
NOT_ABOUT_CFR_BR = "the statements are about players who meet each other, not about CFR-BR"
TOGETHER_ONLY = "the empirical distribution of play needs iterations with simultaneous updates"

# The statements of `analysis.theory` that depend on the rule.
STATEMENTS = (Feature.LEMMA_2, Feature.THEOREM_5, Feature.THEOREM_6, Feature.CFR_PLUS_BOUND)


class OptionalFeatures:
    """The methods that a session need not have; each raises the session's refusal. Sessions define those that they have."""

    reduction: Reduction | None = None
    partition: Partition | None = None

    def refusal(self, feature: Feature) -> str:
        """See `Session.refusal`."""
        raise NotImplementedError

    def options(self) -> SessionOptions:
        """Raises a TypeError."""
        raise self._refused(Feature.CHECKPOINT)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Raises a TypeError."""
        raise self._refused(Feature.CHECKPOINT)

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        """Raises a TypeError."""
        raise self._refused(Feature.CHECKPOINT)

    def on_the_whole_game(self) -> Session:
        """Raises a TypeError."""
        raise self._refused(Feature.WARM_START)

    def regrets(self) -> npt.NDArray[np.float64]:
        """Raises a TypeError."""
        raise self._refused(Feature.REGRETS)

    def cce_gap(self) -> float:
        """Raises a TypeError."""
        raise self._refused(Feature.CCE)

    def _refused(self, feature: Feature) -> TypeError:
        return TypeError(f"this {type(self).__name__} has no {feature.value}: {self.refusal(feature)}")
