"""Rows of runs as files, written while the runs are in progress: CSV (`.csv`) and JSON lines (`.jsonl`).

A line has the name of a run and the attributes of one `Row`; numbers are written so that the same doubles are read. Missing
numbers are empty in CSV and null in JSON. A line is written at once and then flushed, so that a process that is killed leaves
whole lines. If a machine fails, the last line may be incomplete; it is not read.

>>> import pyspiel, tempfile
>>> from spiel_cfrplus import CFRPlusSolver
>>> from spiel_cfrplus.analysis.convergence import convergence
>>> with tempfile.TemporaryDirectory() as folder:
...     with RowFile(f"{folder}/kuhn.csv") as file:
...         for row in convergence(CFRPlusSolver(pyspiel.load_game("kuhn_poker")), 10):
...             file.write("cfr+", row)
...     rows = load_rows(f"{folder}/kuhn.csv")
>>> [(row.iteration, round(row.nash_conv, 6)) for row in rows["cfr+"]]
[(1, 0.833333), (2, 0.338384), (5, 0.160968), (10, 0.057688)]
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path, lock, locked
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.curve import Row

_RUN = "algorithm"
_COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
_INTEGERS = ("iteration", "peak_bytes")
_REQUIRED = ("iteration", "seconds", "nash_conv", "value")
# No line that is written is nearly as long.
_MOST_CHARACTERS = 10_000


class _Format(NamedTuple):
    """A format of files.

    Attributes:
      header: the first line, or an empty text.
      line: the cells of a row as a line.
      cells: the cells of a line, by column.
    """

    header: str
    line: Callable[[Mapping[str, Any]], str]
    cells: Callable[[str], dict[str, Any]]


class RowFile:
    """A file to which rows are appended, one at a time."""

    def __init__(self, path: str | os.PathLike[str], rows: Mapping[str, Iterable[Row]] | None = None):
        """Replaces the file by one with `rows`, atomically, and opens it.

        Args:
          path: a file name that ends in `.csv` or `.jsonl`.
          rows: the rows so far, by name of the run; none by default.

        Raises:
          BlockingIOError: another `RowFile` writes to the file.
          OSError: the file cannot be written.
          TypeError: `path` is not a path.
          ValueError: another extension.
        """
        self._format = _format_of(path)
        lines = (self._line(name, row) for name, rows_of_run in (rows or {}).items() for row in rows_of_run)
        with locked(path, wait=False) if os.path.exists(path) else contextlib.nullcontext(), atomic_write(path) as file:
            file.write("".join([self._format.header, *lines]).encode())
        self._file = io.FileIO(path, "ab")
        lock(self._file, wait=False)

    def write(self, name: str, row: Row) -> None:
        """Appends a row of the run `name`.

        Raises:
          OSError: the file cannot be written.
          ValueError: the name has characters that cannot be printed, such as ends of lines.
        """
        self._file.write(self._line(name, row).encode())

    def _line(self, name: str, row: Row) -> str:
        if not name.isprintable():
            raise ValueError(f"the name of a run must be printable, got {name!r}")
        return self._format.line({_RUN: name, **dataclasses.asdict(row)})

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def load_rows(path: str | os.PathLike[str]) -> dict[str, tuple[Row, ...]]:
    """The rows in a file of `RowFile` or in a checkpoint (`.npz`), by name of the run, as `plot_convergence` takes them.

    Raises:
      OSError: the file cannot be read.
      TypeError: `path` is not a path.
      ValueError: another extension, or the file is damaged.
    """
    if _extension(path) == ".npz":
        return {checkpoint.read(path).algorithm: checkpoint.read_curve(path).rows}
    file_format = _format_of(path)
    with open(path, encoding="utf-8", newline="") as file:
        first = file.readline(_MOST_CHARACTERS) if file_format.header else ""
        if first != file_format.header:
            raise _damaged(path, 1, "other columns than those of rows")
        rows: dict[str, list[Row]] = {}
        for number, line in enumerate(file, 1 + bool(first)):
            if line.endswith("\n"):
                name, row = _parsed(path, number, line, file_format)
                rows.setdefault(name, []).append(row)
    return {name: tuple(rows_of_run) for name, rows_of_run in rows.items()}


def check_path(path: str | os.PathLike[str]) -> None:
    """Checks in advance that `RowFile` can write to `path`.

    Raises:
      OSError, TypeError, ValueError: as for `RowFile`.
    """
    _format_of(path)
    check_writable(path)


def _parsed(path: str | os.PathLike[str], number: int, line: str, file_format: _Format) -> tuple[str, Row]:
    """The name and the row in a line."""
    try:
        cells = file_format.cells(line)
        if cells.keys() != {_RUN, *_COLUMNS} or not isinstance(cells[_RUN], str):
            raise ValueError("other columns than those of rows")
        return cells[_RUN], Row(**{name: _number(name, cells[name]) for name in _COLUMNS})
    except (ValueError, TypeError, OverflowError) as error:
        raise _damaged(path, number, error) from error


def _number(name: str, cell: Any) -> Any:
    """The number in a cell, or None."""
    if cell is None and name not in _REQUIRED:
        return None
    number = int(cell) if name in _INTEGERS else float(cell)
    if isinstance(cell, bool) or not math.isfinite(number) or (name in _INTEGERS and number < 0):
        raise ValueError(f"{name} is {cell!r}")
    return number


def _damaged(path: str | os.PathLike[str], number: int, reason: object) -> ValueError:
    return ValueError(f"{os.fspath(path)} is not a file of rows, or is damaged (line {number}: {reason})")


def _csv_line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _csv_cells(line: str) -> dict[str, Any]:
    cells = next(csv.reader([line]), [])
    return {name: cell or None for name, cell in zip((_RUN, *_COLUMNS), cells, strict=True)}


def _json_cells(line: str) -> dict[str, Any]:
    cells = json.loads(line)
    if not isinstance(cells, dict):
        raise ValueError("not an object")
    return cells


_FORMATS = {
    ".csv": _Format(_csv_line((_RUN, *_COLUMNS)), lambda cells: _csv_line(cells.values()), _csv_cells),
    ".jsonl": _Format("", lambda cells: json.dumps(cells) + "\n", _json_cells),
}


def _extension(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(checked_path(path))[1].lower()


def _format_of(path: str | os.PathLike[str]) -> _Format:
    if _extension(path) not in _FORMATS:
        raise ValueError(f"the name of a file of rows must end in {' or '.join(_FORMATS)}, got {os.fspath(path)!r}")
    return _FORMATS[_extension(path)]
