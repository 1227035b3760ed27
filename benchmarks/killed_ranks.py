"""Runs in several processes of which one is killed at a random time, resumed and compared with an undisturbed run.

    python benchmarks/killed_ranks.py --runs=25

Each run is the command with `--distributed` and `--checkpoint`. After the first checkpoint and a random time, a random process
is killed by SIGKILL. The same command resumes the run, in every fifth run with another number of processes. The numbers of its
last row must be those of the undisturbed run, bit by bit.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUN = pathlib.Path(__file__).parent.parent / "scripts" / "run.py"
BIN = pathlib.Path(sys.executable).parent


def command(ranks: int, args: argparse.Namespace, *flags: str) -> list[str]:
    """The command of a run in this number of processes."""
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(BIN), os.environ.get("PATH", "")])) or "mpiexec"
    own = ["--distributed", "--json", f"--game={args.game}", f"--iterations={args.iterations}", *flags]
    return [mpiexec, "-n", str(ranks), sys.executable, str(RUN), "solve", *own]


def last_row(output: str) -> tuple[float, ...]:
    """The numbers of the last row that do not depend on time."""
    row = [json.loads(line) for line in output.splitlines() if line.startswith("{")][-1]
    return row["iteration"], row["nash_conv"], row["value"]


def killed_and_resumed(number: int, args: argparse.Namespace, draws: random.Random) -> tuple[int, bool, tuple[float, ...]]:
    """The exit code of the killed job, whether it was resumed from a checkpoint, and the last row of the resumed run."""
    with tempfile.TemporaryDirectory() as folder:
        flags = (f"--checkpoint={folder}", "--checkpoint_every=0.1")
        job = subprocess.Popen(command(2, args, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids: list[int] = []
        assert job.stderr is not None
        while len(pids) < 2 and (line := job.stderr.readline()):
            pids += map(int, re.findall(r"^process \d+, pid (\d+)", line))
        while not pathlib.Path(folder, "checkpoint.json").exists():
            if job.poll() is not None:
                raise RuntimeError(f"the job ended with exit code {job.returncode} before its first checkpoint")
            time.sleep(0.01)
        time.sleep(draws.uniform(0, args.after))
        os.kill(draws.choice(pids), signal.SIGKILL)
        job.communicate()
        ranks = draws.choice([1, 3]) if number % 5 == 0 else 2
        done = subprocess.run(command(ranks, args, *flags), capture_output=True, text=True, check=True)
        return job.returncode, "resumed from" in done.stderr, last_row(done.stdout)


def main() -> int:
    """Prints a line for each run; returns 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--after", type=float, default=1.0, help="the longest time from the first checkpoint to the signal")
    args = parser.parse_args()
    draws = random.Random(0)
    undisturbed = subprocess.run(command(2, args), capture_output=True, text=True, check=True)
    expected, same = last_row(undisturbed.stdout), 0
    for number in range(args.runs):
        code, resumed, found = killed_and_resumed(number, args, draws)
        same += found == expected and resumed and code != 0
        print(f"run {number}: exit code {code}, {'resumed' if resumed else 'not resumed'}, {found}", flush=True)
    print(f"{same} of {args.runs} runs ended with {expected}")
    return 0 if same == args.runs else 1


if __name__ == "__main__":
    sys.exit(main())
