"""The subcommands: `spiel-cfrplus NAME ...`; without a name the command solves a game.

A subcommand is a module of this package with the name of the subcommand, or the one in `_MODULES`. It is imported when it is
used, and has

* `USAGE`, the arguments as text,
* `define(values)`, which defines its flags in an absl `FlagValues` of its own,
* `run(values, arguments)`, which does the work with the parsed flags and the other arguments, and returns the exit code.

`main` is the exception: the flags of `solve` are those of the process.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

from absl import flags

from spiel_cfrplus.cli import program, stop_signals
from spiel_cfrplus.cli.errors import UsageError

SOLVE = "solve"
SUMMARIES = {
    SOLVE: "solve a game and print the progress (the default)",
    "evaluate": "print what the policy of a file is worth",
    "compare": "compare the policies of two files",
    "match": "play games between the policies of files",
    "show": "print the policy of a file as a table",
    "explore": "write a page to walk through the policy of a file",
    "export": "convert the policy of a file, or write a game as .efg",
    "report": "write a page with the tables and curves of a sweep",
    "sweep": "run games times algorithms times options in parallel",
    "version": "print the versions of the package and of the libraries that it uses",
}
NAMES = tuple(SUMMARIES)
# Modules that do not have the name of their subcommand.
_MODULES = {"report": "sweep_report"}


def is_subcommand(name: str) -> bool:
    """Whether it is a subcommand other than `solve`, or `help`."""
    return name == "help" or name in SUMMARIES.keys() - {SOLVE}


def main(name: str, arguments: Sequence[str]) -> None:
    """Runs a subcommand other than `solve`, and ends the process.

    Args:
      name: the subcommand, or "help".
      arguments: what follows it on the command line.
    """
    logging.basicConfig(format="note: %(message)s")
    warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
    module = None if name == "help" else importlib.import_module(f"{__package__}.{_MODULES.get(name, name)}")
    program.prepare()
    try:
        program.run(lambda: _print_summaries() if module is None else run(module, arguments))
    finally:
        stop_signals.ignore()  # the exit code is settled


def run(module: ModuleType, arguments: Sequence[str]) -> int:
    """Parses the flags of a subcommand and runs it, or prints its usage; returns the exit code.

    Raises:
      UsageError: unknown or invalid flags, or see the subcommand.
    """
    values = flags.FlagValues()
    flags.DEFINE_boolean("help", False, "Print this text.", flag_values=values)
    module.define(values)
    try:
        _, *others = values(["spiel-cfrplus", *arguments])
    except (flags.Error, ValueError) as error:
        raise UsageError(str(error)) from error
    if values["help"].value:
        return _print_usage(module, values)
    return int(module.run(values, others))


def _print_usage(module: ModuleType, values: flags.FlagValues) -> int:
    print(f"usage: spiel-cfrplus {module.USAGE}\n\n{module.__doc__}\n")
    for name in sorted(values):
        flag = values[name]
        print(f"  --{flag.name}: {flag.help}")
    return 0


def _print_summaries() -> int:
    print("usage: spiel-cfrplus [SUBCOMMAND] [ARGUMENTS] [FLAGS]; SUBCOMMAND --help lists the flags\n")
    for name, summary in SUMMARIES.items():
        print(f"  {name:<10}{summary}")
    return 0
