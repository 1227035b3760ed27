"""Plans of sweeps: which runs a sweep consists of.

A `RunPlan` is one run: a game, an algorithm and options, which have the names and defaults of the flags of the command line.
`plan_sweep` makes the runs of all combinations; `read_plans` reads the same from a TOML file.

>>> plans = plan_sweep(["kuhn_poker", "leduc_poker"], ["cfr", "cfr+"], iterations=1000, alternating=[True, False])
>>> len(plans), plans[1]
(8, RunPlan(game='kuhn_poker', algorithm='cfr', iterations=1000, alternating=False))
>>> plans[1].command
'spiel-cfrplus --game=kuhn_poker --algorithm=cfr --iterations=1000 --noalternating --rows_per_decade=8'
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from spiel_cfrplus._utils.files import checked_path
from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.game.named_games import file_ending
from spiel_cfrplus.regret_minimizers.compiled_rules import source_digest
from spiel_cfrplus.solving.algorithms import algorithm_of
from spiel_cfrplus.solving.averaging import CONVENTIONS, Averaging, check_delay

REDUCE: dict[str, bool | str] = {"auto": "auto", "on": True, "off": False}
_CHOICES = {"averaging": tuple(CONVENTIONS), "reduce": tuple(REDUCE)}
_LETTERS_OF_ID = 12


@dataclasses.dataclass(frozen=True, repr=False)
class RunPlan:
    """A run of a sweep.

    Attributes:
      game: the game, as in `pyspiel.load_game`, or the path of an `.efg` or `.nfg` file, which is made absolute; simultaneous
        games are converted to turn-based.
      algorithm: a name in `ALGORITHMS`, or "module:name" of an update rule.
      iterations: the number of iterations.
      alternating, averaging, averaging_power, averaging_delay, step_size, prediction_weight, reduce, exact_ties, threads:
        options of the solver, as the flags of these names.
      last_iterate: whether the current policy is evaluated instead of the average policy.
      target_nash_conv: stop at the first row with at most this NashConv.
      time_limit: seconds until the run stops, without compilation and the walk through the game.
      max_histories: refuse games with more histories.
      print_freq: iterations between rows.
      rows_per_decade: rows evenly in log t; 8 if `print_freq` is not given.
      modules: modules that register Python games, separated by commas; imported before the game is loaded.
    """

    game: str
    algorithm: str
    iterations: int = 10_000
    alternating: bool = True
    averaging: str = "paper"
    averaging_power: float | None = None
    averaging_delay: int = 0
    step_size: float | None = None
    prediction_weight: float | None = None
    reduce: str = "auto"
    exact_ties: bool = True
    threads: int = 1
    last_iterate: bool = False
    target_nash_conv: float | None = None
    time_limit: float | None = None
    max_histories: int | None = None
    print_freq: int | None = None
    rows_per_decade: int | None = None
    modules: str = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _checked(field, getattr(self, field.name)))
        if file_ending(self.game):
            object.__setattr__(self, "game", os.path.abspath(self.game))
        if self.print_freq is None and self.rows_per_decade is None:
            object.__setattr__(self, "rows_per_decade", 8)

    def __repr__(self) -> str:
        return f"RunPlan({', '.join(f'{name}={value!r}' for name, value in self._given().items())})"

    def _given(self) -> dict[str, Any]:
        """The attributes that differ from their defaults, so that attributes of later versions change no `id`."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        if self.print_freq is None:
            defaults["rows_per_decade"] = 8
        return {name: value for name, value in vars(self).items() if value != defaults[name]}

    @property
    def id(self) -> str:
        """A name that identifies the run: part of it can be read, the last digits are a digest of all attributes.

        For a user's rule the digest includes its code, and for a game from a file the content of the file instead of its
        folder, so that a run with an edited rule or file is another run. It does not include the code of games.
        """
        identity = self._given()
        if file_ending(self.game):
            identity["game"] = [os.path.basename(self.game), _digest_of_file(self.game)]
        rule = algorithm_of(self.algorithm).rule
        if rule is not None and not rule.is_built_in:
            identity["source"] = source_digest(rule)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        short_name = pathlib.PurePath(self.game).stem if file_ending(self.game) else self.game.partition("(")[0]
        return "-".join([*(re.sub(r"[^\w+.]", "_", name) for name in (short_name, self.algorithm)), digest[:_LETTERS_OF_ID]])

    @property
    def command(self) -> str:
        """The command that does the same run."""
        flags = {**self._given(), "iterations": self.iterations, "rows_per_decade": self.rows_per_decade}
        in_order = {name: flags[name] for name in vars(self) if flags.get(name) not in (None, "")}
        return shlex.join(["spiel-cfrplus", *(_flag(name, value) for name, value in in_order.items())])

    def weights(self) -> Averaging:
        """The averaging of the run.

        Raises:
          TypeError, ValueError: an option is out of range.
        """
        check_delay(self.averaging_delay, self.iterations)
        return algorithm_of(self.algorithm).averaging_with(self.averaging_power, self.averaging, self.averaging_delay)


