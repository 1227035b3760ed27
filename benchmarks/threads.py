"""Time of one CFR+ iteration with one and with several threads.

Solvers of one game first do the same iterations with one thread, then take turns: short blocks of further iterations, of which
the shortest is printed, since whatever else the machine does only makes blocks longer. "alone" is how long the work of
the several threads takes on one of them; what that is more than with one thread is the price of the division. Then comes the
part of the work, in steps, that no other thread can share: of the trunks, and of the largest part.

With --parts the game is divided into more parts than that, and one thread goes through them: whether it is faster to stay in
one part of the memory for longer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import pyspiel
from timing import print_table, seconds_of

import spiel_cfrplus
from spiel_cfrplus.division import Division
from spiel_cfrplus.self_play import CompiledSelfPlay

GAMES = {
    "liars_dice": "liars_dice",
    "liars_dice, 7 sides": "liars_dice(dice_sides=7)",
    "leduc, 13 ranks": (
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=2 2,"
        "numSuits=2,numRanks=13,numHoleCards=1,numBoardCards=0 1)"
    ),
    "battleship 2x3": (
        "battleship(board_width=2,board_height=3,ship_sizes=[1;2],ship_values=[1;1],num_shots=2,allow_repeated_shots=False)"
    ),
    "liars_dice, 8 sides": "liars_dice(dice_sides=8)",
}


def divided(session: CompiledSelfPlay, threads: int) -> CompiledSelfPlay:
    """The same session with so many threads."""
    how = (session.local_rule, session.averaging, session.alternating, session.optimistic, session.exact_ties)
    other = CompiledSelfPlay(session.game, *how, session.reduction, threads)
    other.restore(session.remember())
    return other


def on(num_threads: int, session: CompiledSelfPlay) -> Callable[[int], None]:
    """Iterations of a session, but with so many of Numba's threads, whatever it has itself."""

    def run(num_iterations: int) -> None:
        session.threads = num_threads
        session.run(num_iterations)

    return run


def shortest(contenders: dict[str, Callable[[int], None]], blocks: int, block_seconds: float) -> dict[str, float]:
    """Seconds per iteration in the shortest block of each."""
    repetitions = {}
    for name, run in contenders.items():
        run(2)
        repetitions[name] = max(1, round(block_seconds / seconds_of(run, 1)))
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(blocks):
        for name, run in contenders.items():
            best[name] = min(best[name], seconds_of(run, repetitions[name]) / repetitions[name])
    return best


def unshared(division: Division) -> float:
    """The part of all steps on the longest way through trunks and parts."""
    return float((division.work[:, 0] + division.work[:, 1:].max(axis=1)).sum() / division.work.sum())


def measure(name: str, reduce: bool, args: argparse.Namespace) -> dict[str, Any]:
    """Everything about one game."""
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game(GAMES[name]), reduce=reduce)
    solver.run(args.warm_up)
    one = solver.self_play
    several = divided(one, args.threads)
    contenders = {"one": one.run, "alone": on(1, several), "several": on(args.threads, several)}
    contenders |= {f"{parts} parts": on(1, divided(one, parts)) for parts in args.parts}
    seconds = shortest(contenders, args.blocks, args.block_seconds)
    return {
        "game": name,
        "reduced": reduce,
        "seconds": seconds,
        "speed-up": seconds["one"] / seconds["several"],
        "trunks": float(several.division.work[:, 0].sum() / several.division.work.sum()),
        "unshared": unshared(several.division),
    }


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", metavar="game", help=f"some of: {'; '.join(GAMES)} (default: all but the last)")
    parser.add_argument("--threads", type=int, default=2, help="how many are several (default: %(default)s)")
    parser.add_argument("--parts", type=int, nargs="*", default=[], help="also time one thread on so many parts")
    parser.add_argument("--reduced", action="store_true", help="without symmetries and forced moves")
    parser.add_argument("--warm-up", type=int, default=100, help="iterations before the timing (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=300, help="timed blocks for each contender (default: %(default)s)")
    parser.add_argument("--block-seconds", type=float, default=0.001, help="how long a block is (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    names = args.games or list(GAMES)[:-1]
    if unknown := [name for name in names if name not in GAMES]:
        parser.error(f"unknown game {unknown[0]!r}; choose from {', '.join(map(repr, GAMES))}")
    results = [measure(name, args.reduced, args) for name in names]
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print(f"microseconds per CFR+ iteration; several means {args.threads} threads")
    rows = []
    for result in results:
        micro = [f"{1e6 * seconds:.0f}" for seconds in result["seconds"].values()]
        shares = [f"{result['speed-up']:.2f}", f"{100 * result['trunks']:.1f} %", f"{100 * result['unshared']:.1f} %"]
        rows.append([result["game"], *micro, *shares])
    print_table(["game", *results[0]["seconds"], "speed-up", "trunks", "unshared"], rows)


if __name__ == "__main__":
    main()
