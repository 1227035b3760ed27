"""Self-play on a game in parts.

>>> import pyspiel
>>> from spiel_cfrplus.distributed import compile_in_parts
>>> session = DistributedSelfPlay(compile_in_parts(pyspiel.load_game("kuhn_poker"), num_parts=3))
>>> session.run(1000)
>>> round(session.evaluate().nash_conv, 4) < 1e-3
True
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import sealed
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.distributed.compilation import DistributedGame
from spiel_cfrplus.game.sequence_form import tolerance_of_magnitudes
from spiel_cfrplus.kernels import parallel, passes
from spiel_cfrplus.kernels.layouts import PayoffArrays, PlayState, TreeplexArrays
from spiel_cfrplus.kernels.self_play import Steps
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule, compile_errors_name, start_state
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountSchedule
from spiel_cfrplus.regret_minimizers.rule_trial import try_rule
from spiel_cfrplus.solving.algorithms import Algorithm, algorithm_of
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.compiled_self_play import blocks

_NOTHING = np.zeros(0, np.int64), np.zeros(0)


class Values(NamedTuple):
    """The expected utilities of a profile and of the best responses to it, as of `policies.evaluation`.

    Attributes:
      values: float64 (n,), expected utility of each player under the profile.
      best_response_values: float64 (n,), expected utility of each player's best response to the others' policies.
    """

    values: npt.NDArray[np.float64]
    best_response_values: npt.NDArray[np.float64]

    @property
    def nash_conv(self) -> float:
        """The sum of the players' improvements; negative rounding errors are set to zero."""
        return float(np.maximum(self.best_response_values - self.values, 0.0).sum())


class _Tables:
    """The arrays of the top tree or of the parts of a process, and what iterations change."""

    def __init__(self, treeplexes: TreeplexArrays, payoffs: PayoffArrays):
        self.treeplexes = treeplexes
        self.payoffs = payoffs
        self.state: PlayState
        self.memory: object

    @property
    def num_sequences(self) -> int:
        return int(self.treeplexes.sequence_start[-1])

    def array(self, name: str) -> np.ndarray:
        """An array of the rule's memory or of the state."""
        array: np.ndarray = getattr(self.memory if hasattr(self.memory, name) else self.state, name)
        return array


class _Exchange:
    """Sends vectors over boundary sequences.

    Attributes:
      seconds: time spent in exchanges, which is mostly that of waiting for other processes.
    """

    def __init__(self, game: DistributedGame):
        self._communicator = game.communicator
        self._top, self._share = game.top.game, game.share
        numbers = [
            [game.top.boundary_sequences(part, player) + own.start for part in range(game.cut.num_parts)]
            for player, own in enumerate(game.top.game.player_slices)
        ]
        self._targets = [np.concatenate(own).astype(np.int64) for own in numbers]
        owned = [np.flatnonzero(game.rank_of == rank) for rank in range(game.communicator.size)]
        own_parts = owned[game.communicator.rank]
        none = np.zeros(0, np.int64)
        self._own_targets = [np.concatenate([none, *(own[part] for part in own_parts)]) for own in numbers]
        # The processes send the values of their parts, part by part; these are their places among the values of all parts.
        self._counts = [[sum(len(own[part]) for part in parts) for parts in owned] for own in numbers]
        self._place = []
        for own in numbers:
            ends = np.cumsum([len(sequences) for sequences in own])
            spans = [np.arange(end - len(sequences), end) for end, sequences in zip(ends, own, strict=True)]
            self._place.append(np.concatenate([none, *(spans[part] for parts in owned for part in parts)]))
        self.seconds = 0.0

    @property
    def num_boundary(self) -> int:
        """The number of boundary sequences of all parts and players."""
        return sum(map(len, self._targets))

    def targets(self, player: int) -> np.ndarray:
        """int64, the sequences of the top tree to which the values of `up` are added."""
        return self._targets[player]

    def up(self, players: Sequence[int], values: np.ndarray) -> list[np.ndarray]:
        """The values of all boundary sequences of some players, in the order of the parts.

        Args:
          players: the players.
          values: float64 (S,), over the sequences of the parts of this process.
        """
        started = time.perf_counter()
        counts = np.array([self._counts[player] for player in players])
        sent = np.concatenate([values[self._share.boundary[player]] for player in players])
        received = self._communicator.gather(sent, counts.sum(axis=0).tolist())
        # Rank by rank, and for each rank player by player.
        pieces = np.split(received, np.cumsum(counts.T.ravel())[:-1])
        result = []
        for number, player in enumerate(players):
            ordered = np.empty(len(self._targets[player]))
            ordered[self._place[player]] = np.concatenate(pieces[number :: len(players)])
            result.append(ordered)
        self.seconds += time.perf_counter() - started
        return result

    def down(self, player: int, reach: np.ndarray, own_reach: np.ndarray) -> None:
        """Copies the reach of the boundary sequences from the top tree to the parts of this process."""
        own_reach[self._share.boundary[player]] = reach[self._own_targets[player]]


