"""Information states of simultaneous-move games and of their turn-based forms.

`pyspiel.convert_to_turn_based` puts a line "Current player: p" before the information-state string that player p has in the
simultaneous-move game, and changes neither the string nor the actions. So policies of the two forms differ in their keys only.

>>> import pyspiel
>>> game = pyspiel.load_game("matrix_rps")
>>> turn_based = pyspiel.convert_to_turn_based(game)
>>> turn_based.new_initial_state().information_state_string(0) == (
...     infostate_prefix(0) + game.new_initial_state().information_state_string(0)
... )
True
"""

from __future__ import annotations

import pyspiel

from spiel_cfrplus.game.checks import have_same_parameters

_TURN_BASED = "turn_based_simultaneous_game"


def is_simultaneous(game: pyspiel.Game) -> bool:
    """Whether the players of the game move at once."""
    return bool(game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS)


def turn_based_form(game: pyspiel.Game) -> pyspiel.Game:
    """The game itself if it is sequential, the turn-based form of a simultaneous-move game."""
    return pyspiel.convert_to_turn_based(game) if is_simultaneous(game) else game


def is_turn_based_form(game: pyspiel.Game) -> bool:
    """Whether the game is what `pyspiel.convert_to_turn_based` makes of a simultaneous-move game."""
    return bool(game.get_type().short_name == _TURN_BASED)


def is_turn_based_form_of(turn_based: pyspiel.Game, game: pyspiel.Game) -> bool:
    """Whether `turn_based` is the turn-based form of a simultaneous-move game with the name and the parameters of `game`."""
    return (
        is_turn_based_form(turn_based)
        and is_simultaneous(game)
        and have_same_parameters(pyspiel.convert_to_turn_based(game), turn_based)
    )


def infostate_prefix(player: int) -> str:
    """What the turn-based form puts before the information-state string of the player to move."""
    return f"Current player: {player}\n"
