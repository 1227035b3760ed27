"""Time and memory to compile liars_dice, compared with OpenSpiel's TabularPolicy of the same game.

Time: from the game to a solver that has done its first iteration, which includes everything that is created on first use;
kernels were compiled before. Compiling and TabularPolicy run in turns on one core; the median is printed.

Memory: the peak of the resident memory of a fresh process that does it once, above the peak of the process

* after its imports; the difference includes loading compiled kernels from disk, where an earlier process has stored them;
* after its imports and the same work on kuhn_poker.
"""

import argparse
import gc
import resource
import statistics
import subprocess
import sys

import pyspiel
from open_spiel.python import policy as openspiel_policy
from timing import print_table, seconds_of, use_one_core

import spiel_cfrplus

GAME = "liars_dice"
REQUIRED_MEGABYTES = 150


def compile_ours(game: pyspiel.Game) -> spiel_cfrplus.Solver:
    """Compiles the game and runs one iteration."""
    solver = spiel_cfrplus.CFRPlusSolver(game)
    solver.run(1)
    return solver


CONTENDERS = {"ours": compile_ours, "TabularPolicy": openspiel_policy.TabularPolicy}


def peak_megabytes() -> float:
    """The peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def print_memory(name: str) -> None:
    """Runs in a fresh process: prints the peak above the imports and above the warm-up."""
    imports = peak_megabytes()
    CONTENDERS[name](pyspiel.load_game("kuhn_poker"))
    warm = peak_megabytes()
    result = CONTENDERS[name](pyspiel.load_game(GAME))
    peak = peak_megabytes()
    del result  # keeps the result in memory until the peak is read
    print(peak - imports, peak - warm)


def memory_in_fresh_process(name: str) -> list[float]:
    """The two numbers that `print_memory` prints in a fresh process."""
    command = [sys.executable, __file__, "--memory-of", name]
    return [float(number) for number in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def median_seconds(repetitions: int) -> dict[str, float]:
    """Median seconds of each contender, measured in turns."""
    game = pyspiel.load_game(GAME)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(repetitions):
        for name, work in CONTENDERS.items():
            gc.collect()
            times[name].append(seconds_of(work, game))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="timed repetitions of each (default: %(default)s)")
    parser.add_argument("--memory-of", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        print_memory(args.memory_of)
        return
    use_one_core()
    # Memory is measured first, while this process is small, because a new process inherits the peak of its parent.
    memory_in_fresh_process("ours")  # fills the kernel cache
    memory = {name: memory_in_fresh_process(name) for name in CONTENDERS}
    compile_ours(pyspiel.load_game("kuhn_poker"))
    seconds = median_seconds(args.repetitions)
    rows = [[name, f"{seconds[name]:.2f}", *(f"{megabytes:.0f}" for megabytes in memory[name])] for name in CONTENDERS]
    rows.append(["required of ours", f"{seconds['TabularPolicy']:.2f}", REQUIRED_MEGABYTES, ""])
    print_table([GAME, "seconds", "peak MB above imports", "above warm-up"], rows)


if __name__ == "__main__":
    main()
