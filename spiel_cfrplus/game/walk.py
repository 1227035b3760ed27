"""The walk through a game: it visits every history once and records one number for it.

A tree in preorder is determined by the number of children of each history, which follows from the infostate or from the chance
outcomes. So the walk stores 4 bytes per history: its infostate, `CHANCE` or `TERMINAL`. Parents and actions are derived from
these, see `link_parents`. Python objects are stored per infostate only.
"""

from __future__ import annotations

import array
import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cfrplus._utils.progress import Advance, no_advance
from spiel_cfrplus.game.chance import at, checked_outcomes
from spiel_cfrplus.game.checks import no_information_states
from spiel_cfrplus.game.subgames import History, check_legal_actions, replay
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits, memory_errors_name

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)

_HISTORIES_PER_STEP = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class WalkRecord:
    """The result of a walk, in preorder: H histories, of which C are chance and Z terminal; I infostates, n players.

    Attributes:
      nodes: int32 (H,), the infostate of each history, `CHANCE` or `TERMINAL`.
      num_outcomes: int32 (C,), the number of outcomes of each chance history.
      outcomes: int64, the outcomes of all chance histories, concatenated.
      outcome_probabilities: float64, the probability of each outcome.
      returns: float64 (Z, n).
      infostate_player: int8 (I,), the player who acts at each infostate.
      infostate_keys: tuple of I information-state strings.
      num_legal_actions: int32 (I,).
      legal_actions: int64, the legal actions of all infostates, concatenated.
    """

    nodes: np.ndarray
    num_outcomes: np.ndarray
    outcomes: np.ndarray
    outcome_probabilities: np.ndarray
    returns: np.ndarray
    infostate_player: np.ndarray
    infostate_keys: tuple[str, ...]
    num_legal_actions: np.ndarray
    legal_actions: np.ndarray


def walk_game(
    game: pyspiel.Game,
    roots: Sequence[History] = ((),),
    root_probabilities: Sequence[float] = (1.0,),
    *,
    limits: WalkLimits = NO_LIMITS,
    advance: Advance = no_advance,
) -> WalkRecord:
    """Walks the subtrees of the roots; if there are several roots, history 0 is a chance move among them.

    Args:
      game: the game.
      roots, root_probabilities: the histories of the roots and the probability of each.
      limits: limits on the histories and the time.
      advance: progress callback, called with the number of new histories.

    Raises:
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game`.
    """
    walk = TreeWalk(game, limits, advance)
    with memory_errors_name(walk.describe):
        if len(roots) > 1:
            walk.visit_chance_move(list(enumerate(root_probabilities)))
        for root in roots:
            walk.visit_all_below(replay(game, root))
        return walk.record()


