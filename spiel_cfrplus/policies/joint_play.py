"""Joint play: a probability distribution over strategy profiles, such as the iterations of a solver.

A draw from the distribution recommends a strategy to each player; all players receive strategies of the same draw. The play
is a *coarse correlated equilibrium* if no player gains by committing, before the draw, to a fixed strategy: each player's
expected utility under the play is at least that of every fixed strategy against the others' recommendations.

`solving.play_recorder` makes the joint play of a solver.

>>> import pyspiel
>>> from spiel_cfrplus import CFRSolver, PlayRecorder
>>> recorder = PlayRecorder(CFRSolver(pyspiel.load_game("kuhn_poker(players=3)"), alternating=False))
>>> recorder.run(500)
>>> play = recorder.play()
>>> play
JointPlay(kuhn_poker(players=3), 500 profiles of 500 iterations)
>>> play.cce_gap() < 0.02
True
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, finite_vector, frozen
from spiel_cfrplus._utils.validation import checked_seed
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.policies.profile import StrategyProfile


class _Means(NamedTuple):
    """Expectations over the draw of a profile.

    Attributes:
      reach: float64 (S,), the sequence-form strategies.
      gradient: float64 (S,), the payoff gradients.
      values: float64 (n,), the expected utilities, in game units.
    """

    reach: np.ndarray
    gradient: np.ndarray
    values: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class JointPlay(Immutable):
    """A distribution over K strategy profiles; read-only.

    The first call of a method that returns an expectation evaluates all profiles, which takes about K times as long as an
    iteration on the whole game. All values are in game units.

    Attributes:
      game: the compiled game.
      policies: float64 (K, S), the behavioral policies of the profiles, as in `StrategyProfile.probabilities`.
      probabilities: float64 (K,), the probability of each profile.
      iterations: int64 (K,), the iteration of the solver that played each profile, ascending.
      num_iterations: the number of iterations of which the profiles are all or a uniform sample.
    """

    game: SequenceFormGame
    policies: npt.NDArray[np.float64]
    probabilities: npt.NDArray[np.float64]
    iterations: npt.NDArray[np.int64]
    num_iterations: int

    def _summary(self) -> str:
        return f"{self.game.tree.game}, {len(self)} profiles of {self.num_iterations} iterations"

    def __len__(self) -> int:
        """The number of profiles."""
        return len(self.probabilities)

    @property
    def is_complete(self) -> bool:
        """Whether the profiles are those of all iterations."""
        return len(self) == self.num_iterations

    def profile(self, number: int) -> StrategyProfile:
        """One of the profiles, by its position."""
        return StrategyProfile(self.game, self.policies[number])

    def sampler(self, seed: int = 0) -> Iterator[StrategyProfile]:
        """Recommended plays without end: each is a draw of a profile, whose strategies are for all players together.

        Args:
          seed: of the draws.

        Raises:
          TypeError, ValueError: not a seed.
        """
        generator = np.random.default_rng(checked_seed(seed))
        return (self.profile(generator.choice(len(self), p=self.probabilities)) for _ in itertools.repeat(None))

    def reweighted(self, weights: npt.ArrayLike) -> JointPlay:
        """The same profiles with probabilities proportional to `weights`.

        `solver.averaging.weights(play.iterations)` are the weights of the solver's average.

        Args:
          weights: (K,), not negative, with a positive sum.

        Raises:
          ValueError: they are not.
        """
        vector = finite_vector(weights, len(self), ", a weight for each profile")
        if vector.min() < 0 or vector.max() == 0:
            raise ValueError("weights must not be negative, and one must be positive")
        vector /= vector.max()  # so that the sum is finite
        return dataclasses.replace(self, probabilities=frozen(vector / vector.sum(), np.float64))

    def marginal_profile(self) -> StrategyProfile:
        """Each player's strategy if the others do not learn the draw: the mean of its sequence-form strategies.

        The players draw independently of each other in this profile, so its utilities differ from those of the play.
        """
        strategies = [self._means.reach[own] for own in self.game.player_slices]
        return StrategyProfile(self.game, self.game.behavioral_policies(strategies))

    def expected_values(self) -> npt.NDArray[np.float64]:
        """Each player's expected utility, float64 (n,)."""
        return self._means.values.copy()

    def regrets(self) -> npt.NDArray[np.float64]:
        """Each player's gain by committing to its best fixed strategy before the draw, float64 (n,); it may be negative.

        It is the average regret of the player if the profiles are all iterations of a solver.
        """
        pairs = zip(self.game.treeplexes, self.game.player_slices, strict=True)
        best = [treeplex.best_value(self._means.gradient[own]) for treeplex, own in pairs]
        return np.asarray(np.array(best) - self._means.values)

    def cce_gap(self) -> float:
        """The distance from a coarse correlated equilibrium: the largest gain of a player in `regrets`, or 0 if none gains."""
        return max(0.0, float(self.regrets().max()))

    def to_pyspiel(self) -> list[tuple[float, pyspiel.TabularPolicy]]:
        """The (probability, policy) pairs that OpenSpiel's functions take, such as `pyspiel.cce_dist(game, pairs)`.

        Raises:
          ValueError: see `StrategyProfile.to_pyspiel_policy`.
        """
        return [(p, self.profile(number).to_pyspiel_policy()) for number, p in enumerate(self.probabilities.tolist())]

    @functools.cached_property
    def _means(self) -> _Means:
        game, size = self.game, self.game.num_sequences
        means = _Means(np.zeros(size), np.zeros(size), np.zeros(game.num_players))
        policy, reach, gradient = np.empty((3, size))
        for probability, row in zip(self.probabilities.tolist(), self.policies, strict=True):
            policy[:] = row  # kernels are compiled for writable arrays only
            passes.strategies_of_policy(game.treeplex_arrays, policy, reach)
            means.reach[:] += probability * reach
            for player, own in enumerate(game.player_slices):
                passes.payoff_gradient(game.treeplex_arrays, game.payoff_arrays, player, reach, gradient)
                means.gradient[own] += probability * gradient[own]
                means.values[player] += probability * (reach[own] @ gradient[own])
        return means
