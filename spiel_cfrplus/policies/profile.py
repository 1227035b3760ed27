"""Strategy profiles of a compiled game, and their export to OpenSpiel.

A `StrategyProfile` is one float64 vector over the sequences of all players. It can be exported to

* `open_spiel.python.policy.TabularPolicy`, the same table as `TabularPolicy(game)` builds, without a walk of the tree;
* `pyspiel.TabularPolicy` for OpenSpiel's C++ functions;
* a dictionary from information-state strings to (action, probability) pairs.

These three formats use the string as the only key, so they cannot represent a game in which two infostates share a string.

>>> import pyspiel
>>> from open_spiel.python.algorithms import exploitability
>>> from spiel_cfrplus import compile_game
>>> game = pyspiel.load_game("kuhn_poker")
>>> profile = StrategyProfile.uniform(compile_game(game))
>>> f"{exploitability.nash_conv(game, profile.to_tabular_policy()):.6f}"  # 11/12
'0.916667'
>>> profile.to_dict()["0pb"]
[(0, 0.5), (1, 0.5)]
"""

from __future__ import annotations

import dataclasses
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus._utils.validation import checked_player
from spiel_cfrplus.game import turn_based
from spiel_cfrplus.game.checks import have_same_parameters
from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.replayed_states import ReplayedStates, RowState, are_deep, row_states
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.kernels import tree as tree_kernels
from spiel_cfrplus.policies import files

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

