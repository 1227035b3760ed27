"""Pictures of convergence: NashConv against iterations and against seconds, log-log, several runs in one picture.

Needs matplotlib, which is imported when something is drawn, and of which no window and no global state is touched.

Exact zeros have no place on logarithmic axes. A row with NashConv 0 is a triangle on the lower edge, where its run's line has
a gap; a row at iteration 0, or after 0 seconds, is left out of the half whose axis cannot show it.

>>> import pyspiel
>>> from spiel_cfrplus import ALGORITHMS
>>> from spiel_cfrplus.analysis.convergence import convergence
>>> game = pyspiel.load_game("kuhn_poker")
>>> runs = {name: list(convergence(ALGORITHMS[name](game), 100)) for name in ("cfr", "cfr+")}
>>> figure = convergence_figure(runs, title="Kuhn poker")
>>> [axes.get_xlabel() for axes in figure.axes]
['iterations', 'seconds']
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path
from spiel_cfrplus.analysis.convergence import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FORMATS = ("png", "pdf", "svg")
_DASHES = ("-", "--", ":")  # one after the other when the ten colors are used up


def plot_convergence(runs: Mapping[str, Iterable[Row]], path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draws runs to a file; `path` holds either what it held before or the whole picture, whatever happens.

    Args:
      runs: for every line of the picture its name in the legend and its rows, as `convergence` yields them.
      path: ends in one of `FORMATS`.
      title: what stands above the picture, in one line or several.

    Raises:
      ImportError: matplotlib is not installed.
      OSError: the file cannot be written.
      TypeError: `runs` is no dictionary of rows, or `path` no path.
      ValueError: another ending; no runs, or one without rows; a NashConv that is negative or not finite.
    """
    file_format = _format_of(path)
    figure = convergence_figure(runs, title=title)
    with atomic_write(path) as file:
        figure.savefig(file, format=file_format, dpi=150)


def convergence_figure(runs: Mapping[str, Iterable[Row]], *, title: str | None = None) -> Figure:
    """The picture as a matplotlib figure, to be changed or shown.

    Args, errors: see `plot_convergence`.
    """
    if not isinstance(runs, Mapping):
        raise TypeError(f"runs must be a dictionary from names to rows, got {runs!r}")
    figure = _new_figure()
    rows_of = {name: _checked_rows(name, rows) for name, rows in runs.items()}
    if not rows_of:
        raise ValueError("no runs to draw")
    if title is not None:
        figure.suptitle(title, parse_math=False)
    left, right = figure.subplots(1, 2, sharey=True)
    lines = _draw(left, "iterations", rows_of.values(), lambda row: row.iteration)
    _draw(right, "seconds", rows_of.values(), lambda row: row.seconds)
    any_zero = any(row.nash_conv == 0 for rows in rows_of.values() for row in rows)
    left.set_ylabel("NashConv (triangles: exactly 0)" if any_zero else "NashConv")
    for text in left.legend(lines, rows_of.keys()).get_texts():
        text.set_parse_math(False)  # a $ in a name is a $
    return figure


def check_plot(path: str | os.PathLike[str]) -> None:
    """Finds out before any work whether `plot_convergence` will be able to draw to `path`.

    Raises:
      ImportError, OSError, ValueError: as `plot_convergence` would.
    """
    _format_of(path)
    _new_figure()
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)} is a folder")
    check_writable(path)


def _format_of(path: str | os.PathLike[str]) -> str:
    ending = os.path.splitext(checked_path(path))[1][1:].lower()
    if ending not in FORMATS:
        raise ValueError(f"a picture's file name must end in one of .{', .'.join(FORMATS)}, got {os.fspath(path)!r}")
    return ending


def _new_figure() -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib, which is not installed; pip install matplotlib") from error
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _checked_rows(name: str, rows: Iterable[Row]) -> list[Row]:
    if not isinstance(rows, Iterable):
        raise TypeError(f"the run {name!r} must be rows, as convergence yields them, got {rows!r}")
    rows = list(rows)
    if not rows:
        raise ValueError(f"the run {name!r} has no rows")
    for row in rows:
        if not isinstance(row, Row):
            raise TypeError(f"the run {name!r} must be rows, as convergence yields them, got {row!r} among them")
        if not 0 <= row.nash_conv < math.inf:
            raise ValueError(f"NashConv must be finite and not negative, got {row.nash_conv} in run {name!r}")
    return rows


def _draw(axes: Axes, label: str, runs: Iterable[list[Row]], place_of: Callable[[Row], float]) -> list[Line2D]:
    """Draws one half of the picture; returns its lines."""
    axes.set(xscale="log", yscale="log", xlabel=label)
    axes.grid(alpha=0.3)
    axes.tick_params("x", which="minor", labelsize="x-small", labelrotation=45)  # there only if the axis is short
    return [_draw_run(axes, index, rows, place_of) for index, rows in enumerate(runs)]


def _draw_run(axes: Axes, index: int, rows: list[Row], place_of: Callable[[Row], float]) -> Line2D:
    color, dashes = f"C{index % 10}", _DASHES[index // 10 % len(_DASHES)]
    shown = [(place_of(row), row.nash_conv) for row in rows if place_of(row) > 0]
    heights = [nash_conv if nash_conv > 0 else math.nan for _, nash_conv in shown]
    (line,) = axes.plot([place for place, _ in shown], heights, color=color, linestyle=dashes, marker=".")
    at_zero = [place for place, nash_conv in shown if nash_conv == 0]
    # Height 0 is the lower edge here, wherever that is: the axis is not stretched for it.
    edge = axes.get_xaxis_transform()
    axes.plot(at_zero, [0.0] * len(at_zero), "v", color=color, transform=edge, clip_on=False, in_layout=False)
    return line