class DistributedSelfPlay:
    """Self-play on a game in parts; all processes call the same methods in the same order.

    Attributes:
      game: the game in parts.
      algorithm: the algorithm.
      averaging, alternating, exact_ties: see `Solver`.
    """

    def __init__(
        self,
        game: DistributedGame,
        algorithm: str | Algorithm | CompiledRule | DiscountSchedule = "cfr+",
        *,
        averaging: str | Averaging = "paper",
        alternating: bool = True,
        exact_ties: bool = True,
    ):
        """Allocates the arrays; does not iterate.

        Args:
          game: the result of `compile_in_parts`.
          algorithm: see `make_solver`.
          averaging, alternating, exact_ties: see `Solver`.

        Raises:
          TypeError: the updates of the algorithm cannot be divided among parts.
          ValueError: see `make_solver`.
        """
        self.algorithm = algorithm_of(algorithm)
        self.algorithm.check_options("threads")
        self.game = game
        self.averaging = averaging if isinstance(averaging, Averaging) else self.algorithm.averaging_with(None, averaging, 0)
        self.alternating = alternating
        self.exact_ties = exact_ties
        self._rule: CompiledRule = self.algorithm.rule
        if not self._rule.is_built_in and isinstance(self._rule, LocalRule):
            try_rule(self._rule)
        self._top = _Tables(game.top.game.treeplex_arrays, game.top.game.payoff_arrays)
        self._own = _Tables(game.share.treeplex_arrays, game.share.payoff_arrays)
        self._tables = (self._top, self._own)
        self._exchange = _Exchange(game)
        for tables in self._tables:
            tables.state = start_state(tables.treeplexes, self._rule.initial_arrays(tables.treeplexes).get("policy"))
        for player in self._players:
            self._share_reach(player, self._top.state.policy, self._own.state.policy)
        tolerances = self._tie_tolerances() if exact_ties else (None, None)
        for tables, tolerance in zip(self._tables, tolerances, strict=True):
            tables.memory = self._rule.memory(tables.treeplexes, tolerance)

    @property
    def _players(self) -> range:
        return range(self.game.num_players)

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return int(self._top.state.iteration[0])

    @property
    def num_boundary(self) -> int:
        """The number of boundary sequences of all parts and players."""
        return self._exchange.num_boundary

    @property
    def seconds_of_exchanges(self) -> float:
        """The time that this process has spent in exchanges, waiting for other processes included."""
        return self._exchange.seconds

    def _share_reach(self, player: int, policy: np.ndarray, own_policy: np.ndarray) -> None:
        """Computes the player's reach of all sequences from its policies in the top tree and in the parts."""
        top, own = self._top.state.reach, self._own.state.reach
        passes.sequence_form(self._top.treeplexes, player, policy, top)
        self._exchange.down(player, top, own)
        passes.sequence_form(self._own.treeplexes, player, own_policy, own)

    def _tie_tolerances(self) -> list[np.ndarray]:
        """The tie tolerances of the top tree and of the parts, see `SequenceFormGame.tie_tolerance`.

        The strategies are uniform.
        """
        absolute = [
            tables.payoffs._replace(entry_utility=sealed(np.abs(tables.payoffs.entry_utility))) for tables in self._tables
        ]
        for player in self._players:
            self._pass_up(player, absolute, self._best_response)
        return [tolerance_of_magnitudes(tables.treeplexes, tables.state.values) for tables in self._tables]

    def _pass_up(self, player: int, payoffs: Sequence[PayoffArrays], values_of: Callable[[_Tables, int], None]) -> np.ndarray:
        """Computes values of a player bottom-up, in the parts and then in the top tree; returns those of the top tree.

        Args:
          player: the player.
          payoffs: of the top tree and of the parts.
          values_of: turns the payoff gradient in `state.values` into values.
        """
        received = np.zeros(0)
        for tables, own_payoffs in zip(reversed(self._tables), reversed(payoffs), strict=True):
            values = tables.state.values
            passes.payoff_gradient(tables.treeplexes, own_payoffs, player, tables.state.reach, values)
            if tables is self._top:
                np.add.at(values, self._exchange.targets(player), received)
            values_of(tables, player)
            if tables is self._own:
                (received,) = self._exchange.up([player], values)
        return self._top.state.values

    def _best_response(self, tables: _Tables, player: int) -> None:
        passes.best_response(tables.treeplexes, player, tables.state.values, np.empty(tables.num_sequences))

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more; with 0 iterations it only loads or compiles the kernels."""
        checked_count(num_iterations)
        with compile_errors_name(self._rule):
            if num_iterations == 0:
                self._load_kernels()
            for iterations in blocks(self.iteration, num_iterations, self.game.share.work_of_iteration):
                self._play(self._steps(iterations))

    def _load_kernels(self) -> None:
        """Loads or compiles the kernels; changes nothing."""
        no_steps = Steps(*(array[:0] for array in self._steps(np.array([self.iteration + 1]))))
        for tables in self._tables:
            self._update(tables, 0, *_NOTHING, no_steps, 0, 0.0)
        self._play_strategy(0, 0.0)  # computes the same sequence form again

    def _steps(self, iterations: np.ndarray) -> Steps:
        table = self._rule.parameter_table(iterations)
        return Steps(table, self._rule.skips_unreached(table), self.averaging.weights(iterations))

    def _play(self, steps: Steps) -> None:
        first_iterate = self.averaging.first_iterate(self.game.num_players, self.alternating)
        for tables in self._tables:
            tables.state.cumulative_policy[:] *= self.averaging.kept
        together = [[player] for player in self._players] if self.alternating else [list(self._players)]
        for step in range(len(steps.weights)):
            weight = float(steps.weights[step])
            for players in together:
                before = [weight if first_iterate[player] == 0 else 0.0 for player in players]
                for player, own_weight in zip(players, before, strict=True):
                    self._update(self._own, player, *_NOTHING, steps, step, own_weight)
                received = self._exchange.up(players, self._own.state.values)
                for player, own_weight, values in zip(players, before, received, strict=True):
                    self._update(self._top, player, self._exchange.targets(player), values, steps, step, own_weight)
                for player, own_weight in zip(players, before, strict=True):
                    self._play_strategy(player, weight - own_weight)

    def _update(
        self,
        tables: _Tables,
        player: int,
        boundary: np.ndarray,
        received: np.ndarray,
        steps: Steps,
        step: int,
        weight: float,
    ) -> None:
        parallel.update_with_boundary(
            tables.treeplexes,
            tables.payoffs,
            tables.state,
            player,
            boundary,
            received,
            *self._rule.functions,
            tables.memory,
            self._rule.empty_parameters(),
            steps,
            step,
            weight,
        )

    def _play_strategy(self, player: int, weight: float) -> None:
        """Computes the sequence form of the player's new policy, and adds it to the average if `weight` is not zero."""
        parallel.play_block(self._top.treeplexes, self._top.state, player, weight)
        self._exchange.down(player, self._top.state.reach, self._own.state.reach)
        parallel.play_block(self._own.treeplexes, self._own.state, player, weight)

    def evaluate(self, last_iterate: bool = False) -> Values:
        """Values and best responses of the average policies, or of the current ones.

        Takes about as long as an iteration. Afterwards iterations continue as if it had not been called.
        """
        num_players = self.game.num_players
        values, best = np.empty(num_players), np.empty(num_players)
        policies = self._policies(last_iterate)
        payoffs = [tables.payoffs for tables in self._tables]
        kept = [tables.state.reach.copy() for tables in self._tables]
        for player in self._players:
            self._share_reach(player, *policies)

        def follow_policy(tables: _Tables, player: int) -> None:
            policy = policies[0] if tables is self._top else policies[1]
            passes.counterfactual_values(tables.treeplexes, player, policy, tables.state.values)

        for player, own in enumerate(self.game.top.game.player_slices):
            values[player] = self._pass_up(player, payoffs, follow_policy)[own.start]
            best[player] = self._pass_up(player, payoffs, self._best_response)[own.start]
        for tables, reach in zip(self._tables, kept, strict=True):
            tables.state.reach[:] = reach
        return Values(values, best)

    def _policies(self, last_iterate: bool) -> list[np.ndarray]:
        """The average or current policies of the top tree and of the parts; 1 at the sequences of roots."""
        if last_iterate:
            return [tables.state.policy.copy() for tables in self._tables]
        policies = []
        for tables in self._tables:
            policy = np.ones(tables.num_sequences)
            for player in self._players:
                passes.match_all_regrets(tables.treeplexes, player, tables.state.cumulative_policy, policy)
            policies.append(policy)
        return policies

    def top_policy(self, last_iterate: bool = False) -> npt.NDArray[np.float64]:
        """The average or current policies in the top tree, float64 (S,), over the sequences of `game.top.game`."""
        return self._policies(last_iterate)[0]

    def part_policies(self, last_iterate: bool = False) -> list[list[npt.NDArray[np.float64]]]:
        """For each part of this process and each player, the average or current policy at its infostates, float64 (S,)."""
        policy = self._policies(last_iterate)[1]
        return [[policy[own] for own in part] for part in self.game.share.sequences]

    @property
    def _saved_names(self) -> list[str]:
        return ["policy", "cumulative_policy", *self._rule.array_names]

    def top_state(self) -> dict[str, np.ndarray]:
        """The arrays of the top tree from which another session can continue."""
        return {name: self._top.array(name) for name in [*self._saved_names, "iteration"]}

    def part_states(self) -> list[dict[str, np.ndarray]]:
        """For each part of this process, the arrays from which another session can continue, player after player."""
        return [
            {
                name: np.concatenate([self._own.array(name)[own] for own in self._slices(place, name)])
                for name in self._saved_names
            }
            for place in range(len(self.game.players))
        ]

    def _slices(self, place: int, name: str) -> Sequence[slice]:
        slices = self.game.share.infostates if name in self._rule.per_infostate else self.game.share.sequences
        return slices[place]

    def load_states(self, top: Mapping[str, np.ndarray], parts: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Copies the `top_state` and the `part_states` of sessions with the same cut and algorithm.

        Args:
          top: the arrays of the top tree.
          parts: those of each part of this process.

        Raises:
          ValueError: the names or shapes of the arrays differ.
        """
        _check_shapes([self.top_state(), *self.part_states()], [top, *parts])
        for name, values in top.items():
            self._top.array(name)[:] = values
        self._own.state.iteration[:] = top["iteration"]
        for place, saved in enumerate(parts):
            for name, values in saved.items():
                slices = self._slices(place, name)
                ends = np.cumsum([own.stop - own.start for own in slices])
                for own, piece in zip(slices, np.split(values, ends[:-1]), strict=True):
                    self._own.array(name)[own] = piece
        for player in self._players:
            self._share_reach(player, self._top.state.policy, self._own.state.policy)


def _check_shapes(expected: Sequence[Mapping[str, np.ndarray]], found: Sequence[Mapping[str, np.ndarray]]) -> None:
    shapes = [[{name: values.shape for name, values in state.items()} for state in states] for states in (expected, found)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"expected arrays of the shapes {shapes[0]}, got {shapes[1]}")
