"""Time of one CFR+ iteration with one and with several threads, on an idle or on a busy machine.

The solvers of a game first run the same iterations with one thread. Then they run in turns: blocks of iterations, of which the
median is printed, and the median of the ratios within a turn. "alone" is the time of one thread on the partitioned game; the
difference from "one" is the overhead of the partition. The last columns are the fraction of the work, in steps, of the top
trees, and of the slowest thread, that is the top trees and the largest parts.

The time of a barrier shows how fast one core receives data that another has written, which two threads need frequently. On a
virtual machine it may change from minute to minute, and the speed-up changes with it.

With --busy 2, two other processes use the cores. With --parts, the game is divided into more parts, which one thread processes
one by one, to measure whether better locality saves time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pyspiel
from timing import print_table, seconds_of

import spiel_cfrplus
from spiel_cfrplus.kernels.barrier import MAX_SPINS, arrive, release_team, wait
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.partition import Partition
from spiel_cfrplus.solving.threads import Barrier, run_together

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
    how = (session.rule, session.averaging, session.alternating, session.exact_ties)
    other = CompiledSelfPlay(session.game, *how, session.reduction, threads)
    other.load_state_dict(session.state_dict())
    return other


def on(num_threads: int, session: CompiledSelfPlay) -> Callable[[int], None]:
    """A function that runs iterations of a session with `num_threads` threads."""

    def run(num_iterations: int) -> None:
        session.threads = num_threads
        session.run(num_iterations)

    return run


def take_turns(contenders: dict[str, Callable[[int], None]], blocks: int, block_seconds: float) -> dict[str, list[float]]:
    """Seconds per iteration of each contender in each turn."""
    repetitions = {}
    for name, run in contenders.items():
        run(2)
        repetitions[name] = max(1, round(10 * block_seconds / seconds_of(run, 10)))
    turns = [
        {name: seconds_of(run, repetitions[name]) / repetitions[name] for name, run in contenders.items()}
        for _ in range(blocks)
    ]
    return {name: [turn[name] for turn in turns] for name in contenders}


@numba.njit(nogil=True)
def pass_barriers(barrier: np.ndarray, member: int, num_members: int, rounds: int) -> None:
    """Passes a barrier `rounds` times."""
    for round_number in range(rounds):
        if arrive(barrier, num_members):
            release_team(barrier, num_members)
        else:
            wait(barrier, member, round_number, MAX_SPINS)


def seconds_per_barrier(num_threads: int, rounds: int = 100_000) -> float:
    """The time of a barrier for threads without other work."""
    pass_barriers(Barrier(1).values, 0, 1, 0)  # compiles the function

    def work(member: int, barrier: np.ndarray) -> None:
        pass_barriers(barrier, member, num_threads, rounds)

    return seconds_of(run_together, num_threads, work) / rounds


@contextlib.contextmanager
def busy_cores(num_processes: int) -> Iterator[None]:
    """Runs `num_processes` processes that compute until the end of the `with`."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(num_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def largest_part(partition: Partition) -> float:
    """The fraction of the work of the slowest thread: the top trees and the largest parts."""
    return float((partition.work[:, 0] + partition.work[:, 1:].max(axis=1)).sum() / partition.work.sum())


def measure(name: str, reduce: bool, args: argparse.Namespace) -> dict[str, Any]:
    """The measurements for one game."""
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game(GAMES[name]), reduce=reduce)
    solver.run(args.warm_up)
    one = solver.self_play
    several = divided(one, args.threads)
    contenders = {"one": one.run, "alone": on(1, several), "several": on(args.threads, several)}
    contenders |= {f"{parts} parts": on(1, divided(one, parts)) for parts in args.parts}
    with busy_cores(args.busy):
        turns = take_turns(contenders, args.blocks, args.block_seconds)
    return {
        "game": name,
        "reduced": reduce,
        "busy": args.busy,
        "seconds": {name: statistics.median(seconds) for name, seconds in turns.items()},
        "speed-up": statistics.median(one / several for one, several in zip(turns["one"], turns["several"], strict=True)),
        "top trees": float(several.partition.work[:, 0].sum() / several.partition.work.sum()),
        "largest part": largest_part(several.partition),
    }


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", metavar="game", help=f"some of: {'; '.join(GAMES)} (default: all but the last)")
    parser.add_argument("--threads", type=int, default=2, help="number of threads of 'several' (default: %(default)s)")
    parser.add_argument("--parts", type=int, nargs="*", default=[], help="also time one thread on this number of parts")
    parser.add_argument("--reduced", action="store_true", help="use the reduced game")
    parser.add_argument("--warm-up", type=int, default=100, help="iterations before the timing (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=15, help="timed blocks for each contender (default: %(default)s)")
    parser.add_argument("--block-seconds", type=float, default=0.1, help="length of a block (default: %(default)s)")
    parser.add_argument("--busy", type=int, default=0, help="number of other processes that compute (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    names = args.games or list(GAMES)[:-1]
    if unknown := [name for name in names if name not in GAMES]:
        parser.error(f"unknown game {unknown[0]!r}; choose from {', '.join(map(repr, GAMES))}")
    before = seconds_per_barrier(args.threads)
    results = [measure(name, args.reduced, args) for name in names]
    after = seconds_per_barrier(args.threads)
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print(f"microseconds per CFR+ iteration; several means {args.threads} threads; {args.busy} busy processes")
    print(f"a barrier takes {1e9 * before:.0f} ns before and {1e9 * after:.0f} ns after the timings")
    rows = []
    for result in results:
        micro = [f"{1e6 * seconds:.0f}" for seconds in result["seconds"].values()]
        fractions = [f"{100 * result[name]:.1f} %" for name in ("top trees", "largest part")]
        rows.append([result["game"], *micro, f"{result['speed-up']:.2f}", *fractions])
    print_table(["game", *results[0]["seconds"], "speed-up", "top trees", "largest part"], rows)


if __name__ == "__main__":
    main()
