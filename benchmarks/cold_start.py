"""Wall time of `python scripts/run.py --game=kuhn_poker` in a fresh process, without and with numba's cache of kernels."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from timing import print_table, seconds_of

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "scripts/run.py", "--game=kuhn_poker"]
REQUIRED_SECONDS = {"empty cache": 15, "warm cache": 4}


def run(cache: str) -> None:
    """Runs the command with the folder `cache` as numba's cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run(COMMAND, check=True, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="timed starts of each kind (default: %(default)s)")
    args = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in REQUIRED_SECONDS}
    for _ in range(args.repetitions):
        with tempfile.TemporaryDirectory() as cache:
            for name in times:
                times[name].append(seconds_of(run, cache))
    rows = [[name, f"{statistics.median(times[name]):.2f}", required] for name, required in REQUIRED_SECONDS.items()]
    print_table([" ".join(["python", *COMMAND[1:]]), "seconds", "required less than"], rows)


if __name__ == "__main__":
    main()
