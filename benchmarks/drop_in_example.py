"""Wall time of OpenSpiel's cfr_example.py as it is and with its import lines changed to this package, whole processes.

The two processes run in turns, on one core; the median of each and the median of their ratios are printed. Both must print the
same lines. The kernels are compiled, and stored in the cache, by a first process, which is not counted. Targets: 10 times as
fast on leduc_poker, and not slower on kuhn_poker.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from open_spiel.python import examples
from timing import print_table, use_one_core

THEIRS = "from open_spiel.python.algorithms import "
OURS = "from spiel_cfrplus.openspiel import "
REQUIRED = {"kuhn_poker": 1, "leduc_poker": 10}


def timed(script: pathlib.Path, flags: list[str]) -> tuple[float, str]:
    """The seconds of a process, and what it prints."""
    start = time.perf_counter()
    result = subprocess.run([sys.executable, str(script), *flags], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, result.stdout


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=list(REQUIRED), help="games (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=100, help="as in cfr_example.py (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="processes of each kind (default: %(default)s)")
    args = parser.parse_args()
    use_one_core()
    source = (pathlib.Path(examples.__path__[0]) / "cfr_example.py").read_text()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = pathlib.Path(folder, "theirs.py"), pathlib.Path(folder, "ours.py")
        theirs.write_text(source)
        ours.write_text(source.replace(THEIRS, OURS))
        for game in args.games:
            flags = [f"--game={game}", f"--iterations={args.iterations}"]
            timed(ours, flags)
            pairs = []
            for _ in range(args.runs):
                (their_seconds, expected), (our_seconds, printed) = timed(theirs, flags), timed(ours, flags)
                if printed != expected:
                    sys.exit(f"{game}: different output:{os.linesep}{expected}{os.linesep}{printed}")
                pairs.append((their_seconds, our_seconds))
            medians = [f"{statistics.median(seconds):.2f}" for seconds in zip(*pairs, strict=True)]
            ratio = statistics.median(before / after for before, after in pairs)
            rows.append([game, *medians, f"{ratio:.2f}", REQUIRED.get(game, "")])
    print_table(["cfr_example.py", "OpenSpiel, s", "imports changed, s", "ratio", "required"], rows)


if __name__ == "__main__":
    main()
