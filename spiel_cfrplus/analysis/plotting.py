"""Convergence plots: NashConv against iterations and against seconds, on log-log axes, with several runs per figure.

Requires matplotlib, which is imported on first use. No window is opened and no global state of matplotlib is changed.

Logarithmic axes cannot show zeros. A row with NashConv 0 is drawn as a triangle at the lower edge, and the line of the run has
a gap there. A row at iteration 0 or after 0 seconds is omitted from the plot whose axis cannot show it.

>>> import pyspiel
>>> from spiel_cfrplus import make_solver
>>> from spiel_cfrplus.analysis.convergence import convergence
>>> game = pyspiel.load_game("kuhn_poker")
>>> runs = {name: list(convergence(make_solver(name, game), 100)) for name in ("cfr", "cfr+")}
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
from spiel_cfrplus.solving.curve import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FORMATS = ("png", "pdf", "svg")
_DASHES = ("-", "--", ":")  # the next style is used after every ten runs, because there are ten colors


def plot_convergence(runs: Mapping[str, Iterable[Row]], path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draws runs and writes the figure to a file, which is replaced atomically.

    Args:
      runs: maps the name of each run in the legend to its rows, as `convergence` yields them.
      path: a file name whose extension is one of `FORMATS`.
      title: title of the figure, of one line or several.

    Raises:
      ImportError: matplotlib is not installed.
      OSError: the file cannot be written.
      TypeError: `runs` is not a dictionary of rows, or `path` is not a path.
      ValueError: unsupported extension; no runs, or a run without rows; a negative or non-finite NashConv.
    """
    file_format = _format_of(path)
    figure = convergence_figure(runs, title=title)
    with atomic_write(path) as file:
        figure.savefig(file, format=file_format, dpi=150)


def convergence_figure(runs: Mapping[str, Iterable[Row]], *, title: str | None = None) -> Figure:
    """The runs as a matplotlib figure, which the caller may modify or show.

    Arguments and errors as for `plot_convergence`.
    """
    if not isinstance(runs, Mapping):
        raise TypeError(f"runs must be a dictionary from names to rows, got {runs!r}")
    figure = _new_figure()
    rows_of = {name: _checked_rows(name, rows) for name, rows in runs.items()}
    if not rows_of:
        raise ValueError("runs must contain at least one run")
    if title is not None:
        figure.suptitle(title, parse_math=False)
    left, right = figure.subplots(1, 2, sharey=True)
    lines = _draw(left, "iterations", rows_of.values(), lambda row: row.iteration)
    _draw(right, "seconds", rows_of.values(), lambda row: row.seconds)
    any_zero = any(row.nash_conv == 0 for rows in rows_of.values() for row in rows)
    left.set_ylabel("NashConv (triangles: exactly 0)" if any_zero else "NashConv")
    for text in left.legend(lines, rows_of.keys()).get_texts():
        text.set_parse_math(False)  # a $ in a name is shown as such
    return figure


def check_plot(path: str | os.PathLike[str]) -> None:
    """Checks in advance that `plot_convergence` can write to `path`.

    Raises:
      ImportError, OSError, ValueError: as for `plot_convergence`.
    """
    _format_of(path)
    _new_figure()
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)} is a directory")
    check_writable(path)


def _format_of(path: str | os.PathLike[str]) -> str:
    extension = os.path.splitext(checked_path(path))[1][1:].lower()
    if extension not in FORMATS:
        raise ValueError(f"the file name of a plot must end in one of .{', .'.join(FORMATS)}, got {os.fspath(path)!r}")
    return extension


def _new_figure() -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots require matplotlib, which is not installed; pip install matplotlib") from error
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _checked_rows(name: str, rows: Iterable[Row]) -> list[Row]:
    if not isinstance(rows, Iterable):
        raise TypeError(f"the run {name!r} must be an iterable of rows, as convergence yields them, got {rows!r}")
    rows = list(rows)
    if not rows:
        raise ValueError(f"the run {name!r} has no rows")
    for row in rows:
        if not isinstance(row, Row):
            raise TypeError(f"the run {name!r} must contain rows only, as convergence yields them, got {row!r}")
        if not 0 <= row.nash_conv < math.inf:
            raise ValueError(f"NashConv must be finite and non-negative, got {row.nash_conv} in run {name!r}")
    return rows


def _draw(axes: Axes, label: str, runs: Iterable[list[Row]], abscissa: Callable[[Row], float]) -> list[Line2D]:
    """Draws one of the two plots; returns its lines."""
    axes.set(xscale="log", yscale="log", xlabel=label)
    axes.grid(alpha=0.3)
    axes.tick_params("x", which="minor", labelsize="x-small", labelrotation=45)  # matplotlib labels them on short axes only
    return [_draw_run(axes, index, rows, abscissa) for index, rows in enumerate(runs)]


def _draw_run(axes: Axes, index: int, rows: list[Row], abscissa: Callable[[Row], float]) -> Line2D:
    color, dashes = f"C{index % 10}", _DASHES[index // 10 % len(_DASHES)]
    shown = [(abscissa(row), row.nash_conv) for row in rows if abscissa(row) > 0]
    heights = [nash_conv if nash_conv > 0 else math.nan for _, nash_conv in shown]
    (line,) = axes.plot([x for x, _ in shown], heights, color=color, linestyle=dashes, marker=".")
    at_zero = [x for x, nash_conv in shown if nash_conv == 0]
    # With this transform, height 0 is the lower edge of the plot and does not affect the limits of the axis.
    edge = axes.get_xaxis_transform()
    axes.plot(at_zero, [0.0] * len(at_zero), "v", color=color, transform=edge, clip_on=False, in_layout=False)
    return line
