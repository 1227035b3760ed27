"""A game compiled for iteration: one treeplex per player, and the payoffs where the players' sequences meet.

For two players the payoffs are the matrix A of the sequence form: the expected utility of sequence-form strategies x and y is
x . A y. Here it is kept as a list of its non-zero entries, so that any number of players and general-sum games fit.

>>> import pyspiel
>>> game = compile_game(pyspiel.load_game("kuhn_poker"))
>>> game.num_sequences, len(game.payoffs)
(26, 30)
>>> uniform = [treeplex.sequence_form(treeplex.uniform_policy()) for treeplex in game.treeplexes]
>>> round(float(uniform[0] @ game.payoff_gradient(0, uniform)), 12)
0.125
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen, sealed
from spiel_cfrplus._utils.validation import checked_player
from spiel_cfrplus.game.chance_normalization import normalized
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.payoffs import group_payoffs, sum_by_rows
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.treeplex import Treeplex, join_treeplexes
from spiel_cfrplus.game.walk_cache import cached_tree
from spiel_cfrplus.game.walk_limits import WalkLimits, memory_errors_name
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.kernels import tree as tree_kernels

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SequenceFormGame(Immutable):
    """A game compiled for iteration: n treeplexes and E payoffs; read-only.

    Attributes:
      tree: the game tree it was made from.
      treeplexes: one for each player.
      payoff_sequences: int32 (E, n), distinct tuples of the players' last sequences, one row for each tuple at which some
        play ends.
      payoffs: float64 (E, n), each player's utility there: the sum over these plays of chance probability times returns, in
        game units. Tuples that pay nobody anything are left out.
    """

    tree: GameTree
    treeplexes: tuple[Treeplex, ...]
    payoff_sequences: np.ndarray
    payoffs: np.ndarray

    def _summary(self) -> str:
        sizes = f"{self.num_infostates} infostates, {self.num_sequences} sequences, {len(self.payoffs)} payoffs"
        return f"{self.tree.game}{self.tree.below_roots}, {sizes}"

    @classmethod
    def from_tree(cls, tree: GameTree) -> SequenceFormGame:
        """Derives the sequence form; chance probabilities are normalized, see `chance`.

        Raises:
          MemoryError: memory ran out.
          ValueError: a player does not have perfect recall, or meets an infostate twice on one path.

        Warns:
          UserWarning: chance probabilities do not sum to 1 and were divided by their sum.
        """
        with memory_errors_name(lambda: f"{tree.game}, compiling {tree.num_histories} histories"):
            return _compile(normalized(tree))

    @property
    def description(self) -> str:
        """What it was made from and how large it is; names where a sub-game starts, and how many infostates are locked."""
        return self._summary()

    @property
    def num_players(self) -> int:
        return len(self.treeplexes)

    @property
    def num_infostates(self) -> int:
        return self.tree.num_infostates

    @property
    def num_sequences(self) -> int:
        """Sequences of all players, the empty ones included."""
        return sum(treeplex.num_sequences for treeplex in self.treeplexes)

    @property
    def is_whole_game(self) -> bool:
        """Whether all infostates of the `pyspiel` game are infostates here; not so in a sub-game or with locked infostates."""
        return self.tree.roots == ((),)

    @functools.cached_property
    def is_two_player_constant_sum(self) -> bool:
        """Whether there are two players and all plays return the same sum, up to rounding; whatever the game type says."""
        sums = self.tree.returns.sum(axis=1)
        return self.num_players == 2 and bool(np.ptp(sums) <= 1e-9 * np.abs(self.tree.returns).max())

    @functools.cached_property
    def player_slices(self) -> tuple[slice, ...]:
        """Where each player's sequences stand in a vector over the sequences of all players."""
        stops = np.cumsum([treeplex.num_sequences for treeplex in self.treeplexes]).tolist()
        return tuple(slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False))

    @functools.cached_property
    def treeplex_arrays(self) -> layouts.TreeplexArrays:
        return join_treeplexes(self.treeplexes)

    @functools.cached_property
    def payoff_arrays(self) -> layouts.PayoffArrays:
        return group_payoffs(self.payoff_sequences, self.payoffs, [own.start for own in self.player_slices])

    def derived(self, make: Callable[[SequenceFormGame], T]) -> T:
        """`make(self)`, called once and kept as long as the game."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return cast(T, self._derived[make])

    @functools.cached_property
    def _derived(self) -> dict[object, object]:
        return {}

    @functools.cached_property
    def tie_tolerance(self) -> np.ndarray:
        """The regret that rounding may leave where there is none, float64 (S,), over all players' sequences.

        At each infostate it is 2^-44 of the magnitude of what the first iteration sums into its regrets: of the absolute
        payoffs that the player can bring about from there, each times the reach of the others when they play uniformly.
        So it is in the unit of the payoffs, and small where chance or the others seldom lead.
        """
        arrays = self.treeplex_arrays
        payoffs = self.payoff_arrays._replace(entry_utility=frozen(np.abs(self.payoff_arrays.entry_utility), np.float64))
        uniform = np.concatenate([treeplex.sequence_form(treeplex.uniform_policy()) for treeplex in self.treeplexes])
        magnitude, response = np.empty(self.num_sequences), np.empty(self.num_sequences)
        for player in range(self.num_players):
            passes.payoff_gradient(arrays, payoffs, player, uniform, magnitude)
            passes.best_response(arrays, player, magnitude, response)
        largest = np.maximum.reduceat(magnitude, arrays.sequence_start[:-1])
        return frozen(layouts.RELATIVE_TIE_TOLERANCE * np.repeat(largest, np.diff(arrays.sequence_start)), np.float64)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A digest of everything that iterations depend on; equal for equal games, whatever they are called."""
        digest = hashlib.sha256()
        for treeplex in self.treeplexes:
            digest.update(json.dumps(treeplex.infostate_keys).encode())
            for part in (treeplex.sequence_start, treeplex.parent_sequence, treeplex.actions):
                digest.update(part.tobytes())
        digest.update(self.payoff_sequences.tobytes())
        digest.update(self.payoffs.tobytes())
        return digest.hexdigest()

    def behavioral_policies(self, strategies: Sequence[np.ndarray]) -> np.ndarray:
        """The players' sequence-form strategies, or multiples of them, as behavioral policies, float64 (S,).

        Uniform where a player does not come, see `Treeplex.behavioral_policy`.
        """
        pairs = zip(self.treeplexes, strategies, strict=True)
        return np.concatenate([treeplex.behavioral_policy(strategy) for treeplex, strategy in pairs])

    def payoff_gradient(self, player: int, strategies: Sequence[np.ndarray]) -> np.ndarray:
        """The gradient of the player's expected utility in its sequence-form strategy (g = A x_1 for player 0 of two).

        Args:
          player: whose utility.
          strategies: a sequence-form strategy for each player; the player's own is not read.

        Returns:
          float64 (S,); the expected utility of a strategy x is x . g.

        Raises:
          TypeError, ValueError: there is no such player, or the strategies are not one number per sequence for each player.
        """
        player = checked_player(player, self.num_players, self.tree.game)
        shapes = [np.shape(strategy) for strategy in strategies]
        if shapes != [(treeplex.num_sequences,) for treeplex in self.treeplexes]:
            raise ValueError(f"expected one sequence-form strategy for each player, got shapes {shapes}")
        gradient = np.empty(self.num_sequences)
        passes.payoff_gradient(
            self.treeplex_arrays, self.payoff_arrays, player, np.concatenate(strategies, dtype=np.float64), gradient
        )
        return gradient[self.player_slices[player]]


