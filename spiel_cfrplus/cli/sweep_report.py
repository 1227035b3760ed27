"""Writes the report of a sweep: a page with a table and curves for each game, and the command that repeats each run."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.cli.policy_files import checked
from spiel_cfrplus.display.report import write_report

USAGE = "report FOLDER [--output=FILE.html]"


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    flags.DEFINE_string("output", None, "The page; by default report.html in the folder.", flag_values=values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Writes the page."""
    (folder,) = checked(arguments, [1], USAGE)
    output = str(pathlib.Path(folder, "report.html")) if values.output is None else values.output
    try:
        write_report(folder, output)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    print(f"report written to {output}")
    return 0
