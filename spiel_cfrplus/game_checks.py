"""What can be said against a game before its tree is walked."""

from __future__ import annotations

import random

import pyspiel

_MOST_PLAYOUTS = 100


def check_game(game: pyspiel.Game) -> None:
    """Refuses games that cannot be walked, before any walk.

    Raises:
      TypeError, ValueError: see `GameTree.from_game`.
    """
    _check_game_type(game)
    _check_information_states(game)


def _check_game_type(game: pyspiel.Game) -> None:
    if not isinstance(game, pyspiel.Game):
        raise TypeError(f"expected a pyspiel.Game, got {game!r}; load one with pyspiel.load_game(...)")
    game_type = game.get_type()
    if game_type.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        raise ValueError(
            f"{game} has simultaneous moves ({game_type.dynamics}); convert it first: pyspiel.convert_to_turn_based(game)"
        )
    if game_type.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        raise ValueError(f"{game} is not a sequential game ({game_type.dynamics}); choose one, a mean-field game has no tree")
    if game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"{game} samples its chance moves ({game_type.chance_mode}); a tree needs every outcome and its probability: "
            "choose an EXPLICIT_STOCHASTIC version of the game"
        )


def _check_information_states(game: pyspiel.Game) -> None:
    """Asks for one string, since `provides_information_state_string` is wrong for some wrapped games."""
    state = _some_decision(game)
    if state is None:
        return
    try:
        state.information_state_string()
    except (pyspiel.SpielError, NotImplementedError) as error:
        raise no_information_states(game, error) from error


def _some_decision(game: pyspiel.Game) -> pyspiel.State | None:
    """A decision near the root, if some of a few random chance playouts come to one."""
    generator = random.Random(0)
    for _ in range(_MOST_PLAYOUTS):
        state = game.new_initial_state()
        while state.current_player() == pyspiel.PlayerId.CHANCE and (outcomes := state.chance_outcomes()):
            state.apply_action(generator.choice(outcomes)[0])
        if state.current_player() >= 0:
            return state
    return None


def no_information_states(game: pyspiel.Game, error: Exception) -> ValueError:
    """What to raise when asking for an information-state string raised `error`."""
    return ValueError(
        f"{game} has no information-state strings ({error}); without them nobody knows which histories a player can tell "
        "apart. Implement information_state_string, or choose a game that provides it"
    )
