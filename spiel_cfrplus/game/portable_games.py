"""Pickling of games, so that compiled games and solvers can be sent to other processes.

OpenSpiel pickles a game by its string, which restores games that are registered in the other process too. Three kinds of games
need more:

* a Python game: its module is imported first, so that it is registered;
* an `.efg` game: its text, written from its states;
* a matrix or tensor game in its turn-based form: its payoffs and the names of its actions.

In the last two cases the restored game has the same name without parameters, and its tree was compared with that of the game.

>>> game = pyspiel.convert_to_turn_based(pyspiel.create_matrix_game([[1, -1], [-1, 1]], [[-1, 1], [1, -1]]))
>>> function, arguments = recipe(game)
>>> function(*arguments).num_players()
2
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import itertools
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.game.checks import all_parameters
from spiel_cfrplus.game.walk import walk_game

Recipe = tuple[Callable[..., pyspiel.Game], tuple[Any, ...]]
"""A function at the top of a module, and arguments with which it makes a game."""

_EFG = "efg_game"
_TURN_BASED = "turn_based_simultaneous_game"
_ERRORS = (pyspiel.SpielError, RuntimeError, ValueError, TypeError, AttributeError, ImportError, pickle.PicklingError)
# The information-state string of an .efg game: the player twice, the number of the infostate, its label.
_EFG_INFOSTATE = re.compile(r"(\d+)-(\d+)-(\d+)-(.*)", re.DOTALL)


def recipe(game: pyspiel.Game) -> Recipe | None:
    """How another process makes this game; None if it cannot."""
    if game.get_type().short_name == _EFG:
        return _checked((pyspiel.load_efg_game, ("\n".join(_efg_lines(game)),)), game)
    if _is_of_arrays(game):
        return _checked((matrix_game, _payoffs(game)), game)
    if not restores_itself(game):
        return None
    modules = sorted({type(part).__module__ for part in [game, *_parts(game)]})
    own = tuple(name for name in modules if name != "__main__" and name.partition(".")[0] != "pyspiel")
    return load_with_modules, (own, pickle.dumps(game))


def required_recipe(game: pyspiel.Game) -> Recipe:
    """The same.

    Raises:
      ValueError: another process cannot make the game.
    """
    found = recipe(game)
    if found is None:
        raise ValueError(
            f"{game} cannot be pickled: OpenSpiel cannot load it from its string, and no module registers it. Pickle "
            "results instead, such as the arrays of a policy; a spiel_cfrplus solver can be saved with solver.save(path) "
            "and loaded with game="
        )
    return found


def restores_itself(game: pyspiel.Game) -> bool:
    """Whether OpenSpiel restores the game from a pickle of the game itself, once its module is imported."""
    try:
        with silent_stderr():
            return type(pickle.loads(pickle.dumps(game))) is type(game)
    except _ERRORS:
        return False


def portable_pickle(value: Any) -> bytes:
    """A pickle of a value, in which games are made by their `recipe`, and states by their histories.

    Raises:
      ValueError: another process cannot make one of the games.
    """
    stream = io.BytesIO()
    _Pickler(stream).dump(value)
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, pyspiel.State):
            return _state_after, (value.get_game(), value.history())
        if not isinstance(value, pyspiel.Game):
            return NotImplemented
        return required_recipe(value)


def _state_after(game: pyspiel.Game, history: Sequence[int]) -> pyspiel.State:
    """The state after the actions of a history."""
    state = game.new_initial_state()
    for action in history:
        state.apply_action(action)
    return state


def load_with_modules(modules: Sequence[str], pickled: bytes) -> pyspiel.Game:
    """The pickled game, after the import of the modules that register it."""
    for module in modules:
        importlib.import_module(module)
    game: pyspiel.Game = pickle.loads(pickled)
    return game


def matrix_game(name: str, actions: Sequence[Sequence[str]], payoffs: np.ndarray) -> pyspiel.Game:
    """The turn-based form of a normal-form game.

    Args:
      name: of the game.
      actions: the names of each player's actions.
      payoffs: float64 (number of actions of player 0, ..., of player n - 1, n).
    """
    per_player = np.moveaxis(payoffs, -1, 0)
    if len(actions) == 2:
        simultaneous = pyspiel.create_matrix_game(name, name, *actions, *per_player.tolist())
    else:
        flat = [own.ravel().tolist() for own in per_player]
        simultaneous = pyspiel.create_tensor_game(name, name, list(actions), flat)
    return pyspiel.convert_to_turn_based(simultaneous)


def _checked(found: Recipe, game: pyspiel.Game) -> Recipe | None:
    """The recipe, if its game has the same tree."""
    function, arguments = found
    try:
        with silent_stderr():
            expected, restored = walk_game(game), walk_game(function(*arguments))
    except _ERRORS:
        return None
    names = [field.name for field in dataclasses.fields(expected)]
    is_same = all(np.array_equal(getattr(expected, name), getattr(restored, name)) for name in names)
    return found if is_same else None


def _parts(game: pyspiel.Game) -> Iterator[pyspiel.Game]:
    """The games that are parameters of a game."""
    for _, value in all_parameters(game.get_parameters()):
        if isinstance(value, dict):
            yield pyspiel.load_game(value["name"], {key: entry for key, entry in value.items() if key != "name"})


# Normal-form games.


def _is_of_arrays(game: pyspiel.Game) -> bool:
    """Whether it may be the turn-based form of a matrix or tensor game: without chance and parameters, one move per player."""
    game_type = game.get_type()
    if game_type.short_name != _TURN_BASED or game_type.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC:
        return False
    return bool(game.get_parameters()["game"].keys() == {"name"} and game.max_game_length() == game.num_players())


def _payoffs(game: pyspiel.Game) -> tuple[str, list[list[str]], np.ndarray]:
    """The arguments of `matrix_game`."""
    state, names = game.new_initial_state(), []
    for player in range(game.num_players()):
        names.append([state.action_to_string(player, action) for action in state.legal_actions()])
        state.apply_action(state.legal_actions()[0])
    record = walk_game(game)
    payoffs = record.returns.reshape([*map(len, names), game.num_players()])
    return game.get_parameters()["game"]["name"], names, payoffs


# Games of .efg texts.


def _efg_lines(game: pyspiel.Game) -> Iterator[str]:
    """The text of an `.efg` game: its infostates have their numbers and labels, its actions their names."""
    players = " ".join(f'"player {player}"' for player in range(game.num_players()))
    yield f'EFG 2 R "{_EFG}" {{ {players} }} ""'
    numbers, states = itertools.count(1), [game.new_initial_state()]
    while states:
        state = states.pop()
        if state.is_terminal():
            yield f't "" {next(numbers)} "" {{ {", ".join(map(repr, state.returns()))} }}'
            continue
        player = state.current_player()
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            labels = " ".join(f'"{state.action_to_string(player, action)}" {probability!r}' for action, probability in outcomes)
            yield f'c "" {next(numbers)} "" {{ {labels} }} 0'
            actions = [action for action, _ in outcomes]
        else:
            actions = state.legal_actions()
            labels = " ".join(f'"{state.action_to_string(player, action)}"' for action in actions)
            yield f'p "" {player + 1} {_number_and_label(state)} {{ {labels} }} 0'
        states.extend(state.child(action) for action in reversed(actions))


def _number_and_label(state: pyspiel.State) -> str:
    found = _EFG_INFOSTATE.fullmatch(state.information_state_string())
    assert found is not None
    return f'{found[3]} "{found[4]}"'