def compile_game(
    game: pyspiel.Game | SequenceFormGame,
    *,
    processes: int = 1,
    max_histories: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> SequenceFormGame:
    """Walks and compiles a game; one that is compiled already is returned as it is.

    Args:
      game: see `GameTree.from_game`, as for `processes`, `max_histories`, `time_limit` and `progress`.
      cache: a directory for walks, to be made if there is none: the next time the game is read from there instead of walked.
        See `walk_cache` for games that are not kept.

    Raises:
      OSError: the directory cannot be made, read or written.
      MemoryError: memory ran out.
      TimeoutError: the walk took longer than `time_limit`.
      TypeError, ValueError: see `GameTree.from_game` and `SequenceFormGame.from_tree`.
    """
    if isinstance(game, SequenceFormGame):
        return game
    if cache is None:
        tree = GameTree.from_game(
            game, processes=processes, max_histories=max_histories, time_limit=time_limit, progress=progress
        )
    else:
        limits = WalkLimits.starting_now(max_histories, time_limit)
        tree = cached_tree(game, cache, processes=processes, limits=limits, progress=progress)
    return SequenceFormGame.from_tree(tree)


def compile_subgame(
    states: pyspiel.State | Sequence[pyspiel.State],
    reach: npt.ArrayLike | None = None,
    *,
    max_histories: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
) -> SequenceFormGame:
    """Walks and compiles what is below a state, or below several that some player cannot tell apart.

    The result is a game like any other: solvers and evaluation take it as it is. Its infostates have the keys that they have in
    the whole game, so that its policies can be put into policies of the whole game: `StrategyProfile.overwritten_by`.

    With several states chance moves first and picks state z with probability proportional to

        (chance reach of z) * (product over players p of p's reach of z),

    which is how likely z is under the play that `reach` comes from, given that play comes to one of the states. Chance reach
    is read from the history. Values are in game units and conditional in this sense: times the sum of these products they are
    what the sub-game adds to the values of the whole game. With one state reach changes nothing.

    Brown and Sandholm 2017 ("Safe and nested subgame solving for imperfect-information games") call this *unsafe* solving: all
    are taken to come here as `reach` says; where the new policy makes it worth somebody's while to come otherwise, the whole
    may be more exploitable than before. An infostate that its own player never reaches, or chance and the others, has no weight
    in the sub-game; its policy stays uniform. Give it a small reach if it is to be solved.

    The states must be all that the players may be in: a player who knows the root though it should not plays another game.
    That an infostate lies partly before the states, partly below them is an error.

    Args:
      states: one state, or k; none of which comes after another, chance nodes welcome. They are not changed.
      reach: (k, n), or (n,) for one state: each player's reach, the product of its own action probabilities on the path, as
        `players_reach` computes it from a policy; or any multiple, player by player. 1 everywhere by default: the states are as
        likely as chance made them.
      max_histories, time_limit, progress: as for `compile_game`.

    Raises:
      MemoryError, TimeoutError: as for `compile_game`.
      TypeError, ValueError: see `GameTree.from_states` and `SequenceFormGame.from_tree`.

    >>> state = pyspiel.load_game("kuhn_poker").new_initial_state()
    >>> for action in (0, 1, 0, 1):  # player 0 has the jack, player 1 the queen; pass, bet
    ...     state.apply_action(action)
    >>> compile_subgame(state).treeplexes[0].infostate_keys
    ('0pb',)
    """
    tree = GameTree.from_states(states, reach, max_histories=max_histories, time_limit=time_limit, progress=progress)
    return SequenceFormGame.from_tree(tree)


def _compile(tree: GameTree) -> SequenceFormGame:
    infostates_of = [np.flatnonzero(tree.infostate_player == player) for player in range(tree.num_players)]
    last_sequence, parent_sequence = trace_sequences(tree)
    end_sequences = last_sequence[tree.terminal]
    del last_sequence  # large, as are all arrays over histories
    treeplexes = tuple(
        _make_treeplex(tree, player, infostates, parent_sequence[infostates], end_sequences[:, player])
        for player, infostates in enumerate(infostates_of)
    )
    payoff_sequences, payoffs = sum_by_rows(end_sequences, _chance_reach_of_ends(tree), tree.returns)
    return SequenceFormGame(tree, treeplexes, sealed(payoff_sequences), sealed(payoffs))


def _chance_reach_of_ends(tree: GameTree) -> np.ndarray:
    reach = np.empty(tree.num_histories)
    tree_kernels.chance_reach(tree.parent, tree.chance_probability, reach)
    return reach[tree.terminal]


def _make_treeplex(
    tree: GameTree, player: int, infostates: np.ndarray, parent_sequence: np.ndarray, end_sequences: np.ndarray
) -> Treeplex:
    counts = np.diff(tree.legal_action_start)[infostates]
    sequence_start = np.concatenate([[1], 1 + np.cumsum(counts)])
    own_actions = np.repeat(tree.infostate_player, np.diff(tree.legal_action_start)) == player
    may_end = np.zeros(sequence_start[-1], bool)
    may_end[end_sequences] = True
    return Treeplex(
        player=player,
        infostate_keys=tuple(tree.infostate_keys[infostate] for infostate in infostates),
        sequence_start=frozen(sequence_start, np.int32),
        parent_sequence=frozen(parent_sequence, np.int32),
        actions=frozen(np.concatenate([[-1], tree.legal_actions[own_actions]]), np.int64),
        may_end=frozen(may_end, bool),
    )
