"""The last sequence of each player at every history, and the check for perfect recall.

A player has *perfect recall* if, for each of its infostates, all histories are preceded by the same sequence of its own
infostates and moves. A player is *absent-minded* if a path passes through one of its infostates twice.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from spiel_cfrplus.game.game_tree import NO_PARENT, GameTree
from spiel_cfrplus.game.subgames import moves
from spiel_cfrplus.kernels import tree as tree_kernels

_UNKNOWN = -1


class ImperfectRecallError(ValueError):
    """A player does not have perfect recall."""


class AbsentMindedError(ValueError):
    """A path passes through an infostate twice."""


def trace_sequences(tree: GameTree, root_sequences: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Computes the last sequences and the parent sequences; each player's sequences are numbered by infostate, from 0 (empty).

    Args:
      tree: the tree.
      root_sequences: int32 (k, n), the last sequence of each player at each of the k roots of the tree, if the moves before the
        roots are taken into account; the first numbers are then those of these sequences. By default the empty sequences.

    Returns:
      int32 (H, n), the last sequence of each player at each history; int32 (I,), the parent sequence of each infostate.

    Raises:
      AbsentMindedError, ImperfectRecallError: a player does not have perfect recall.
    """
    num_actions = np.diff(tree.legal_action_start)
    at_roots = np.zeros((1, tree.num_players), np.int32) if root_sequences is None else root_sequences
    first_sequence = np.zeros(tree.num_infostates, np.int64)
    for player, largest in enumerate(at_roots.max(axis=0)):
        own = tree.infostate_player == player
        first_sequence[own] = 1 + largest + np.cumsum(num_actions[own]) - num_actions[own]
    last_sequence = np.zeros((tree.num_histories, tree.num_players), np.int32)
    last_sequence[0] = at_roots[0]
    parent_sequence = np.full(tree.num_infostates, _UNKNOWN, np.int32)
    num_children = np.zeros(tree.num_histories, np.int32)
    arrays = (tree.parent, tree.actor, tree.infostate, first_sequence, last_sequence, num_children, parent_sequence)
    conflict = tree_kernels.trace_sequences(*arrays, *([at_roots] if len(at_roots) > 1 else []))
    if conflict >= 0:
        _raise_recall_error(tree, conflict, with_roots=root_sequences is not None)
    return last_sequence, parent_sequence


def _raise_recall_error(tree: GameTree, history: int, with_roots: bool) -> NoReturn:
    """Raises an error that compares the player's moves before `history` with those before another history of the infostate."""
    latest = np.full(tree.num_infostates, _UNKNOWN, np.int64)
    repeated = tree_kernels.find_repeated_infostate(tree.infostate, tree.subtree_end, latest)
    if repeated >= 0:
        raise AbsentMindedError(
            f"{_place(tree, repeated)} has visited the same infostate before on this path (absent-mindedness); "
            "information_state_string must distinguish the two histories"
        )
    first = int(tree.first_history[tree.infostate[history]])
    own_moves, first_moves = ((_moves_in_game if with_roots else _moves_before)(tree, end) for end in (history, first))
    raise ImperfectRecallError(
        f"{_place(tree, history)} does not have perfect recall: its moves were [{own_moves}], but [{first_moves}] at history "
        f"{list(tree.history_actions(first))} of the same infostate. The sequence form requires perfect recall: "
        "information_state_string must distinguish the two histories. The solvers of spiel_cfrplus.openspiel accept this game, "
        "without guarantees"
    )


def _place(tree: GameTree, history: int) -> str:
    infostate = tree.infostate[history]
    player, key = int(tree.infostate_player[infostate]), tree.infostate_keys[infostate]
    return f"{tree.game}, history {list(tree.history_actions(history))}: player {player} at infostate {key!r}"


def _moves_before(tree: GameTree, history: int) -> str:
    """The moves on the path to `history` of the player who moves there."""
    player, steps = tree.actor[history], []
    while tree.parent[history] != NO_PARENT:
        action, history = int(tree.action[history]), int(tree.parent[history])
        if tree.actor[history] == player:
            steps.append(f"{action} at {tree.infostate_keys[tree.infostate[history]]!r}")
    return ", ".join(reversed(steps))


def _moves_in_game(tree: GameTree, history: int) -> str:
    """The same with the moves before the root."""
    player, path = tree.actor[history], moves(tree.game, tree.history_actions(history))
    return ", ".join(
        f"{action} at {state.information_state_string(player)!r}" for state, action in path if state.current_player() == player
    )
