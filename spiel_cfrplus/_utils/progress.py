"""Progress bars, on terminals only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import tqdm

Advance = Callable[[int], object]


def no_advance(steps: int) -> None:
    """Shows nothing."""


@contextlib.contextmanager
def progress_bar(show: bool, *, unit: str, total: int | None = None) -> Iterator[Advance]:
    """Gives a function that moves a bar on standard error; it does nothing unless `show` and that is a terminal.

    Args:
      show: whether a bar is wanted.
      unit: what is counted.
      total: how many there will be, if known.
    """
    if not show or not _can_show():
        yield no_advance  # not a disabled tqdm: that would start a thread
        return
    with tqdm.tqdm(total=total, unit=f" {unit}", unit_scale=True, delay=1) as bar:
        yield bar.update


def write_line(line: str) -> None:
    """Prints a line, above a progress bar if there may be one."""
    if _can_show():
        tqdm.tqdm.write(line)
    else:  # tqdm's own way takes locks, and an interrupt while it makes them ends in another error
        print(line)


def _can_show() -> bool:
    return sys.stderr.isatty()
