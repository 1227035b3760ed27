"""Convergence plots, checked through the matplotlib objects."""

import dataclasses
import itertools
import math
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from spiel_cfrplus.analysis.convergence import Row
from spiel_cfrplus.analysis.plotting import convergence_figure, plot_convergence

pytestmark = pytest.mark.filterwarnings("error")

FIRST_BYTES = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml"}
LAST_BYTES = {"png": b"IEND\xaeB`\x82", "pdf": b"%%EOF\n", "svg": b"</svg>\n"}


def row(iteration, seconds, nash_conv):
    return Row(iteration, seconds, nash_conv, None, 0.0, None)


SLOW = [row(1, 0.5, 4.0), row(10, 2.5, 0.75), row(100, 30.0, 1e-3)]
FAST = [row(2, 0.125, 2.0), row(50, 0.25, 1e-12)]


def lines(axes):
    """The lines of the runs as points; points without a height are omitted."""
    drawn = [line.get_xydata() for line in axes.get_lines() if line.get_marker() == "."]
    return [points[~np.isnan(points[:, 1])].tolist() for points in drawn]


def triangles(axes):
    """The positions of the triangles; heights are fractions of the axis."""
    marks = [line for line in axes.get_lines() if line.get_marker() == "v"]
    assert all(mark.get_transform() == axes.get_xaxis_transform() for mark in marks)
    return [mark.get_xydata().tolist() for mark in marks]


def drawn(figure):
    """The two plots after matplotlib has drawn them."""
    figure.canvas.draw()
    return figure.axes


def test_both_plots_show_the_rows_on_logarithmic_axes():
    left, right = drawn(convergence_figure({"slow": SLOW, "fast": iter(FAST)}, title="a title"))
    assert [axes.get_xscale() + axes.get_yscale() for axes in (left, right)] == ["loglog", "loglog"]
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("iterations", "seconds", "NashConv")
    assert lines(left) == [[[1, 4.0], [10, 0.75], [100, 1e-3]], [[2, 2.0], [50, 1e-12]]]
    assert lines(right) == [[[0.5, 4.0], [2.5, 0.75], [30.0, 1e-3]], [[0.125, 2.0], [0.25, 1e-12]]]
    assert triangles(left) == triangles(right) == [[], []]
    assert left.figure.get_suptitle() == "a title"
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] < 1e-12 < 4.0 < left.get_ylim()[1]


def test_the_legend_shows_the_names_unchanged():
    names = ["cfr+", "_hidden", "$x^$", "exactly 0"]  # matplotlib would hide the second and choke on the third
    left, right = drawn(convergence_figure(dict.fromkeys(names, SLOW), title="$x^$"))
    assert [text.get_text() for text in left.get_legend().get_texts()] == names
    colors = [to_hex(line.get_color()) for line in left.get_lines() if line.get_marker() == "."]
    assert [to_hex(handle.get_color()) for handle in left.get_legend().legend_handles] == colors
    assert [to_hex(line.get_color()) for line in right.get_lines() if line.get_marker() == "."] == colors
    assert len(set(colors)) == 4


def test_thirty_lines_have_different_styles():
    left, _ = convergence_figure({str(index): SLOW for index in range(30)}).axes
    looks = {(line.get_color(), line.get_linestyle()) for line in left.get_lines() if line.get_marker() == "."}
    assert len(looks) == 30


def test_exact_zeros_are_triangles_on_the_lower_edge():
    rows = [row(1, 0.5, 1.0), row(2, 1.0, 0.0), row(5, 2.0, 0.25), row(10, 3.0, 0.0)]
    left, right = drawn(convergence_figure({"run": rows}))
    assert lines(left) == [[[1, 1.0], [5, 0.25]]]
    assert [math.isnan(height) for height in left.get_lines()[0].get_ydata()] == [False, True, False, True]  # gaps
    assert triangles(left) == [[[2, 0], [10, 0]]]
    assert triangles(right) == [[[1.0, 0], [3.0, 0]]]
    assert left.get_ylabel() == "NashConv (triangles: exactly 0)"
    assert left.get_xlim()[1] > 10
    assert 0.1 < left.get_ylim()[0] < 0.25  # not stretched for them


@pytest.mark.parametrize(
    "rows",
    [
        [row(0, 0.0, 1.0)],
        [row(0, 0.0, 0.0)],
        [row(7, 0.0, 0.5)],
        [row(1, 0.1, 0.0), row(2, 0.2, 0.0)],
        [row(1, 1e-5, 1e-100), row(10**12, 1e7, 1e100)],
        [row(1, 0.1, 0.5), row(2, 0.1, 0.5)],
    ],
    ids=["start", "start at equilibrium", "no time", "equilibrium", "far apart", "standing still"],
)
def test_rows_that_an_axis_cannot_show_cause_no_warning(rows):
    left, right = drawn(convergence_figure({"run": rows}))
    assert lines(left) == [[[r.iteration, r.nash_conv] for r in rows if r.iteration and r.nash_conv]]
    assert lines(right) == [[[r.seconds, r.nash_conv] for r in rows if r.seconds and r.nash_conv]]
    assert triangles(left) == [[[r.iteration, 0] for r in rows if r.iteration and not r.nash_conv]]


