"""Notebooks: the one in docs/, progress bars, displays, and interrupts, in Jupyter kernels."""

import pathlib

import pytest
from repository import ROOT

import spiel_cfrplus

nbformat = pytest.importorskip("nbformat", reason="notebooks require the extra [test]")
nbclient = pytest.importorskip("nbclient", reason="notebooks require the extra [test]")
manager = pytest.importorskip("jupyter_client.manager", reason="notebooks require the extra [test]")
pytest.importorskip("ipykernel", reason="notebooks require the extra [test]")

pytestmark = pytest.mark.slow  # kernels are processes that import everything

NOTEBOOK = ROOT / "docs" / "quick_start.ipynb"
SETUP = """
import sys
sys.modules["ipywidgets"] = None  # as if it were not installed
import pyspiel, spiel_cfrplus
solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
solver.run(1)
"""


class Kernel:
    """A running kernel.

    Attributes:
      manager: starts, interrupts and ends its process.
      client: sends it the code of cells.
    """

    def __init__(self):
        self.manager, self.client = manager.start_new_kernel()

    def run(self, code, on_output=lambda output: None):
        """The reply to a cell, and its outputs: pairs of a type, and text or a dictionary by MIME type."""
        outputs = []

        def record(message):
            content = message["content"]
            outputs.append((content.get("name") or message["msg_type"], content.get("text") or content.get("data")))
            on_output(outputs[-1])

        reply = self.client.execute_interactive(code, timeout=120, output_hook=record, allow_stdin=False)
        return reply["content"], outputs

    def displayed(self, code):
        """The result of a cell by MIME type."""
        (result,) = (data for kind, data in self.run(code)[1] if kind == "execute_result")
        return result


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    try:
        reply, outputs = kernel.run(SETUP)
        assert reply["status"] == "ok", outputs
        yield kernel
    finally:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)


def test_a_bar_without_ipywidgets_is_text_without_a_warning(kernel):
    reply, outputs = kernel.run("""
import time
from spiel_cfrplus._utils.progress import progress_bar
with progress_bar(True, unit="steps", total=2) as advance:
    time.sleep(1.1)  # bars appear after a second
    advance(2)
""")
    text = "".join(text for kind, text in outputs if kind == "stderr")
    assert reply["status"] == "ok"
    assert "2.00/2.00" in text
    assert "arning" not in text


def test_figures_and_tables_display_themselves(kernel):
    figure = kernel.displayed("""
from spiel_cfrplus.analysis.convergence import Row
from spiel_cfrplus.analysis.plotting import convergence_figure
convergence_figure({"run": [Row(1, 0.1, 1.0, None, 0.0, None)]})
""")
    assert "image/png" in figure
    table = kernel.displayed("spiel_cfrplus.infostate_table(solver.average_profile())")
    assert table["text/html"].startswith("<table>")
    assert kernel.displayed("solver")["text/plain"] == "CFRPlusSolver: cfr+ for kuhn_poker(), 1 iterations"


def test_an_interrupted_solver_continues(kernel, kuhn):
    def interrupt(output):
        if output == ("stdout", "started"):
            kernel.manager.interrupt_kernel()

    reply, _ = kernel.run("print('started', end='', flush=True); solver.run(10**12)", interrupt)
    assert reply["ename"] == "KeyboardInterrupt"
    _, outputs = kernel.run("solver.run(5); print(solver.iteration, solver.average_profile().probabilities.tobytes().hex())")
    iteration, probabilities = "".join(text for kind, text in outputs if kind == "stdout").split()
    fresh = spiel_cfrplus.CFRPlusSolver(kuhn)
    fresh.run(int(iteration))
    assert probabilities == fresh.average_profile().probabilities.tobytes().hex()


def readable(outputs):
    """What the outputs of a cell say: their text or, of an image, its type."""
    shown = [output for output in outputs if output.get("name") != "stderr"]
    return [output.get("text") or output["data"].get("text/html") or sorted(output["data"]) for output in shown]


def test_the_notebook_displays_what_it_contains(tmp_path: pathlib.Path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    executed = nbformat.from_dict(notebook)
    nbclient.NotebookClient(executed, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [(old, new) for old, new in zip(notebook.cells, executed.cells, strict=True) if old.cell_type == "code"]
    assert cells
    for old, new in cells:
        assert readable(new.outputs) == readable(old.outputs), new.source
