"""Self-play in which all iterations happen in compiled code.

`CompiledSelfPlay` lays out the arrays and makes the schedules for `kernels.cfr.self_play`, which is the loop of `self_play` for
CFR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numba
import numpy as np

from spiel_cfrplus._utils.validation import checked_positive
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import cfr as cfr_kernels
from spiel_cfrplus.kernels import parallel as parallel_kernels
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.regret_minimizers.cfr import allocate_state
from spiel_cfrplus.regret_minimizers.minimizer import checked_weight
from spiel_cfrplus.regret_minimizers.regret_matching import LocalRule, checked_discounts
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.partition import Partition, partition_game
from spiel_cfrplus.solving.symmetry import Reduction
from spiel_cfrplus.solving.threads import Barrier, run_together

# Steps of one call into compiled code: some tenths of a second. Between calls Python may deliver Ctrl-C; a call costs some ten
# microseconds.
_WORK_PER_CALL = 200_000_000
_MOST_ITERATIONS_PER_CALL = 100_000
# Fewer steps, about two milliseconds of work, are not worth a team of threads, which takes some tenths of one to make.
_LEAST_WORK_OF_TEAM = 2_000_000


def blocks(done: int, num_iterations: int, work: int) -> Iterator[np.ndarray]:
    """The numbers of the next iterations, in blocks for one call into compiled code each.

    Args:
      done: iterations done.
      num_iterations: how many more.
      work: steps of one iteration.
    """
    at_once = max(1, min(_MOST_ITERATIONS_PER_CALL, _WORK_PER_CALL // work))
    for first in range(done + 1, done + num_iterations + 1, at_once):
        yield np.arange(first, min(first + at_once, done + num_iterations + 1))


def work_of_iteration(played: SequenceFormGame | Reduction) -> int:
    """Steps of one iteration, roughly; a sequence takes part in several passes."""
    return len(played.payoff_arrays.entry_utility) + 10 * played.num_sequences


class CompiledSelfPlay:
    """The setup with one rule of the regret-matching family at all decision points of all players, compiled.

    With `exact_ties` stored regrets that an update leaves within `SequenceFormGame.tie_tolerance` are zero, so that exact ties
    of actions stay ties.

    Attributes:
      game: the compiled game.
      local_rule, averaging, alternating, prediction_weight, exact_ties: how it is played.
      threads: how many play it.
      reduction: what is iterated on instead of the whole game, or None.
      partition: how that is divided among threads, or None.
      state: everything that iterations change, over the sequences of the partition or of the reduction if there is one.
    """

    def __init__(
        self,
        game: SequenceFormGame,
        local_rule: LocalRule,
        averaging: Averaging,
        alternating: bool,
        prediction_weight: float = 0.0,
        exact_ties: bool = True,
        reduction: Reduction | None = None,
        threads: int = 1,
    ):
        self.game = game
        self.reduction = reduction
        self.local_rule = local_rule
        self.averaging = averaging
        self.alternating = alternating
        self.prediction_weight = checked_weight(prediction_weight)
        self.exact_ties = exact_ties
        self.threads = checked_positive(threads, "threads")
        self._played = game if reduction is None else reduction
        self.partition = partition_game(self._played, self.threads) if self.threads > 1 else None
        self._arrays = self._played if self.partition is None else self.partition
        treeplexes = self._arrays.treeplex_arrays
        num_sequences = int(treeplexes.sequence_start[-1])
        tie_tolerance = np.zeros(num_sequences) if exact_ties else None
        self.state = allocate_state(num_sequences, tie_tolerance, len(treeplexes.player_block) - 1)
        if exact_ties:
            self._write({"tie_tolerance": self._played.tie_tolerance})
        self._recall_strategies()

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return int(self.state.iteration[0])

    def run(self, num_iterations: int) -> None:
        """Plays `num_iterations` more. An interrupt takes effect between two iterations and loses none."""
        for iterations in blocks(self.iteration, num_iterations, work_of_iteration(self._played)):
            how = (
                self.alternating,
                self.prediction_weight or None,
                self.averaging.first_iterate(self.game.num_players, self.alternating),
                checked_discounts(self.local_rule, iterations),
                self.averaging.weights(iterations),
            )
            if self.partition is None:
                cfr_kernels.self_play(self._arrays.treeplex_arrays, self._arrays.payoff_arrays, self.state, *how)
            else:
                self._run_in_parts(self.partition, how, len(iterations) * work_of_iteration(self._played))

    def _run_in_parts(self, partition: Partition, how: tuple[Any, ...], work: int) -> None:
        """Has threads do what is not too little work, in steps, for that; one thread gets the same doubles."""
        *options, discounts, weights = how

        def run_member(member: int, barrier: np.ndarray, num_members: int, discounts: np.ndarray, weights: np.ndarray) -> None:
            parallel_kernels.self_play_in_parts(
                partition.treeplex_arrays,
                partition.payoff_arrays,
                self.state,
                partition.num_parts,
                barrier,
                member,
                num_members,
                *options,
                discounts,
                weights,
            )

        # Where Numba compiles nothing, there are no atomic operations for a barrier.
        if work < _LEAST_WORK_OF_TEAM or vars(numba.config)["DISABLE_JIT"]:
            run_member(0, Barrier(0).values, 1, discounts, weights)
        else:
            run_member(0, Barrier(0).values, 1, discounts[:0], weights[:0])  # compiles
            run_together(self.threads, lambda member, barrier: run_member(member, barrier, self.threads, discounts, weights))

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays of `state` from which another session of the same game can go on, whatever threads it has.

        They may be the session's own, not copies.
        """
        names = ["cumulative_regrets", "cumulative_policy", "iteration", *(["utility"] if self.prediction_weight else [])]
        return {name: self._read(name) for name in names}

    def _read(self, name: str) -> np.ndarray:
        """An array of `state` as it is without a partition."""
        values = getattr(self.state, name)
        if self.partition is None:
            return values
        return values[self.partition.top_trees if name == "iteration" else self.partition.number]

    def _write(self, saved: Mapping[str, np.ndarray]) -> None:
        """Sets arrays of `state` to what `_read` would give."""
        for name, values in saved.items():
            if self.partition is None:
                getattr(self.state, name)[:] = values
            elif name == "iteration":
                self.state.iteration[:] = np.repeat(values, self.partition.num_parts + 1)
            else:
                getattr(self.state, name)[self.partition.number] = values

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        """Takes over what `state_dict` gave in another session of the same game; the current strategies follow from it.

        Raises:
          ValueError: other arrays than `state_dict` gives, or of other shapes.
        """
        mine = self.state_dict()
        if saved.keys() != mine.keys():
            raise ValueError(f"expected arrays {list(mine)}, got {list(saved)}")
        for name, values in saved.items():
            if values.shape != mine[name].shape:
                raise ValueError(f"{name} has shape {values.shape}, expected {mine[name].shape}")
        self._write(saved)
        self._recall_strategies()

    def _recall_strategies(self) -> None:
        cfr_kernels.strategies_from_regrets(self._arrays.treeplex_arrays, self.state, self.prediction_weight or None)

    def on_the_whole_game(self) -> CompiledSelfPlay:
        """The same session without iterations and without reduction."""
        how = (self.local_rule, self.averaging, self.alternating, self.prediction_weight, self.exact_ties)
        return CompiledSelfPlay(self.game, *how, threads=self.threads)

    def __reduce__(self) -> tuple[Any, ...]:
        how = (self.local_rule, self.averaging, self.alternating, self.prediction_weight, self.exact_ties)
        return _resume, ((self.game, *how, self.reduction, self.threads), self.state_dict())

    def current_policy(self) -> np.ndarray:
        """The current behavioral policies of all players, float64 (S,)."""
        policy = self._read("policy")
        return policy.copy() if self.reduction is None else self.reduction.policy(policy)

    def cumulative_regrets(self) -> np.ndarray:
        """The regret tables of all players, float64 (S,), in game units."""
        regrets = self._read("cumulative_regrets")
        return regrets.copy() if self.reduction is None else self.reduction.regrets(regrets)

    def tie_tolerance(self) -> np.ndarray:
        """What regrets must exceed to count, float64 (S,), in game units."""
        if not self.exact_ties:
            return np.zeros(self.game.num_sequences)
        tie_tolerance = self._read("tie_tolerance")
        return tie_tolerance.copy() if self.reduction is None else self.reduction.regrets(tie_tolerance)

    def average_policy(self) -> np.ndarray:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform where a player has never come."""
        policy, sums = np.ones(self.game.num_sequences), self._read("cumulative_policy")
        if self.reduction is not None:
            sums = self.reduction.sequence_form(sums)
        for player in range(self.game.num_players):
            passes.match_all_regrets(self.game.treeplex_arrays, player, sums, policy)
        return policy


def _resume(options: tuple[Any, ...], saved: Mapping[str, np.ndarray]) -> CompiledSelfPlay:
    session = CompiledSelfPlay(*options)
    session.load_state_dict(saved)
    return session