def test_labels_of_a_short_axis_do_not_overlap():
    # Within a decade matplotlib labels 2, 3, 4 and 6 as well.
    rows = [row(1, 1.5e-4, 0.5), row(2, 1.1e-3, 0.25)]
    _, right = drawn(convergence_figure({"run": rows}))
    low, high = right.get_xlim()
    ticks = [tick for tick in right.xaxis.get_minor_ticks() if low <= tick.get_loc() <= high]
    labels = [tick.label1 for tick in ticks if tick.label1.get_text()]
    assert len(labels) > 3
    for label, other in itertools.pairwise(labels):
        # Turned by 45 degrees, lines of text are apart if their ends are by more than sqrt(2) times their height.
        assert label.get_rotation() == 45
        distance = other.get_window_extent().x1 - label.get_window_extent().x1
        assert distance > 1.4 * label.get_fontsize() * right.figure.dpi / 72


@pytest.mark.parametrize("file_format", FIRST_BYTES)
def test_the_extension_determines_the_format(file_format, tmp_path):
    for path in (tmp_path / f"picture.{file_format}", str(tmp_path / f"PICTURE.{file_format.upper()}")):
        plot_convergence({"run": SLOW}, path)
        with open(path, "rb") as file:
            content = file.read()
        assert content.startswith(FIRST_BYTES[file_format])
        assert content.endswith(LAST_BYTES[file_format])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failed_plot_does_not_replace_the_file(tmp_path, monkeypatch):
    def fail(canvas, file, **options):
        file.write(b"half a picture")
        raise OSError("disk full")

    path = tmp_path / "picture.png"
    plot_convergence({"run": SLOW}, path)
    before = path.read_bytes()
    monkeypatch.setattr(FigureCanvasAgg, "print_figure", fail)
    with pytest.raises(OSError, match="disk full"):
        plot_convergence({"run": FAST}, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_target_of_a_link_is_replaced(tmp_path):
    target, link = tmp_path / "target.svg", tmp_path / "link.svg"
    target.write_text("old")
    link.symlink_to(target)
    plot_convergence({"run": SLOW}, link)
    assert link.is_symlink()
    assert target.read_bytes().endswith(LAST_BYTES["svg"])


@pytest.mark.parametrize(
    ("runs", "name", "words"),
    [
        ({"run": SLOW}, "picture.jpg", r"must end in one of \.png, \.pdf, \.svg, got '.*picture\.jpg'"),
        ({"run": SLOW}, "picture", "must end in one of"),
        ({"run": SLOW}, ".png", "must end in one of"),
        ({}, "picture.png", "at least one run"),
        ({"run": SLOW, "empty": []}, "picture.png", "the run 'empty' has no rows"),
        ({"run": [row(1, 0.5, -1e-9)]}, "picture.png", "finite and non-negative, got -1e-09 in run 'run'"),
        ({"run": [row(1, 0.5, math.nan)]}, "picture.png", "finite and non-negative, got nan"),
        ({"run": [row(1, 0.5, math.inf)]}, "picture.png", "finite and non-negative, got inf"),
    ],
)
def test_invalid_runs_are_refused(runs, name, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        plot_convergence(runs, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_error_without_matplotlib_names_the_package_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot_convergence({"run": SLOW}, tmp_path / "picture.png")
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_imported_on_first_use_without_pyplot(tmp_path):
    program = f"""
import sys
from spiel_cfrplus.analysis import plotting
from spiel_cfrplus.cli import main as command_line
from spiel_cfrplus.analysis.convergence import Row
assert "matplotlib" not in sys.modules
plotting.plot_convergence({{"run": [Row(1, 0.5, 1.0, None, 0.0, None)]}}, {str(tmp_path / "picture.png")!r})
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def with_exploitability(rows):
    return [dataclasses.replace(row, exploitability=row.nash_conv / 2) for row in rows]


def test_one_panel_shows_the_metric_in_the_width_of_a_column(tmp_path):
    runs = {"slow": with_exploitability(SLOW), "fast": with_exploitability(FAST)}
    figure = plot_convergence(runs, tmp_path / "panel.pdf", metric="exploitability", x="seconds", title="$x^$")
    (axes,) = drawn(figure)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("seconds", "exploitability", "$x^$")
    assert lines(axes) == [[[0.5, 2.0], [2.5, 0.375], [30.0, 5e-4]], [[0.125, 1.0], [0.25, 5e-13]]]
    content = (tmp_path / "panel.pdf").read_bytes()
    width, height = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content).groups()
    assert float(width) == pytest.approx(3.3 * 72)
    assert float(height) < float(width)
    assert b"/Subtype /Type3" not in content
    assert {text.get_fontsize() for text in (axes.xaxis.label, axes.title, *axes.get_legend().get_texts())} == {8}
    assert (matplotlib.rcParams["pdf.fonttype"], matplotlib.rcParams["font.size"]) == (3, 10)


def test_a_panel_can_be_part_of_a_users_figure():
    figure = Figure(figsize=(7, 2))
    left, right = figure.subplots(1, 2)
    assert plot_convergence({"run": SLOW}, ax=left) is figure
    plot_convergence({"run": SLOW}, ax=right, x="seconds")
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("iterations", "seconds", "NashConv")
    assert lines(right) == [[[0.5, 4.0], [2.5, 0.75], [30.0, 1e-3]]]
    assert left.xaxis.label.get_fontsize() == 10


def test_panels_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match='x must be "iterations" or "seconds", got \'time\''):
        plot_convergence({"run": SLOW}, x="time")
    with pytest.raises(ValueError, match='metric must be "nash_conv" or "exploitability", got \'value\''):
        plot_convergence({"run": SLOW}, metric="value")
    with pytest.raises(ValueError, match="the run 'run' has no exploitability"):
        plot_convergence({"run": SLOW}, metric="exploitability", x="iterations")


def test_the_figure_can_be_modified():
    figure = convergence_figure({"run": SLOW})
    assert isinstance(figure, Figure)
    assert isinstance(figure.canvas, FigureCanvasAgg)
    figure.axes[0].axhline(1e-2)
