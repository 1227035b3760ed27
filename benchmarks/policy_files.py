"""Time to save and load the policy of a game, and the size of the file, for each format.

The game is compiled beforehand and passed to `load_policy`; the walk that loading by the file's string takes is not timed. The
first export with action names visits one state of each infostate; names are kept with the compiled game, so that the first
save as .json, or as .csv if that is first, includes it. A file is read back to the same doubles, which is checked. Each time is
the smallest of some repetitions, but that of the first save; processor seconds are given because other programs may be running.
"""

import argparse
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from timing import game_string, print_table, use_one_core

import spiel_cfrplus

REQUIRED_SECONDS = 2
REQUIRED_MEGABYTES = 30


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of a call, its seconds of wall time and of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", type=game_string, default="tic_tac_toe", help="the game (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="repetitions (default: %(default)s)")
    parser.add_argument("--formats", nargs="+", default=["npz", "json", "csv"], help="formats (default: all)")
    args = parser.parse_args()
    use_one_core()
    game = spiel_cfrplus.compile_game(pyspiel.load_game(args.game))
    solver = spiel_cfrplus.CFRPlusSolver(game)
    solver.run(10)
    profile = solver.average_profile()
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for extension in args.formats:
            path = pathlib.Path(directory, f"policy.{extension}")
            _, first, first_processor = timed(lambda path=path: profile.save(path))
            saves, loads = [], []
            for _ in range(args.repetitions):
                saves.append(timed(lambda path=path: profile.save(path))[1:])
                loaded, *seconds = timed(lambda path=path: spiel_cfrplus.load_policy(path, game))
                loads.append(tuple(seconds))
                np.testing.assert_array_equal(loaded.probabilities, profile.probabilities)
            save, load = np.min(saves, axis=0), np.min(loads, axis=0)
            pairs = [(first, first_processor), save, load]
            size = path.stat().st_size / 1e6
            rows.append([extension, *(f"{wall:.2f} ({processor:.2f})" for wall, processor in pairs), f"{size:.1f}"])
    rows.append(["required of npz", REQUIRED_SECONDS, REQUIRED_SECONDS, REQUIRED_SECONDS, REQUIRED_MEGABYTES])
    print_table([args.game, "first save, s (processor)", "save, s (processor)", "load, s (processor)", "MB"], rows)


if __name__ == "__main__":
    main()
