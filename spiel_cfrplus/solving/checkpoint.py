"""Checkpoints: sessions saved to disk between iterations, which resume with the same doubles.

A checkpoint is an uncompressed `.npz` archive of a few arrays and a JSON text. It contains the arrays and the options of a
session, the name of its algorithm and its rule. Of the game it contains only the string, the number of histories and a
fingerprint.

A checkpoint may come from another person. Reading one executes nothing that it contains, imports nothing that it names, and
allocates no more memory than the file and its game require. A rule that is not of this package is saved as "module:name" and
must be passed when the checkpoint is loaded. Without `game=` the game is loaded from the saved string, see `game.saved_games`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfrplus._utils.archives import Archive, DamagedError, open_archive, printable, shortened
from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus._utils.warnings import warn
from spiel_cfrplus.game.saved_games import SavedGame
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule, source_digest
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    DiscountSchedule,
    RegretMatching,
    RegretMatchingPlus,
    RegretMatchingRule,
    ScheduledRegretMatching,
)
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.curve import NO_ROWS, Curve
from spiel_cfrplus.solving.session import Feature, Session

FORMAT = 6
# The names and types of the options that `save` writes.
_OPTIONS: dict[str, type] = {
    **dict.fromkeys(("format", "num_histories"), int),
    **dict.fromkeys(("solver", "algorithm", "game", "description", "fingerprint"), str),
    **dict.fromkeys(("alternating", "reduced", "exact_ties", "last_iterate"), bool),
    "seconds": float,
    **dict.fromkeys(("averaging", "rule"), dict),
}
_TEXTS = tuple(name for name, kind in _OPTIONS.items() if kind is str)
_ARRAYS = {"cumulative_policy", "iteration"}  # the arrays of every session
_RECORDED = {"cumulative_utility", "cumulative_value"}  # the arrays of a session that records utilities
_ROWS = "rows"
# Iterations are exact in float64 up to here; the fastest game would need decades for so many.
_MOST_ITERATIONS = 2**53
# OpenSpiel has no game with this many players.
_MOST_PLAYERS = 1000
# In the description of a rule; no parameter can have this name.
_DIGEST = "source digest"
# Fields that earlier checkpoints lack, with the values that mean the same.
_LATER_FIELDS_OF_AVERAGING = {"decrease": 0.0, "horizon": 0, "only_last": False}
# The discounts that a checkpoint describes completely.
_DISCOUNTS: dict[str, Callable[..., DiscountSchedule]] = {
    rule.__name__: rule for rule in (RegretMatching, RegretMatchingPlus, DiscountedRegretMatching, ScheduledRegretMatching)
}


@dataclasses.dataclass(frozen=True)
class Checkpoint(SavedGame):
    """The content of a checkpoint without the arrays, for which see `load_state`.

    Attributes:
      solver, algorithm: names of the solver's class and of the algorithm.
      described_rule: the rule, as returned by `describe_rule`.
      averaging, alternating, exact_ties, reduced: see `SessionOptions`.
      records_utilities: whether the session sums utilities, see the argument `record_regrets` of `Solver`.
      seconds, last_iterate: of the curve.
    """

    solver: str
    algorithm: str
    described_rule: dict[str, Any]
    averaging: Averaging
    alternating: bool
    exact_ties: bool
    reduced: bool
    records_utilities: bool
    seconds: float
    last_iterate: bool

    def rule(self, given: CompiledRule | None = None, default: CompiledRule | None = None) -> CompiledRule:
        """The rule of the session, with the parameters of the checkpoint.

        Regret matching with discounts of this package needs the checkpoint only; other rules must be given.

        Args:
          given: the rule that the caller expects.
          default: a rule to try if none is given.

        Raises:
          ValueError: the rule is neither of this package nor given, or another one is given.
        """
        described = self.described_rule
        if described["kind"] in _DISCOUNTS:
            rule: CompiledRule | None = _made(described)
        else:
            rule = _with_parameters(default if given is None else given, described)
        if rule is not None and given is not None and _with_parameters(given, described) != rule:
            rule = None
        if rule is not None:
            if described.get(_DIGEST, "") != describe_rule(rule).get(_DIGEST, ""):
                warn(f"the code of the rule {_in_words(described)} has changed since {self.path} was saved")
            return rule
        if given is None:
            raise ValueError(f"{self.path} was saved with the rule {_in_words(described)}; pass that rule as rule=")
        raise ValueError(f"{self.path} was saved with the rule {_in_words(described)}, not {_in_words(describe_rule(given))}")


def save(session: Session, path: str | os.PathLike[str], *, algorithm: str, solver: str = "", curve: Curve = NO_ROWS) -> None:
    """Writes a checkpoint; after an error, `path` contains either its previous content or the whole new checkpoint.

    Args:
      session: the session whose arrays and options are saved.
      path: the file.
      algorithm, solver: names from which `Solver.load` finds the algorithm and the class.
      curve: the rows of its run, see `CheckpointedRun`; none by default.

    Raises:
      OSError: the file cannot be written.
      TypeError: `path` is not a path, or see `check_can_save`.
    """
    check_can_save(session)
    how = session.options()
    options = {
        "format": FORMAT,
        "solver": solver,
        "algorithm": printable(algorithm),
        "alternating": how.alternating,
        "reduced": how.reduced,
        "exact_ties": how.exact_ties,
        "averaging": dataclasses.asdict(how.averaging),
        "rule": describe_rule(how.rule),
        "game": str(session.game.tree.game),
        "description": printable(session.game.description),
        "num_histories": session.game.tree.num_histories,
        "fingerprint": session.game.fingerprint,
        "seconds": curve.seconds,
        "last_iterate": curve.last_iterate,
    }
    arrays: dict[str, Any] = {**session.state_dict(), _ROWS: curve.to_array()}
    with atomic_write(path) as file:
        np.savez(file, options=np.array(json.dumps(options)), **arrays)


def check_can_save(session: Session) -> None:
    """Refuses sessions that could not be restored.

    Raises:
      TypeError: the session refuses, or has a subclass of `Averaging` or a rule that cannot be described.
    """
    if reason := session.refusal(Feature.CHECKPOINT):
        raise TypeError(reason)
    how = session.options()
    if type(how.averaging) is not Averaging:
        raise TypeError(f"{how.averaging!r} is a subclass of Averaging; only an Averaging itself can be restored")
    describe_rule(how.rule)


def describe_rule(rule: CompiledRule) -> dict[str, Any]:
    """The name and the parameters of a rule: discounts of this package by their names, other rules as "module:name".

    Raises:
      TypeError: a parameter is neither a number nor text nor a function.
    """
    if isinstance(rule, RegretMatchingRule):
        kind = type(rule.discounts)
        parameters = {**_attributes(rule.discounts), "prediction_weight": rule.prediction_weight}
        name = kind.__name__ if kind in _DISCOUNTS.values() else _place(kind)
    else:
        name, parameters = _place(getattr(rule.function, "py_func", rule.function)), dict(rule.parameters)
    described = {"kind": name, **{key: _described(rule, key, value) for key, value in parameters.items()}}
    return described if rule.is_built_in else {**described, _DIGEST: source_digest(rule)}


def _attributes(value: object) -> dict[str, Any]:
    return dict(getattr(value, "__dict__", {}))


def _place(value: Any) -> str:
    return printable(f"{value.__module__}:{value.__qualname__}")


def _described(rule: CompiledRule, name: str, value: Any) -> bool | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    if callable(value) and hasattr(value, "__qualname__"):
        return _place(value)
    raise TypeError(f"the {name} of the rule {rule.name} is neither a number nor text nor a function, but {value!r}")


def _in_words(described: Mapping[str, Any]) -> str:
    parameters = ", ".join(f"{name}={value!r}" for name, value in described.items() if name not in ("kind", _DIGEST))
    return shortened(f"{described['kind']}({parameters})")


def _made(described: Mapping[str, Any]) -> RegretMatchingRule:
    """A rule of the regret-matching family with discounts of this package."""
    parameters = dict(described)
    make, weight = _DISCOUNTS[parameters.pop("kind")], parameters.pop("prediction_weight")
    return RegretMatchingRule.of(make(**parameters), weight)


def _with_parameters(rule: CompiledRule | None, described: Mapping[str, Any]) -> CompiledRule | None:
    """The rule with the described numbers; None if the description is of another rule."""
    if rule is None:
        return None
    own = describe_rule(rule)
    if own["kind"] == described["kind"] and own.keys() == described.keys():
        numbers = {
            name: value for name, value in described.items() if isinstance(value, float) and name in dict(rule.parameters)
        }
        changed = rule.with_parameters(**numbers)
        if {**describe_rule(changed), _DIGEST: ""} == {**described, _DIGEST: ""}:
            return changed
    return None


def load_state(saved: Checkpoint, session: Session) -> None:
    """Loads the arrays of a checkpoint into a session like the saved one.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is damaged.
    """
    session.load_state_dict(_read_arrays(saved.path, session.state_dict()))


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint without its arrays, and verifies its checksums.

    Raises:
      OSError: the file cannot be read.
      TypeError: `path` is not a path.
      ValueError: it is not a checkpoint, or has another format.
    """
    with _open(path) as archive:
        options = archive.json("options")
        version = options.get("format")
        if type(version) is not int:
            raise DamagedError("no format")
        if version == FORMAT:
            _check_options(options)
            if not {*_ARRAYS, _ROWS} <= archive.names:
                raise DamagedError(f"arrays {sorted(archive.names)}")
            if math.prod(archive.header("iteration").shape) > _MOST_PLAYERS:
                raise DamagedError("iterations of too many players")
            records_utilities = archive.names >= _RECORDED
            archive.check_sums()
    if version != FORMAT:
        raise ValueError(f"{path} has checkpoint format {version}, this version reads format {FORMAT}")
    read_as = {
        "averaging": Averaging(**options["averaging"]),
        "described_rule": options["rule"],
        "records_utilities": records_utilities,
    }
    names = {field.name for field in dataclasses.fields(Checkpoint)} - {"path", *read_as}
    return Checkpoint(path=path, **read_as, **{name: options[name] for name in names})


