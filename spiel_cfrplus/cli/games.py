"""Loads, checks, sizes and compiles the game of the command line."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import time
import warnings
from collections.abc import Sequence

import pyspiel
from absl import flags

from spiel_cfrplus._utils.memory import available_bytes
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.game import named_games, size_estimate, trial, walk_cache
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.named_games import file_ending, game_parameters, load_parameters
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.turn_based import is_simultaneous, turn_based_form
from spiel_cfrplus.game.walk_limits import WalkLimits

# The number of game names suggested for an unknown name.
_MOST_NAMES = 5


# The names of the game and of the games among its parameters.
_NAMES_OF_GAMES = re.compile(r"(\w+)\s*\(")


def define(values: flags.FlagValues, *, default: str | None = None) -> None:
    """Defines the flags for `load_game`."""
    flags.DEFINE_string(
        "game",
        default,
        "The game, as pyspiel.load_game takes it, with parameters in parentheses; or an .efg or .nfg file.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "players", None, "Number of players, if the game has this parameter.", 1, 2**31 - 1, flag_values=values
    )
    define_import(values)


def define_import(values: flags.FlagValues) -> None:
    """Defines `--import`."""
    flags.DEFINE_list(
        "import", [], "Modules to import, which register Python games; of the current folder, too.", flag_values=values
    )


def load_game(name: str, players: int | None = None, modules: Sequence[str] = ()) -> pyspiel.Game:
    """Loads the named game, in its turn-based form.

    Args:
      name: the string of a game, or the name of an `.efg` or `.nfg` file.
      players: the number of players, a parameter of the game; None if it is not given.
      modules: to be imported first, because they register games.

    Raises:
      UsageError: a module cannot be imported, no game has this name, or it cannot be loaded.
    """
    import_modules(modules)
    name = name.strip()
    ending = file_ending(name)
    if ending is not None:
        _check_file(name)
    else:
        _register_python_games(name)
        _check_name(name.partition("(")[0].strip())
    try:
        parameters = game_parameters(name)
        if players is not None and parameters.setdefault("players", players) != players:
            raise UsageError(f"--players={players} contradicts --game={name}")
        if fault := trial.fault_of(lambda: turn_based_form(load_parameters(parameters))):
            raise UsageError(f"cannot load {name!r}: {fault}; choose other game parameters")
        with silent_stderr():
            game = load_parameters(parameters)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # a game may be a Python program, and readers of files raise errors of many types
        reason = first_line(error) or type(error).__name__
        if isinstance(error, SystemExit):
            reason = f"SystemExit: {reason}"
        if ending is not None:
            reason = f"OpenSpiel cannot read it as an {ending} file ({reason})"
        raise UsageError(f"cannot load {name!r}: {reason}") from error
    if is_simultaneous(game):
        print(f"{game} has simultaneous moves; solving its turn-based form.")
    return turn_based_form(game)


def import_modules(names: Sequence[str]) -> None:
    """Imports modules, which may be in the current folder.

    Raises:
      UsageError: a module cannot be imported.
    """
    if names:
        named_games.find_modules_in_current_folder()
    try:
        named_games.import_modules(names)
    except ImportError as error:
        raise UsageError(f"--import={error.name}: {error}") from error


def _check_file(name: str) -> None:
    try:
        with open(name, "rb"):
            pass
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot load {name!r}: {getattr(error, 'strerror', error)}") from error


def _register_python_games(name: str) -> None:
    """Registers OpenSpiel's Python games, which takes long, if a string has another name than those of registered games."""
    if not {name.partition("(")[0].strip(), *_NAMES_OF_GAMES.findall(name)} <= set(pyspiel.registered_names()):
        importlib.import_module("open_spiel.python.games")


def _check_name(short_name: str) -> None:
    known = pyspiel.registered_names()
    if short_name in known:
        return
    wanted = short_name.lower()
    near = difflib.get_close_matches(wanted, known, n=3) + [name for name in known if wanted and wanted in name]
    nearest = list(dict.fromkeys(near))[:_MOST_NAMES]
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "no name is similar;"
    raise UsageError(f"unknown game {short_name!r}; {hint} pyspiel.registered_names() lists all")


def compile_with_notes(
    game: pyspiel.Game, limits: WalkLimits, *, cache: str | None = None, processes: int = 1, walk: str = "auto"
) -> SequenceFormGame:
    """Compiles the game and prints its size.

    Args:
      game: the game.
      limits: of the walk.
      cache, processes, walk: see `compile_game`.

    Raises:
      TimeoutError: the time limit was reached.
      UsageError: the game cannot be compiled.
    """
    if cache == "":
        raise UsageError("--cache needs the name of a directory")
    try:
        with silent_stderr():
            check_game(game)
        if cache is None or not walk_cache.is_cached(game, cache):
            _announce_size(game, limits)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
            warnings.simplefilter("ignore", size_estimate.LargeGameWarning)  # announced already
            compiled = compile_game(
                game,
                processes=processes,
                walk=walk,
                max_histories=limits.max_histories,
                time_limit=limits.seconds_left,
                progress=True,
                cache=cache,
            )
    except TimeoutError:
        raise
    except OSError as error:
        raise UsageError(f"--cache={cache}: {error}") from error
    except (Exception, SystemExit) as error:  # a game may be a Python program, which can raise anything
        reason = first_line(error)
        if str(game) not in reason:
            reason = f"{game} cannot be walked: {type(error).__name__}: {reason}"
        raise UsageError(reason) from error
    print(
        f"{game}: {compiled.tree.num_histories} histories, {compiled.num_infostates} infostates, {compiled.num_sequences} "
        f"sequences, {len(compiled.payoffs)} payoffs, compiled in {time.perf_counter() - started:.2f} s"
    )
    return compiled


def _announce_size(game: pyspiel.Game, limits: WalkLimits) -> None:
    """Prints the estimated size of a large game before the walk."""
    with silent_stderr():
        size = size_estimate.estimate_size(game, time_limit=limits.seconds_left)
    if size.num_histories < size_estimate.LARGE_GAME:
        return
    about = "about" if size.is_complete else "more than"
    print(f"{game}: {about} {size.num_histories:.2g} histories, which take {size.memory} (estimated)", flush=True)
    available = available_bytes()
    if size.least_bytes > available:
        print(
            f"warning: {available / 1e9:.1f} GB are available; choose smaller game parameters, or let --max_histories stop the "
            "walk before memory runs out",
            file=sys.stderr,
            flush=True,
        )
