"""The report of a sweep: one page with a table and curves for each game, and the command that repeats each run.

`write_report("results", "report.html")` reads the tables that `run_sweep` wrote to the folder. The page needs no JavaScript and
no network. Curves require matplotlib; without it the page has the tables only and says so.
"""

from __future__ import annotations

import base64
import csv
import html
import importlib.metadata
import importlib.util
import io
import os
import pathlib
import platform
from collections.abc import Iterator, Mapping, Sequence

from spiel_cfrplus._utils.validation import num_cores
from spiel_cfrplus.analysis.plotting import convergence_figure
from spiel_cfrplus.display.pages import check_page, page, write_page
from spiel_cfrplus.solving.curve import Row
from spiel_cfrplus.sweeps.plans import OPTIONS

_Cells = Mapping[str, str]
_PACKAGES = ("spiel_cfrplus", "open_spiel", "numpy", "numba", "llvmlite")
# Columns with results, and those of which the smallest number of a game is marked.
_RESULTS = ("status", "message", "iteration", "seconds", "nash_conv", "exploitability", "value", "peak_bytes")
_SMALLEST_IS_BEST = ("seconds", "nash_conv", "exploitability", "peak_bytes")
_DONE = "done"


def write_report(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Writes the report of a sweep; the file is replaced atomically.

    Args:
      folder: the folder of the sweep, with `runs.csv` and `curves.csv`.
      path: a file name that ends in `.html`.

    Raises:
      OSError: a table cannot be read, or the file cannot be written.
      TypeError: not a path.
      ValueError: the name does not end in `.html`, or a table has other columns.
    """
    check_page(path)
    runs, rows = (_read(pathlib.Path(folder, name)) for name in ("runs.csv", "curves.csv"))
    try:
        games = "".join(_section(game, own, rows) for game, own in _by_game(runs).items())
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(folder)} does not have the tables of a sweep, or they are damaged ({error})") from error
    title = html.escape(f"Sweep {pathlib.Path(folder).resolve().name}")
    write_page(path, page("report", {"title": title, "facts": html.escape(_facts(runs)), "games": games}))


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _facts(runs: Sequence[_Cells]) -> str:
    """The size of the sweep, and the versions and the machine on which the report, maybe not the sweep, was made."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    machine = f"{platform.system()} {platform.machine()}, {num_cores()} cores"
    return f"{len(runs)} runs. This report was made with Python {platform.python_version()}, {versions} on {machine}."


def _by_game(runs: Sequence[_Cells]) -> dict[str, list[_Cells]]:
    games: dict[str, list[_Cells]] = {}
    for run in runs:
        games.setdefault(run["game"], []).append(run)
    return games


def _section(game: str, runs: list[_Cells], rows: Sequence[_Cells]) -> str:
    names = _names(runs)
    heading = f"<h2>{html.escape(game)}</h2><p>{html.escape(_size(runs))}</p>"
    return f"<section>{heading}{_table(names, runs)}{_curves(names, runs, rows)}{_commands(names, runs)}</section>"


def _size(runs: Sequence[_Cells]) -> str:
    sizes = [f"{run['num_histories']} histories, {run['num_infostates']} infostates" for run in runs if run["num_histories"]]
    return sizes[0] if sizes else "not compiled"


def _names(runs: Sequence[_Cells]) -> list[str]:
    """A name for each run: its algorithm and the options in which the runs of the game differ."""
    differing = [name for name in OPTIONS if len({run[name] for run in runs}) > 1]
    return [", ".join([run["algorithm"], *(f"{name}={run[name] or 'default'}" for name in differing)]) for run in runs]


def _table(names: Sequence[str], runs: Sequence[_Cells]) -> str:
    columns = [name for name in _RESULTS if any(run[name] for run in runs)]
    best = {name: _smallest(runs, name) for name in columns if name in _SMALLEST_IS_BEST}
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in ("run", *columns))
    lines = []
    for name, run in zip(names, runs, strict=True):
        cells = "".join(_cell(run[column], run[column] and run[column] == best.get(column)) for column in columns)
        lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _smallest(runs: Sequence[_Cells], column: str) -> str | None:
    """The cell with the smallest number of the runs that are done, if they are several."""
    cells = [run[column] for run in runs if run["status"] == _DONE and run[column]]
    return min(cells, key=float) if len(cells) > 1 else None


def _cell(text: str, is_best: object) -> str:
    content = html.escape(_rounded(text))
    return (
        f'<td title="{html.escape(text)}"><b>{content} ★</b></td>'
        if is_best
        else f'<td title="{html.escape(text)}">{content}</td>'
    )


def _rounded(text: str) -> str:
    """A number with a fraction has four digits; other texts are unchanged."""
    try:
        return text if text.isdigit() else f"{float(text):.4g}"
    except ValueError:
        return text


def _curves(names: Sequence[str], runs: Sequence[_Cells], rows: Sequence[_Cells]) -> str:
    """The curves of a game as an image inside of the page, in which no program can run."""
    if importlib.util.find_spec("matplotlib") is None:
        return "<p>No curves, because matplotlib is not installed.</p>"
    curves = {name: list(_rows_of(run["run"], rows)) for name, run in zip(names, runs, strict=True)}
    begun = {name: own for name, own in curves.items() if own}
    if not begun:
        return "<p>No run has rows.</p>"
    with io.BytesIO() as file:
        convergence_figure(begun).savefig(file, format="svg", metadata={"Date": None})
        picture = base64.b64encode(file.getvalue()).decode("ascii")
    return f'<img alt="NashConv against iterations and against seconds" src="data:image/svg+xml;base64,{picture}">'


def _rows_of(run: str, rows: Sequence[_Cells]) -> Iterator[Row]:
    for row in rows:
        if row["run"] == run:
            seconds, nash_conv, value = (float(row[name]) for name in ("seconds", "nash_conv", "value"))
            yield Row(int(row["iteration"]), seconds, nash_conv, None, value, None)


def _commands(names: Sequence[str], runs: Sequence[_Cells]) -> str:
    lines = (
        f"<dt>{html.escape(name)}</dt><dd><code>{html.escape(run['command'])}</code></dd>"
        for name, run in zip(names, runs, strict=True)
    )
    return f"<details><summary>Commands that repeat the runs</summary><dl>{''.join(lines)}</dl></details>"
