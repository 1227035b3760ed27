"""Error and time of the estimates of game sizes.

The games are those of docs/games.md, whose histories were counted by a walk. For each game the table shows the relative errors
of estimates with several seeds, of which the package uses the first, and the processor time of one estimate.
"""

import argparse
import importlib
import pathlib
import re
import time

import pyspiel
from large_games import load
from timing import print_table

from spiel_cfrplus.game.size_estimate import estimate_size

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "games.md"
ROW = re.compile(r"^\| `(.+)` \| solved \| \S+ \| (\d+) \|", re.MULTILINE)
SEEDS = range(5)


def main() -> None:
    """Reads the command line, estimates and prints."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    importlib.import_module("open_spiel.python.games")
    rows, worst, slowest = [], 0.0, 0.0
    for name, histories in ROW.findall(PAGE.read_text()):
        try:
            game = load(name)
        except pyspiel.SpielError:
            continue  # the game requires a file
        start = time.process_time()
        errors = [estimate_size(game, seed).num_histories / int(histories) - 1 for seed in SEEDS]
        seconds = (time.process_time() - start) / len(SEEDS)
        rows.append([name[:60], histories, *(f"{error:+.1%}" for error in errors), f"{seconds:.3f}"])
        worst, slowest = max(worst, *map(abs, errors)), max(slowest, seconds)
    print_table(["game", "histories", *(f"seed {seed}" for seed in SEEDS), "seconds"], rows)
    print(f"{len(rows)} games, largest error {worst:.1%}, at most {slowest:.2f} s")


if __name__ == "__main__":
    main()
