"""A sweep of 6 games x 8 algorithms x 2 orders of updates: the same table from all engines, and after it was killed five times.

    python benchmarks/killed_sweep.py                                 joblib, killed five times at random
    python benchmarks/killed_sweep.py --engines=serial,joblib,dask,ray

First each engine makes the table, uninterrupted. Then the sweep is started as a process, which is killed by SIGKILL after a
random time, five times, and started again until it ends. The tables are compared: all columns but seconds and memory must be
the same, and finished runs must not be repeated: their `outcome.json` must not change. All files must be readable.
"""

from __future__ import annotations

import argparse
import collections
import csv
import multiprocessing
import os
import pathlib
import random
import signal
import tempfile
import time
from typing import Any

from spiel_cfrplus.analysis.row_files import load_rows
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.sweeps.plans import RunPlan, plan_sweep
from spiel_cfrplus.sweeps.runs import read_outcome
from spiel_cfrplus.sweeps.sweep import run_sweep

GAMES = [
    "kuhn_poker",
    "leduc_poker",
    "matrix_rps",
    "goofspiel(num_cards=3,imp_info=true)",
    "liars_dice(dice_sides=3)",
    "kuhn_poker(players=3)",
]
ALGORITHMS = ["cfr", "cfr+", "lcfr", "dcfr", "pcfr+", "pdcfr+", "predictive_cfr_hedge", "cfr-br"]
NOT_COMPARED = ("seconds", "peak_bytes")


def results(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns that do not depend on the machine."""
    return [{name: value for name, value in row.items() if name not in NOT_COMPARED} for row in table]


def sweep_in_process(plans: tuple[RunPlan, ...], folder: pathlib.Path, jobs: int) -> multiprocessing.Process:
    """Starts the sweep in a process of its own."""
    options = {"engine": "joblib", "jobs": jobs, "checkpoint_every": 0.2}
    process = multiprocessing.get_context("spawn").Process(target=run_sweep, args=(plans, folder), kwargs=options)
    process.start()
    return process


def kill_and_restart(plans: tuple[RunPlan, ...], folder: pathlib.Path, args: argparse.Namespace) -> collections.Counter[str]:
    """Kills the sweep at random moments, starts it again until it is done, and counts events."""
    draws, seen, finished = random.Random(args.seed), collections.Counter[str](), dict[pathlib.Path, int]()
    while True:
        process = sweep_in_process(plans, folder, args.jobs)
        kill = seen["kills"] < args.kills
        process.join(draws.uniform(*args.after) if kill else None)
        if process.exitcode is None:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            seen["kills"] += 1
        done = {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*/outcome.json")}
        seen["outcomes that a restart has written again"] += sum(done.get(path) != at for path, at in finished.items())
        print(f"{len(done)} of {len(plans)} runs are finished after {seen['kills']} kills", flush=True)
        finished = done
        if process.exitcode == 0:
            return seen


def check_files(plans: tuple[RunPlan, ...], folder: pathlib.Path, seen: collections.Counter[str]) -> None:
    """Reads all files of all runs."""
    for plan in plans:
        own = folder / "runs" / plan.id
        outcome = read_outcome(str(own))
        seen["runs without outcome"] += outcome is None
        if outcome is not None and outcome.status == "done":
            (rows,) = load_rows(own / "rows.csv").values()
            iterations = [row.iteration for row in rows]
            seen["runs with missing or repeated rows"] += rows != checkpoint.read_curve(own / "run.npz").rows
            seen["runs with rows in another order"] += iterations != sorted(set(iterations))
    seen["temporary files at the end"] = len(list(folder.rglob(".unfinished-*")))


def read_table(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The table in `runs.csv`."""
    with open(folder / "runs.csv", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Reads the command line, runs the sweeps and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="joblib", help="engines, with commas (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--after", type=float, nargs=2, default=(5.0, 15.0), help="range of seconds until a kill")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    plans = plan_sweep(GAMES, ALGORITHMS, iterations=args.iterations, alternating=[True, False])
    tables, failed = {}, False
    with tempfile.TemporaryDirectory() as name:
        for engine in args.engines.split(","):
            started = time.perf_counter()
            run_sweep(plans, pathlib.Path(name, engine), engine=engine, jobs=None if engine == "serial" else args.jobs)
            tables[engine] = results(read_table(pathlib.Path(name, engine)))
            counts = collections.Counter(row["status"] for row in tables[engine])
            print(f"{engine}: {dict(counts)}, {time.perf_counter() - started:.0f} s", flush=True)
        folder = pathlib.Path(name, "killed")
        seen = kill_and_restart(plans, folder, args)
        check_files(plans, folder, seen)
        tables["killed"] = results(read_table(folder))
    first, *others = tables
    for other in others:
        same = tables[other] == tables[first]
        failed |= not same
        print(f"the tables of {first} and {other} are {'the same' if same else 'DIFFERENT'} ({len(tables[other])} rows)")
    for what, count in seen.items():
        print(f"{what}: {count}")
    raise SystemExit(failed or any(count for what, count in seen.items() if what != "kills"))


if __name__ == "__main__":
    main()
