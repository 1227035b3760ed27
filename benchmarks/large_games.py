"""What large games take: seconds and bytes to walk and compile them, to read them from disk, and to solve them with CFR+.

    python benchmarks/large_games.py "liars_dice(dice_sides=8)"
    python benchmarks/large_games.py --nash_conv=1e-3 --seconds=600 "liars_dice(dice_sides=8)" tic_tac_toe

Each game has a fresh process. Bytes are the peak of its resident memory above what it was after the same work on kuhn_poker,
per history: after the walk; after compiling; after the arrays that solvers iterate on were made, which is all of it; and after
solving. Seconds are wall time; those of the processor stand beside them, as others may be using it too (without those of the
processes that share a walk).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any

import pyspiel
from compile_cost import peak_megabytes
from timing import game_string

import spiel_cfrplus
from spiel_cfrplus.game import size_estimate
from spiel_cfrplus.game.checks import why_string_is_not_enough
from spiel_cfrplus.game.walk_cache import cached_tree

GAMES = ["liars_dice", "liars_dice(dice_sides=7)", "liars_dice(dice_sides=8)"]
ITERATIONS_AT_ONCE = 10


class Clock:
    """Seconds since the last question, wall and processor time."""

    def __init__(self) -> None:
        """Starts."""
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def lap(self) -> dict[str, float]:
        """What has passed."""
        before = self._wall, self._processor
        self._wall, self._processor = time.perf_counter(), time.process_time()
        return {"seconds": self._wall - before[0], "processor_seconds": self._processor - before[1]}


def load(name: str) -> pyspiel.Game:
    """The game, turn-based."""
    game = pyspiel.load_game(name)
    is_simultaneous = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
    return pyspiel.convert_to_turn_based(game) if is_simultaneous else game


def measure_compiling(name: str, processes: int, reduce: str, nash_conv: float, seconds: float) -> dict[str, object]:
    """In a fresh process: what it takes to walk, compile and solve the game."""
    spiel_cfrplus.CFRPlusSolver(load("kuhn_poker")).run(1)
    warm = peak_megabytes()
    game = load(name)
    clock = Clock()
    estimate = size_estimate.estimate_size(game)
    result: dict[str, object] = {"game": str(game), "estimated_histories": estimate.num_histories, "estimate": clock.lap()}

    def note(step: str) -> None:
        peak = peak_megabytes() - warm
        result[step] = clock.lap() | {"peak_megabytes": peak, "bytes_per_history": peak * 1e6 / tree.num_histories}
        print(f"{name}: {step} {result[step]}", file=sys.stderr, flush=True)

    tree = spiel_cfrplus.GameTree.from_game(game, processes=processes)
    result |= {"histories": tree.num_histories, "infostates": tree.num_infostates}
    note("walk")
    compiled = spiel_cfrplus.SequenceFormGame.from_tree(tree)
    result |= {"sequences": compiled.num_sequences, "payoffs": len(compiled.payoffs)}
    note("compile")
    solver = spiel_cfrplus.CFRPlusSolver(compiled, reduce={"auto": "auto", "on": True, "off": False}[reduce])
    solver.run(1)
    note("arrays")
    solve(solver, nash_conv, seconds)
    note("solve")
    return result | {"iterations": solver.iteration, "nash_conv": solver.nash_conv()}


def solve(solver: spiel_cfrplus.Solver, nash_conv: float, seconds: float) -> None:
    """Iterates until NashConv is at most this, or the time is over; checks seldom enough to cost little."""
    stop, step = time.perf_counter() + seconds, ITERATIONS_AT_ONCE
    while time.perf_counter() < stop and solver.nash_conv() > nash_conv:
        solver.run(step)
        step = max(step, solver.iteration // 10)


def measure_reading(name: str, directory: str) -> dict[str, object]:
    """In a fresh process: what it takes to have the game from the disk, written by an earlier one."""
    spiel_cfrplus.CFRPlusSolver(load("kuhn_poker")).run(1)
    game, clock = load(name), Clock()
    cached_tree(game, directory)
    return {"read": clock.lap()}


def in_fresh_process(*arguments: str) -> dict[str, object]:
    """What one of the above returns there."""
    command = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


HEADER = [
    *(
        "game",
        "histories",
        "estimate",
        "infostates",
        "payoffs",
        "walk, s",
        "us/history",
        "compile, s",
        "all, bytes/history",
        "all, GB",
    ),
    *("iterations", "NashConv", "solve, s"),
]


def row(result: dict[str, Any]) -> list[str]:
    """A line of the table: seconds are the processor's, memory is that after solving."""
    seconds = {step: result[step]["processor_seconds"] for step in ("walk", "compile", "arrays", "solve")}
    histories = result["histories"]
    return [
        f"`{result['game']}`",
        f"{histories:,}",
        f"{result['estimated_histories'] / histories - 1:+.1%}",
        f"{result['infostates']:,}",
        f"{result['payoffs']:,}",
        f"{seconds['walk']:.1f}",
        f"{seconds['walk'] / histories * 1e6:.1f}",
        f"{seconds['compile'] + seconds['arrays']:.1f}",
        f"{result['solve']['bytes_per_history']:.0f}",
        f"{result['solve']['peak_megabytes'] / 1000:.1f}",
        f"{result['iterations']}",
        f"{result['nash_conv']:.1e}",
        f"{seconds['solve']:.1f}",
    ]


def print_markdown(results: Iterable[dict[str, Any]]) -> None:
    """The table of the page."""
    for cells in [HEADER, ["---"] * len(HEADER), *map(row, results)]:
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Reads the command line, measures and prints JSON, one line for each game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", type=game_string, default=GAMES, help="as pyspiel.load_game takes them")
    parser.add_argument("--nash_conv", type=float, default=1e-3, help="solve to this (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="or for so long (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="to walk in (default: %(default)s)")
    parser.add_argument("--reduce", choices=["auto", "on", "off"], default="auto", help="as for scripts/run.py")
    parser.add_argument("--cache", action="store_true", help="also keep the walk on disk and read it back")
    parser.add_argument("--step", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--table", metavar="FILE", help="measure nothing, make a table of the JSON lines in this file")
    args = parser.parse_args()
    if args.table:
        print_markdown(map(json.loads, pathlib.Path(args.table).read_text().splitlines()))
        return
    if args.step:
        name, directory = args.step[0], args.step[1:]
        result = (
            measure_reading(name, *directory)
            if directory
            else measure_compiling(name, args.processes, args.reduce, args.nash_conv, args.seconds)
        )
        print(json.dumps(result))
        return
    in_fresh_process("--seconds=0", "--step", "kuhn_poker")  # fills the cache of kernels
    for name in args.games:
        flags = [f"--{flag}={getattr(args, flag)}" for flag in ("processes", "reduce", "nash_conv", "seconds")]
        result = in_fresh_process(*flags, "--step", name)
        if args.cache and why_string_is_not_enough(load(name)) is None:
            with tempfile.TemporaryDirectory() as directory:
                result["walk_and_keep"] = in_fresh_process("--step", name, directory)["read"]
                result["megabytes_on_disk"] = sum(entry.stat().st_size for entry in os.scandir(directory)) / 1e6
                result |= in_fresh_process("--step", name, directory)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
