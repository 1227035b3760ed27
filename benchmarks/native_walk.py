"""Microseconds per history of the walk in C++, with one thread and two, and of the walk in Python.

    python benchmarks/native_walk.py
    python benchmarks/native_walk.py --repeat=1 "liars_dice(dice_sides=9)"

Native walks are complete, including the conversion of the record to arrays and strings. The walk in Python ends after
`--histories`. The walks take turns; the minimum of each is printed, as wall time, because processor time of two threads says
nothing about their speed-up. The machine must be idle.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable

import pyspiel
from timing import game_string

from spiel_cfrplus.game import native_walk
from spiel_cfrplus.game.walk import walk_game
from spiel_cfrplus.game.walk_limits import WalkLimits

GAMES = [
    "liars_dice",
    "liars_dice(dice_sides=8)",
    "universal_poker(betting=limit,blind=1 1,firstPlayer=1 1,maxRaises=2 2,numBoardCards=0 1,numHoleCards=1,numPlayers=2,"
    "numRanks=13,numRounds=2,numSuits=4,raiseSize=2 4)",
    "battleship(allow_repeated_shots=False,board_height=3,board_width=3,num_shots=2,ship_sizes=[1;2],ship_values=[1;1])",
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards=7,points_order=descending))",
    "liars_dice(dice_sides=9)",
]


def seconds(work: Callable[[], object]) -> float:
    """The wall time of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def walk_first(game: pyspiel.Game, histories: int) -> None:
    """Walks the first histories in Python; the limit ends the walk with an error."""
    with contextlib.suppress(ValueError):
        walk_game(game, limits=WalkLimits(histories))


def main() -> None:
    """Reads the command line, measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", type=game_string, default=GAMES, help="arguments of pyspiel.load_game")
    parser.add_argument("--repeat", type=int, default=3, help="walks of each kind (default: %(default)s)")
    parser.add_argument("--histories", type=int, default=300_000, help="of a walk in Python (default: %(default)s)")
    args = parser.parse_args()
    print("| game | histories | native, 1 thread | native, 2 threads | speed-up | Python | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in args.games:
        game = pyspiel.load_game(name)
        if reason := native_walk.why_unavailable(game):
            raise SystemExit(f"{name}: {reason}")
        total = len(native_walk.walk_natively(game, threads=2).nodes)
        limit = min(total, args.histories)
        works = (
            lambda game=game: native_walk.walk_natively(game),
            lambda game=game: native_walk.walk_natively(game, threads=2),
            lambda game=game, limit=limit: walk_first(game, limit),
        )
        columns = zip(*([seconds(work) for work in works] for _ in range(args.repeat)), strict=True)
        one, two, python = (min(column) / walked for column, walked in zip(columns, (total, total, limit), strict=True))
        cells = (f"`{name}`", f"{total:,}", f"{one * 1e6:.2f}", f"{two * 1e6:.2f}", f"{one / two:.2f}")
        print("|", " | ".join((*cells, f"{python * 1e6:.2f}", f"{python / one:.1f}")), "|", flush=True)


if __name__ == "__main__":
    main()
