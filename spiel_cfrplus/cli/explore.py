"""Writes the explorer of a policy: a page on which one walks through the game and looks at what the policy plays.

A second policy of the same game is shown beside the first. The page is one file, for any current browser, without a network."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.analysis.row_files import load_rows
from spiel_cfrplus.cli import policy_files
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.display.explorer import check_size, write_explorer
from spiel_cfrplus.display.pages import check_page

USAGE = "explore FILE [FILE] [--output=FILE.html] [--rows=FILE] [--game=GAME]; the second policy may be 'uniform'"


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    flags.DEFINE_string("output", None, "The page; by default FILE with the ending .html.", flag_values=values)
    flags.DEFINE_string("rows", None, "A .csv, .jsonl or .npz file of rows, of which a curve is drawn.", flag_values=values)
    policy_files.define_game(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Writes the page."""
    paths = policy_files.checked(arguments, [1, 2], USAGE)
    output = str(pathlib.Path(paths[0]).with_suffix(".html")) if values.output is None else values.output
    try:
        check_page(output)
        rows = None if values.rows is None else load_rows(values.rows)
        profile, *others = policy_files.load(paths, values)
        check_size(profile.game)
        names = (pathlib.Path(paths[0]).name, pathlib.Path(paths[-1]).name)
        write_explorer(profile, output, other=others[0] if others else None, names=names, rows=rows)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    print(f"explorer written to {output}")
    return 0
