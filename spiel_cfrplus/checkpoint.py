"""Solvers on disk: saved between iterations, resumed to the same doubles.

A checkpoint is an uncompressed `.npz` archive of a few arrays and a JSON text. It holds the tables and the options but not the
game, of which it knows the string and a fingerprint. Reading one executes nothing that it contains.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyspiel

from spiel_cfrplus._files import whole_file
from spiel_cfrplus.averaging import Averaging
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    LocalRule,
    RegretMatching,
    RegretMatchingPlus,
)
from spiel_cfrplus.self_play import CompiledSelfPlay
from spiel_cfrplus.sequence_form import SequenceFormGame, compile_game

if TYPE_CHECKING:
    from spiel_cfrplus.solvers import CompiledSolver, Solver

FORMAT = 3
_ARRAYS = ("cumulative_regrets", "cumulative_policy", "iteration", "utility")
_RULES: dict[str, Callable[..., LocalRule]] = {
    rule.__name__: rule for rule in (RegretMatching, RegretMatchingPlus, DiscountedRegretMatching)
}


def save(solver: Solver, path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint; `path` holds either what it held before or the whole new checkpoint, whatever happens.

    Raises:
      OSError: the file cannot be written.
      TypeError: the solver has an average or a local rule of its own, or its minimisers are Python objects; these could not be
        restored.
    """
    if not isinstance(solver.self_play, CompiledSelfPlay):
        remedy = "pickle this one instead" if solver.game.tree.can_be_pickled else "nor can its game be pickled"
        raise TypeError(f"cannot save {solver.algorithm}, only solvers that are compiled as a whole; {remedy}")
    if type(solver.averaging) is not Averaging:
        raise TypeError(f"cannot save {solver.averaging!r}; only an Averaging itself can be restored")
    rule = solver.self_play.local_rule
    if type(rule) not in _RULES.values():
        raise TypeError(f"cannot save {rule!r}; only {', '.join(_RULES)} can be restored")
    options = {
        "format": FORMAT,
        "solver": type(solver).__name__,
        "algorithm": solver.algorithm,
        "alternating": solver.alternating,
        "reduced": solver.self_play.reduction is not None,
        "exact_ties": solver.self_play.exact_ties,
        "averaging": dataclasses.asdict(solver.averaging),
        "local_rule": {"kind": type(rule).__name__, **vars(rule)},
        "game": str(solver.game.tree.game),
        "fingerprint": solver.game.fingerprint,
    }
    arrays: dict[str, Any] = solver.self_play.remember()
    with whole_file(path) as file:
        np.savez(file, options=np.array(json.dumps(options)), **arrays)


def load(
    path: str | os.PathLike[str],
    solver_types: Mapping[str, type[CompiledSolver]],
    game: pyspiel.Game | SequenceFormGame | None = None,
    threads: int = 1,
) -> CompiledSolver:
    """The saved solver, ready to go on.

    Args:
      path: what `save` wrote.
      solver_types: solvers that may be made, by algorithm.
      game: the game; by default what `pyspiel.load_game` makes of the saved string. Games that have no such string (matrix
        games, `.efg` texts, unregistered Python games) must be given.
      threads: as for `CompiledSolver`; a checkpoint does not know how many there were.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not a checkpoint, or of another algorithm or game; its game cannot be loaded by its string; or `threads`
        is not an integer of 1 or more.
    """
    options, arrays = read(path)
    solver_type = solver_types.get(options["algorithm"])
    if solver_type is None or solver_type.__name__ != options["solver"]:
        expected = ", ".join(solver_type.__name__ for solver_type in solver_types.values())
        raise ValueError(f"{path} was saved by a {options['solver']}, expected one of {expected}")
    if game is None:
        game = _load_game(path, options["game"])
    game = compile_game(game)
    if game.fingerprint != options["fingerprint"]:
        raise ValueError(
            f"{path} was saved for another game, {options['game']}, than {game.tree.game}: their infostates or payoffs differ. "
            "Pass the game it was saved for as game="
        )
    solver = solver_type(
        game,
        alternating=options["alternating"],
        averaging=Averaging(**options["averaging"]),
        local_rule=local_rule(options),
        reduce=options["reduced"],
        exact_ties=options["exact_ties"],
        threads=threads,
    )
    solver.self_play.restore(arrays)
    return solver


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options and the arrays in a checkpoint.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not a checkpoint.
    """
    damaged = f"{path} is not a checkpoint of spiel_cfrplus, or is damaged"
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{damaged} (no regular file)")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in _ARRAYS if name in archive}
            options = json.loads(str(archive["options"]))
        if options["format"] == FORMAT:
            _check(options, arrays)
    except OSError:
        raise
    except Exception as error:  # archives, texts and numbers can be wrong in many ways
        raise ValueError(f"{damaged} ({error})") from error
    if options["format"] != FORMAT:
        raise ValueError(f"{path} has checkpoint format {options['format']}, this version reads format {FORMAT}")
    return options, arrays


def local_rule(options: dict[str, Any]) -> LocalRule:
    """The rule that the options of a checkpoint tell of."""
    parameters = dict(options["local_rule"])
    return _RULES[parameters.pop("kind")](**parameters)


def _check(options: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raises some exception if the options are not such as `save` writes, or the arrays not such as could be gone on from."""
    texts = dict.fromkeys(("solver", "algorithm", "game", "fingerprint"), str)
    switches = dict.fromkeys(("alternating", "reduced", "exact_ties"), bool)
    for name, kind in {**texts, "averaging": dict, "local_rule": dict, **switches}.items():
        if not isinstance(options[name], kind):
            raise TypeError(f"{name} is {options[name]!r}")
    Averaging(**options["averaging"])
    local_rule(options)
    iteration = arrays["iteration"]
    if iteration.dtype != np.int64 or iteration.min() < 0 or iteration.min() != iteration.max():
        raise ValueError(f"iterations {iteration}")
    for name in arrays.keys() - {"iteration"}:
        if arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} with other than finite numbers")
    if arrays["cumulative_policy"].min() < 0:
        raise ValueError("cumulative_policy with negative numbers")


def _load_game(path: str | os.PathLike[str], game_string: str) -> pyspiel.Game:
    importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games
    try:
        return pyspiel.load_game(game_string)
    except pyspiel.SpielError as error:
        raise ValueError(
            f"{path} was saved for a game that pyspiel.load_game({game_string!r}) cannot load; pass it as game="
        ) from error
