"""Kernels in the state of a new process, and processes that compile or load them."""

import os
import pathlib
import subprocess
import sys

import numpy as np

import spiel_cfrplus
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.kernels.compilation import jit

PACKAGE = pathlib.Path(spiel_cfrplus.__file__).parent
# Compiles one kernel of another file than the one it inlines, which takes a second.
SMALL_WORK = """
import numpy as np
from spiel_cfrplus.kernels import histories
tree = histories.HistoryArrays(None, None, None, None, None, table_start=np.array([0, 2], np.uint32), owner=None)
probabilities = np.zeros(2)
histories.match_table(tree, np.array([1.0, 3.0]), probabilities)
print(*probabilities, sum(histories.match_table.stats.cache_hits.values()))
"""


def renewed(kernel):
    """The kernel in the state of a new process, before it is compiled or loaded."""
    return jit(kernel.py_func)


def hits(kernel):
    """The number of times that the kernel was loaded; a kernel that was called was either loaded or compiled."""
    assert sum(kernel.stats.cache_hits.values()) + sum(kernel.stats.cache_misses.values()) == 1
    return sum(kernel.stats.cache_hits.values())


def normalized(kernel=None):
    """Calls `passes.normalize` as a new process does, checks the result, and returns how often it was loaded."""
    kernel = renewed(passes.normalize) if kernel is None else kernel
    policy = np.zeros(2)
    kernel(np.array([1.0, 3.0]), 4.0, 0, 2, policy, None)
    np.testing.assert_array_equal(policy, [0.25, 0.75])
    return hits(kernel)


def files_in(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


def start_python(script, **environment):
    """A process that writes no bytecode and imports `spiel_cfrplus` from `PYTHONPATH`, by default the one under test."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(PACKAGE.parent), **environment}
    command = [sys.executable, "-P", "-c", script]  # -P: not from the current folder
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_python(script, **environment):
    """The output of such a process on both streams."""
    process = start_python(script, **environment)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.strip(), errors


def no_home(*arguments, **options):
    raise RuntimeError("could not determine the home directory")
