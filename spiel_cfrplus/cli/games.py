"""Loads, checks, sizes and compiles the game of the command line."""

from __future__ import annotations

import difflib
import importlib
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any

import pyspiel

from spiel_cfrplus._utils.memory import available_bytes
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.cli.options import Options, UsageError, first_line
from spiel_cfrplus.game import size_estimate, trial, walk_cache
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk_limits import WalkLimits

importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games

# The number of game names suggested for an unknown name.
_MOST_NAMES = 5


def load_game(name: str, players: int | None) -> pyspiel.Game:
    """Loads the named game, in its turn-based form.

    Raises:
      UsageError: no game has this name, or it cannot be loaded.
    """
    _check_name(name.partition("(")[0].strip())
    try:
        with silent_stderr():
            parameters = pyspiel.game_parameters_from_string(name)
        if players is not None and parameters.setdefault("players", players) != players:
            raise UsageError(f"--players={players} contradicts --game={name}")
        if fault := trial.fault_of(lambda: _turn_based(_load(parameters))):
            raise UsageError(f"cannot load {name!r}: {fault}; choose other game parameters")
        with silent_stderr():
            game = _load(parameters)
    except (pyspiel.SpielError, MemoryError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot load {name!r}: {first_line(error)}") from error
    if _is_simultaneous(game):
        print(f"{game} has simultaneous moves; solving its turn-based form.")
    return _turn_based(game)


def _check_name(short_name: str) -> None:
    known = pyspiel.registered_names()
    if short_name in known:
        return
    wanted = short_name.lower()
    near = difflib.get_close_matches(wanted, known, n=3) + [name for name in known if wanted and wanted in name]
    nearest = list(dict.fromkeys(near))[:_MOST_NAMES]
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "no name is similar;"
    raise UsageError(f"unknown game {short_name!r}; {hint} pyspiel.registered_names() lists all")


def _load(parameters: Mapping[str, Any]) -> pyspiel.Game:
    return pyspiel.load_game(parameters["name"], {key: value for key, value in parameters.items() if key != "name"})


def _is_simultaneous(game: pyspiel.Game) -> bool:
    return bool(game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS)


def _turn_based(game: pyspiel.Game) -> pyspiel.Game:
    return pyspiel.convert_to_turn_based(game) if _is_simultaneous(game) else game


def compile_with_notes(game: pyspiel.Game, options: Options, limits: WalkLimits) -> SequenceFormGame:
    """Compiles the game and prints its size.

    Raises:
      TimeoutError: the time limit was reached.
      UsageError: the game cannot be compiled.
    """
    if options.cache == "":
        raise UsageError("--cache needs the name of a directory")
    try:
        with silent_stderr():
            check_game(game)
        if options.cache is None or not walk_cache.is_cached(game, options.cache):
            _announce_size(game, limits)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
            warnings.simplefilter("ignore", size_estimate.LargeGameWarning)  # announced already
            compiled = compile_game(
                game,
                processes=options.processes,
                max_histories=options.max_histories,
                time_limit=limits.seconds_left,
                progress=True,
                cache=options.cache,
            )
    except TimeoutError:
        raise
    except OSError as error:
        raise UsageError(f"--cache={options.cache}: {error}") from error
    except Exception as error:  # a game may be a Python program, which can raise anything
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
