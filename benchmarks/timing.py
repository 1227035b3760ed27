"""Common functions of the benchmarks: arguments, use of one core, timing in turns, medians, plain tables."""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def game_string(name: str) -> str:
    """Parses an argument of `pyspiel.load_game`."""
    import pyspiel  # not at the top of the module, because some scripts measure the start-up of processes

    try:
        pyspiel.load_game(name)
    except (pyspiel.SpielError, RuntimeError) as error:
        raise argparse.ArgumentTypeError(f"pyspiel cannot load {name!r}") from error
    return name


def positive(text: str) -> float:
    """Parses a positive number."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def use_one_core() -> None:
    """Binds this process to one core, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def seconds_of(work: Callable[..., object], *args: object) -> float:
    """The wall time of `work(*args)`."""
    start = time.perf_counter()
    work(*args)
    return time.perf_counter() - start


def seconds_of_blocks(
    contenders: Mapping[str, Callable[[int], Any]],
    *,
    blocks: int = 7,
    block_seconds: float = 0.3,
    limit: float = math.inf,
    measure: Callable[[Callable[[int], Any], int], float] = seconds_of,
) -> dict[str, list[float]]:
    """Times contenders in turns, a block of repetitions each, so that changes of the load affect all of them.

    Args:
      contenders: by name, a function that repeats the timed work n times.
      blocks: number of blocks per contender.
      block_seconds: approximate length of a block, which has at least one repetition.
      limit: after its blocks have taken this number of seconds, a contender has no further blocks; it has at least one.
      measure: calls such a function with n and returns the seconds that it took.

    Returns:
      By name, the seconds per repetition of each block.
    """
    repetitions = {name: _repetitions_in(block_seconds, repeat, measure) for name, repeat in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(blocks):
        for name, repeat in contenders.items():
            n = repetitions[name]
            if not times[name] or n * sum(times[name]) < limit:
                times[name].append(measure(repeat, n) / n)
    return times


def seconds_per_repetition(contenders: Mapping[str, Callable[[int], Any]], **options: Any) -> dict[str, float]:
    """By name, the median of `seconds_of_blocks`, which has the same arguments."""
    return {name: statistics.median(seconds) for name, seconds in seconds_of_blocks(contenders, **options).items()}


def _repetitions_in(seconds: float, repeat: Callable[[int], Any], measure: Callable[[Callable[[int], Any], int], float]) -> int:
    n = 1
    while (elapsed := measure(repeat, n)) < seconds / 10:
        n *= 5
    return max(1, round(n * seconds / elapsed))


class Record:
    """Rows of numbers, which may be kept in a file, so that a long measurement can be made in several parts."""

    def __init__(self, path: str | None = None):
        """Reads the rows that the file, if there is one, contains."""
        self.path = pathlib.Path(path) if path else None
        self.rows: dict[tuple[str, ...], dict[str, Any]] = {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                self.rows[tuple(row["key"])] = row["numbers"]

    def measure(self, key: tuple[str, ...], measure: Callable[[], dict[str, Any]]) -> None:
        """Measures a row and writes it to the end of the file, unless it is there already."""
        if key not in self.rows:
            self.rows[key] = measure()
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps({"key": key, "numbers": self.rows[key]}) + "\n")


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints text left-aligned in the first column and right-aligned in the others."""
    lines = [list(map(str, line)) for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        print("  ".join(cells))


def shown(number: float | None, text_format: str) -> str:
    """The formatted number, or a dash for None."""
    return "-" if number is None else text_format.format(number)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with all columns but the first aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
