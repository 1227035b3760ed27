"""What each player remembers of its own moves along every path of a game tree.

A player has *perfect recall* if all histories of each of its infostates come after the same sequence of its own infostates and
moves; a player who meets an infostate twice on one path is *absent-minded*.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from spiel_cfrplus.game.game_tree import NO_PARENT, GameTree
from spiel_cfrplus.kernels import tree as tree_kernels

_UNKNOWN = -1


class ImperfectRecallError(ValueError):
    """A player forgets its own moves."""


class AbsentMindedError(ValueError):
    """A player meets an infostate twice on one path."""


def trace_sequences(tree: GameTree) -> tuple[np.ndarray, np.ndarray]:
    """Numbers each player's sequences from 0, the empty one, infostate after infostate, and follows them down the tree.

    Returns:
      int32 (H, n), the last sequence of every player at every history; int32 (I,), the parent sequence of every infostate.

    Raises:
      AbsentMindedError, ImperfectRecallError: a player does not have perfect recall.
    """
    num_actions = np.diff(tree.legal_action_start)
    first_sequence = np.zeros(tree.num_infostates, np.int64)
    for player in range(tree.num_players):
        own = tree.infostate_player == player
        first_sequence[own] = 1 + np.cumsum(num_actions[own]) - num_actions[own]
    last_sequence = np.zeros((tree.num_histories, tree.num_players), np.int32)
    parent_sequence = np.full(tree.num_infostates, _UNKNOWN, np.int32)
    num_children = np.zeros(tree.num_histories, np.int32)
    conflict = tree_kernels.trace_sequences(
        tree.parent, tree.actor, tree.infostate, first_sequence, last_sequence, num_children, parent_sequence
    )
    if conflict >= 0:
        _raise_recall_error(tree, conflict)
    return last_sequence, parent_sequence


def _raise_recall_error(tree: GameTree, history: int) -> NoReturn:
    """Says what the player to move at `history` has forgotten, compared with the first history of the same infostate."""
    latest = np.full(tree.num_infostates, _UNKNOWN, np.int64)
    repeated = tree_kernels.find_repeated_infostate(tree.infostate, tree.subtree_end, latest)
    if repeated >= 0:
        raise AbsentMindedError(
            f"{_place(tree, repeated)} has met the same infostate before on this path (absent-mindedness); let "
            "information_state_string tell the two apart"
        )
    twin = int(tree.first_history[tree.infostate[history]])
    moves, twin_moves = (
        ", ".join(f"{action} at {tree.infostate_keys[earlier]!r}" for earlier, action in _own_past(tree, end))
        for end in (history, twin)
    )
    raise ImperfectRecallError(
        f"{_place(tree, history)} does not recall its own past: its moves were [{moves}], but [{twin_moves}] at history "
        f"{list(tree.history_actions(twin))} of the same infostate. The sequence form needs perfect recall: let "
        "information_state_string tell the two apart, or use the solvers of spiel_cfrplus.openspiel, which promise nothing here"
    )


def _place(tree: GameTree, history: int) -> str:
    infostate = tree.infostate[history]
    player, key = int(tree.infostate_player[infostate]), tree.infostate_keys[infostate]
    return f"{tree.game}, history {list(tree.history_actions(history))}: player {player} at infostate {key!r}"


def _own_past(tree: GameTree, history: int) -> list[tuple[int, int]]:
    """The (infostate, action id) pairs of the player to move on the path to `history`."""
    player = tree.actor[history]
    past = []
    while tree.parent[history] != NO_PARENT:
        action, history = int(tree.action[history]), int(tree.parent[history])
        if tree.actor[history] == player:
            past.append((int(tree.infostate[history]), action))
    return past[::-1]
