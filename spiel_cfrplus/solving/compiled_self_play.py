"""Self-play with all iterations in compiled code.

`CompiledSelfPlay` allocates the arrays and computes the schedules for `kernels.self_play`, the loop that receives its rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import sealed
from spiel_cfrplus._utils.validation import checked_positive
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import parallel, passes, self_play
from spiel_cfrplus.kernels.layouts import PayoffArrays, TreeplexArrays
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule, compile_errors_name, start_state
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.rule_trial import check_policy, try_rule
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.partition import Partition, partition_game
from spiel_cfrplus.solving.session import (
    ALONE,
    NO_ACCOUNT,
    NO_ITERATIONS,
    NO_REGRET_TABLES,
    NOT_ABOUT_CFR_BR,
    STATEMENTS,
    TOGETHER_ONLY,
    Feature,
    OptionalFeatures,
    SessionOptions,
    Tables,
)
from spiel_cfrplus.solving.symmetry import Reduction
from spiel_cfrplus.solving.threads import Barrier, run_together

# Steps of one call into compiled code: some tenths of a second. Python handles Ctrl-C between calls; a call takes about ten
# microseconds.
_WORK_PER_CALL = 200_000_000
_MOST_ITERATIONS_PER_CALL = 100_000
# Starting the threads takes some tenths of a millisecond. Less work than this, about two milliseconds, is done by one thread.
_LEAST_WORK_OF_TEAM = 2_000_000


# Features that depend on the update.
_OF_THE_UPDATE = (Feature.CHECKPOINT, Feature.WARM_START, Feature.JOINT_PLAY, *STATEMENTS)
# The attributes of this class; pickling preserves any others of a subclass.
_ATTRIBUTES = (
    *("game", "rule", "averaging", "alternating", "exact_ties", "reduction", "threads", "records_utilities", "partition"),
    *("state", "memory", "_played", "_treeplexes", "_payoffs", "_functions", "_parameters"),
)


def blocks(done: int, num_iterations: int, work: int) -> Iterator[np.ndarray]:
    """The numbers of the next iterations, in one block for each call into compiled code.

    Args:
      done: iterations done.
      num_iterations: the number of further iterations.
      work: steps of one iteration.
    """
    at_once = max(1, min(_MOST_ITERATIONS_PER_CALL, _WORK_PER_CALL // work))
    for first in range(done + 1, done + num_iterations + 1, at_once):
        yield np.arange(first, min(first + at_once, done + num_iterations + 1))


def work_of_iteration(played: SequenceFormGame | Reduction) -> int:
    """The approximate number of steps of one iteration; several passes visit each sequence."""
    return len(played.payoff_arrays.entry_utility) + 10 * played.num_sequences


class CompiledSelfPlay(OptionalFeatures):
    """Self-play in which all players use the same compiled rule.

    With `exact_ties`, an update sets stored regrets within `SequenceFormGame.tie_tolerance` of zero to zero, so that exact ties
    of actions remain ties.

    Attributes:
      game: the compiled game.
      rule: the update of a player's memory and policy.
      averaging, alternating, exact_ties: see `Solver`.
      threads: the number of threads.
      reduction: the reduced game that is iterated on, or None.
      partition: its division among threads, or None.
      state, memory: all arrays that iterations change, over the sequences of the partition or of the reduction if there is one.
    """

    refusals: ClassVar[Mapping[Feature, str]] = {}

    def __init__(
        self,
        game: SequenceFormGame,
        rule: CompiledRule,
        averaging: Averaging,
        alternating: bool,
        exact_ties: bool = True,
        reduction: Reduction | None = None,
        threads: int = 1,
        records_utilities: bool = False,
    ):
        """Allocates the arrays; does not iterate.

        Args:
          game, rule, averaging, alternating, exact_ties, reduction, threads: see above.
          records_utilities: whether the utilities are summed, for `regrets` and `cce_gap`.

        Raises:
          ValueError: the rule cannot be used with a reduction or with threads, or utilities cannot be recorded with threads.
        """
        self.game = game
        self.rule = rule
        self.averaging = averaging
        self.alternating = alternating
        self.exact_ties = exact_ties
        self.reduction = reduction
        self.threads = checked_positive(threads, "threads")
        self.records_utilities = records_utilities
        self._played = game if reduction is None else reduction
        self.partition = partition_game(self._played, self.threads) if self.threads > 1 else None
        self._treeplexes, self._payoffs = self._arrays()
        self._functions, self._parameters = rule.functions, rule.empty_parameters()
        self.memory = rule.memory(self._treeplexes, self._tie_tolerance())
        self.state = start_state(self._treeplexes, rule.initial_arrays(self._treeplexes).get("policy"), records_utilities)

    def _arrays(self) -> tuple[TreeplexArrays, PayoffArrays]:
        """The arrays that kernels iterate on."""
        arrays = self._played if self.partition is None else self.partition
        treeplexes = arrays.treeplex_arrays
        if self.reduction is not None and not getattr(self.rule, "scale_free", False):
            copies = np.ones(len(treeplexes.parent_sequence))
            copies[self._infostates] = self.reduction.infostate_copies
            treeplexes = treeplexes._replace(copies=copies)
        return treeplexes, arrays.payoff_arrays

    def _tie_tolerance(self) -> np.ndarray | None:
        """The tie tolerance over the sequences that kernels iterate on, or None."""
        if not self.exact_ties:
            return None
        tolerance = np.zeros(int(self._treeplexes.sequence_start[-1]))
        tolerance[slice(None) if self.partition is None else self.partition.number] = self._played.tie_tolerance
        return sealed(tolerance)

    @property
    def _infostates(self) -> np.ndarray | slice:
        """The positions in arrays (J,) of the infostates that are iterated on."""
        return slice(None) if self.partition is None else self.partition.infostate_number

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return int(self.state.iteration[0])

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more. An interrupt takes effect between two iterations and loses none.

        With 0 iterations it only loads or compiles the kernels.
        """
        if num_iterations == 0:
            self._play_rule(_no_steps(self._steps(np.array([self.iteration + 1]))))
        for iterations in blocks(self.iteration, num_iterations, work_of_iteration(self._played)):
            self._play_rule(self._steps(iterations))

    def _steps(self, iterations: np.ndarray) -> self_play.Steps:
        table = self.rule.parameter_table(iterations)
        return self_play.Steps(table, self.rule.skips_unreached(table), self.averaging.weights(iterations))

    def _play_rule(self, steps: self_play.Steps) -> None:
        """Plays the steps; an error of the compiler names the rule."""
        with compile_errors_name(self.rule):
            if self.rule.is_built_in:
                self._play(steps)
            else:
                self._play_checked(steps)

    def _play_checked(self, steps: self_play.Steps) -> None:
        """The same for a rule of a user, which is tried before its first use; an error leaves the session as it was.

        Raises:
          ValueError: the policies are no distributions any more.
        """
        if isinstance(self.rule, LocalRule):
            try_rule(self.rule)
        before = {name: values.copy() for name, values in self.state_dict().items()}
        try:
            self._play(steps)
            check_policy(self.rule, self._treeplexes, self.state.policy)
        except Exception:
            self.load_state_dict(before)
            raise

    def _keep_average(self, steps: self_play.Steps) -> None:
        """Multiplies the sums of strategies by `Averaging.kept` if there are steps."""
        if len(steps.weights) > 0:
            self.state.cumulative_policy[:] *= self.averaging.kept

    def _play(self, steps: self_play.Steps) -> None:
        self._keep_average(steps)
        arguments = (*self._functions, self.memory, self._parameters, steps, self.alternating, self._first_iterate())
        if self.partition is None:
            self_play.self_play(self._treeplexes, self._payoffs, self.state, *arguments)
        else:
            self._play_in_parts(self.partition, steps)

    def _first_iterate(self) -> np.ndarray:
        return self.averaging.first_iterate(self.game.num_players, self.alternating)

    def _play_in_parts(self, partition: Partition, steps: self_play.Steps) -> None:
        """Iterates in several threads, or in one if there is little work; the doubles are the same."""

        def run_member(member: int, barrier: np.ndarray, num_members: int, steps: self_play.Steps) -> None:
            parallel.self_play_in_parts(
                self._treeplexes,
                self._payoffs,
                self.state,
                partition.num_parts,
                barrier,
                member,
                num_members,
                *self._functions,
                self.memory,
                self._parameters,
                steps,
                self.alternating,
                self._first_iterate(),
            )

        work = len(steps.weights) * work_of_iteration(self._played)
        # Without compilation there are no atomic operations for a barrier.
        if work < _LEAST_WORK_OF_TEAM or vars(numba.config)["DISABLE_JIT"]:
            run_member(0, Barrier(0).values, 1, steps)
        else:
            run_member(0, Barrier(0).values, 1, _no_steps(steps))  # compiles the kernel
            run_together(self.threads, lambda member, barrier: run_member(member, barrier, self.threads, steps))

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays from which another session of the same game, with any number of threads, can continue.

        They may be the session's own arrays, not copies.
        """
        names = ["policy", "cumulative_policy", "iteration", *self.rule.array_names]
        if self.records_utilities:
            names += ["cumulative_utility", "cumulative_value"]
        return {name: self._read(name) for name in names}

    def _array(self, name: str) -> np.ndarray:
        array: np.ndarray = getattr(self.memory if hasattr(self.memory, name) else self.state, name)
        return array

    def _read(self, name: str) -> np.ndarray:
        """An array of the state or the memory, in the order without partition."""
        values = self._array(name)
        if self.partition is None:
            return values
        if name == "iteration":
            return np.asarray(values[self.partition.top_trees])
        numbers = self.partition.infostate_number if name in self.rule.per_infostate else self.partition.number
        return np.asarray(values[numbers])

    def _write(self, saved: Mapping[str, np.ndarray]) -> None:
        """Sets arrays of the state and the memory, given in the order of `_read`."""
        for name, values in saved.items():
            if self.partition is None:
                self._array(name)[:] = values
            elif name == "iteration":
                self.state.iteration[:] = np.repeat(values, self.partition.num_parts + 1)
            elif name in self.rule.per_infostate:
                self._array(name)[self.partition.infostate_number] = values
            else:
                self._array(name)[self.partition.number] = values

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        """Copies the `state_dict` of another session with the same game and rule.

        Raises:
          ValueError: the names or shapes of the arrays differ from those of `state_dict`.
        """
        mine = self.state_dict()
        if saved.keys() != mine.keys():
            raise ValueError(f"expected arrays {list(mine)}, got {list(saved)}")
        for name, values in saved.items():
            if values.shape != mine[name].shape:
                raise ValueError(f"{name} has shape {values.shape}, expected {mine[name].shape}")
        self._write(saved)
        passes.strategies_of_policy(self._treeplexes, self.state.policy, self.state.reach)

    def on_the_whole_game(self) -> CompiledSelfPlay:
        """The same session at iteration 0 and without reduction."""
        how = (self.rule, self.averaging, self.alternating, self.exact_ties)
        return type(self)(self.game, *how, threads=self.threads, records_utilities=self.records_utilities)

    def refusal(self, feature: Feature) -> str:
        """See `Session.refusal`. A user's subclass may have another update, which is unknown."""
        if feature in _OF_THE_UPDATE and type(self) not in (CompiledSelfPlay, CompiledBestResponsePlay):
            return f"{type(self).__name__} may override the update"
        if reason := self.refusals.get(feature, ""):
            return reason
        if feature in STATEMENTS:
            return self.rule.statement_refusal(feature.value, self.iteration)
        if feature is Feature.WARM_START:
            return self._warm_start_refusal()
        if feature in (Feature.REGRETS, Feature.CCE) and not self.records_utilities:
            return NO_ACCOUNT
        if feature in (Feature.CCE, Feature.JOINT_PLAY) and self.alternating:
            return TOGETHER_ONLY
        if feature is Feature.CCE and self.iteration == 0:
            return NO_ITERATIONS
        if feature is Feature.CUMULATIVE_REGRETS and "regrets" not in self.rule.per_action:
            return NO_REGRET_TABLES
        return ""

    def _warm_start_refusal(self) -> str:
        if not self.rule.matches_regrets:
            return f"the memory for a given policy is known for regret matching only, not for {self.rule.name}"
        if self.records_utilities:
            return "a policy does not determine the sums of utilities"
        return ""

    def tables(self) -> Tables:
        """See `Session.tables`."""
        return Tables(self.current_policy(), self.cumulative_regrets(), self.tie_tolerance())

    def options(self) -> SessionOptions:
        """See `Session.options`."""
        return SessionOptions(self.rule, self.averaging, self.alternating, self.exact_ties, self.reduction is not None)

    def __reduce__(self) -> tuple[Any, ...]:
        how = (
            self.rule,
            self.averaging,
            self.alternating,
            self.exact_ties,
            self.reduction,
            self.threads,
            self.records_utilities,
        )
        own = {name: value for name, value in vars(self).items() if name not in _ATTRIBUTES}
        return _resume, (type(self), (self.game, *how), self.state_dict(), own)

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current behavioral policies of all players, float64 (S,)."""
        policy = self._read("policy")
        return policy.copy() if self.reduction is None else self.reduction.policy(policy)

    def cumulative_regrets(self) -> npt.NDArray[np.float64]:
        """The regret tables of all players, float64 (S,), in game units; zeros if the rule keeps no array `regrets`."""
        if "regrets" not in self.rule.per_action:
            return np.zeros(self.game.num_sequences)
        regrets = self._read("regrets")
        return regrets.copy() if self.reduction is None else self.reduction.regrets(regrets)

    def tie_tolerance(self) -> npt.NDArray[np.float64]:
        """The tie tolerance, float64 (S,), in game units."""
        if not self.exact_ties:
            return np.zeros(self.game.num_sequences)
        tie_tolerance = self._read("tie_tolerance")
        return tie_tolerance.copy() if self.reduction is None else self.reduction.regrets(tie_tolerance)

    def average_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform at infostates that were never reached."""
        policy, sums = np.ones(self.game.num_sequences), self._read("cumulative_policy")
        if self.reduction is not None:
            sums = self.reduction.sequence_form(sums)
        for player in range(self.game.num_players):
            passes.match_all_regrets(self.game.treeplex_arrays, player, sums, policy)
        return policy

    def regrets(self) -> npt.NDArray[np.float64]:
        """The external regret of each player, float64 (n,), in game units; requires `records_utilities`.

        Raises:
          ValueError: the utilities were not recorded.
        """
        if self.state.cumulative_utility is None or self.state.cumulative_value is None:
            raise ValueError(self.refusal(Feature.REGRETS))
        utility = self.state.cumulative_utility
        if self.reduction is not None:
            utility = self.reduction.gradient(utility)
        pairs = zip(self.game.treeplexes, self.game.player_slices, strict=True)
        best = [treeplex.best_value(utility[own]) for treeplex, own in pairs]
        return np.asarray(np.array(best) - self.state.cumulative_value)

    def cce_gap(self) -> float:
        """See `SelfPlay.cce_gap`.

        Raises:
          ValueError: no iterations yet, alternating updates, or the utilities were not recorded.
        """
        if reason := self.refusal(Feature.CCE):
            raise ValueError(reason)
        return max(0.0, float(self.regrets().max()) / self.iteration)


