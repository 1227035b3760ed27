"""A sweep of 6 games x 8 algorithms x 2 orders of updates: the same table from all engines, and after it was killed five times.

    python benchmarks/killed_sweep.py                                 joblib, killed five times at random
    python benchmarks/killed_sweep.py --engines=serial,joblib,dask,ray --killed=joblib,dask,ray

First each engine makes the table, uninterrupted. Then, for each engine of --killed, the sweep is started as a process, which is
killed by SIGKILL after a random time, together with all processes that it started, five times, and started again until it ends.
The tables are compared: all columns but seconds and memory must be the same, and finished runs must not be repeated: their
`outcome.json` must not change. All files must be readable. --without-children kills the process of the sweep only.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import multiprocessing
import pathlib
import random
import tempfile
import time
from typing import Any

import psutil

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


def sweep_in_process(plans: tuple[RunPlan, ...], folder: pathlib.Path, engine: str, jobs: int) -> multiprocessing.Process:
    """Starts the sweep in a process of its own."""
    options = {"engine": engine, "jobs": jobs, "checkpoint_every": 0.2}
    process = multiprocessing.get_context("spawn").Process(target=run_sweep, args=(plans, folder), kwargs=options)
    process.start()
    return process


def kill(process: multiprocessing.Process, with_children: bool) -> None:
    """Kills a process, and the processes that it and its children have started."""
    parent = psutil.Process(process.pid)
    for one in [parent, *(parent.children(recursive=True) if with_children else [])]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.join()


def kill_and_restart(
    plans: tuple[RunPlan, ...], folder: pathlib.Path, engine: str, args: argparse.Namespace
) -> collections.Counter[str]:
    """Kills the sweep at random moments, starts it again until it is done, and counts events."""
    draws, seen, finished = random.Random(args.seed), collections.Counter[str](), dict[pathlib.Path, int]()
    while True:
        process = sweep_in_process(plans, folder, engine, args.jobs)
        process.join(draws.uniform(*args.after) if seen["kills"] < args.kills else None)
        if process.exitcode is None:
            kill(process, not args.without_children)
            seen["kills"] += 1
        done = {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*/outcome.json")}
        seen["outcomes that a restart has written again"] += sum(done.get(path) != at for path, at in finished.items())
        print(f"{engine}: {len(done)} of {len(plans)} runs are finished after {seen['kills']} kills", flush=True)
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
    parser.add_argument("--killed", default="joblib", help="engines whose sweep is killed (default: %(default)s)")
    parser.add_argument("--without-children", action="store_true", help="kill only the process that started the sweep")
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
        counts_of = {}
        for engine in args.killed.split(","):
            folder = pathlib.Path(name, f"killed-{engine}")
            counts_of[engine] = kill_and_restart(plans, folder, engine, args)
            check_files(plans, folder, counts_of[engine])
            tables[f"{engine}, killed"] = results(read_table(folder))
    first, *others = tables
    for other in others:
        same = tables[other] == tables[first]
        failed |= not same
        print(f"the tables of {first} and {other} are {'the same' if same else 'DIFFERENT'} ({len(tables[other])} rows)")
    for engine, seen in counts_of.items():
        print(f"{engine}: {', '.join(f'{count} {what}' for what, count in seen.items())}")
        failed |= any(count for what, count in seen.items() if what != "kills")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
