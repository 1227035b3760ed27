"""Checks made before the walk: whether a game can be walked, and whether its string determines it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pyspiel

from spiel_cfrplus._utils.openspiel_output import loads_back, silent_stderr
from spiel_cfrplus.game.chance import checked_outcomes
from spiel_cfrplus.game.walk_limits import memory_errors_name

_MAX_PLAYOUTS = 100
# Exceptions that information_state_string may raise: OpenSpiel raises if the game provides no string, and Python games raise if
# a part is missing, such as the observer that produces the string.
_NO_STRING = (pyspiel.SpielError, NotImplementedError, AttributeError, RuntimeError)
# A game object that draws numbers when a history is first visited, so that two walks in different orders differ.
_DEPENDS_ON_ORDER = "add_noise"
# In all playouts together, because a sequence of chance moves may be infinite.
_MAX_CHANCE_MOVES = 10_000


def check_game(game: pyspiel.Game) -> None:
    """Raises an error if the game cannot be walked.

    Raises:
      TypeError, ValueError: see `GameTree.from_game`.
    """
    _check_game_type(game)
    _check_information_states(game)


def _check_game_type(game: pyspiel.Game) -> None:
    if isinstance(game, pyspiel.State):
        raise TypeError(
            f"expected a pyspiel.Game, got a state ({type(game).__name__}) of {game.get_game()}; pass its game, or compile the "
            "subgame that starts there: compile_subgame(state)"
        )
    if not isinstance(game, pyspiel.Game):
        raise TypeError(f"expected a pyspiel.Game, got {game!r}; load a game with pyspiel.load_game(...)")
    game_type = game.get_type()
    if game_type.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        raise ValueError(
            f"{game} has simultaneous moves ({game_type.dynamics}); convert it first: pyspiel.convert_to_turn_based(game)"
        )
    if game_type.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        raise ValueError(f"{game} is not a sequential game ({game_type.dynamics}); a mean-field game has no game tree")
    if game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"{game} samples its chance moves ({game_type.chance_mode}); a game tree requires every outcome and its "
            "probability: choose an EXPLICIT_STOCHASTIC version of the game"
        )


def _check_information_states(game: pyspiel.Game) -> None:
    """Requests one string, because `provides_information_state_string` is wrong for some wrapped games."""
    state = _find_decision(game)
    if state is None:
        return
    try:
        with silent_stderr():
            state.information_state_string(state.current_player())
    except _NO_STRING as error:
        raise no_information_states(game, error) from error


def _find_decision(game: pyspiel.Game) -> pyspiel.State | None:
    """A decision state near the root, or None if random playouts of the chance moves do not reach one."""
    generator, moves, start = random.Random(0), 0, _initial_state(game)
    for _ in range(_MAX_PLAYOUTS):
        state = start.clone()
        while state.current_player() == pyspiel.PlayerId.CHANCE:
            if moves == _MAX_CHANCE_MOVES:
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
        raise ValueError(f"{game} has no initial state ({_error_text(error)}); choose other game parameters") from error


def no_information_states(game: pyspiel.Game, error: Exception) -> ValueError:
    """The exception to raise if `information_state_string` raised `error`."""
    remedy = "Implement information_state_string, or choose a game that provides it"
    if not _is_native(game):
        remedy += "; OpenSpiel obtains the string of a Python game from the observer that its make_py_observer() returns"
    return ValueError(
        f"{game} has no information-state strings ({_error_text(error)}); they define which histories a player can "
        f"distinguish. {remedy}"
    )


def _error_text(error: Exception) -> str:
    """The message of an error on one line, or its type if the message is empty."""
    return " ".join(str(error).split()) or type(error).__name__


def why_string_is_not_enough(game: pyspiel.Game) -> str | None:
    """The reason why the game that this game's string loads may be a different one; None if it is the same.

    Users may edit the rules of Python games, files may change, and the string does not contain matrices and texts.
    """
    if not _is_native(game):
        return "it is a Python game or a matrix game, whose string does not determine its rules"
    if not loads_back(game):
        return "OpenSpiel cannot load it from its string"
    parameters = game.get_parameters()
    if names_of_files(parameters):
        return "it is read from a file, which may change"
    for _, value in all_parameters(parameters):
        if isinstance(value, Mapping) and not _is_native(pyspiel.load_game(value["name"], _without_name(value))):
            return f"it contains {value['name']}, a Python game or a matrix game, whose string does not determine its rules"
    return None


def why_copies_differ(game: pyspiel.Game) -> str | None:
    """The reason why copies of a game, each of which walks a part of the tree, may disagree; None if they agree."""
    parameters = game.get_parameters()
    if reason := why_string_is_not_enough(game):
        return reason
    names = (value["name"] for _, value in all_parameters(parameters) if isinstance(value, Mapping))
    if _DEPENDS_ON_ORDER in (game.get_type().short_name, *names):
        return f"the returns of {_DEPENDS_ON_ORDER} depend on the order in which a copy of the game is walked"
    if pyspiel.load_game(str(game)).get_parameters() != parameters:
        return "its string does not contain all its parameters"
    return None


def have_same_parameters(game: pyspiel.Game, other: pyspiel.Game) -> bool:
    """Whether two games have the same name and the same parameters, defaults included."""
    return game is other or str(game) == str(other) or _name_and_parameters(game) == _name_and_parameters(other)


def _name_and_parameters(game: pyspiel.Game) -> tuple[str, dict[str, Any]]:
    return game.get_type().short_name, game.get_parameters()


def _is_native(game: pyspiel.Game) -> bool:
    """Whether the rules of the game are implemented in the OpenSpiel library."""
    return type(game).__module__.partition(".")[0] == "pyspiel" and not isinstance(
        game, pyspiel.NormalFormGame | pyspiel.TensorGame
    )


def names_of_files(parameters: Mapping[str, Any]) -> list[str]:
    """The paths of the files and directories that a game with these parameters reads."""
    names = [(name, value) for name, value in all_parameters(parameters) if "file" in name or "root" in name]
    return [str(value) for _, value in names if value]


def all_parameters(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the parameters, including those of games that are themselves parameters."""
    for name, value in parameters.items():
        yield name, value
        if isinstance(value, Mapping):
            yield from all_parameters(value)


def _without_name(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name != "name"}
