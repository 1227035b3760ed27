"""Solvers on disk: saved between iterations, resumed to the same doubles.

A checkpoint is an uncompressed `.npz` archive of a few arrays and a JSON text. It holds the tables and the options but not the
game, of which it knows the string, the number of histories and a fingerprint.

A checkpoint may come from somebody else. Reading one executes nothing that it contains, and allocates no more than the file and
its game ask for. Without `game=` the game is loaded by the saved string. The string must be short and name no file; with
parameters it is tried first, see `game_trial`. The walk ends at the saved number of histories. Pass `game=`, or
`max_histories=`, if that number is not to be trusted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import Archive, DamagedError, open_archive, shortened
from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.game.checks import names_of_files
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.trial import fault_of
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES, WalkLimits
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    DiscountSchedule,
    RegretMatching,
    RegretMatchingPlus,
    RegretMatchingRule,
)
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.curve import NO_ROWS, Curve

if TYPE_CHECKING:
    from spiel_cfrplus.solving.solvers import CompiledSolver, Solver

FORMAT = 5
# What `save` writes into the options, by type.
_OPTIONS: dict[str, type] = {
    **dict.fromkeys(("format", "num_histories"), int),
    **dict.fromkeys(("solver", "algorithm", "game", "description", "fingerprint"), str),
    **dict.fromkeys(("alternating", "reduced", "exact_ties", "last_iterate"), bool),
    "seconds": float,
    **dict.fromkeys(("averaging", "local_rule"), dict),
}
# What `load` gives to a solver with its game.
_CONSTRUCTOR_OPTIONS = ("alternating", "averaging", "local_rule", "reduce", "exact_ties", "threads")
_ARRAYS = {"policy", "regrets", "cumulative_policy", "iteration", "rows"}
_ARRAYS_OF_SOME = {"predicted_regrets"}
# Iterations are exact as float64 up to here; the fastest game takes decades to get there.
_MOST_ITERATIONS = 2**53
# More players than any game of OpenSpiel has.
_MOST_PLAYERS = 1000
# Longer or deeper strings are not given to OpenSpiel, which takes memory and time without bound for them.
_LONGEST_GAME_STRING = 4096
_DEEPEST_GAME_STRING = 8
_RULES: dict[str, Callable[..., DiscountSchedule]] = {
    rule.__name__: rule for rule in (RegretMatching, RegretMatchingPlus, DiscountedRegretMatching)
}


def save(solver: Solver, path: str | os.PathLike[str], curve: Curve = NO_ROWS) -> None:
    """Writes a checkpoint; `path` holds either what it held before or the whole new checkpoint, whatever happens.

    Args:
      solver: its tables and options are saved.
      path: the file.
      curve: the rows of its run, see `CheckpointedRun`; none by default.

    Raises:
      OSError: the file cannot be written.
      TypeError: `path` is no path, or see `check_can_save`.
    """
    session = check_can_save(solver)
    options = {
        "format": FORMAT,
        "solver": type(solver).__name__,
        "algorithm": solver.algorithm,
        "alternating": solver.alternating,
        "reduced": session.reduction is not None,
        "exact_ties": session.exact_ties,
        "averaging": dataclasses.asdict(solver.averaging),
        "local_rule": _described(_discounts(session.rule)),
        "game": str(solver.game.tree.game),
        "description": _printable(solver.game.description),
        "num_histories": solver.game.tree.num_histories,
        "fingerprint": solver.game.fingerprint,
        "seconds": curve.seconds,
        "last_iterate": curve.last_iterate,
    }
    arrays: dict[str, Any] = {**session.state_dict(), "rows": curve.to_array()}
    with atomic_write(path) as file:
        np.savez(file, options=np.array(json.dumps(options)), **arrays)


def check_can_save(solver: Solver) -> CompiledSelfPlay:
    """Refuses solvers that could not be restored; returns the session of the others.

    Raises:
      TypeError: the solver has an average or a local rule of its own, its minimizers are Python objects, or `load` could not
        call its constructor.
    """
    if not isinstance(solver.self_play, CompiledSelfPlay):
        remedy = "pickle this one instead" if solver.game.tree.can_be_pickled else "nor can its game be pickled"
        raise TypeError(f"cannot save {solver.algorithm}, only solvers that are compiled as a whole; {remedy}")
    if type(solver.averaging) is not Averaging:
        raise TypeError(f"cannot save {solver.averaging!r}; only an Averaging itself can be restored")
    rule = solver.self_play.rule
    if not isinstance(rule, RegretMatchingRule) or type(rule.discounts) not in _RULES.values():
        raise TypeError(f"cannot save {rule!r}; only {', '.join(_RULES)} can be restored")
    check_constructor(type(solver))
    return solver.self_play


def check_constructor(solver_type: type[Solver]) -> None:
    """Refuses solvers whose constructor does not take what `load` gives it.

    Raises:
      TypeError: it does not.
    """
    try:
        inspect.signature(solver_type).bind(None, **dict.fromkeys(_CONSTRUCTOR_OPTIONS))
    except TypeError as error:
        raise TypeError(
            f"a {solver_type.__name__} can be neither saved nor loaded: its __init__ does not take the arguments of "
            f"CompiledSolver ({error}); pickle it instead, or let __init__ take game and **options and pass them on"
        ) from error


def load(
    path: str | os.PathLike[str],
    solver_types: Mapping[str, type[CompiledSolver]],
    game: pyspiel.Game | SequenceFormGame | None = None,
    threads: int = 1,
    max_histories: int | None = None,
) -> CompiledSolver:
    """The saved solver, ready to go on.

    Args:
      path: what `save` wrote.
      solver_types: solvers that may be made, by algorithm.
      game: the game; by default what `pyspiel.load_game` makes of the saved string. Games that have no such string (matrix
        games, `.efg` texts, unregistered Python games) and games that are read from files must be given.
      threads: as for `CompiledSolver`; a checkpoint does not know how many there were.
      max_histories: refuse games with more histories than this. A game that is loaded by its string may have as many as the
        saved one in any case.

    Raises:
      OSError: the file cannot be read.
      TypeError: `path` is no path, or see `check_constructor`.
      ValueError: it is not a checkpoint, or of another algorithm or game; its game cannot be loaded by its string, or is larger
        than `max_histories`; or `threads` is not an integer of 1 or more.
    """
    options = read_options(path)
    solver_type = solver_types.get(options["algorithm"])
    if solver_type is None or solver_type.__name__ != options["solver"]:
        expected = [solver_type.__name__ for solver_type in solver_types.values()]
        if options["solver"] in expected:
            raise ValueError(_not_a_checkpoint(path, f"a {options['solver']} of the algorithm {options['algorithm']!r}"))
        raise ValueError(f"{path} was saved by a {options['solver']}, expected one of {', '.join(expected)}")
    check_constructor(solver_type)
    if game is None:
        game = _game_of(path, options, max_histories)
    game = compile_game(game, max_histories=max_histories)
    if game.fingerprint != options["fingerprint"]:
        raise ValueError(
            f"{path} was saved for another game, {shortened(options['description'])}, than {game.description}: their "
            "infostates or payoffs differ. Pass the game it was saved for as game="
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
    solver.self_play.load_state_dict(_read_arrays(path, solver.self_play.state_dict()))
    return solver


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The options in a checkpoint whose checksums are right.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not a checkpoint, or of another format.
    """
    with _open(path) as archive:
        options = archive.json("options")
        version = options.get("format")
        if type(version) is not int:
            raise DamagedError("no format")
        if version == FORMAT:
            _check_options(options)
            if not _ARRAYS <= archive.names - {"options"} <= _ARRAYS | _ARRAYS_OF_SOME:
                raise DamagedError(f"arrays {sorted(archive.names)}")
            if math.prod(archive.header("iteration").shape) > _MOST_PLAYERS:
                raise DamagedError("iterations of too many players")
            archive.check_sums()
    if version != FORMAT:
        raise ValueError(f"{path} has checkpoint format {version}, this version reads format {FORMAT}")
    return options


