"""Time of an iteration that records what coarse correlated equilibria need, beside one that does not.

All solvers are `CFRSolver(game, alternating=False)`. "plain" records nothing, "regrets" has `record_regrets=True`, "recorder"
is a `PlayRecorder` that keeps the strategies of all iterations. They run in turns on one core; times are minima over the
blocks, in microseconds of processor time. "ratio" is regrets / plain, with a target of 1.3. "difference" is the largest
difference of `cce_gap()` of the compiled solver from those of the same learners as Python objects, of the recorded play, and
of OpenSpiel's `cce_dist`, after a few iterations.
"""

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import pyspiel
from timing import markdown_table, seconds_of_blocks, use_one_core

from spiel_cfrplus import CFRSolver, PlayRecorder, SequenceFormGame, Solver, Treeplex, compile_game
from spiel_cfrplus.regret_minimizers import CFR, RegretMatching

GAMES = {"kuhn_poker": 20, "leduc_poker": 5, "liars_dice": 1}
"""Games, and the number of iterations after which gaps are compared: OpenSpiel evaluates all of them."""


def largest_difference(game: SequenceFormGame, num_iterations: int, reduce: bool | str) -> float:
    """The largest difference between the gaps of the compiled solver and the others."""

    def minimizer(treeplex: Treeplex) -> CFR:
        return CFR(treeplex, RegretMatching(), tie_tolerance=game.tie_tolerance[game.player_slices[treeplex.player]])

    compiled = CFRSolver(game, alternating=False, record_regrets=True, reduce=reduce)
    in_python = Solver.of_minimizers(game, minimizer, alternating=False)
    recorder = PlayRecorder(compiled)
    recorder.run(num_iterations)
    in_python.run(num_iterations)
    play = recorder.play()
    theirs = max(pyspiel.cce_dist(game.tree.game, play.to_pyspiel()).deviation_incentives)
    gaps = [in_python.self_play.cce_gap(), play.cce_gap(), theirs]
    return max(abs(gap - compiled.self_play.cce_gap()) for gap in gaps)


def processor_seconds(work: Callable[[int], Any], repetitions: int) -> float:
    """The processor time of `work(repetitions)`, which other processes affect less than the wall time."""
    start = time.process_time()
    work(repetitions)
    return time.process_time() - start


def times(game: SequenceFormGame, reduce: bool | str, blocks: int, block_seconds: float) -> dict[str, float]:
    """Microseconds of an iteration."""
    plain = CFRSolver(game, alternating=False, reduce=reduce)
    regrets = CFRSolver(game, alternating=False, reduce=reduce, record_regrets=True)

    def record(num_iterations: int) -> None:
        PlayRecorder(plain, max_profiles=num_iterations).run(num_iterations)

    contenders = {"plain": plain.run, "regrets": regrets.run, "recorder": record}
    for repeat in contenders.values():
        repeat(50)  # compiles the kernels, and leaves the first iterations, in which play is still uniform
    gc.collect()
    seconds = seconds_of_blocks(contenders, blocks=blocks, block_seconds=block_seconds, measure=processor_seconds)
    return {name: 1e6 * min(values) for name, values in seconds.items()}


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES), help="(default: all)")
    parser.add_argument("--blocks", type=int, default=25, help="timed blocks of each solver (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.03, help="of a block (default: %(default)s)")
    parser.add_argument("--no-differences", action="store_true", help="do not compare the gaps")
    args = parser.parse_args()
    use_one_core()
    rows = []
    for name in args.games:
        game = compile_game(pyspiel.load_game(name))
        for reduce, label in ((False, "whole"), (True, "reduced")):
            micro = times(game, reduce, args.blocks, args.seconds)
            difference = "-" if args.no_differences else f"{largest_difference(game, GAMES[name], reduce):.1e}"
            rows.append(
                [
                    f"{name}, {label}",
                    f"{micro['plain']:.3g}",
                    f"{micro['regrets']:.3g}",
                    f"{micro['regrets'] / micro['plain']:.2f}",
                    "1.3",
                    f"{micro['recorder']:.3g}",
                    difference,
                ]
            )
    print(markdown_table(["game", "plain, µs", "regrets, µs", "ratio", "required", "recorder, µs", "difference"], rows))


if __name__ == "__main__":
    main()
