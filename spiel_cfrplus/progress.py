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
    if not show or not sys.stderr.isatty():
        yield no_advance  # not a disabled tqdm: that would start a thread
        return
    with tqdm.tqdm(total=total, unit=f" {unit}", unit_scale=True, delay=1) as bar:
        yield bar.update