class CompiledBestResponsePlay(CompiledSelfPlay):
    """CFR-BR: both players learn against best responses to their own strategies, see `best_response_play`."""

    refusals: ClassVar[Mapping[Feature, str]] = {
        **dict.fromkeys((Feature.REGRETS, Feature.CCE, Feature.JOINT_PLAY, Feature.REDUCTION, Feature.THREADS), ALONE),
        **dict.fromkeys((Feature.THEORY, *STATEMENTS), NOT_ABOUT_CFR_BR),
        Feature.WARM_START: "the size of the regrets is known for self-play only",
    }

    def _play(self, steps: self_play.Steps) -> None:
        self._keep_average(steps)
        size = int(self._treeplexes.sequence_start[-1])
        self_play.play_against_best_responses(
            self._treeplexes,
            self._payoffs,
            self.state,
            np.ones(size),
            np.ones(size),
            *self._functions,
            self.memory,
            self._parameters,
            steps,
        )


def _no_steps(steps: self_play.Steps) -> self_play.Steps:
    return self_play.Steps(*(array[:0] for array in steps))


def _resume(
    kind: type[CompiledSelfPlay], options: tuple[Any, ...], saved: Mapping[str, np.ndarray], own: dict[str, Any]
) -> CompiledSelfPlay:
    """Makes a session of the same class; a subclass may have another constructor and more attributes."""
    session = kind.__new__(kind)
    CompiledSelfPlay.__init__(session, *options)
    session.load_state_dict(saved)
    vars(session).update(own)
    return session
