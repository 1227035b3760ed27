"""Rows as JSON lines on standard output, while everything else is printed on standard error.

>>> with printer(wanted=True) as print_row:
...     print("a note, on standard error")
...     print_row({"iteration": 1, "nash_conv": 0.5, "exploitability": float("nan")})
{"iteration": 1, "nash_conv": 0.5, "exploitability": null}
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from absl import flags

from spiel_cfrplus._utils.progress import write_line

PrintRow = Callable[[Mapping[str, Any]], None]


def define(values: flags.FlagValues) -> None:
    """Defines the flag `--json`."""
    flags.DEFINE_boolean(
        "json", False, "Print rows as JSON lines on standard output, and all else on standard error.", flag_values=values
    )


@contextlib.contextmanager
def printer(*, wanted: bool) -> Iterator[PrintRow | None]:
    """In this context, if `wanted`, prints go to standard error, except those of the function that is yielded.

    Numbers are written so that the same doubles are read; NaN and infinities are null.

    Args:
      wanted: if False, None is yielded and prints are unchanged.
    """
    if not wanted:
        yield None
        return
    output = sys.stdout

    def print_row(row: Mapping[str, Any]) -> None:
        write_line(json.dumps({name: _plain(value) for name, value in row.items()}), output)
        output.flush()

    with contextlib.redirect_stdout(sys.stderr):
        yield print_row


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
