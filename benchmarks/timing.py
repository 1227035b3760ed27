"""Common functions of the benchmarks: arguments, use of one core, timing in turns, medians, plain tables."""

from __future__ import annotations

import argparse
import math
import os
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


def seconds_per_repetition(
    contenders: Mapping[str, Callable[[int], Any]],
    *,
    blocks: int = 7,
    block_seconds: float = 0.3,
    limit: float = math.inf,
    measure: Callable[[Callable[[int], Any], int], float] = seconds_of,
) -> dict[str, float]:
    """Times contenders in turns, a block of repetitions each, so that changes of the load affect all of them.

    Args:
      contenders: by name, a function that repeats the timed work n times.
      blocks: number of blocks per contender.
      block_seconds: approximate length of a block, which has at least one repetition.
      limit: after its blocks have taken this number of seconds, a contender has no further blocks; it has at least one.
      measure: calls such a function with n and returns the seconds that it took.

    Returns:
      By name, the median over the blocks of the seconds per repetition.
    """
    repetitions = {name: _repetitions_in(block_seconds, repeat, measure) for name, repeat in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(blocks):
        for name, repeat in contenders.items():
            n = repetitions[name]
            if not times[name] or n * sum(times[name]) < limit:
                times[name].append(measure(repeat, n) / n)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _repetitions_in(seconds: float, repeat: Callable[[int], Any], measure: Callable[[Callable[[int], Any], int], float]) -> int:
    n = 1
    while (elapsed := measure(repeat, n)) < seconds / 10:
        n *= 5
    return max(1, round(n * seconds / elapsed))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints text left-aligned in the first column and right-aligned in the others."""
    lines = [list(map(str, line)) for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        print("  ".join(cells))
