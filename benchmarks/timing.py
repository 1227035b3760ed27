"""What the benchmarks share: arguments, one core, blocks that take turns, medians, plain tables."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def game_string(name: str) -> str:
    """An argument: what `pyspiel.load_game` takes."""
    import pyspiel  # not by everybody who imports this module: some start-ups are measured

    try:
        pyspiel.load_game(name)
    except (pyspiel.SpielError, RuntimeError) as error:
        raise argparse.ArgumentTypeError(f"pyspiel cannot load {name!r}") from error
    return name


def positive(text: str) -> float:
    """An argument: a number above 0."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def use_one_core() -> None:
    """Pins this process to one of its cores, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def seconds_of(work: Callable[..., object], *args: object) -> float:
    """Wall time of `work(*args)`."""
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
    """Times contenders against each other: they take turns, a block of repetitions each, so that all meet the same machine.

    Args:
      contenders: by name, a function that does n times what is to be timed.
      blocks: blocks for each contender.
      block_seconds: about how long a block should take; one repetition at least.
      limit: a contender whose blocks have taken so many seconds sits out the others; it has one block at least.
      measure: calls such a function with n and returns the seconds that this took.

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
