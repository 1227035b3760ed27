"""Self-play in which all iterations happen in compiled code.

`CompiledSelfPlay` lays out the arrays and makes the schedules for `kernels.self_play`, the loop that receives its rule.
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
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.partition import Partition, partition_game
from spiel_cfrplus.solving.session import (
    ALONE,
    NO_ACCOUNT,
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

# Steps of one call into compiled code: some tenths of a second. Between calls Python may deliver Ctrl-C; a call costs some ten
# microseconds.
_WORK_PER_CALL = 200_000_000
_MOST_ITERATIONS_PER_CALL = 100_000
# Fewer steps, about two milliseconds of work, are not worth a team of threads, which takes some tenths of one to make.
_LEAST_WORK_OF_TEAM = 2_000_000


# What depends on what an update does.
_OF_THE_UPDATE = (Feature.CHECKPOINT, Feature.WARM_START, *STATEMENTS)
# What a session has that is no attribute of a subclass.
_ATTRIBUTES = (
    *("game", "rule", "averaging", "alternating", "exact_ties", "reduction", "threads", "records_utilities", "partition"),
    *("state", "memory", "_played", "_treeplexes", "_payoffs", "_functions", "_parameters"),
)


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


class CompiledSelfPlay(OptionalFeatures):
    """Self-play of players who all learn by one compiled rule.

    With `exact_ties` stored regrets that an update leaves within `SequenceFormGame.tie_tolerance` are zero, so that exact ties
    of actions stay ties.

    Attributes:
      game: the compiled game.
      rule: what happens to a player's memory and policy in an update.
      averaging, alternating, exact_ties: how it is played.
      threads: how many play it.
      reduction: what is iterated on instead of the whole game, or None.
      partition: how that is divided among threads, or None.
      state, memory: everything that iterations change, over the sequences of the partition or of the reduction if there is one.
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
        """Lays out the arrays; nothing is played.

        Args:
          game, rule, averaging, alternating, exact_ties, reduction, threads: see above.
          records_utilities: whether the utilities are summed, for `regrets` and `cce_gap`.

        Raises:
          ValueError: the rule cannot be used with a reduction or with threads, or utilities cannot be recorded with these.
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
        """What kernels iterate on."""
        arrays = self._played if self.partition is None else self.partition
        treeplexes = arrays.treeplex_arrays
        if self.reduction is not None and not getattr(self.rule, "scale_free", False):
            copies = np.ones(len(treeplexes.parent_sequence))
            copies[self._infostates] = self.reduction.infostate_copies
            treeplexes = treeplexes._replace(copies=copies)
        return treeplexes, arrays.payoff_arrays

    def _tie_tolerance(self) -> np.ndarray | None:
        """What regrets must exceed to count, over the sequences that kernels iterate on."""
        if not self.exact_ties:
            return None
        tolerance = np.zeros(int(self._treeplexes.sequence_start[-1]))
        tolerance[slice(None) if self.partition is None else self.partition.number] = self._played.tie_tolerance
        return sealed(tolerance)

    @property
    def _infostates(self) -> np.ndarray | slice:
        """Where the infostates of what is played stand in arrays (J,)."""
        return slice(None) if self.partition is None else self.partition.infostate_number

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return int(self.state.iteration[0])

    def run(self, num_iterations: int) -> None:
        """Plays `num_iterations` more. An interrupt takes effect between two iterations and loses none."""
        for iterations in blocks(self.iteration, num_iterations, work_of_iteration(self._played)):
            table = self.rule.parameter_table(iterations)
            steps = self_play.Steps(table, self.rule.skips_unreached(table), self.averaging.weights(iterations))
            with compile_errors_name(self.rule):
                self._play(steps)

    def _play(self, steps: self_play.Steps) -> None:
        arguments = (*self._functions, self.memory, self._parameters, steps, self.alternating, self._first_iterate())
        if self.partition is None:
            self_play.self_play(self._treeplexes, self._payoffs, self.state, *arguments)
        else:
            self._play_in_parts(self.partition, steps)

    def _first_iterate(self) -> np.ndarray:
        return self.averaging.first_iterate(self.game.num_players, self.alternating)

    def _play_in_parts(self, partition: Partition, steps: self_play.Steps) -> None:
        """Has threads do what is not too little work, in steps, for that; one thread gets the same doubles."""

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
        # Where Numba compiles nothing, there are no atomic operations for a barrier.
        if work < _LEAST_WORK_OF_TEAM or vars(numba.config)["DISABLE_JIT"]:
            run_member(0, Barrier(0).values, 1, steps)
        else:
            run_member(0, Barrier(0).values, 1, self_play.Steps(*(array[:0] for array in steps)))  # compiles
            run_together(self.threads, lambda member, barrier: run_member(member, barrier, self.threads, steps))

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays from which another session of the same game can go on, whatever threads it has.

        They may be the session's own, not copies.
        """
        names = ["policy", "cumulative_policy", "iteration", *self.rule.kept]
        if self.records_utilities:
            names += ["cumulative_utility", "cumulative_value"]
        return {name: self._read(name) for name in names}

    def _array(self, name: str) -> np.ndarray:
        array: np.ndarray = getattr(self.memory if hasattr(self.memory, name) else self.state, name)
        return array

    def _read(self, name: str) -> np.ndarray:
        """An array of the state or the memory as it is without a partition."""
        values = self._array(name)
        if self.partition is None:
            return values
        if name == "iteration":
            return np.asarray(values[self.partition.top_trees])
        numbers = self.partition.infostate_number if name in self.rule.per_infostate else self.partition.number
        return np.asarray(values[numbers])

    def _write(self, saved: Mapping[str, np.ndarray]) -> None:
        """Sets arrays of the state and the memory to what `_read` would give."""
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
        """Takes over what `state_dict` gave in another session of the same game and rule.

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
        passes.strategies_of_policy(self._treeplexes, self.state.policy, self.state.reach)

    def on_the_whole_game(self) -> CompiledSelfPlay:
        """The same session without iterations and without reduction."""
        how = (self.rule, self.averaging, self.alternating, self.exact_ties)
        return type(self)(self.game, *how, threads=self.threads, records_utilities=self.records_utilities)

    def refusal(self, feature: Feature) -> str:
        """See `Session.refusal`. A user's subclass may have an update of its own, of which nothing is known."""
        if feature in _OF_THE_UPDATE and type(self) not in (CompiledSelfPlay, CompiledBestResponsePlay):
            return f"a {type(self).__name__} may have an update of its own"
        if reason := self.refusals.get(feature, ""):
            return reason
        if feature in STATEMENTS:
            return self.rule.statement_refusal(feature.value, self.iteration)
        if feature is Feature.WARM_START:
            return self._warm_start_refusal()
        if feature in (Feature.REGRETS, Feature.CCE) and not self.records_utilities:
            return NO_ACCOUNT
        if feature is Feature.CCE and (self.iteration == 0 or self.alternating):
            return TOGETHER_ONLY
        return ""

    def _warm_start_refusal(self) -> str:
        if not self.rule.matches_regrets:
            return f"the memory that leads to a policy is known for regret matching only, not for {self.rule.name}"
        if self.records_utilities:
            return "what the players would have earned does not follow from a policy"
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
        """What regrets must exceed to count, float64 (S,), in game units."""
        if not self.exact_ties:
            return np.zeros(self.game.num_sequences)
        tie_tolerance = self._read("tie_tolerance")
        return tie_tolerance.copy() if self.reduction is None else self.reduction.regrets(tie_tolerance)

    def average_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform where a player has never come."""
        policy, sums = np.ones(self.game.num_sequences), self._read("cumulative_policy")
        if self.reduction is not None:
            sums = self.reduction.sequence_form(sums)
        for player in range(self.game.num_players):
            passes.match_all_regrets(self.game.treeplex_arrays, player, sums, policy)
        return policy

    def regrets(self) -> npt.NDArray[np.float64]:
        """Every player's external regret, float64 (n,), in game units; with `records_utilities`.

        Raises:
          ValueError: without.
        """
        if self.state.cumulative_utility is None or self.state.cumulative_value is None:
            raise ValueError(self.refusal(Feature.REGRETS))
        pairs = zip(self.game.treeplexes, self.game.player_slices, strict=True)
        best = [treeplex.best_value(self.state.cumulative_utility[own]) for treeplex, own in pairs]
        return np.asarray(np.array(best) - self.state.cumulative_value)

    def cce_gap(self) -> float:
        """See `SelfPlay.cce_gap`.

        Raises:
          ValueError: no iterations yet, or alternating updates, or the utilities were not recorded.
        """
        if reason := self.refusal(Feature.CCE):
            raise ValueError(reason)
        return max(0.0, float(self.regrets().max()) / self.iteration)


class CompiledBestResponsePlay(CompiledSelfPlay):
    """Both players learn against best responses to their own strategies: CFR-BR, see `best_response_play`."""

    refusals: ClassVar[Mapping[Feature, str]] = {
        **dict.fromkeys((Feature.REGRETS, Feature.CCE, Feature.REDUCTION, Feature.THREADS), ALONE),
        **dict.fromkeys((Feature.THEORY, *STATEMENTS), NOT_ABOUT_CFR_BR),
        Feature.WARM_START: "how large the regrets must be is known for self-play only",
    }

    def _play(self, steps: self_play.Steps) -> None:
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


def _resume(
    kind: type[CompiledSelfPlay], options: tuple[Any, ...], saved: Mapping[str, np.ndarray], own: dict[str, Any]
) -> CompiledSelfPlay:
    """A session of the same class; a subclass may have a constructor and attributes of its own."""
    session = kind.__new__(kind)
    CompiledSelfPlay.__init__(session, *options)
    session.load_state_dict(saved)
    vars(session).update(own)
    return session
