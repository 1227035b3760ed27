"""Runs a sweep: games times algorithms times options, in parallel.

The plan is a TOML file, or flags with values separated by commas. Runs that are finished in the folder are not repeated. The
tables are written to runs.csv and curves.csv in the folder; see docs/sweeps.md."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Sequence
from typing import Any

from absl import flags

from spiel_cfrplus.cli import json_lines
from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.cli.games import define_import
from spiel_cfrplus.game.named_games import find_modules_in_current_folder
from spiel_cfrplus.sweeps.engines import ENGINES
from spiel_cfrplus.sweeps.plans import OPTIONS, RunPlan, plan_sweep, read_plans
from spiel_cfrplus.sweeps.runs import FAILED
from spiel_cfrplus.sweeps.sweep import run_sweep
from spiel_cfrplus.sweeps.tables import Table

USAGE = "sweep FILE.toml FOLDER [FLAGS], or sweep FOLDER --games=GAME,... --algorithms=NAME,... [FLAGS]"
# The type of each option, as it is written in the class.
_OPTIONS = {name: str(kind) for name, kind in OPTIONS.items()}


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    for name in ("games", "algorithms"):
        flags.DEFINE_string(name, None, f"The {name}, separated by commas.", flag_values=values)
    for name in _OPTIONS:
        text = f"Values of the option {name} of a run, separated by commas."
        flags.DEFINE_string(name, None, text, flag_values=values)
    define_import(values)
    flags.DEFINE_enum("engine", "joblib", list(ENGINES), "How runs are distributed among processes.", flag_values=values)
    flags.DEFINE_string("address", None, "The cluster of Dask or Ray; a local one is started by default.", flag_values=values)
    flags.DEFINE_integer("jobs", None, "Number of processes of this machine; all cores by default.", flag_values=values)
    flags.DEFINE_boolean("retry", False, "Repeat runs that failed.", flag_values=values)
    flags.DEFINE_float("checkpoint_every", 60.0, "Seconds between saves of a run between its rows.", flag_values=values)
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Runs the sweep; the exit code is 1 if runs failed."""
    if not 1 <= len(arguments) <= 2:
        raise UsageError(f"usage: {USAGE}")
    find_modules_in_current_folder()
    options: dict[str, Any] = {name: values[name].value for name in ("engine", "address", "jobs", "retry", "checkpoint_every")}
    with json_lines.printer(wanted=values.json) as print_row:
        try:
            table = run_sweep(_plans(values, arguments), arguments[-1], progress=True, **options)
        except (BlockingIOError, FileNotFoundError, ImportError, TypeError, ValueError) as error:
            raise UsageError(first_line(error)) from error
        if print_row is not None:
            for row in table:
                print_row(row)
        _print(table, arguments[-1])
    return int(any(row["status"] == FAILED for row in table))


def _plans(values: flags.FlagValues, arguments: Sequence[str]) -> tuple[RunPlan, ...]:
    flag_values: dict[str, Any] = {name: values[name].value for name in ("games", "algorithms", *_OPTIONS)}
    given = {name: value for name, value in flag_values.items() if value is not None}
    modules = values["import"].value or []
    if len(arguments) == 2:
        if modules:
            raise UsageError(f"--import has no effect with {arguments[0]}; write modules = [...] in it")
        if given:
            raise UsageError(f"--{next(iter(given))} has no effect with {arguments[0]}")
        return read_plans(arguments[0])
    for name in ("games", "algorithms"):
        if name not in given:
            raise UsageError(f"--{name} is missing; usage: {USAGE}")
    return plan_sweep(modules=modules, **{name: _parsed(name, text) for name, text in given.items()})


def _parsed(name: str, text: str) -> list[Any]:
    """The values of a flag: texts, or numbers and booleans as in a TOML file."""
    if _OPTIONS.get(name, "str") == "str":
        return _split(text)
    try:
        values: list[Any] = tomllib.loads(f"values = [{text}]")["values"]
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--{name}={text}: values are numbers, or true and false, separated by commas") from error
    return values


def _split(text: str) -> list[str]:
    """Divides a text at its commas outside parentheses."""
    steps = [(letter == "(") - (letter == ")") for letter in text]
    commas = [place for place, depth in enumerate(itertools.accumulate(steps)) if depth == 0 and text[place] == ","]
    pairs = itertools.pairwise([-1, *commas, len(text)])
    return [text[start + 1 : end].strip() for start, end in pairs]


def _print(table: Table, folder: str) -> None:
    for row in table:
        result = row["message"] if row["nash_conv"] is None else f"NashConv {row['nash_conv']:.6e}"
        print(f"{row['run']}: {row['status']}, {result}")
    print(f"{len(table)} runs in {folder}/runs.csv")
