"""What can be said against a game before its tree is walked, and against its string."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pyspiel

from spiel_cfrplus._utils.openspiel_output import loads_back, silent_stderr
from spiel_cfrplus.game.chance import checked_outcomes
from spiel_cfrplus.game.walk_limits import memory_errors_name

_MOST_PLAYOUTS = 100
# What asking for an information-state string may raise: OpenSpiel where there is none, Python games where something is missing,
# such as the observer that the string comes from.
_NO_STRING = (pyspiel.SpielError, NotImplementedError, AttributeError, RuntimeError)
# Over all playouts: moves of chance need not end.
_MOST_CHANCE_MOVES = 10_000


def check_game(game: pyspiel.Game) -> None:
    """Refuses games that cannot be walked, before any walk.

    Raises:
      TypeError, ValueError: see `GameTree.from_game`.
    """
    _check_game_type(game)
    _check_information_states(game)


def _check_game_type(game: pyspiel.Game) -> None:
    if isinstance(game, pyspiel.State):
        raise TypeError(
            f"expected a pyspiel.Game, got a state ({type(game).__name__}) of {game.get_game()}; give its game, or compile "
            "what is below it: compile_subgame(state)"
        )
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
        with silent_stderr():
            state.information_state_string(state.current_player())
    except _NO_STRING as error:
        raise no_information_states(game, error) from error


def _some_decision(game: pyspiel.Game) -> pyspiel.State | None:
    """A decision near the root, if some of a few random chance playouts come to one."""
    generator, moves, start = random.Random(0), 0, _initial_state(game)
    for _ in range(_MOST_PLAYOUTS):
        state = start.clone()
        while state.current_player() == pyspiel.PlayerId.CHANCE:
            if moves == _MOST_CHANCE_MOVES:
                return None
            state.apply_action(generator.choice(checked_outcomes(state))[0])
            moves += 1
        if state.current_player() >= 0:
            return state
    return None


def _initial_state(game: pyspiel.Game) -> pyspiel.State:
    try:
        with silent_stderr(), memory_errors_name(lambda: f"{game}, its initial state"):
            return game.new_initial_state()
    except (pyspiel.SpielError, RuntimeError, ValueError) as error:
        raise ValueError(f"{game} has no initial state ({_in_words(error)}); choose other game parameters") from error


def no_information_states(game: pyspiel.Game, error: Exception) -> ValueError:
    """What to raise when asking for an information-state string raised `error`."""
    remedy = "Implement information_state_string, or choose a game that provides it"
    if not _is_native(game):
        remedy += "; OpenSpiel asks a Python game for it through the observer that make_py_observer() of the game returns"
    return ValueError(
        f"{game} has no information-state strings ({_in_words(error)}); they tell which histories a player can tell apart. "
        f"{remedy}"
    )


def _in_words(error: Exception) -> str:
    """An error's own words in one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def why_string_is_not_enough(game: pyspiel.Game) -> str | None:
    """Why a game that is loaded by this one's string may be another, in words; None if it is the same.

    The rules of Python games may be edited by anybody, files may change, matrices and texts are not in the string.
    """
    if not _is_native(game):
        return "it is a Python or a matrix game, whose string does not tell its rules"
    if not loads_back(game):
        return "OpenSpiel cannot load it back by its string"
    parameters = game.get_parameters()
    if names_of_files(parameters):
        return "it is read from a file, which may change"
    for _, value in all_parameters(parameters):
        if isinstance(value, Mapping) and not _is_native(pyspiel.load_game(value["name"], _without_name(value))):
            return f"it is made from {value['name']}, a Python or a matrix game, whose string does not tell its rules"
    return None


def is_called_alike(game: pyspiel.Game, other: pyspiel.Game) -> bool:
    """Whether two games have the same name and, with defaults filled in, the same parameters."""
    return game is other or str(game) == str(other) or _name_and_parameters(game) == _name_and_parameters(other)


def _name_and_parameters(game: pyspiel.Game) -> tuple[str, dict[str, Any]]:
    return game.get_type().short_name, game.get_parameters()


def _is_native(game: pyspiel.Game) -> bool:
    """Whether the game's rules are part of OpenSpiel's own library."""
    return type(game).__module__.partition(".")[0] == "pyspiel" and not isinstance(
        game, pyspiel.NormalFormGame | pyspiel.TensorGame
    )


def names_of_files(parameters: Mapping[str, Any]) -> list[str]:
    """The files and folders that a game with these parameters reads."""
    names = [(name, value) for name, value in all_parameters(parameters) if "file" in name or "root" in name]
    return [str(value) for _, value in names if value]


def all_parameters(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parameters, and those of games among them."""
    for name, value in parameters.items():
        yield name, value
        if isinstance(value, Mapping):
            yield from all_parameters(value)


def _without_name(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name != "name"}
