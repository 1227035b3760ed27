"""Rows of measurements in CSV files, so that a script that was interrupted does not measure them again."""

import csv
import io
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pages import write_whole


class Key(NamedTuple):
    """What was measured: the game, the number of the run, the name of the row and the iterations, as text."""

    game: str
    run: int
    row: str
    iterations: str


class Measurements:
    """The numbers of all rows in some CSV files; new ones are written to the first of these files.

    Each line has the four parts of the key and the numbers, separated by spaces.
    """

    def __init__(self, paths: Sequence[str]):
        self._own = paths[0] if paths else None
        self._lines = {path: _lines(path) for path in paths}
        self._rows = {
            Key(game, int(run), row, iterations): [float(number) for number in numbers.split()]
            for lines in self._lines.values()
            for game, run, row, iterations, numbers in lines
        }

    def get(self, key: Key, measure: Callable[[], list[float]]) -> list[float]:
        """The numbers of the row, measured if they are not stored; an empty list is not stored."""
        if key not in self._rows:
            self._rows[key] = measure()
            self._store(key)
        return self._rows[key]

    def _store(self, key: Key) -> None:
        if self._own is None or not self._rows[key]:
            return
        self._lines[self._own].append([*map(str, key), " ".join(repr(float(number)) for number in self._rows[key])])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self._lines[self._own])
        write_whole(self._own, text.getvalue())


def _lines(path: str) -> list[list[str]]:
    if not pathlib.Path(path).exists():
        return []
    with open(path, newline="") as file:
        return list(csv.reader(file))
