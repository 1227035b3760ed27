"""Runs that are killed at random times and resumed until they are done, compared with an uninterrupted run.

    python benchmarks/killed_runs.py --runs=100 --signal=KILL
    python benchmarks/killed_runs.py --runs=50 --signal=TERM

Every run is the command line with `--checkpoint`. It is stopped by the signal after a random time and started again with the
same flags until it finishes. The final checkpoint is compared bit by bit with that of a run without signals, and its rows with
the expected iterations. After every stop the checkpoint is read; its age bounds the lost work.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from spiel_cfrplus.analysis.convergence import report_iterations
from spiel_cfrplus.solving import checkpoint

RUN = pathlib.Path(__file__).parent.parent / "scripts" / "run.py"


def command(path: pathlib.Path, args: argparse.Namespace) -> list[str]:
    """The command of a run with this checkpoint."""
    flags = [f"--game={args.game}", f"--iterations={args.iterations}", f"--checkpoint_every={args.checkpoint_every}"]
    return [sys.executable, str(RUN), *flags, f"--checkpoint={path}", "--noverify"]


def run_until_done(path: pathlib.Path, args: argparse.Namespace, draws: random.Random) -> collections.Counter[str]:
    """Kills and resumes a run until it is done; counts events."""
    seen: collections.Counter[str] = collections.Counter()
    number = getattr(signal, f"SIG{args.signal}")
    expected = {"KILL": -number}.get(args.signal, 128 + number)
    for _ in range(args.most_stops):
        started_at = time.time()
        process = subprocess.Popen(command(path, args), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate(timeout=draws.uniform(*args.after))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            stopped_at = time.time()
            _, errors = process.communicate()
            seen["stops"] += 1
            look_at_checkpoint(path, started_at, stopped_at, seen)
            if process.returncode not in (expected, 0, -number):
                seen[f"exit code {process.returncode}: {errors[-200:]}"] += 1
            seen["temporary files after a stop"] += len(list(path.parent.glob(".unfinished-*")))
        if process.returncode == 0:
            return seen
    subprocess.run(command(path, args), check=True, stdout=subprocess.DEVNULL)
    return seen


def look_at_checkpoint(path: pathlib.Path, started_at: float, stopped_at: float, seen: collections.Counter[str]) -> None:
    """Reads the checkpoint of a stopped run and records its age."""
    if path.exists():
        try:
            checkpoint.read_curve(path)
        except ValueError:
            seen["unreadable checkpoints"] += 1
    if not path.exists() or path.stat().st_mtime < started_at:
        seen["stops before the first save of a process"] += 1
        return
    age = round(1000 * (stopped_at - path.stat().st_mtime))
    seen["largest age of a checkpoint, ms"] = max(seen["largest age of a checkpoint, ms"], age)


def same(first: pathlib.Path, second: pathlib.Path) -> bool:
    """Whether the arrays of two checkpoints are identical, bit for bit."""
    with np.load(first) as ours, np.load(second) as theirs:
        names = set(ours) - {"rows", "options"}
        return names == set(theirs) - {"rows", "options"} and all(ours[n].tobytes() == theirs[n].tobytes() for n in names)


def rows_are_complete(path: pathlib.Path, num_iterations: int) -> bool:
    """Whether a checkpoint has all expected rows and their seconds are ascending."""
    rows = {row.iteration: row for row in checkpoint.read_curve(path).rows}
    seconds = [row.seconds for row in rows.values()]
    return set(report_iterations(0, num_iterations)) <= rows.keys() and seconds == sorted(seconds)


def main() -> None:
    """Reads the command line, runs and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="number of runs (default: %(default)s)")
    parser.add_argument("--signal", choices=["KILL", "TERM", "HUP", "INT"], default="KILL")
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument("--iterations", type=int, default=200_000)
    parser.add_argument("--checkpoint_every", type=float, default=0.2)
    parser.add_argument(
        "--after", type=float, nargs=2, default=(1.0, 3.0), help="range of random times, in seconds, until a stop"
    )
    parser.add_argument("--most_stops", type=int, default=20, help="largest number of stops per run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    draws, seen = random.Random(args.seed), collections.Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(command(folder / "whole.npz", args), check=True, stdout=subprocess.DEVNULL)
        for run in range(args.runs):
            path = folder / f"run-{run}.npz"
            found = run_until_done(path, args, draws)
            oldest = max(seen["largest age of a checkpoint, ms"], found["largest age of a checkpoint, ms"])
            seen.update(found)
            seen["largest age of a checkpoint, ms"] = oldest
            seen["runs"] += 1
            seen["runs with different results"] += not same(folder / "whole.npz", path)
            seen["runs with missing rows"] += not rows_are_complete(path, args.iterations)
        seen["temporary files at the end"] = len(os.listdir(folder)) - args.runs - 1
    seen["unreadable checkpoints"] += 0
    for what, count in seen.items():
        print(f"{what}: {count}")
    np.testing.assert_equal(seen["runs with different results"] + seen["unreadable checkpoints"], 0)


if __name__ == "__main__":
    main()
