"""Start-up times of fresh processes in seconds; medians.

* Imports: the time that `import spiel_cfrplus` adds to `import pyspiel`; the time that it adds together with the first use of a
  name in it, which imports the other modules; and the time that Numba alone adds.
* `python scripts/run.py --game=kuhn_poker`, until it prints its first row and until it ends: with an empty kernel cache, so
  that kernels are compiled first, and again with the cache that the first run has filled.

Python's bytecode cache is used, as for an installed package; a run before the measurements fills it.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from timing import print_table, seconds_of

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
COMMAND = ("scripts/run.py", "--game=kuhn_poker")
REQUIRED_SECONDS = {
    "import spiel_cfrplus": 0.5,
    "import spiel_cfrplus, first use": 0.5,
    "import numba": "",
    "empty cache, first row": 15,
    "empty cache, end": 15,
    "warm cache, first row": 2,
    "warm cache, end": 4,
}


def lines_of(*arguments: str, **environment: str) -> Iterator[str]:
    """Yields the lines that a fresh Python process prints."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)


def seconds_of_script(script: str) -> float:
    """Seconds that a process takes to run `script`."""
    return seconds_of(list, lines_of("-c", script))


def seconds_of_command(cache: str) -> list[float]:
    """Seconds to the first row and to the end, with `cache` as the directory of compiled kernels."""
    started = time.perf_counter()
    lines = lines_of(*COMMAND, SPIEL_CFRPLUS_CACHE_DIR=cache)
    first_row = next(time.perf_counter() - started for line in lines if line.split()[:1] == ["1"])
    rest = seconds_of(list, lines)
    return [first_row, first_row + rest]


def measure() -> list[float]:
    """Measures the times of `REQUIRED_SECONDS` once."""
    alone = seconds_of_script("import pyspiel")
    imports = ("import spiel_cfrplus", "import spiel_cfrplus; spiel_cfrplus.CFRPlusSolver", "import numba")
    above = [seconds_of_script(f"import pyspiel; {more}") - alone for more in imports]
    with tempfile.TemporaryDirectory() as cache:
        return [*above, *seconds_of_command(cache), *seconds_of_command(cache)]


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="timed starts of each kind (default: %(default)s)")
    args = parser.parse_args()
    seconds_of_script("import spiel_cfrplus.cli.main")
    times = zip(*[measure() for _ in range(args.repetitions)], strict=True)
    rows = [
        [name, f"{statistics.median(seconds):.2f}", required]
        for (name, required), seconds in zip(REQUIRED_SECONDS.items(), times, strict=True)
    ]
    print_table([" ".join(["python", *COMMAND]), "seconds", "required less than"], rows)


if __name__ == "__main__":
    main()
