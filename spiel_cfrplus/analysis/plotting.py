"""Convergence plots: NashConv or exploitability against iterations or seconds, on log-log axes, with several runs per figure.

`plot_convergence(runs, "curves.png")` draws two panels, against iterations and against seconds. With `x=` it draws one panel in
the width of a paper's column, for example `plot_convergence(runs, "curves.pdf", metric="exploitability", x="iterations")`.
`runs` are rows by name, as `row_files.load_rows` returns them.

Requires matplotlib, which is imported on first use. No window is opened. Global settings of
matplotlib are changed while a panel is drawn or a file is written only.

Logarithmic axes cannot show zeros. A row whose NashConv is 0 is drawn as a triangle at the lower edge, and the line of the run
has a gap there. A row at iteration 0 or after 0 seconds is omitted from the plot whose axis cannot show it.

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

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path
from spiel_cfrplus.solving.curve import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FORMATS = ("png", "pdf", "svg")
_METRICS = {"nash_conv": "NashConv", "exploitability": "exploitability"}
_ABSCISSAS: dict[str, Callable[[Row], float]] = {"iterations": lambda row: row.iteration, "seconds": lambda row: row.seconds}
# Inches; a column of a paper with two columns is 3.3 inches wide.
_SIZE, _SIZE_OF_COLUMN = (11.0, 4.5), (3.3, 2.4)
_DASHES = ("-", "--", ":")  # the next style is used after every ten runs, because there are ten colors


def plot_convergence(
    runs: Mapping[str, Iterable[Row]],
    path: str | os.PathLike[str] | None = None,
    *,
    metric: str = "nash_conv",
    x: str | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draws runs, in one panel or two, and writes the figure to a file, which is replaced atomically.

    Args:
      runs: maps the name of each run in the legend to its rows, as `convergence` yields them.
      path: a file name whose extension is one of `FORMATS`; by default the figure is not written.
      metric: "nash_conv" or "exploitability", which is defined in two-player constant-sum games only.
      x: "iterations" or "seconds" for one panel, 3.3 inches wide; by default two panels, or "iterations" with `ax`.
      ax: the axes to draw the panel into, with the styles that they have; by default those of a new figure.
      title: title of the figure, or of `ax`, of one line or several.

    Returns:
      The figure, which the caller may modify or show.

    Raises:
      ImportError: matplotlib is not installed.
      OSError: the file cannot be written.
      TypeError: `runs` is not a dictionary of rows, or `path` is not a path.
      ValueError: unsupported extension, metric or `x`; no runs, or a run without rows; a negative, infinite or missing metric.
    """
    file_format = None if path is None else format_of(path)
    if x is None and ax is None:
        figure = convergence_figure(runs, metric=metric, title=title)
    else:
        figure = _panel(runs, metric, "iterations" if x is None else x, ax, title)
    if path is not None:
        write_figure(figure, path, file_format)
    return figure


def convergence_figure(runs: Mapping[str, Iterable[Row]], *, metric: str = "nash_conv", title: str | None = None) -> Figure:
    """The figure with two panels: the runs against iterations and against seconds.

    Arguments and errors as for `plot_convergence`.
    """
    curves = _curves(runs, metric)
    figure = new_figure(_SIZE)
    if title is not None:
        figure.suptitle(title, parse_math=False)
    left, right = figure.subplots(1, 2, sharey=True)
    lines = _draw(left, "iterations", curves)
    _draw(right, "seconds", curves)
    _label(left, lines, curves, metric)
    return figure


def _panel(runs: Mapping[str, Iterable[Row]], metric: str, x: str, ax: Axes | None, title: str | None) -> Figure:
    """One panel, in a new figure of a column's width or in `ax`."""
    if x not in _ABSCISSAS:
        raise ValueError(f'x must be "iterations" or "seconds", got {x!r}')
    curves = _curves(runs, metric)
    with contextlib.nullcontext() if ax is not None else _styles_of_column():
        axes = new_figure(_SIZE_OF_COLUMN).subplots() if ax is None else ax
        _label(axes, _draw(axes, x, curves), curves, metric)
        if title is not None:
            axes.set_title(title, parse_math=False)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _styles_of_column() -> contextlib.AbstractContextManager[None]:
    """In this context artists get sizes that can be read in a column of a paper."""
    matplotlib = _imported()
    styles = {"font.size": 8, "axes.titlesize": 8, "axes.linewidth": 0.6, "lines.linewidth": 1, "lines.markersize": 3}
    context: contextlib.AbstractContextManager[None] = matplotlib.rc_context(styles)
    return context


