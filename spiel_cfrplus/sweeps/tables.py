"""The results of a sweep as tables: a row for each run, and a row for each measurement of a run.

Tables are lists of dictionaries with the same keys, as `pandas.DataFrame` takes them. They are written as CSV and, if pyarrow
is installed, as Parquet.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import io
import os
import pathlib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus.analysis.row_files import load_rows
from spiel_cfrplus.solving.curve import Row
from spiel_cfrplus.sweeps.plans import RunPlan
from spiel_cfrplus.sweeps.runs import Outcome

Table = list[dict[str, Any]]

# The names of columns by the types of their values, as in the classes of the rows.
_TYPES: dict[str, Any] = {
    "run": str,
    "command": str,
    **{name: kind for row in (Row, RunPlan, Outcome) for name, kind in typing.get_type_hints(row).items()},
}


def table_of_runs(outcomes: Mapping[RunPlan, Outcome]) -> Table:
    """A row for each run: its `id`, plan, outcome and command."""
    return [
        {"run": plan.id, **dataclasses.asdict(plan), **dataclasses.asdict(outcome), "command": plan.command}
        for plan, outcome in outcomes.items()
    ]


def table_of_rows(plans: Sequence[RunPlan], folders: Mapping[RunPlan, str]) -> Table:
    """A row for each measurement: the run, its game and algorithm, and the attributes of `Row`."""
    table = []
    for plan in plans:
        path = pathlib.Path(folders[plan], "rows.csv")
        for rows in load_rows(path).values() if path.exists() else ():
            names = {"run": plan.id, "game": plan.game, "algorithm": plan.algorithm}
            table += [{**names, **dataclasses.asdict(row)} for row in rows]
    return table


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Writes `path`.csv and, if pyarrow is installed, `path`.parquet, each atomically.

    Raises:
      OSError: a file cannot be written.
    """
    text = io.StringIO()
    if table:
        writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    with atomic_write(f"{os.fspath(path)}.csv") as file:
        file.write(text.getvalue().encode())
    if importlib.util.find_spec("pyarrow") is not None:
        with atomic_write(f"{os.fspath(path)}.parquet") as file:
            _write_parquet(table, file)


def _write_parquet(table: Table, file: Any) -> None:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    kinds = {str: arrow.string(), bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64()}
    # With the types of the classes, a column whose values are all missing has the type that it has in other sweeps.
    schema = arrow.schema([(name, kinds[_kind(name)]) for name in (table[0] if table else ())])
    parquet.write_table(arrow.Table.from_pylist(table, schema=schema), file)


def _kind(column: str) -> Any:
    return next(kind for kind in (*typing.get_args(_TYPES[column]), _TYPES[column]) if kind is not type(None))
