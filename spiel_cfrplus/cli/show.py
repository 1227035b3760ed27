"""Prints the policy of a file as a table with the names of actions.

For each action: its probability, the reach of its infostate, its expected value and its regret. Of a large game the infostates
that play reaches most often are printed."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
from absl import flags

from spiel_cfrplus.analysis.infostate_table import InfostateTable, infostate_table
from spiel_cfrplus.cli import json_lines, policy_files
from spiel_cfrplus.cli.errors import UsageError

USAGE = "show FILE [--top=N] [--player=P] [--infostate=STRING] [--game=GAME] [--json]"
# Without --top, a table of more rows is reduced to this number of infostates.
_MOST_ROWS = 60
_MOST_INFOSTATES = 20
# Longer strings of infostates are printed on lines of their own.
_LONGEST_CELL = 40


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    flags.DEFINE_integer("top", None, "Number of infostates: those that play reaches most often.", 1, flag_values=values)
    flags.DEFINE_integer("player", None, "Print the infostates of this player only.", 0, flag_values=values)
    flags.DEFINE_string("infostate", None, "Print the infostates with this string only.", flag_values=values)
    policy_files.define_game(values)
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Prints the table."""
    (path,) = policy_files.checked(arguments, [1], USAGE)
    with json_lines.printer(wanted=values.json) as print_row:
        (profile,) = policy_files.load([path], values)
        table = _chosen(infostate_table(profile), values)
        if print_row is None:
            print(profile.game.description)
            _print_table(table, values.top)
            return 0
        table = table if values.top is None else table.top(values.top)
        for row in zip(*(column.tolist() for column in table.columns.values()), strict=True):
            print_row(dict(zip(table.columns, row, strict=True)))
    return 0


def _chosen(table: InfostateTable, values: flags.FlagValues) -> InfostateTable:
    """The rows of `--player` and `--infostate`."""
    chosen = np.ones(len(table), bool)
    if values.player is not None:
        chosen &= table["player"] == values.player
    if values.infostate is not None:
        chosen &= table["infostate"] == values.infostate
    if not chosen.any():
        raise UsageError(f"{table.profile.game.tree.game} has no infostate of --player and --infostate")
    return table.rows(chosen)


def _print_table(table: InfostateTable, top: int | None) -> None:
    if top is None and len(table) > _MOST_ROWS:
        top = _MOST_INFOSTATES
    shown = table if top is None else table.top(top)
    if max(map(len, shown["infostate"])) <= _LONGEST_CELL:
        print(shown.text())
    else:
        for rows in _by_infostate(shown):
            print(f"player {rows['player'][0]}, infostate {rows['infostate'][0]!r}")
            print(textwrap.indent(rows.text(list(rows.columns)[2:]), "    "))
    if len(shown) < len(table):
        print(f"({len(shown)} of {len(table)} rows, the infostates reached most often)")


def _by_infostate(table: InfostateTable) -> Iterator[InfostateTable]:
    """The rows of each infostate."""
    pairs = enumerate(zip(table["player"].tolist(), table["infostate"].tolist(), strict=True))
    for _, group in itertools.groupby(pairs, key=lambda pair: pair[1]):
        yield table.rows(np.array([number for number, _ in group]))
