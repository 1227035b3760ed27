"""A game compiled into its sequence form: one treeplex per player, and payoffs over tuples of the players' sequences.

For two players the payoffs are the matrix A of the sequence form: the expected utility of sequence-form strategies x and y is
x . A y. The non-zero entries are stored as a list, which also represents games with more players and general-sum games.

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
from spiel_cfrplus.game.payoffs import group_payoffs, magnitudes, sum_by_rows
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.treeplex import Treeplex, join_treeplexes
from spiel_cfrplus.game.walk_cache import cached_tree
from spiel_cfrplus.game.walk_limits import WalkLimits, memory_errors_name
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.kernels import tree as tree_kernels

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SequenceFormGame(Immutable):
    """A game in sequence form: n treeplexes and E payoffs; read-only.

    Attributes:
      tree: the game tree that it is derived from.
      treeplexes: one per player.
      payoff_sequences: int32 (E, n), distinct tuples of the players' last sequences at terminal histories.
      payoffs: float64 (E, n), the utility of each player at each tuple: the sum over its terminal histories of chance reach
        times returns, in game units. Tuples with zero utility for all players are omitted.
    """

    tree: GameTree
    treeplexes: tuple[Treeplex, ...]
    payoff_sequences: npt.NDArray[np.int32]
    payoffs: npt.NDArray[np.float64]

    def _summary(self) -> str:
        sizes = f"{self.num_infostates} infostates, {self.num_sequences} sequences, {len(self.payoffs)} payoffs"
        return f"{self.tree.game}{self.tree.below_roots}, {sizes}"

    @classmethod
    def from_tree(cls, tree: GameTree) -> SequenceFormGame:
        """Derives the sequence form; chance probabilities are normalized, see `chance`.

        Raises:
          MemoryError: memory ran out.
          ValueError: a player does not have perfect recall or is absent-minded, see `recall`.

        Warns:
          UserWarning: chance probabilities do not sum to 1 and were divided by their sum.
        """
        with memory_errors_name(lambda: f"{tree.game}, compiling {tree.num_histories} histories"):
            return _compile(normalized(tree))

    @property
    def description(self) -> str:
        """The name and size of the game, with the roots of a subgame and the number of locked infostates."""
        return self._summary()

    @property
    def num_players(self) -> int:
        return len(self.treeplexes)

    @property
    def num_infostates(self) -> int:
        return self.tree.num_infostates

    @property
    def num_sequences(self) -> int:
        """Number of sequences of all players, the empty ones included."""
        return sum(treeplex.num_sequences for treeplex in self.treeplexes)

    @property
    def is_whole_game(self) -> bool:
        """Whether all infostates of the `pyspiel` game are infostates here; False for subgames and locked infostates."""
        return self.tree.roots == ((),)

    @functools.cached_property
    def is_two_player_constant_sum(self) -> bool:
        """Whether there are two players and the returns have the same sum at all terminal histories, up to rounding.

        The utility type that the game declares is not used.
        """
        sums = self.tree.returns.sum(axis=1)
        return self.num_players == 2 and bool(np.ptp(sums) <= 1e-9 * np.abs(self.tree.returns).max())

    @functools.cached_property
    def player_slices(self) -> tuple[slice, ...]:
        """The slice of each player's sequences in a vector over the sequences of all players."""
        stops = np.cumsum([treeplex.num_sequences for treeplex in self.treeplexes]).tolist()
        return tuple(slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False))

    @functools.cached_property
    def treeplex_arrays(self) -> layouts.TreeplexArrays:
        return join_treeplexes(self.treeplexes)

    @functools.cached_property
    def payoff_arrays(self) -> layouts.PayoffArrays:
        return group_payoffs(self.payoff_sequences, self.payoffs, [own.start for own in self.player_slices])

    def derived(self, make: Callable[[SequenceFormGame], T]) -> T:
        """`make(self)`, computed once and stored with the game."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return cast(T, self._derived[make])

    @functools.cached_property
    def _derived(self) -> dict[object, object]:
        return {}

    @functools.cached_property
    def tie_tolerance(self) -> npt.NDArray[np.float64]:
        """float64 (S,), over all players' sequences: bound below which a regret is treated as rounding error.

        At each infostate it is 2^-44 times the magnitude of the terms that the first iteration sums into its regrets: the
        largest sum of absolute payoffs that the player can obtain from there, each times the reach of the others under uniform
        play. So the tolerance is in the unit of the payoffs, and it is small where the reach of chance and the others is small.
        """
        arrays = self.treeplex_arrays
        uniform = np.concatenate([treeplex.sequence_form(treeplex.uniform_policy()) for treeplex in self.treeplexes])
        magnitude, response = np.empty(self.num_sequences), np.empty(self.num_sequences)
        for player in range(self.num_players):
            passes.payoff_gradient(arrays, magnitudes(self.payoff_arrays, player), player, uniform, magnitude)
            passes.best_response(arrays, player, magnitude, response)
        return tolerance_of_magnitudes(arrays, magnitude)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A digest of all data that iterations depend on; equal for equal games, independent of their names."""
        digest = hashlib.sha256()
        for treeplex in self.treeplexes:
            digest.update(json.dumps(treeplex.infostate_keys).encode())
            for part in (treeplex.sequence_start, treeplex.parent_sequence, treeplex.actions):
                digest.update(part.tobytes())
        digest.update(self.payoff_sequences.tobytes())
        digest.update(self.payoffs.tobytes())
        return digest.hexdigest()

    def behavioral_policies(self, strategies: Sequence[np.ndarray]) -> npt.NDArray[np.float64]:
        """float64 (S,), the behavioral policies of the players' sequence-form strategies, or of multiples of them.

        Uniform at infostates that the player does not reach, see `Treeplex.behavioral_policy`.
        """
        pairs = zip(self.treeplexes, strategies, strict=True)
        return np.concatenate([treeplex.behavioral_policy(strategy) for treeplex, strategy in pairs])

    def payoff_gradient(self, player: int, strategies: Sequence[np.ndarray]) -> npt.NDArray[np.float64]:
        """The gradient of the player's expected utility in its sequence-form strategy (g = A x_1 for player 0 of two).

        Args:
          player: the player.
          strategies: a sequence-form strategy for each player; the player's own is not read.

        Returns:
          float64 (S,); the expected utility of a strategy x is x . g.

        Raises:
          TypeError, ValueError: the player does not exist, or the strategies are not one number per sequence for each player.
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
    walk: str = "auto",
    max_histories: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> SequenceFormGame:
    """Walks and compiles a game; returns a compiled game unchanged.

    Args:
      game, processes, walk, max_histories, time_limit, progress: see `GameTree.from_game`.
      cache: a directory for cached walks, created if it does not exist. If it contains the walk of the game, the walk is read
        instead of repeated. See `walk_cache` for games that are not cached.

    Raises:
      OSError: the directory cannot be created, read or written.
      MemoryError: memory ran out.
      TimeoutError: the walk took longer than `time_limit`.
      TypeError, ValueError: see `GameTree.from_game` and `SequenceFormGame.from_tree`.
    """
    if isinstance(game, SequenceFormGame):
        return game
    if cache is None:
        tree = GameTree.from_game(
            game, processes=processes, walk=walk, max_histories=max_histories, time_limit=time_limit, progress=progress
        )
    else:
        limits = WalkLimits.starting_now(max_histories, time_limit)
        tree = cached_tree(game, cache, processes=processes, walk=walk, limits=limits, progress=progress)
    return SequenceFormGame.from_tree(tree)


def compile_subgame(
    states: pyspiel.State | Sequence[pyspiel.State],
    reach: npt.ArrayLike | None = None,
    *,
    walk: str = "auto",
    max_histories: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
) -> SequenceFormGame:
    """Walks and compiles the subgame below one state, or below several states that some player cannot distinguish.

    Solvers and evaluation accept the result as they accept a whole game. Its infostates have the same keys as in the whole
    game, so its policies can be inserted into policies of the whole game: `StrategyProfile.overwritten_by`.

    With several states, an initial chance move selects state z with probability proportional to

        (chance reach of z) * (product over players p of p's reach of z),

    the conditional probability of z, given that play reaches one of the states, under the policies that `reach` is computed
    from. Chance reach is computed from the history. Values are in game units and conditional in the same sense: multiplied by
    the sum of these products, they are the contribution of the subgame to the values of the whole game. With one state, `reach`
    has no effect.

    Brown and Sandholm 2017 ("Safe and nested subgame solving for imperfect-information games") call this *unsafe* solving: it
    assumes that all players reach the subgame as `reach` states. If the new policy gives a player an incentive to deviate
    before the subgame, the resulting policy of the whole game may be more exploitable than before. An infostate that its own
    player never reaches, or that chance and the others never reach, has no weight in the subgame; its policy stays uniform. To
    solve it, give it a small reach.

    The states must include all states that the players consider possible; otherwise a player has information in the subgame
    that it does not have in the whole game. An infostate with histories both before the states and below them is an error.

    Args:
      states: one state, or k states; none may follow another; chance nodes are allowed. They are not modified.
      reach: (k, n), or (n,) for one state: each player's reach, the product of its own action probabilities on the path, as
        computed by `players_reach`; each player's reach may be scaled by any positive constant. By default 1: the states are
        weighted by chance reach only.
      walk, max_histories, time_limit, progress: as for `compile_game`.

    Raises:
      MemoryError, TimeoutError: as for `compile_game`.
      TypeError, ValueError: see `GameTree.from_states` and `SequenceFormGame.from_tree`.

    >>> state = pyspiel.load_game("kuhn_poker").new_initial_state()
    >>> for action in (0, 1, 0, 1):  # player 0 is dealt the jack, player 1 the queen; pass, bet
    ...     state.apply_action(action)
    >>> compile_subgame(state).treeplexes[0].infostate_keys
    ('0pb',)
    """
    tree = GameTree.from_states(states, reach, walk=walk, max_histories=max_histories, time_limit=time_limit, progress=progress)
    return SequenceFormGame.from_tree(tree)


def _compile(tree: GameTree) -> SequenceFormGame:
    infostates_of = [np.flatnonzero(tree.infostate_player == player) for player in range(tree.num_players)]
    last_sequence, parent_sequence = trace_sequences(tree)
    end_sequences = last_sequence[tree.terminal]
    del last_sequence  # arrays over histories are large
    treeplexes = tuple(
        _make_treeplex(tree, player, infostates, parent_sequence[infostates], end_sequences[:, player])
        for player, infostates in enumerate(infostates_of)
    )
    payoff_sequences, payoffs = sum_by_rows(end_sequences, terminal_chance_reach(tree), tree.returns)
    return SequenceFormGame(tree, treeplexes, sealed(payoff_sequences), sealed(payoffs))


def tolerance_of_magnitudes(treeplexes: layouts.TreeplexArrays, magnitude: np.ndarray) -> np.ndarray:
    """float64 (S,), `SequenceFormGame.tie_tolerance` from the magnitude of the terms of each sequence's value."""
    largest = np.maximum.reduceat(magnitude, treeplexes.sequence_start[:-1])
    return frozen(layouts.RELATIVE_TIE_TOLERANCE * np.repeat(largest, np.diff(treeplexes.sequence_start)), np.float64)


def terminal_chance_reach(tree: GameTree, first: float | None = None) -> np.ndarray:
    """float64 (Z,), the product of chance probabilities on the path to each terminal history.

    Args:
      tree: the tree.
      first: the first factor of all products, the chance reach of the root; by default there is none.
    """
    reach = np.empty(tree.num_histories)
    tree_kernels.chance_reach(tree.parent, tree.chance_probability, reach, *([] if first is None else [first]))
    return np.asarray(reach[tree.terminal])


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