class TreeWalk:
    """A walk in progress: the columns of a `WalkRecord`, to which each visit appends."""

    def __init__(self, game: pyspiel.Game, limits: WalkLimits = NO_LIMITS, advance: Advance = no_advance):
        """Starts a walk of `game`; `advance` is called with the number of new histories."""
        self._game = game
        self._num_players = game.num_players()
        self._advance = advance
        self._limits = limits
        self._next_check = min(_HISTORIES_PER_STEP, limits.max_histories)
        self._nodes = array.array("i")
        self._num_outcomes = array.array("i")
        self._outcomes = array.array("q")
        self._outcome_probabilities = array.array("d")
        self._returns = array.array("d")
        self._infostate_player = array.array("b")
        self._legal_actions: list[list[int]] = []
        self._infostate_of_key: list[dict[str, int]] = [{} for _ in range(self._num_players)]
        self._shared_lists: dict[tuple[int, ...], list[int]] = {}

    @property
    def num_histories(self) -> int:
        """Number of histories visited so far."""
        return len(self._nodes)

    @property
    def num_infostates(self) -> int:
        """Number of infostates found so far."""
        return len(self._legal_actions)

    def describe(self) -> str:
        """The game and the progress of the walk, for messages."""
        return f"{self._game}, after {self.num_histories} histories and {self.num_infostates} infostates of the walk"

    def record(self) -> WalkRecord:
        """The record of the walk; shares the memory of the columns, so the walk must not continue."""
        keys = [""] * len(self._legal_actions)
        for infostate_of_key in self._infostate_of_key:
            for key, infostate in infostate_of_key.items():
                keys[infostate] = key
        return WalkRecord(
            nodes=np.frombuffer(self._nodes, np.int32),
            num_outcomes=np.array(self._num_outcomes, np.int32),
            outcomes=np.array(self._outcomes, np.int64),
            outcome_probabilities=np.array(self._outcome_probabilities, np.float64),
            returns=np.frombuffer(self._returns, np.float64).reshape(-1, self._num_players),
            infostate_player=np.array(self._infostate_player, np.int8),
            infostate_keys=tuple(keys),
            num_legal_actions=np.fromiter(map(len, self._legal_actions), np.int32, len(keys)),
            legal_actions=np.fromiter(itertools.chain.from_iterable(self._legal_actions), np.int64),
        )

    def visit_chance_move(self, outcomes: list[tuple[int, float]]) -> list[int]:
        """Records a chance history with (outcome, probability) pairs; returns the outcomes in reverse order."""
        actions = [action for action, _ in outcomes]
        self._nodes.append(CHANCE)
        self._num_outcomes.append(len(actions))
        self._outcomes.extend(actions)
        self._outcome_probabilities.extend(probability for _, probability in outcomes)
        actions.reverse()
        return actions

    def visit_all_below(self, root: pyspiel.State) -> None:
        """Visits the subtree of `root` in preorder; keeps at most one state per ply of the current path."""
        # Histories with unvisited children: the state, and the actions to these children in reverse order.
        open_histories: list[tuple[pyspiel.State, list[int]]] = []
        state, actions = root, self.visit(root)
        while actions or open_histories:
            if actions:
                open_histories.append((state, actions))
            state, remaining = open_histories[-1]
            action = remaining.pop()
            if remaining:
                state = state.child(action)
            else:  # the state is not needed after its last child, so the last child reuses it
                open_histories.pop()
                state.apply_action(action)
            actions = self.visit(state)

    def visit(self, state: pyspiel.State) -> list[int]:
        """Records a history and returns its actions in reverse order."""
        if len(self._nodes) >= self._next_check:
            self._check_limits()
        actor = state.current_player()
        if 0 <= actor < self._num_players:
            try:
                key = state.information_state_string(actor)
            except (pyspiel.SpielError, NotImplementedError) as error:
                raise no_information_states(self._game, error) from error
            actions: list[int] = state.legal_actions()
            infostate = self._infostate_of_key[actor].get(key)
            if infostate is None:
                infostate = self._new_infostate(state, actor, key, actions)
            elif self._legal_actions[infostate] != actions:
                raise _different_actions(state, actor, key, actions, self._legal_actions[infostate])
            self._nodes.append(infostate)
            actions.reverse()
            return actions
        if actor == CHANCE:
            return self.visit_chance_move(checked_outcomes(state))
        self._visit_end(state, actor)
        return []

    def visit_cut(self) -> None:
        """Records a history whose subtree is walked elsewhere, as a terminal history with returns 0."""
        self._nodes.append(TERMINAL)
        self._returns.extend([0.0] * self._num_players)

    def number_of(self, player: int, key: str, actions: list[int]) -> int | None:
        """The number of an infostate, which is added if it is new; None if it is known with different legal actions."""
        infostate = self._infostate_of_key[player].get(key)
        if infostate is None:
            return self._add_infostate(player, key, actions)
        return infostate if self._legal_actions[infostate] == actions else None

    def extend(
        self,
        nodes: np.ndarray,
        num_outcomes: np.ndarray,
        outcomes: np.ndarray,
        outcome_probabilities: np.ndarray,
        returns: np.ndarray,
    ) -> None:
        """Appends histories of another walk: columns as in a `WalkRecord`, with the infostate numbers of this walk."""
        self._limits.check_count(self._game, len(self._nodes) + len(nodes))
        self._limits.check_time(self._game, len(self._nodes))
        self._nodes.frombytes(nodes.tobytes())
        self._num_outcomes.frombytes(num_outcomes.tobytes())
        self._outcomes.frombytes(outcomes.tobytes())
        self._outcome_probabilities.frombytes(outcome_probabilities.tobytes())
        self._returns.frombytes(returns.tobytes())
        self._advance(len(nodes))
        self._next_check = min(len(self._nodes) + _HISTORIES_PER_STEP, self._limits.max_histories)

    def _check_limits(self) -> None:
        """Raises an error at the limits of the walk and reports progress; called every `_HISTORIES_PER_STEP` histories."""
        self._limits.check_count(self._game, len(self._nodes) + 1)
        self._limits.check_time(self._game, len(self._nodes))
        self._advance(_HISTORIES_PER_STEP)
        self._next_check = min(len(self._nodes) + _HISTORIES_PER_STEP, self._limits.max_histories)

    def _visit_end(self, state: pyspiel.State, actor: int) -> None:
        if actor != TERMINAL:
            raise ValueError(
                f"{at(state)} current_player() is {actor}, which is not a player, chance or the end of the game; convert "
                "simultaneous moves with pyspiel.convert_to_turn_based(game)"
            )
        returns = state.returns()
        try:
            own_returns = array.array("d", returns)
        except TypeError as error:
            raise ValueError(f"{at(state)} returns() is {returns!r}, not a list of numbers") from error
        if len(own_returns) != self._num_players:
            raise ValueError(f"{at(state)} returns() is {returns!r}, not one number for each player")
        self._nodes.append(TERMINAL)
        self._returns += own_returns

    def _new_infostate(self, state: pyspiel.State, player: int, key: str, actions: list[int]) -> int:
        # A string that differs at every call produces a new infostate every time, so checking new infostates is sufficient.
        if not isinstance(key, str):
            raise ValueError(f"{at(state)} information_state_string is {key!r}; it must be a string")
        if state.information_state_string(player) != key:
            raise ValueError(
                f"{at(state)} information_state_string differs between two calls; it must be a function of the history"
            )
        check_legal_actions(state, player, actions)
        if not actions:
            raise ValueError(
                f"{at(state)} player {player} is to move but has no legal actions; choose other game parameters, or let the "
                "game skip the player or end"
            )
        return self._add_infostate(player, key, actions)

    def _add_infostate(self, player: int, key: str, actions: list[int]) -> int:
        infostate = len(self._legal_actions)
        self._infostate_of_key[player][key] = infostate
        self._infostate_player.append(player)
        self._legal_actions.append(self._shared_lists.setdefault(tuple(actions), actions[:]))
        return infostate


def _different_actions(state: pyspiel.State, player: int, key: str, here: list[int], elsewhere: list[int]) -> ValueError:
    return ValueError(
        f"{at(state)} infostate {key!r} of player {player} has the legal actions {here} here, but {elsewhere} at another "
        "history; information_state_string must distinguish the two histories"
    )