def read_curve(path: str | os.PathLike[str]) -> Curve:
    """The rows and seconds in a checkpoint; without `curve`, `Solver.save` writes none.

    Raises:
      OSError, ValueError: as for `read`.
    """
    saved = read(path)
    with _open(path) as archive:
        iteration = int(archive.array("iteration", np.int64, (None,)).max())
        if archive.header(_ROWS).shape[0] > iteration + 1:  # a time limit can stop a run with a row at iteration 0
            raise DamagedError("more rows than iterations")
        rows = archive.array(_ROWS, np.float64, (None, Curve.num_columns))
        curve = Curve.from_array(rows, saved.seconds, saved.last_iterate)
        if curve.rows and curve.rows[-1].iteration > iteration:
            raise DamagedError("rows of later iterations")
    return curve


def _read_arrays(path: str | os.PathLike[str], expected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays in a checkpoint, with the expected dtypes and shapes, and with valid numbers.

    Raises:
      OSError, ValueError: as for `read`.
    """
    with _open(path) as archive:
        if archive.names != {*expected, _ROWS, "options"}:
            raise DamagedError(f"arrays {sorted(archive.names)}")
        arrays = archive.arrays_like(expected)
        iteration = arrays["iteration"]
        if not 0 <= iteration.min() == iteration.max() < _MOST_ITERATIONS:
            raise DamagedError(f"iterations {iteration}")
        for name in arrays.keys() - {"iteration"}:
            if not np.isfinite(arrays[name]).all():
                raise DamagedError(f"{name} with other than finite numbers")
        for name in arrays.keys() & {"policy", "cumulative_policy"}:
            if arrays[name].min() < 0:
                raise DamagedError(f"{name} with negative numbers")
    return arrays


@contextlib.contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[Archive]:
    try:
        with open_archive(path) as archive:
            yield archive
    except DamagedError as error:
        raise damaged(path, error) from error


def damaged(path: str | os.PathLike[str], reason: object) -> ValueError:
    """The error for a file that `save` cannot have written."""
    return ValueError(f"{path} is not a checkpoint of spiel_cfrplus, or is damaged ({reason})")


def _check_options(options: dict[str, Any]) -> None:
    """Raises an exception if `save` cannot have written the options."""
    if options.keys() != _OPTIONS.keys():
        raise DamagedError(f"other options than expected: {sorted(options.keys() ^ _OPTIONS.keys())}")
    for name, kind in _OPTIONS.items():
        if type(options[name]) is not kind:
            raise DamagedError(f"{name} is {options[name]!r}")
    averaging = dataclasses.asdict(Averaging(**options["averaging"]))
    if averaging != {**_LATER_FIELDS_OF_AVERAGING, **options["averaging"]}:
        raise DamagedError(f"averaging is {options['averaging']!r}")
    _check_rule(options["rule"])
    if not 1 <= options["num_histories"] <= MOST_HISTORIES:
        raise DamagedError(f"num_histories is {options['num_histories']}")
    if not all(options[name].isprintable() for name in _TEXTS):
        raise DamagedError("names with characters that cannot be printed")


def _check_rule(described: dict[str, Any]) -> None:
    """Raises an exception if `describe_rule` cannot have returned this."""
    kind = described.get("kind")
    if not isinstance(kind, str) or (kind not in _DISCOUNTS and ":" not in kind):
        raise DamagedError(f"rule is {described!r}")
    if kind in _DISCOUNTS and describe_rule(_made(described)) != described:
        raise DamagedError(f"rule is {described!r}")
    for name, value in described.items():
        if not isinstance(value, bool | int | float | str) or not f"{name}{value}".isprintable():
            raise DamagedError(f"rule is {described!r}")
