"""Records the strategies that the players of a solver play together; see `policies.joint_play`.

A recorder keeps the current strategies of all iterations if they fit into its memory, otherwise those of a uniform random
sample of the iterations. The sample is drawn by Algorithm L of Li (1994, "Reservoir-sampling algorithms of time complexity
O(n(1 + log(N/n)))"). It draws in advance which iteration is kept next, so that the iterations before it run in one call, and
it need not know the total number of iterations.

>>> import pyspiel
>>> from spiel_cfrplus import CFRSolver
>>> solver = CFRSolver(pyspiel.load_game("kuhn_poker"), alternating=False)
>>> recorder = PlayRecorder(solver, max_profiles=100)
>>> recorder.run(10_000)
>>> recorder.play()
JointPlay(kuhn_poker(), 100 profiles of 10000 iterations)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spiel_cfrplus._utils.arrays import sealed
from spiel_cfrplus._utils.validation import checked_count, checked_seed
from spiel_cfrplus.policies.joint_play import JointPlay
from spiel_cfrplus.solving.session import Feature

if TYPE_CHECKING:
    from spiel_cfrplus.solving.solvers import Solver

DEFAULT_BYTES = 2**28
"""The memory that the default of `max_profiles` allows for, in bytes."""


def _log_complement(log_probability: float) -> float:
    """log(1 - p) of log p < 0, accurate for small p and for p near 1."""
    small = log_probability < -math.log(2)
    return math.log1p(-math.exp(log_probability)) if small else math.log(-math.expm1(log_probability))


class PlayRecorder:
    """Runs a solver and keeps the strategies of its iterations, or of a uniform sample of them.

    A profile takes 8 bytes per sequence of the game, also if the solver iterates on a reduction. A `JointPlay` holds copies of
    the profiles. Iterations that are kept run one at a time.

    After an interrupt, the recorder can continue; no iteration is lost or counted twice.
    """

    def __init__(self, solver: Solver, max_profiles: int | None = None, seed: int = 0):
        """Records from the present iteration of the solver; does not iterate.

        Args:
          solver: a solver with simultaneous updates (`alternating=False`), compiled or in Python.
          max_profiles: the largest number of profiles that are kept; by default as many as fit into `DEFAULT_BYTES`.
          seed: of the sample.

        Raises:
          TypeError: `max_profiles` or `seed` is not an integer; or the solver refuses, see `Feature.JOINT_PLAY`.
          ValueError: `max_profiles` is not positive, or `seed` is negative.
        """
        if reason := solver.refusal(Feature.JOINT_PLAY):
            raise TypeError(f"cannot record the play of {solver.algorithm}: {reason}")
        if max_profiles is None:
            max_profiles = max(1, DEFAULT_BYTES // (8 * solver.game.num_sequences))
        self._solver = solver
        self._max_profiles = checked_count(max_profiles, "profiles", least=1)
        self._random = np.random.default_rng(checked_seed(seed))
        self._start = solver.iteration
        self._kept: list[tuple[int, np.ndarray]] = []  # iterations and policies
        self._next = self._start + 1  # the next iteration that is kept
        self._log_threshold = 0.0  # Algorithm L's log W

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more iterations of the solver, with the same doubles as without recording.

        Raises:
          TypeError, ValueError: not an integer, or negative.
          ValueError: the solver has done an iteration that was to be kept, without the recorder.
        """
        stop = self._solver.iteration + checked_count(num_iterations)
        while self._solver.iteration < stop:
            done = self._solver.iteration
            if self._next <= done:
                raise ValueError(f"the solver has done iteration {self._next} without the recorder; make a new recorder")
            if self._next == done + 1:
                self._keep(self._next, self._solver.self_play.current_policy())
            self._solver.run(min(self._next - 1, stop) - done)

    def _keep(self, iteration: int, policy: np.ndarray) -> None:
        """Stores the policy of an iteration that will be done, and draws the next one that is stored."""
        number = iteration - self._start
        if number <= self._max_profiles:
            self._kept[number - 1 :] = [(iteration, policy)]
            self._next = self._skipping(iteration) if number == self._max_profiles else iteration + 1
            return
        replaced, following = int(self._random.integers(self._max_profiles)), self._skipping(iteration)
        self._kept[replaced] = (iteration, policy)
        self._next = following

    def _skipping(self, iteration: int) -> int:
        """The next iteration that is kept after `iteration`."""
        self._log_threshold -= max(self._random.exponential(), 1e-300) / self._max_profiles
        skipped = self._random.exponential() / -_log_complement(self._log_threshold)
        return iteration + 1 + int(skipped)

    def play(self) -> JointPlay:
        """The joint play of the recorded iterations: each kept profile has the same probability.

        If all iterations are kept, its `regrets` are the solver's average regrets. Otherwise it is a play of its own, whose
        quantities estimate those of all iterations.

        Raises:
          ValueError: no iterations have been recorded.
        """
        done = self._solver.iteration
        kept = sorted((pair for pair in self._kept if pair[0] <= done), key=lambda pair: pair[0])
        if not kept:
            raise ValueError("no iterations have been recorded")
        return JointPlay(
            self._solver.game,
            policies=sealed(np.array([policy for _, policy in kept])),
            probabilities=sealed(np.full(len(kept), 1 / len(kept))),
            iterations=sealed(np.array([iteration for iteration, _ in kept], np.int64)),
            num_iterations=done - self._start,
        )
