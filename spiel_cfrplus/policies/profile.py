"""Strategies of a compiled game, and what OpenSpiel knows them as.

A `StrategyProfile` is one float64 vector over the sequences of all players. From it come

* `open_spiel.python.policy.TabularPolicy`, the very table that `TabularPolicy(game)` builds, without another walk of the tree;
* `pyspiel.TabularPolicy` for OpenSpiel's C++ functions;
* a dictionary from information-state strings to (action, probability) pairs.

These three are keyed by strings alone, so a game in which two infostates share a string cannot be exported to them.

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
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus._utils.validation import checked_player
from spiel_cfrplus.game.checks import is_called_alike
from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.replayed_states import ReplayedStates, RowState, are_deep, row_states
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.kernels import tree as tree_kernels

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

# Policies from float32 networks miss 1 by this much.
PROBABILITY_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StrategyProfile(Immutable):
    """A behavioral policy for each player; a snapshot that nothing changes.

    Attributes:
      game: the compiled game.
      probabilities: float64 (S,), read-only: for each sequence of all players the probability of its action at its
        infostate; 1 at empty sequences.

    Raises:
      ValueError: wrong shape; or the numbers at an infostate are negative, not finite or do not sum to 1, each within
        `PROBABILITY_TOLERANCE`.
    """

    game: SequenceFormGame
    probabilities: np.ndarray

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
        """Each player plays each action of an infostate equally often."""
        return cls(game, np.concatenate([treeplex.uniform_policy() for treeplex in game.treeplexes]))

    def of_player(self, player: int) -> np.ndarray:
        """The player's behavioral policy, float64 (S_p,).

        Raises:
          TypeError, ValueError: there is no such player.
        """
        return self.probabilities[self.game.player_slices[self._checked_player(player)]]

    def sequence_form(self, player: int) -> np.ndarray:
        """The player's sequence-form strategy, float64 (S_p,).

        Raises:
          TypeError, ValueError: there is no such player.
        """
        return self.game.treeplexes[self._checked_player(player)].sequence_form(self.of_player(player))

    def action_probabilities(self, state: pyspiel.State, player: int | None = None) -> dict[int, float]:
        """What the profile plays at a state of the game, as OpenSpiel's policies answer: the probability of each legal action.

        Args:
          state: a decision.
          player: whose; by default the player to move.

        Raises:
          TypeError, ValueError: there is no such player, the player has no such infostate in the game, or the state is one of
            another game.
        """
        self.check_knows(state.get_game())
        player = self._checked_player(state.current_player() if player is None else player)
        treeplex, key = self.game.treeplexes[player], state.information_state_string(player)
        point = treeplex.decision_point_at.get(key)
        if point is None:
            raise ValueError(f"player {player} has no infostate {key!r} in {self.game!r}")
        sequences = treeplex.sequences(point)
        probabilities = self.of_player(player)[sequences].tolist()
        return dict(zip(treeplex.actions[sequences].tolist(), probabilities, strict=True))

    def check_knows(self, game: pyspiel.Game) -> None:
        """Refuses a game that is another one by its name and parameters.

        Raises:
          ValueError: it is.
        """
        if not is_called_alike(game, self.game.tree.game):
            raise ValueError(f"this profile was made for another game, {self.game.description}, than {game}")

    def _checked_player(self, player: int) -> int:
        return checked_player(player, self.game.num_players, self.game.tree.game)

    def overwritten_by(self, other: StrategyProfile) -> StrategyProfile:
        """This profile, but at the infostates that `other` knows what `other` does there.

        Puts the solution of a sub-game, or of a game with locked infostates, into a profile of the whole game; or, the other
        way round, takes from a profile of the whole game what it does in a part.

        Raises:
          ValueError: neither game has all the infostates of the other, or actions differ.
        """
        if self.game.num_players != other.game.num_players:
            raise ValueError(f"{self.game!r} and {other.game!r} have different numbers of players")
        shared = [_shared_points(*pair) for pair in zip(self.game.treeplexes, other.game.treeplexes, strict=True)]
        if sum(map(len, shared)) < min(self.game.num_infostates, other.game.num_infostates):
            raise ValueError(f"neither of {self.game!r} and {other.game!r} has all the infostates of the other")
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

    def to_tabular_policy(self) -> openspiel_policy.TabularPolicy:
        """The profile as OpenSpiel's Python table; arrays, row order and lookup as `TabularPolicy(game)` builds them.

        Of a part of a game, a sub-game or a locked one, the table has the rows of its infostates only; see `overwritten_by`.

        The first export of a game costs one `pyspiel.State` per infostate; later ones copy an array. In games so deep that
        these states would take more than some 200 MB, they are replayed when they are asked for (`replayed_states`).

        Raises:
          ValueError: two infostates share a key of the table.
        """
        tree = self.game.tree
        table = TabularTable.of(tree)
        _check_distinct_rows(tree, table.rows)
        result = table.new_policy()
        for treeplex, own in zip(self.game.treeplexes, self.game.player_slices, strict=True):
            rows = table.rows[tree.infostate_player == treeplex.player][treeplex.decision_point_of[1:]]
            result.action_probability_array[rows, treeplex.actions[1:]] = self.probabilities[own][1:]
        return result

    def to_pyspiel_policy(self) -> pyspiel.TabularPolicy:
        """The profile for OpenSpiel's C++ functions, such as `pyspiel.nash_conv`. Keep it referenced while they use it.

        Raises:
          ValueError: two players share an information-state string.
        """
        return pyspiel.TabularPolicy(self.to_dict())

    def to_dict(self) -> dict[str, list[tuple[int, float]]]:
        """(action id, probability) pairs of the legal actions, by information-state string.

        Raises:
          ValueError: two players share an information-state string.
        """
        result: dict[str, list[tuple[int, float]]] = {}
        for treeplex, own in zip(self.game.treeplexes, self.game.player_slices, strict=True):
            pairs = list(zip(treeplex.actions.tolist(), self.probabilities[own].tolist(), strict=True))
            for point, key in enumerate(treeplex.infostate_keys):
                if key in result:
                    raise ValueError(_shared_key_error(self.game.tree, key))
                result[key] = pairs[treeplex.sequence_start[point] : treeplex.sequence_start[point + 1]]
        return result


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
    with np.errstate(invalid="ignore"):  # infinities of both signs
        sums = np.add.reduceat(probabilities, treeplex.sequence_start[:-1])
    least = np.minimum.reduceat(probabilities, treeplex.sequence_start[:-1])
    bad = np.flatnonzero(~((np.abs(sums - 1) <= PROBABILITY_TOLERANCE) & (least >= -PROBABILITY_TOLERANCE)))
    if len(bad):
        point = int(bad[0])
        answer = probabilities[slice(*treeplex.sequence_start[point : point + 2])].tolist()
        raise ValueError(
            f"{game.tree.game}: the policy of player {treeplex.player} is not a probability distribution at infostate "
            f"{treeplex.infostate_keys[point]!r}: {answer} sums to {sums[point]}"
        )


class TabularTable:
    """`TabularPolicy(game)` made from a `GameTree`, and the row of each infostate in it.

    Attributes:
      template: the uniform policy.
      rows: int64 (I,), the row of each infostate.
    """

    _of_tree: ClassVar[weakref.WeakKeyDictionary[GameTree, TabularTable]] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, tree: GameTree) -> TabularTable:
        """The table of `tree`, built once."""
        if tree not in cls._of_tree:
            cls._of_tree[tree] = cls(tree)
        return cls._of_tree[tree]

    def __init__(self, tree: GameTree):
        from open_spiel.python import policy as openspiel_policy  # with all its Python games, hence here

        _check_fits_tables(tree)
        # TabularPolicy takes a state for each row and sorts by the text of its history. Of all the histories of an infostate it
        # would keep the first in that order, so one state per infostate gives the same table as all states.
        ranks = _ranks_by_text(tree)
        histories = _first_histories(tree, ranks)
        states: Sequence[pyspiel.State | RowState]
        states = row_states(tree, histories, ranks) if are_deep(tree, histories) else _states_at(tree, histories)
        self.template = openspiel_policy.TabularPolicy(tree.game, states={state.history_str(): state for state in states})
        if isinstance(states[0], RowState):
            kept = [state.history for state in self.template.states]
            self.template.states = ReplayedStates(tree, np.array(kept, np.int64))
        if self.template.state_in is not None:
            self.template.state_in.flags.writeable = False  # large, hence shared
        self.rows = np.array([self.template.state_index(state) for state in states], np.int64)

    def new_policy(self) -> openspiel_policy.TabularPolicy:
        """A uniform policy that owns all that can be written to but the states."""
        policy = self.template.__copy__()
        policy.legal_actions_mask = self.template.legal_actions_mask.copy()
        policy.state_lookup = dict(self.template.state_lookup)
        policy.states_per_player = [list(keys) for keys in self.template.states_per_player]
        policy.states = self.template.states[:]
        # TabularPolicy.__copy__ leaves this out, and sample_action needs it.
        policy._random_state = np.random.RandomState()
        return policy


def _states_at(tree: GameTree, histories: np.ndarray) -> list[pyspiel.State]:
    """The states at these histories, which need not be ascending."""
    ascending = np.argsort(histories)
    state_of = dict(zip(ascending.tolist(), (state for _, state in tree.states(histories[ascending])), strict=True))
    return [state_of[number] for number in range(len(histories))]


def _first_histories(tree: GameTree, ranks: np.ndarray) -> np.ndarray:
    """For each infostate its history of the least rank, int64 (I,)."""
    decisions = np.flatnonzero(tree.infostate != NO_INFOSTATE)
    decisions = decisions[np.argsort(ranks[decisions])]
    return decisions[np.unique(tree.infostate[decisions], return_index=True)[1]]


def _ranks_by_text(tree: GameTree) -> np.ndarray:
    """The place of each history in the order of `history_str()`, int64 (H,).

    The text joins action ids with ", ", and a comma sorts before any digit, so the order is preorder with the children of each
    history sorted by the text of their action.
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
        raise ValueError(f"{tree.game}: nobody ever decides anything, and OpenSpiel has no tables without rows")
    num_actions = tree.game.num_distinct_actions()
    strange = tree.legal_actions[(tree.legal_actions < 0) | (tree.legal_actions >= num_actions)]
    if len(strange):
        raise ValueError(
            f"{tree.game}: action {strange[0]} is legal, but OpenSpiel's tables have columns for actions 0 to "
            f"{num_actions - 1}; mend num_distinct_actions of the game, or use StrategyProfile itself"
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
        f"{tree.infostate_keys[first]!r} and {tree.infostate_keys[second]!r} would become one row. Use StrategyProfile itself"
    )


def _shared_key_error(tree: GameTree, key: str) -> str:
    return (
        f"{tree.game}: two players share the information-state string {key!r}, which OpenSpiel's policy tables use as their "
        "only key. Use StrategyProfile itself, whose vectors keep the players apart"
    )