def write_figure(figure: Figure, path: str | os.PathLike[str], file_format: str | None) -> None:
    """Writes a figure in the format that `format_of` returned for the path."""
    # Type 42 fonts, which publishers require, instead of type 3; the setting is read while the file is written.
    with atomic_write(path) as file, _imported().rc_context({"pdf.fonttype": 42}):
        figure.savefig(file, format=file_format, dpi=150)


def check_plot(path: str | os.PathLike[str]) -> None:
    """Checks in advance that `plot_convergence` can write to `path`.

    Raises:
      ImportError, OSError, ValueError: as for `plot_convergence`.
    """
    format_of(path)
    new_figure(_SIZE)
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)} is a directory")
    check_writable(path)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a figure's file, one of `FORMATS`.

    Raises:
      TypeError: not a path.
      ValueError: another extension.
    """
    extension = os.path.splitext(checked_path(path))[1][1:].lower()
    if extension not in FORMATS:
        raise ValueError(f"the file name of a plot must end in one of .{', .'.join(FORMATS)}, got {os.fspath(path)!r}")
    return extension


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure of this size in inches, which notebooks display and no window shows.

    Raises:
      ImportError: matplotlib is not installed.
    """
    _imported()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from spiel_cfrplus._utils.figures import DisplayedFigure

    figure = DisplayedFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _imported() -> Any:
    """The module `matplotlib`."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError("plots require matplotlib, which is not installed; pip install matplotlib") from error
    return matplotlib


class _Curve(NamedTuple):
    """The rows of a run and their metric."""

    rows: list[Row]
    heights: list[float]


def _curves(runs: Mapping[str, Iterable[Row]], metric: str) -> dict[str, _Curve]:
    """The curves by name of the run."""
    if metric not in _METRICS:
        raise ValueError(f'metric must be "nash_conv" or "exploitability", got {metric!r}')
    if not isinstance(runs, Mapping):
        raise TypeError(f"runs must be a dictionary from names to rows, got {runs!r}")
    curves = {name: _curve(name, rows, metric) for name, rows in runs.items()}
    if not curves:
        raise ValueError("runs must contain at least one run")
    return curves


def _curve(name: str, rows: Iterable[Row], metric: str) -> _Curve:
    if not isinstance(rows, Iterable):
        raise TypeError(f"the run {name!r} must be an iterable of rows, as convergence yields them, got {rows!r}")
    rows = list(rows)
    if not rows:
        raise ValueError(f"the run {name!r} has no rows")
    for row in rows:
        if not isinstance(row, Row):
            raise TypeError(f"the run {name!r} must contain rows only, as convergence yields them, got {row!r}")
    heights = [getattr(row, metric) for row in rows]
    for height in heights:
        if height is None:
            raise ValueError(f'the run {name!r} has no exploitability, because of its game; pass metric="nash_conv"')
        if not 0 <= height < math.inf:
            raise ValueError(f"{_METRICS[metric]} must be finite and non-negative, got {height} in run {name!r}")
    return _Curve(rows, heights)


def _label(axes: Axes, lines: list[Line2D], curves: Mapping[str, _Curve], metric: str) -> None:
    """Adds the legend and the label of the vertical axis."""
    any_zero = any(0 in curve.heights for curve in curves.values())
    axes.set_ylabel(f"{_METRICS[metric]} (triangles: exactly 0)" if any_zero else _METRICS[metric])
    for text in axes.legend(lines, curves.keys()).get_texts():
        text.set_parse_math(False)  # a $ in a name is shown as such


def _draw(axes: Axes, x: str, curves: Mapping[str, _Curve]) -> list[Line2D]:
    """Draws a panel; returns its lines."""
    axes.set(xscale="log", yscale="log", xlabel=x)
    axes.grid(alpha=0.3)
    axes.tick_params("x", which="minor", labelsize="x-small", labelrotation=45)  # matplotlib labels them on short axes only
    return [_draw_run(axes, index, curve, _ABSCISSAS[x]) for index, curve in enumerate(curves.values())]


def _draw_run(axes: Axes, index: int, curve: _Curve, abscissa: Callable[[Row], float]) -> Line2D:
    color, dashes = f"C{index % 10}", _DASHES[index // 10 % len(_DASHES)]
    shown = [(abscissa(row), height) for row, height in zip(*curve, strict=True) if abscissa(row) > 0]
    heights = [height if height > 0 else math.nan for _, height in shown]
    (line,) = axes.plot([x for x, _ in shown], heights, color=color, linestyle=dashes, marker=".")
    at_zero = [x for x, height in shown if height == 0]
    # With this transform, height 0 is the lower edge of the plot and does not affect the limits of the axis.
    edge = axes.get_xaxis_transform()
    axes.plot(at_zero, [0.0] * len(at_zero), "v", color=color, transform=edge, clip_on=False, in_layout=False)
    return line