# Bound on the rounding error in the sum of a float32 policy, such as the output of a neural network.
PROBABILITY_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StrategyProfile(Immutable):
    """A behavioral policy for each player; read-only.

    Attributes:
      game: the compiled game.
      probabilities: float64 (S,), read-only: the probability of the action of each sequence at its infostate, over the
        sequences of all players; 1 at empty sequences.

    Raises:
      ValueError: wrong shape; or the numbers at an infostate are negative, not finite or do not sum to 1, each within
        `PROBABILITY_TOLERANCE`.
    """

    game: SequenceFormGame
    probabilities: npt.NDArray[np.float64]

    def _summary(self) -> str:
        return f"{self.game.tree.game}, {self.game.num_sequences} sequences"

    def __post_init__(self) -> None:
        probabilities = frozen(self.probabilities, np.float64)
        if probabilities.shape != (self.game.num_sequences,):
            raise ValueError(f"expected one number for each of {self.game.num_sequences} sequences, got {probabilities.shape}")
        for treeplex, own in zip(self.game.treeplexes, self.game.player_slices, strict=True):
            _check_distributions(self.game, treeplex, probabilities[own])
        object.__setattr__(self, "probabilities", probabilities)

    @classmethod
    def uniform(cls, game: SequenceFormGame) -> StrategyProfile:
        """The profile with equal probabilities at each infostate."""
        return cls(game, np.concatenate([treeplex.uniform_policy() for treeplex in game.treeplexes]))

    def of_player(self, player: int) -> npt.NDArray[np.float64]:
        """The player's behavioral policy, float64 (S_p,).

        Raises:
          TypeError, ValueError: the player does not exist.
        """
        return self.probabilities[self.game.player_slices[self._checked_player(player)]]

    def sequence_form(self, player: int) -> npt.NDArray[np.float64]:
        """The player's sequence-form strategy, float64 (S_p,).

        Raises:
          TypeError, ValueError: the player does not exist.
        """
        return self.game.treeplexes[self._checked_player(player)].sequence_form(self.of_player(player))

    def action_probabilities(self, state: pyspiel.State, player: int | None = None) -> dict[int, float]:
        """The probability of each legal action at a state of the game; same interface as OpenSpiel's policies.

        Args:
          state: a decision, also of the simultaneous-move game of which this game is the turn-based form.
          player: the player; by default the player to move. It must be given where players move at once.

        Raises:
          TypeError, ValueError: the player or the infostate does not exist, or the state belongs to another game.
        """
        prefixed = self._is_turn_based_form_of(state.get_game())
        if not prefixed:
            self.check_knows(state.get_game())
        player = self._checked_player(state.current_player() if player is None else player)
        treeplex, key = self.game.treeplexes[player], state.information_state_string(player)
        if prefixed:
            key = turn_based.infostate_prefix(player) + key
        point = treeplex.decision_point_at.get(key)
        if point is None:
            raise ValueError(f"player {player} has no infostate {key!r} in {self.game!r}")
        sequences = treeplex.sequences(point)
        probabilities = self.of_player(player)[sequences].tolist()
        return dict(zip(treeplex.actions[sequences].tolist(), probabilities, strict=True))

    def check_knows(self, game: pyspiel.Game) -> None:
        """Checks that a game has the same name and parameters as the game of the profile.

        Raises:
          ValueError: it has not.
        """
        if not have_same_parameters(game, self.game.tree.game):
            raise ValueError(f"this profile belongs to another game, {self.game.description}, not to {game}")

    def _is_turn_based_form_of(self, game: pyspiel.Game) -> bool:
        return turn_based.is_turn_based_form_of(self.game.tree.game, game)

    def _checked_player(self, player: int) -> int:
        return checked_player(player, self.game.num_players, self.game.tree.game)

    def overwritten_by(self, other: StrategyProfile) -> StrategyProfile:
        """This profile, with the distributions of `other` at the infostates that both games have.

        Inserts the solution of a subgame, or of a game with locked infostates, into a profile of the whole game. If this is
        the profile of the part and `other` that of the whole game, restricts `other` to the part.

        Raises:
          ValueError: neither game contains all infostates of the other, or the actions at an infostate differ.
        """
        if self.game.num_players != other.game.num_players:
            raise ValueError(f"{self.game!r} and {other.game!r} have different numbers of players")
        shared = [_shared_points(*pair) for pair in zip(self.game.treeplexes, other.game.treeplexes, strict=True)]
        if sum(map(len, shared)) < min(self.game.num_infostates, other.game.num_infostates):
            raise ValueError(f"neither {self.game!r} nor {other.game!r} contains all infostates of the other")
        probabilities = self.probabilities.copy()
        for player, points in enumerate(shared):
            mine, theirs = self.game.treeplexes[player], other.game.treeplexes[player]
            own = probabilities[self.game.player_slices[player]]
            for point, their_point in points:
                to, source = mine.sequences(point), theirs.sequences(their_point)
                if (actions := mine.actions[to].tolist()) != (others := theirs.actions[source].tolist()):
                    raise ValueError(
                        f"player {player} has the actions {actions} at infostate {mine.infostate_keys[point]!r} of "
                        f"{self.game!r}, but {others} in {other.game!r}"
                    )
                own[to] = other.of_player(player)[source]
        return StrategyProfile(self.game, probabilities)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile to a file, which `load_policy` reads to the same doubles.

        `path` holds either what it held before or the whole new file, whatever happens.

        Args:
          path: the file; its name ends in `.npz`, `.json` or `.csv`, see `policies.files`.

        Raises:
          OSError: the file cannot be written.
          TypeError: not a path.
          ValueError: another ending; or a `.csv` file of a game whose strings are too long for its fields.
        """
        files.write(path, self.game, self.probabilities)

    def to_tabular_policy(self, game: pyspiel.Game | None = None) -> openspiel_policy.TabularPolicy:
        """The profile as OpenSpiel's Python table; arrays, row order and lookup are those of `TabularPolicy(game)`.

        For a subgame or a game with locked infostates, the table has rows for its infostates only; see `overwritten_by`.

        The first export of a game creates one `pyspiel.State` per infostate; later exports copy an array. If the game is so
        deep that these states would take more than about 200 MB, they are replayed on access (`replayed_states`).

        Args:
          game: the simultaneous-move game of which this game is the turn-based form; the table is then one of `game`, made by
            OpenSpiel. By default it is a table of this game.

        Raises:
          ValueError: two infostates have the same key in the table; or `game` is another game.
        """
        if game is not None and self._is_turn_based_form_of(game):
            return self._table_of_simultaneous(game)
        if game is not None:
            self.check_knows(game)
        tree = self.game.tree
        table = TabularTable.of(tree)
        _check_distinct_rows(tree, table.rows)
        result = table.new_policy()
        for treeplex, own in zip(self.game.treeplexes, self.game.player_slices, strict=True):
            rows = table.rows[tree.infostate_player == treeplex.player][treeplex.decision_point_of[1:]]
            result.action_probability_array[rows, treeplex.actions[1:]] = self.probabilities[own][1:]
        return result

    def _table_of_simultaneous(self, game: pyspiel.Game) -> openspiel_policy.TabularPolicy:
        from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

        result = openspiel_policy.TabularPolicy(game)
        for key, pairs in self.to_dict(game).items():
            for action, probability in pairs:
                result.policy_for_key(key)[action] = probability
        return result

    def to_pyspiel_policy(self, game: pyspiel.Game | None = None) -> pyspiel.TabularPolicy:
        """The profile for OpenSpiel's C++ functions, such as `pyspiel.nash_conv`. Keep a reference to it while they use it.

        Args:
          game: as for `to_dict`.

        Raises:
          ValueError: as for `to_dict`.
        """
        return pyspiel.TabularPolicy(self.to_dict(game))

    def to_dict(self, game: pyspiel.Game | None = None) -> dict[str, list[tuple[int, float]]]:
        """Maps each information-state string to the (action id, probability) pairs of its legal actions.

        Args:
          game: the simultaneous-move game of which this game is the turn-based form; the strings are then those of `game`. By
            default they are those of this game.

        Raises:
          ValueError: two players share an information-state string; or `game` is another game.
        """
        prefixed = game is not None and self._is_turn_based_form_of(game)
        if game is not None and not prefixed:
            self.check_knows(game)
        result: dict[str, list[tuple[int, float]]] = {}
        for treeplex, own in zip(self.game.treeplexes, self.game.player_slices, strict=True):
            pairs = list(zip(treeplex.actions.tolist(), self.probabilities[own].tolist(), strict=True))
            prefix = turn_based.infostate_prefix(treeplex.player) if prefixed else ""
            for point, own_key in enumerate(treeplex.infostate_keys):
                key = own_key.removeprefix(prefix)
                if key in result:
                    raise ValueError(_shared_key_error(self.game.tree, key))
                result[key] = pairs[treeplex.sequence_start[point] : treeplex.sequence_start[point + 1]]
        return result


def checked_profile(profile: Any) -> StrategyProfile:
    """The argument, if it is a profile.

    Raises:
      TypeError: it is not.
    """
    if not isinstance(profile, StrategyProfile):
        raise TypeError(
            f"expected a StrategyProfile, got {profile!r}; read_policy(game, policy) converts policies of OpenSpiel"
        )
    return profile


def _shared_points(treeplex: Treeplex, other: Treeplex) -> list[tuple[int, int]]:
    """Pairs of the decision points of two treeplexes with the same string."""
    return [
        (point, other.decision_point_at[key])
        for point, key in enumerate(treeplex.infostate_keys)
        if key in other.decision_point_at
    ]


def _check_distributions(game: SequenceFormGame, treeplex: Treeplex, probabilities: np.ndarray) -> None:
    if treeplex.num_decision_points == 0:
        return
    with np.errstate(invalid="ignore"):  # the sum of infinities of both signs is NaN, which the check below refuses
        sums = np.add.reduceat(probabilities, treeplex.sequence_start[:-1])
    smallest = np.minimum.reduceat(probabilities, treeplex.sequence_start[:-1])
    bad = np.flatnonzero(~((np.abs(sums - 1) <= PROBABILITY_TOLERANCE) & (smallest >= -PROBABILITY_TOLERANCE)))
    if len(bad):
        point = int(bad[0])
        distribution = probabilities[slice(*treeplex.sequence_start[point : point + 2])].tolist()
        raise ValueError(
            f"{game.tree.game}: the policy of player {treeplex.player} is not a probability distribution at infostate "
            f"{treeplex.infostate_keys[point]!r}: {distribution} sums to {sums[point]}"
        )


class TabularTable:
    """`TabularPolicy(game)` built from a `GameTree`, and the row of each infostate in it.

    Attributes:
      template: the uniform policy.
      rows: int64 (I,), the row of each infostate.
    """

    _of_tree: ClassVar[weakref.WeakKeyDictionary[GameTree, TabularTable]] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, tree: GameTree) -> TabularTable:
        """The table of `tree`, built on first use."""
        if tree not in cls._of_tree:
            cls._of_tree[tree] = cls(tree)
        return cls._of_tree[tree]

    def __init__(self, tree: GameTree):
        from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

        _check_fits_tables(tree)
        # TabularPolicy sorts the states by `history_str()` and uses the first state of each infostate, so one state per
        # infostate, the first one in this order, produces the same table as all states.
        ranks = _ranks_by_text(tree)
        histories = _first_histories(tree, ranks)
        states: Sequence[pyspiel.State | RowState]
        states = row_states(tree, histories, ranks) if are_deep(tree, histories) else _states_at(tree, histories)
        self.template: openspiel_policy.TabularPolicy = openspiel_policy.TabularPolicy(
            tree.game, states={state.history_str(): state for state in states}
        )
        if isinstance(states[0], RowState):
            state_histories = [state.history for state in self.template.states]
            self.template.states = ReplayedStates(tree, np.array(state_histories, np.int64))
        if self.template.state_in is not None:
            self.template.state_in.flags.writeable = False  # all policies share this large array
        self.rows = np.array([self.template.state_index(state) for state in states], np.int64)

    def new_policy(self) -> openspiel_policy.TabularPolicy:
        """A uniform policy that shares only the states and read-only arrays with the template."""
        policy = self.template.__copy__()
        policy.legal_actions_mask = self.template.legal_actions_mask.copy()
        policy.state_lookup = dict(self.template.state_lookup)
        policy.states_per_player = [list(keys) for keys in self.template.states_per_player]
        policy.states = self.template.states[:]
        # TabularPolicy.__copy__ omits this attribute, which sample_action needs.
        policy._random_state = np.random.RandomState()
        return policy


def _states_at(tree: GameTree, histories: np.ndarray) -> list[pyspiel.State]:
    """The states at these histories, in any order."""
    ascending = np.argsort(histories)
    state_of = dict(zip(ascending.tolist(), (state for _, state in tree.states(histories[ascending])), strict=True))
    return [state_of[number] for number in range(len(histories))]


def _first_histories(tree: GameTree, ranks: np.ndarray) -> np.ndarray:
    """int64 (I,), the history with the smallest rank of each infostate."""
    decisions = np.flatnonzero(tree.infostate != NO_INFOSTATE)
    decisions = decisions[np.argsort(ranks[decisions])]
    return decisions[np.unique(tree.infostate[decisions], return_index=True)[1]]


def _ranks_by_text(tree: GameTree) -> np.ndarray:
    """int64 (H,), the rank of each history in the order of `history_str()`.

    `history_str()` joins action ids with ", ", and a comma sorts before any digit. So the order is a preorder in which the
    children of each history are sorted by the string of their action.
    """
    actions, action_index = np.unique(tree.action, return_inverse=True)
    text_rank = np.argsort(np.argsort(actions.astype(str)))
    sizes = tree.subtree_end - np.arange(tree.num_histories)
    by_parent = np.lexsort((text_rank[action_index], tree.parent))
    before = np.cumsum(sizes[by_parent]) - sizes[by_parent]
    first_sibling = np.searchsorted(tree.parent[by_parent], tree.parent[by_parent])
    ranks = np.empty(tree.num_histories, np.int64)
    ranks[by_parent] = 1 + before - before[first_sibling]
    tree_kernels.add_parents(tree.parent, ranks)
    return ranks


def _check_fits_tables(tree: GameTree) -> None:
    if tree.num_infostates == 0:
        raise ValueError(f"{tree.game}: the game has no decisions, and OpenSpiel does not support tables without rows")
    num_actions = tree.game.num_distinct_actions()
    invalid = tree.legal_actions[(tree.legal_actions < 0) | (tree.legal_actions >= num_actions)]
    if len(invalid):
        raise ValueError(
            f"{tree.game}: action {invalid[0]} is legal, but OpenSpiel's tables have columns for actions 0 to "
            f"{num_actions - 1} only; fix num_distinct_actions() of the game, or use the StrategyProfile directly"
        )


def _check_distinct_rows(tree: GameTree, rows: np.ndarray) -> None:
    order = np.argsort(rows, kind="stable")
    repeated = np.flatnonzero(np.diff(rows[order]) == 0)
    if len(repeated) == 0:
        return
    first, second = order[repeated[0]], order[repeated[0] + 1]
    if tree.infostate_keys[first] == tree.infostate_keys[second]:
        raise ValueError(_shared_key_error(tree, tree.infostate_keys[first]))
    raise ValueError(
        f"{tree.game}: TabularPolicy has {len(set(rows.tolist()))} rows for {tree.num_infostates} infostates, because its keys "
        "for this game are observation strings; "
        f"{tree.infostate_keys[first]!r} and {tree.infostate_keys[second]!r} share a row. Use the StrategyProfile directly"
    )


def _shared_key_error(tree: GameTree, key: str) -> str:
    return (
        f"{tree.game}: two players share the information-state string {key!r}, which OpenSpiel's policy tables use as their "
        "only key. Use the StrategyProfile directly, which has a separate vector for each player"
    )
