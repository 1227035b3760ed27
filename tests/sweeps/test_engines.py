"""Engines: the same table from processes of joblib, Dask and Ray."""

import importlib.util
import signal
import sys

import pytest

from spiel_cfrplus.sweeps.engines import WorkerError, start_engine
from spiel_cfrplus.sweeps.plans import plan_sweep
from spiel_cfrplus.sweeps.sweep import run_sweep

LIBRARIES = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}


def engine(name):
    missing = importlib.util.find_spec(LIBRARIES[name]) is None
    reason = f"{LIBRARIES[name]} is not installed; pip install 'spiel_cfrplus[{'sweep' if name == 'joblib' else name}]'"
    slow = [pytest.mark.slow] if name != "joblib" else []
    return pytest.param(name, marks=[pytest.mark.skipif(missing, reason=reason), *slow])


def without_measurements(table):
    return [{**row, "seconds": None, "peak_bytes": None} for row in table]


@pytest.mark.parametrize("name", [engine(name) for name in LIBRARIES])
def test_all_engines_make_the_same_table(name, tmp_path):
    plans = plan_sweep(["kuhn_poker", "catch"], ["cfr", "cfr-br"], iterations=20, alternating=[True, False])
    expected = run_sweep(plans, tmp_path / "serial", engine="serial")
    table = run_sweep(plans, tmp_path / name, engine=name, jobs=2)
    assert without_measurements(table) == without_measurements(expected)
    assert {row["status"] for row in table} == {"done", "refused"}


@pytest.mark.parametrize("name", [engine(name) for name in LIBRARIES])
def test_a_task_that_ends_its_process_is_named_and_the_others_are_done(name):
    harmless = [0, signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG]
    with start_engine(name, jobs=2) as distribute:
        # Each task is a signal that its process sends to itself; all but one are ignored by default.
        results = dict(distribute(signal.raise_signal, [*harmless[:2], signal.SIGKILL, *harmless[2:]]))
    error = results.pop(signal.SIGKILL)
    assert results == dict.fromkeys(harmless)
    assert isinstance(error, Exception)
    assert name != "joblib" or isinstance(error, WorkerError)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_error_without_a_library_names_the_extra(name, monkeypatch):
    for module in (LIBRARIES[name], "dask.distributed"):
        monkeypatch.setitem(sys.modules, module, None)
    extra = "sweep" if name == "joblib" else name
    with pytest.raises(ImportError, match=rf"pip install 'spiel_cfrplus\[{extra}\]'"), start_engine(name):
        pass
