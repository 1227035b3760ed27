"""Progress bars, shown on terminals only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import tqdm

Advance = Callable[[int], object]


def no_advance(steps: int) -> None:
    """Does nothing."""


@contextlib.contextmanager
def progress_bar(show: bool, *, unit: str, total: int | None = None) -> Iterator[Advance]:
    """Yields a function that advances a progress bar on standard error; without a terminal the function does nothing.

    Args:
      show: whether to show a bar.
      unit: the name of one step.
      total: the number of steps, if known.
    """
    if not show or not _can_show():
        yield no_advance  # not a disabled tqdm, because it would start a thread
        return
    with tqdm.tqdm(total=total, unit=f" {unit}", unit_scale=True, delay=1) as bar:
        yield bar.update


def write_line(line: str, file: TextIO | None = None) -> None:
    """Prints a line, on standard output by default, above the progress bar if one is shown."""
    if _can_show():
        tqdm.tqdm.write(line, file)
    else:  # tqdm.write creates locks, and Ctrl-C at that moment would raise an unrelated error
        print(line, file=file)


def _can_show() -> bool:
    return sys.stderr.isatty()
