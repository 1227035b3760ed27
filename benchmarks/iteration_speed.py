"""Time of one CFR+ iteration with this package's native and drop-in solvers and with OpenSpiel's solvers.

Every solver first runs the same number of iterations, so that kernels are compiled and the support of the strategies is stable.
Then the solvers run in turns on one core, a block of iterations each; the median over the blocks is printed. "native" is the
solver with its defaults, which iterates on the reduced game if that saves time; "whole" is the same with `reduce=False`.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import pyspiel
from open_spiel.python.algorithms import cfr
from timing import print_table, seconds_per_repetition, use_one_core

import spiel_cfrplus
from spiel_cfrplus.openspiel import cfr as drop_in_cfr

# The game; the required speed-ups of the native and the drop-in solver over pyspiel.CFRPlusSolver, if any; the largest number
# of iterations before the timing; and whether an iteration of OpenSpiel's Python solver takes less than a second.
GAMES = [
    ("kuhn_poker", 100, None, 1000, True),
    ("leduc_poker", 1500, 20, 1000, True),
    ("liars_dice", 150, 10, 1000, False),
    ("turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))", 300, None, 1000, True),
    ("tic_tac_toe", 100, None, 30, False),
]
REQUIRED_MEAN = 500
OURS = ("native", "whole", "drop-in", "stepped")


def iterate(solver: Any) -> Callable[[int], None]:
    """A function that runs n iterations of an OpenSpiel solver."""

    def run(num_iterations: int) -> None:
        for _ in range(num_iterations):
            solver.evaluate_and_update_policy()

    return run


def measure(name: str, warm_up: int, blocks: int, with_python: bool) -> dict[str, float]:
    """Seconds per iteration of each solver on the game."""
    game = pyspiel.load_game(name)
    solvers = {
        "native": spiel_cfrplus.CFRPlusSolver(game).run,
        "whole": spiel_cfrplus.CFRPlusSolver(game, reduce=False).run,
        "drop-in": drop_in_cfr.CFRPlusSolver(game).run,
        "stepped": iterate(drop_in_cfr.CFRPlusSolver(game)),
        "pyspiel": iterate(pyspiel.CFRPlusSolver(game)),
    }
    if with_python:
        solvers["python"] = iterate(cfr.CFRPlusSolver(game))
    for run in solvers.values():
        run(warm_up)
    return seconds_per_repetition(solvers, blocks=blocks)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="store_true", help="also time OpenSpiel's Python solver, except on liars_dice")
    parser.add_argument("--warm-up", type=int, default=300, help="iterations before the timing (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks for each solver (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    use_one_core()
    results = []
    for name, native, drop_in, most_before, python_is_quick in GAMES:
        seconds = measure(name, min(args.warm_up, most_before), args.blocks, args.python and python_is_quick)
        ratios = {ours: seconds["pyspiel"] / seconds[ours] for ours in OURS}
        results.append(
            {
                "game": name,
                "seconds": seconds,
                "ratios": ratios,
                "required": {"native": native, "whole": None, "drop-in": drop_in, "stepped": drop_in},
            }
        )
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print("microseconds per CFR+ iteration; times faster than pyspiel (required)")
    columns = [*OURS, "pyspiel", "python"]
    rows = []
    for result in results:
        seconds, ratios, required = result["seconds"], result["ratios"], result["required"]
        micro = [f"{1e6 * seconds[solver]:.2f}" if solver in seconds else "-" for solver in columns]
        rows.append([result["game"], *micro, *(f"{ratios[ours]:.0f} ({required[ours] or '-'})" for ours in ratios)])
    print_table(["game", *columns, *(f"{ours}, times" for ours in OURS)], rows)
    means = {ours: statistics.geometric_mean(result["ratios"][ours] for result in results) for ours in OURS}
    print(f"geometric means: {', '.join(f'{ours} {mean:.0f}' for ours, mean in means.items())} (native: {REQUIRED_MEAN})")


if __name__ == "__main__":
    main()
