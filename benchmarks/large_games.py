"""Time and memory to walk and compile large games, to read them from disk, and to solve them with CFR+.

    python benchmarks/large_games.py "liars_dice(dice_sides=8)"
    python benchmarks/large_games.py --nash_conv=1e-3 --seconds=600 "liars_dice(dice_sides=8)" tic_tac_toe

Each game is measured in a fresh process. Bytes are the peak resident memory per history, above the peak after the same work on
kuhn_poker: after the walk; after compiling; after creating the arrays that solvers iterate on; and after solving. Seconds are
wall time, together with processor time, because the machine may be shared (processor time excludes the worker processes of a
walk).
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
    """Wall and processor time between calls of `lap`."""

    def __init__(self) -> None:
        """Starts the clock."""
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def lap(self) -> dict[str, float]:
        """The seconds since the previous call, or since the start."""
        before = self._wall, self._processor
        self._wall, self._processor = time.perf_counter(), time.process_time()
        return {"seconds": self._wall - before[0], "processor_seconds": self._processor - before[1]}


def load(name: str) -> pyspiel.Game:
    """Loads a game; a simultaneous game is converted to its turn-based form."""
    game = pyspiel.load_game(name)
    is_simultaneous = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
    return pyspiel.convert_to_turn_based(game) if is_simultaneous else game


def measure_compiling(name: str, processes: int, reduce: str, nash_conv: float, seconds: float) -> dict[str, object]:
    """Runs in a fresh process: measures walking, compiling and solving a game."""
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
    """Iterates until NashConv is at most `nash_conv` or the time is over; evaluations take a small part of the time."""
    stop, step = time.perf_counter() + seconds, ITERATIONS_AT_ONCE
    while time.perf_counter() < stop and solver.nash_conv() > nash_conv:
        solver.run(step)
        step = max(step, solver.iteration // 10)


def measure_reading(name: str, directory: str) -> dict[str, object]:
    """Runs in a fresh process: measures reading the game from the cache, or walking and writing it if it is not cached."""
    spiel_cfrplus.CFRPlusSolver(load("kuhn_poker")).run(1)
    game, clock = load(name), Clock()
    cached_tree(game, directory)
    return {"read": clock.lap()}


def in_fresh_process(*arguments: str) -> dict[str, object]:
    """Runs a measurement in a fresh process and returns its result."""
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
    """A row of the table: seconds are processor time, memory is the peak after solving."""
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
    """Prints the results as a Markdown table."""
    for cells in [HEADER, ["---"] * len(HEADER), *map(row, results)]:
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Reads the command line, measures and prints JSON, one line per game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", type=game_string, default=GAMES, help="arguments of pyspiel.load_game")
    parser.add_argument("--nash_conv", type=float, default=1e-3, help="solve until this NashConv (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit for solving (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="processes for the walk (default: %(default)s)")
    parser.add_argument("--reduce", choices=["auto", "on", "off"], default="auto", help="as for scripts/run.py")
    parser.add_argument("--cache", action="store_true", help="also cache the walk on disk and read it")
    parser.add_argument("--step", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--table", metavar="FILE", help="print the JSON lines in this file as a table, without measuring")
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
    in_fresh_process("--seconds=0", "--step", "kuhn_poker")  # fills the kernel cache
    for name in args.games:
        flags = [f"--{flag}={getattr(args, flag)}" for flag in ("processes", "reduce", "nash_conv", "seconds")]
        result = in_fresh_process(*flags, "--step", name)
        if args.cache and why_string_is_not_enough(load(name)) is None:
            with tempfile.TemporaryDirectory() as directory:
                result["walk_and_write"] = in_fresh_process("--step", name, directory)["read"]
                result["megabytes_on_disk"] = sum(entry.stat().st_size for entry in os.scandir(directory)) / 1e6
                result |= in_fresh_process("--step", name, directory)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
