"""Games by name: OpenSpiel's strings, files in Gambit's formats, and the modules that register Python games."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import pyspiel

from spiel_cfrplus._utils.openspiel_output import silent_stderr

# Files that OpenSpiel reads as games, by ending: the game with the parameter `filename`.
_FILE_GAMES = {".efg": "efg_game", ".nfg": "nfg_game"}


def file_ending(name: str) -> str | None:
    """`.efg` or `.nfg` if this is the name of such a file; None if it is the string of a game."""
    ending = pathlib.PurePath(name).suffix.lower()
    return ending if ending in _FILE_GAMES else None


def game_parameters(name: str) -> dict[str, Any]:
    """The parameters of a game, and its short name as `name`; see `load_parameters`.

    Raises:
      RuntimeError, ValueError: it is not the string of a game.
    """
    if ending := file_ending(name):
        return {"name": _FILE_GAMES[ending], "filename": name}
    with silent_stderr():
        return dict(pyspiel.game_parameters_from_string(name))


def load_parameters(parameters: Mapping[str, Any]) -> pyspiel.Game:
    """Loads the game with these `game_parameters`."""
    return pyspiel.load_game(parameters["name"], {key: value for key, value in parameters.items() if key != "name"})


def import_modules(names: Iterable[str]) -> None:
    """Imports the modules that register games.

    Raises:
      ImportError: a module cannot be imported; the error names it.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # a module may raise anything
            reason = str(error).partition("\n")[0] or type(error).__name__
            if name.endswith(".py"):
                reason = "this is the name of a file, not of a module"
            elif not isinstance(error, ImportError):
                reason = f"{type(error).__name__}: {reason}"
            raise ImportError(reason, name=name) from error


def find_modules_in_current_folder() -> None:
    """Makes modules in the current folder importable, as in `python -c`, unless Python is to be safe from them."""
    if not sys.flags.safe_path and "" not in sys.path:
        sys.path.insert(0, "")