def read_curve(path: str | os.PathLike[str]) -> Curve:
    """The rows and seconds in a checkpoint; there are none in one that `Solver.save` wrote.

    Raises:
      OSError, ValueError: as for `read_options`.
    """
    options = read_options(path)
    with _open(path) as archive:
        iteration = int(archive.array("iteration", np.int64, (None,)).max())
        if archive.header("rows").shape[0] > iteration:
            raise DamagedError("more rows than iterations")
        rows = archive.array("rows", np.float64, (None, Curve.num_columns))
        curve = Curve.from_array(rows, options["seconds"], options["last_iterate"])
        if curve.rows and curve.rows[-1].iteration > iteration:
            raise DamagedError("rows of later iterations")
    return curve


def _read_arrays(path: str | os.PathLike[str], expected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays in a checkpoint, with the dtypes and shapes of those expected and numbers from which iterations can go on.

    Raises:
      OSError, ValueError: as for `read_options`.
    """
    with _open(path) as archive:
        arrays = archive.arrays_like(expected)
        iteration = arrays["iteration"]
        if not 0 <= iteration.min() == iteration.max() < _MOST_ITERATIONS:
            raise DamagedError(f"iterations {iteration}")
        for name in arrays.keys() - {"iteration"}:
            if not np.isfinite(arrays[name]).all():
                raise DamagedError(f"{name} with other than finite numbers")
        if arrays["cumulative_policy"].min() < 0:
            raise DamagedError("cumulative_policy with negative numbers")
    return arrays


@contextlib.contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[Archive]:
    try:
        with open_archive(path) as archive:
            yield archive
    except DamagedError as error:
        raise ValueError(_not_a_checkpoint(path, error)) from error


def _not_a_checkpoint(path: str | os.PathLike[str], reason: object) -> str:
    return f"{path} is not a checkpoint of spiel_cfrplus, or is damaged ({reason})"


def local_rule(options: dict[str, Any]) -> DiscountSchedule:
    """The rule that the options of a checkpoint tell of."""
    parameters = dict(options["local_rule"])
    return _RULES[parameters.pop("kind")](**parameters)


def _check_options(options: dict[str, Any]) -> None:
    """Raises some exception if the options are not such as `save` writes."""
    if options.keys() != _OPTIONS.keys():
        raise DamagedError(f"other options than expected: {sorted(options.keys() ^ _OPTIONS.keys())}")
    for name, kind in _OPTIONS.items():
        if type(options[name]) is not kind:
            raise DamagedError(f"{name} is {options[name]!r}")
    rule = local_rule(options)
    if dataclasses.asdict(Averaging(**options["averaging"])) != options["averaging"]:
        raise DamagedError(f"averaging is {options['averaging']!r}")
    if _described(rule) != options["local_rule"]:
        raise DamagedError(f"local_rule is {options['local_rule']!r}")
    if not 1 <= options["num_histories"] <= MOST_HISTORIES:
        raise DamagedError(f"num_histories is {options['num_histories']}")
    if not all(options[name].isprintable() for name in ("solver", "algorithm", "game", "description", "fingerprint")):
        raise DamagedError("names with characters that cannot be printed")


def _discounts(rule: CompiledRule) -> DiscountSchedule:
    assert isinstance(rule, RegretMatchingRule)
    return rule.discounts


def _described(rule: DiscountSchedule) -> dict[str, Any]:
    return {"kind": type(rule).__name__, **vars(rule)}


def _game_of(path: str | os.PathLike[str], options: Mapping[str, Any], max_histories: int | None) -> SequenceFormGame:
    """The game of the saved string, compiled, unless it is larger than the saved one."""
    game, saved_histories = _load_game(path, options["game"]), options["num_histories"]
    WalkLimits.starting_now(max_histories).check_count(game, saved_histories)
    try:
        return compile_game(game, max_histories=saved_histories)
    except ValueError as error:
        raise ValueError(
            f"{path} was saved for another game than {game}, or for a part of it: {error}. Pass the game it was saved for as "
            "game="
        ) from error


def _load_game(path: str | os.PathLike[str], game_string: str) -> pyspiel.Game:
    importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games
    problem = _problem_with(game_string)
    if problem is None:
        try:
            with silent_stderr():
                return pyspiel.load_game(game_string)
        except (pyspiel.SpielError, RuntimeError, ValueError):
            problem = "pyspiel.load_game cannot load"
    raise ValueError(f"{path} was saved for {shortened(game_string)!r}, which {problem}; pass it as game=")


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _problem_with(game_string: str) -> str | None:
    """Why OpenSpiel is not to load a string that somebody else may have written, in words, or None."""
    if len(game_string) > _LONGEST_GAME_STRING:
        return f"has more than {_LONGEST_GAME_STRING} characters"
    depths = np.cumsum([(character == "(") - (character == ")") for character in game_string])
    if depths.max(initial=0) > _DEEPEST_GAME_STRING:
        return f"nests games more than {_DEEPEST_GAME_STRING} deep"
    try:
        with silent_stderr():
            parameters = pyspiel.game_parameters_from_string(game_string)
    except (pyspiel.SpielError, RuntimeError, ValueError):
        return "cannot be parsed"
    if files := names_of_files(parameters):
        return f"is read from {', '.join(map(repr, files))}"
    # With parameters that make no sense OpenSpiel may end the process or take all memory.
    fault = fault_of(lambda: pyspiel.load_game(game_string)) if len(parameters) > 1 else None
    return fault and f"fails when it is tried ({fault})"
