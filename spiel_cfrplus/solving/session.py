"""Sessions: objects that iterate on a game, and their features.

Callers test the features of a session (`refusal`), never its type. Theory, convergence rows, checkpoints, warm starts, solvers
and the command line work with any object that has these methods.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> session = CFRPlusSolver(pyspiel.load_game("kuhn_poker")).self_play
>>> session.refusal(Feature.CHECKPOINT)
''
>>> session.refusal(Feature.CCE)
'it does not sum the utilities of the players'
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
    """Features that only some sessions have. The values of the statements of `analysis.theory` are their names."""

    CHECKPOINT = "checkpoint"  # `options`, `state_dict` and `load_state_dict`
    WARM_START = "warm start"  # `on_the_whole_game`, and a state that a policy determines
    REGRETS = "regrets"  # `regrets`
    CCE = "cce"  # `cce_gap`
    JOINT_PLAY = "joint play"  # strategies that the players play together, see `play_recorder`
    CUMULATIVE_REGRETS = "cumulative regrets"  # `tables().cumulative_regrets` of all players
    EXACT_TIES = "exact ties"  # the option to set regrets within rounding of zero to zero
    REDUCTION = "reduction"  # iterations on a game without its symmetries and forced moves
    THREADS = "threads"  # several threads
    THEORY = "theory"  # statements about players who play against each other
    LEMMA_2 = "lemma_2"
    THEOREM_5 = "theorem_5"
    THEOREM_6 = "theorem_6"
    CFR_PLUS_BOUND = "cfr_plus_bound"


class Tables(NamedTuple):
    """The arrays from which statements about updates are measured, float64 (S,) each.

    Attributes:
      policy: the current behavioral policies, also at infostates that the players do not reach.
      cumulative_regrets: the regret tables, in game units; zeros for players without one.
      tie_tolerance: regrets of at most this absolute value are set to zero, in game units.
    """

    policy: npt.NDArray[np.float64]
    cumulative_regrets: npt.NDArray[np.float64]
    tie_tolerance: npt.NDArray[np.float64]


class SessionOptions(NamedTuple):
    """The options of a session, which another one needs to continue from its `state_dict`.

    Attributes:
      rule: the update rule.
      averaging, alternating, exact_ties: as for `solvers.Solver`.
      reduced: whether iterations are on a reduction of the game.
    """

    rule: CompiledRule
    averaging: Averaging
    alternating: bool
    exact_ties: bool
    reduced: bool


class Session(Protocol):
    """The protocol of sessions.

    Attributes:
      game: the compiled game.
      averaging: the weights of the averages.
      alternating: whether players update in turn.
      reduction: the reduced game that is iterated on, or None.
      partition: its division among threads, or None.
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
        """The behavioral policies of the averaged strategies, float64 (S,); uniform at infostates that were never reached."""

    def tables(self) -> Tables:
        """The arrays from which statements about updates are measured."""

    def refusal(self, feature: Feature) -> str:
        """Why the session, in its present state, lacks the feature, or a statement does not apply to it; empty otherwise."""

    def options(self) -> SessionOptions:
        """The options; see `Feature.CHECKPOINT`."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays from which another session of the same game can continue; see `Feature.CHECKPOINT`."""

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        """Copies the `state_dict` of another session; see `Feature.CHECKPOINT`."""

    def on_the_whole_game(self) -> Session:
        """The same session at iteration 0 and without reduction; see `Feature.WARM_START`."""

    def regrets(self) -> npt.NDArray[np.float64]:
        """The external regret of each player, float64 (n,), in game units; see `Feature.REGRETS`."""

    def cce_gap(self) -> float:
        """The distance of play from a coarse correlated equilibrium, in game units; see `Feature.CCE`."""


# Reasons shared by several types of sessions.
IN_PYTHON = "its minimizers are Python objects"
NO_ACCOUNT = "it does not sum the utilities of the players"
ALONE = "each player learns alone, against best responses"
NOT_ABOUT_CFR_BR = "the statements are about players who play against each other, not about CFR-BR"
TOGETHER_ONLY = (
    "the empirical distribution of play needs iterations with simultaneous updates (alternating=False): with alternating "
    "updates a player's utilities are not those of strategies that were played together"
)
NO_ITERATIONS = "no iterations have been done"
NO_REGRET_TABLES = "its regret minimizers have no regret for each action"

# The statements of `analysis.theory` that depend on the rule.
STATEMENTS = (Feature.LEMMA_2, Feature.THEOREM_5, Feature.THEOREM_6, Feature.CFR_PLUS_BOUND)


class OptionalFeatures:
    """Default implementations of the optional methods, which raise the refusal. Sessions override those that they support."""

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
