"""Time of one CFR+ iteration of a game in parts: measured on this machine, and predicted for clusters.

    python benchmarks/cluster_model.py measure --game "liars_dice(dice_sides=8)" --ranks 1 2
    python benchmarks/cluster_model.py predict --game "liars_dice(dice_sides=10)" --ranks 16 64 256

`measure` starts mpiexec with each number of ranks. The processes run the same iterations in blocks; the table contains the
median seconds of an iteration, the processor seconds of all ranks, the time of the plain solver on the whole game ("plain", in
the process with one rank, in turns with it), and the prediction of the model from the measurement with one rank.

The model, for two players with alternating updates:

    seconds of an iteration = c * (work of the largest rank + work of the top tree)
                              + 2 * (latency * ceil(log2(ranks)) + 8 bytes * boundary sequences / bandwidth + call)

where work is in steps (a payoff is 1, a sequence 10), c the seconds of a step, and `call` the time of the calls from Python for
one exchange. `measure` measures c with one rank. Latency and bandwidth are those of the messages on this machine (`measure`
prints them), or those of a network. Processes on more ranks than cores share the cores: the first term is then multiplied by
ranks / cores.

`predict` cuts the game, without the walk of its parts; sizes of parts are estimates. It is exact about the boundary.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus import CFRPlusSolver
from spiel_cfrplus.distributed import DistributedSelfPlay, MPICommunicator, compile_in_parts
from spiel_cfrplus.distributed.cut import PARTS_PER_PROCESS, choose_cut
from spiel_cfrplus.distributed.top_tree import walk_top_tree
from spiel_cfrplus.game.size_estimate import estimate_size
from spiel_cfrplus.solving.compiled_self_play import work_of_iteration
from spiel_cfrplus.solving.partition import dealt_out

# Seconds of a step, and of the calls of one exchange, on the machine of the committed table; and steps per history.
SECONDS_OF_STEP, SECONDS_OF_CALLS, STEPS_OF_HISTORY = 0.95e-9, 2e-4, 2.25
NETWORK_LATENCY, NETWORK_BANDWIDTH = 3e-5, 1.25e9  # 10 Gbit/s


def iteration_seconds(
    work: float, top: float, boundary: float, ranks: int, step: float, latency: float, bandwidth: float, call: float
) -> float:
    """The model; `work` is that of the largest rank."""
    messages = latency * math.ceil(math.log2(ranks)) + (8 * boundary / bandwidth if ranks > 1 else 0.0)
    return step * (work + top) + 2 * (messages + call)


def measure_in_this_process(name: str, parts: int, blocks: int, with_plain: bool) -> None:
    """The work of one rank; rank 0 prints its measurements as JSON."""
    communicator, game = MPICommunicator(), pyspiel.load_game(name)
    session = DistributedSelfPlay(compile_in_parts(game, communicator, num_parts=parts), "cfr+")
    plain = CFRPlusSolver(game, reduce=False) if with_plain else None
    for solver in filter(None, (session, plain)):
        solver.run(3)
    seconds: dict[str, list[float]] = {"parts": [], "plain": []}
    cpu = time.process_time()
    for _ in range(blocks):
        for key, solver in (("parts", session), ("plain", plain)):
            if solver is not None:
                communicator.wait_for_all()
                started = time.perf_counter()
                solver.run(5)
                seconds[key].append((time.perf_counter() - started) / 5)
    cpu = time.process_time() - cpu
    numbers = communicator.gather(np.array([cpu, session.game.share.work_of_iteration]), [2] * communicator.size).reshape(-1, 2)
    small, large = message_seconds(communicator, 1), message_seconds(communicator, 100_000)
    if communicator.rank == 0:
        top = work_of_iteration(session.game.top.game)
        print(
            json.dumps(
                {
                    "ranks": communicator.size,
                    "seconds": statistics.median(seconds["parts"]),
                    "plain": statistics.median(seconds["plain"]) if plain is not None else None,
                    "core_seconds": numbers[:, 0].sum() / blocks / 5 if plain is None else None,
                    "largest_work": numbers[:, 1].max(),
                    "work": numbers[:, 1].sum(),
                    "top_work": top,
                    "boundary": session.num_boundary,
                    "parts": session.game.cut.num_parts,
                    "latency": small,
                    "bandwidth": 8 * 100_000 * communicator.size / max(large - small, 1e-9),
                }
            )
        )


def message_seconds(communicator: MPICommunicator, count: int) -> float:
    """The median time of an exchange in which each process sends `count` numbers."""
    values, seconds = np.zeros(count), []
    for _ in range(30):
        communicator.wait_for_all()
        started = time.perf_counter()
        communicator.gather(values, [count] * communicator.size)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Starts mpiexec with each number of ranks and returns the measurements, with the predictions."""
    mpiexec = str(pathlib.Path(sys.executable).with_name("mpiexec"))
    rows = []
    for ranks in options.ranks:
        command = [mpiexec if os.path.exists(mpiexec) else "mpiexec", "-n", str(ranks), sys.executable, __file__, "rank"]
        command += ["--game", options.game, "--parts", str(options.parts), "--blocks", str(options.blocks)]
        for flags in ([], ["--plain"]) if ranks == 1 else ([],):
            done = subprocess.run([*command, *flags], capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    one = next((row for row in rows if row["ranks"] == 1 and row["plain"] is None), rows[0])
    call = SECONDS_OF_CALLS
    step = max(one["seconds"] - 2 * call, one["seconds"] / 2) / (one["largest_work"] + one["top_work"])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for row in rows:
        shared = max(1.0, row["ranks"] / cores)
        work, top = (shared * row[name] for name in ("largest_work", "top_work"))
        row["predicted"] = iteration_seconds(
            work, top, row["boundary"], row["ranks"], step, row["latency"], row["bandwidth"], call
        )
        row["step"] = step
    return rows


def predict(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The predictions of the model for each number of ranks."""
    game, rows = pyspiel.load_game(options.game), []
    histories = estimate_size(game).num_histories
    for ranks in options.ranks:
        cut = choose_cut(game, PARTS_PER_PROCESS * ranks)
        top = walk_top_tree(game, cut)
        loads = np.bincount(dealt_out(cut.share, ranks), cut.share, ranks)
        boundary = sum(len(top.boundary_sequences(part, player)) for part in range(cut.num_parts) for player in range(2))
        work = STEPS_OF_HISTORY * histories
        above = work_of_iteration(top.game)
        arguments = (SECONDS_OF_STEP, options.latency, options.bandwidth, SECONDS_OF_CALLS)
        seconds = iteration_seconds(work * loads.max(), above, boundary, ranks, *arguments)
        alone = iteration_seconds(work, 0.0, 0.0, 1, *arguments)
        rows.append(
            {
                "ranks": ranks,
                "histories": histories,
                "largest": loads.max(),
                "boundary": boundary,
                "top_work": above,
                "seconds": seconds,
                "speed_up": alone / seconds,
            }
        )
    return rows


def main() -> None:
    """Prints the rows as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "predict", "rank"])
    parser.add_argument("--game", default="liars_dice(dice_sides=8)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--latency", type=float, default=NETWORK_LATENCY, help="seconds of a message")
    parser.add_argument("--bandwidth", type=float, default=NETWORK_BANDWIDTH, help="bytes per second")
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == "rank":
        measure_in_this_process(options.game, options.parts, options.blocks, options.plain)
        return
    rows = measure(options) if options.what == "measure" else predict(options)
    print(options.game)
    print(f"| {' | '.join(rows[0])} |\n|{' ---: |' * len(rows[0])}")
    for row in rows:
        print(f"| {' | '.join('-' if value is None else f'{value:.4g}' for value in row.values())} |")


if __name__ == "__main__":
    main()
