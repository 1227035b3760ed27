"""Names of actions, as `State.action_to_string` gives them.

>>> import pyspiel
>>> from spiel_cfrplus.game.game_tree import GameTree
>>> action_names(GameTree.from_game(pyspiel.load_game("kuhn_poker")))[:2]
('Pass', 'Bet')
"""

from __future__ import annotations

import sys

import pyspiel

from spiel_cfrplus.game.game_tree import GameTree


def action_names(tree: GameTree) -> tuple[str, ...]:
    """The name of each of `tree.legal_actions` at the first history of its infostate; empty where the game has no name.

    One state at a time is in memory; the time is that of a walk through the histories up to one for each infostate.
    """
    actions, start = tree.legal_actions.tolist(), tree.legal_action_start.tolist()
    names: list[str] = []
    for infostate, (_, state) in enumerate(tree.states(tree.first_history)):
        names += [action_name(state, action) for action in actions[start[infostate] : start[infostate + 1]]]
    return tuple(names)


def action_name(state: pyspiel.State, action: int) -> str:
    """The name of an action of the player to move, chance included; empty if the game has none."""
    try:
        return sys.intern(state.action_to_string(state.current_player(), action))
    except Exception:  # of a Python game, which may lack names; nothing depends on them
        return ""
