"""Engines: the same table from processes of joblib, Dask and Ray."""

import importlib.util
import signal
import sys

import pyspiel
import pytest
from fresh_process import run_python

from spiel_cfrplus import make_solver, write_efg
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


GAMES_OF_A_SWEEP = """
import pyspiel
from open_spiel.python.games import kuhn_poker

class Game(kuhn_poker.KuhnPokerGame):
    def __init__(self, params=None):
        super().__init__(params)

_TYPE = kuhn_poker._GAME_TYPE
pyspiel.register_game(pyspiel.GameType(
    "game_of_a_sweep", "Game of a sweep", _TYPE.dynamics, _TYPE.chance_mode, _TYPE.information, _TYPE.utility,
    _TYPE.reward_model, 2, 2, True, True, True, True, {}), Game)
"""


@pytest.mark.parametrize("name", [engine(name) for name in LIBRARIES])
def test_workers_load_games_of_modules_and_files(name, tmp_path, monkeypatch):
    (tmp_path / "games_of_a_sweep.py").write_text(GAMES_OF_A_SWEEP)
    kuhn, rps = pyspiel.load_game("kuhn_poker"), pyspiel.load_game("matrix_rps")
    write_efg(kuhn, tmp_path / "kuhn.efg")
    (tmp_path / "rps.nfg").write_text(pyspiel.game_to_nfg_string(rps))
    (tmp_path / "sweep.toml").write_text(
        'games = ["game_of_a_sweep", "kuhn.efg", "rps.nfg", "missing.efg"]\nalgorithms = "pcfr+"\niterations = 20\n'
        'modules = ["games_of_a_sweep"]\nprediction_weight = [0.25, 1.0]\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    table = run_sweep(tmp_path / "sweep.toml", tmp_path / "results", engine=name, jobs=2)
    assert [row["status"] for row in table] == [*["done"] * 6, *["refused"] * 2], table
    for row, game in zip(table, [*[kuhn] * 4, *[pyspiel.convert_to_turn_based(rps)] * 2], strict=False):
        solver = make_solver("pcfr+", game, prediction_weight=row["prediction_weight"])
        solver.run(20)
        assert row["nash_conv"] == pytest.approx(solver.nash_conv(), abs=1e-12)
    assert table[0]["nash_conv"] != table[1]["nash_conv"]
    assert "missing.efg" in table[-1]["message"]
    assert run_sweep(tmp_path / "sweep.toml", tmp_path / "results", engine="serial") == table


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


def test_a_single_job_of_joblib_runs_in_this_process(tmp_path):
    pytest.importorskip("joblib")
    output = run_python(f"""
from spiel_cfrplus.sweeps.plans import plan_sweep
from spiel_cfrplus.sweeps.sweep import run_sweep
(row,) = run_sweep(plan_sweep(["kuhn_poker"], ["cfr"], iterations=10), {str(tmp_path)!r}, engine="joblib", jobs=1)
print(row["status"], row["iteration"])
""")
    assert output == "done 10\n"