def _digest_of_file(path: str) -> str:
    """The digest of a file; empty if it cannot be read, so that a run is done again when it can be."""
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _flag(name: str, value: Any) -> str:
    name = "import" if name == "modules" else name
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    return f"--{name}={value}"


# The options of a run, and their types as they are written in the class.
_NO_OPTIONS = ("game", "algorithm", "modules")
OPTIONS = {field.name: field.type for field in dataclasses.fields(RunPlan) if field.name not in _NO_OPTIONS}


def plan_sweep(
    games: Sequence[str], algorithms: Sequence[str], *, modules: Sequence[str] = (), **options: Any
) -> tuple[RunPlan, ...]:
    """The runs of all combinations of games, algorithms and options.

    Args:
      games, algorithms: see `RunPlan`.
      modules: modules that register Python games.
      **options: attributes of `RunPlan`, each a value or a list of values.

    Returns:
      The runs, ordered by games, then algorithms, then options; no run twice.

    Raises:
      TypeError: a value of another type.
      ValueError: an unknown option or algorithm, or an empty list.
    """
    _check_names(options)
    names = [modules] if isinstance(modules, str) else list(modules)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"modules must be names, got {modules!r}")
    axes = {"game": games, "algorithm": algorithms, **options, "modules": ",".join(names)}
    values = {name: _as_list(name, value) for name, value in axes.items()}
    for algorithm in values["algorithm"]:
        algorithm_of(algorithm)
    combinations = itertools.product(*values.values())
    return tuple(dict.fromkeys(RunPlan(**dict(zip(values, combination, strict=True))) for combination in combinations))


def read_plans(path: str | os.PathLike[str]) -> tuple[RunPlan, ...]:
    """The runs of a TOML file with the keys `games`, `algorithms`, `modules` and options of `RunPlan`; see `plan_sweep`.

    Names of `.efg` and `.nfg` files are relative to the folder of the file.

    Raises:
      OSError: the file cannot be read.
      TypeError: `path` is not a path.
      ValueError: the file is not TOML, a key is missing or unknown, or see `plan_sweep`.
    """
    path = checked_path(path)
    with open(path, "rb") as file:
        try:
            table = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from error
    try:
        for name in ("games", "algorithms"):
            if name not in table:
                raise ValueError(f"no {name}; write {name} = [...]")
        table["games"] = [_relative_to(path, game) for game in _as_list("games", table["games"])]
        return plan_sweep(**table)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _relative_to(plan: str, game: Any) -> Any:
    """The name of a game in the file `plan`; a file relative to its folder."""
    return os.path.join(os.path.dirname(plan), game) if isinstance(game, str) and file_ending(game) else game


def _check_names(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, ["games", "algorithms", "modules", *OPTIONS], n=1)
            hint = f"did you mean {near[0]}?" if near else f"options are {', '.join(OPTIONS)}"
            raise ValueError(f"unknown option {name}; {hint}")


def _as_list(name: str, value: Any) -> list[Any]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise ValueError(f"{name} is an empty list")
    return values


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value of an attribute, as its type.

    Raises:
      TypeError, ValueError: a value of another type, or none of the choices.
    """
    name, kinds = field.name, [kind.strip() for kind in str(field.type).split("|")]
    if kinds[0] == "int" and isinstance(value, float) and value.is_integer():
        value = int(value)  # such as 1e6
    if value is None and "None" in kinds:
        return None
    if "float" in kinds and not isinstance(value, bool):
        return checked_number(value, name)
    if type(value).__name__ != kinds[0]:
        raise TypeError(f"{name} must be of type {kinds[0]}, got {value!r}")
    if value not in _CHOICES.get(name, (value,)):
        raise ValueError(f"{name} must be one of {', '.join(_CHOICES[name])}, got {value!r}")
    return value
