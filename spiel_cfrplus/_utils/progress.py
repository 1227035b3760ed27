"""Progress bars, shown on terminals and in notebooks only."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

Advance = Callable[[int], object]


def no_advance(steps: int) -> None:
    """Does nothing."""


@contextlib.contextmanager
def progress_bar(show: bool, *, unit: str, total: int | None = None) -> Iterator[Advance]:
    """Yields a function that advances a progress bar on a terminal or in a notebook; elsewhere it does nothing.

    Args:
      show: whether to show a bar.
      unit: the name of one step.
      total: the number of steps, if known.
    """
    if not show or not (_can_show() or _in_notebook()):
        yield no_advance  # not a disabled tqdm, because it would start a thread
        return
    with _bar_class()(total=total, unit=f" {unit}", unit_scale=True, delay=1) as bar:
        yield bar.update


def write_line(line: str, file: TextIO | None = None) -> None:
    """Prints a line, on standard output by default, above the progress bar if one is shown."""
    if _can_show():
        import tqdm

        tqdm.tqdm.write(line, file)
    else:  # tqdm.write creates locks, and Ctrl-C at that moment would raise an unrelated error
        print(line, file=file)


def _can_show() -> bool:
    return sys.stderr.isatty()


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, whose standard error is not a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_class() -> Any:
    """The class of the bars: of notebooks a widget, or text if ipywidgets is not installed."""
    import tqdm  # only if a bar is shown, because the import takes as long as the solution of a small game

    if not _in_notebook():
        return tqdm.tqdm  # tqdm.auto imports asyncio, which takes a tenth of a second
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tqdm.TqdmWarning)  # ipywidgets is optional
        from tqdm import auto
    return auto.tqdm
