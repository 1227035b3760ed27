"""Times one iteration of the compiled loop with different rules, or of two versions of the package with the same rules.

    python benchmarks/rules.py                       CFR+ built in, and regret matching+ as a rule of a user (user_rule.py)
    python benchmarks/rules.py --other CHECKOUT      the built-in algorithms of this package and of another checkout of it

Each contender runs in a process of its own: of two loops in one process, the one that is loaded second may take up to twice as
long on tiny games, because of where its machine code is placed. The processes take turns, a block of iterations each. As the
placement differs between processes too, all of this is repeated with fresh processes (`--starts`). Both the minimum and the
median over all blocks are printed; the ratio that has a target is that of the minima.

With one thread, times are processor times on one core, on which other load has little effect. With several threads, they are
wall times, which mean something on an idle machine only.

After `--settle` iterations, before the timed ones, the average and the current policies of the contenders must be the same
doubles.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from processes import Process, print_answers, reported_seconds
from timing import Record, game_string, markdown_table, positive, seconds_of_blocks, use_one_core

ALGORITHMS = ("cfr", "cfr+", "lcfr", "dcfr", "dcfr+", "pcfr", "pcfr+", "pdcfr+")
GAMES = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liars_dice": "liars_dice",
    "goofspiel_4": "turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))",
    "tic_tac_toe": "tic_tac_toe",
}
USER_RULE = "a user's rule"
MOST_FOR_A_RULE = 1.05
MOST_FOR_A_VERSION = 1.03
# By name of `--variants`, the option `reduce` of solvers.
VARIANTS = {"whole": False, "reduced": True}


@dataclasses.dataclass(frozen=True)
class Contender:
    """What a process runs.

    Attributes:
      algorithm: one of `ALGORITHMS`, or `USER_RULE`.
      checkout: the folder that contains the package; empty for the installed one.
    """

    algorithm: str
    checkout: str = ""

    def process(self, game: str, reduce: bool, threads: int) -> Process:
        """A process for this game."""
        command = json.dumps({"algorithm": self.algorithm, "game": game, "reduce": reduce, "threads": threads})
        environment = {"PYTHONPATH": self.checkout} if self.checkout else None
        return Process(sys.executable, __file__, "--contender", command, environment=environment)


class DifferentResultsError(Exception):
    """Contenders that should play the same do not."""


def solver_of(algorithm: str, game: str, **options: Any) -> Any:
    """A solver of this version of the package, or of an older one, in which `ALGORITHMS` contains classes."""
    import pyspiel

    import spiel_cfrplus

    loaded = pyspiel.load_game(game)
    if algorithm == USER_RULE:
        from user_rule import regret_matching_plus

        averaging = spiel_cfrplus.Averaging(power=1)
        return spiel_cfrplus.make_solver(regret_matching_plus, loaded, averaging=averaging, **options)
    if "make_solver" in spiel_cfrplus.__all__:
        return spiel_cfrplus.make_solver(algorithm, loaded, **options)
    return spiel_cfrplus.ALGORITHMS[algorithm](loaded, **options)


def digest(solver: Any) -> str:
    """Of the doubles of the average and of the current policies."""
    profiles = (solver.average_profile(), solver.current_profile())
    return hashlib.sha256(b"".join(profile.probabilities.tobytes() for profile in profiles)).hexdigest()


def contend(algorithm: str, game: str, reduce: bool, threads: int) -> Iterator[dict[str, Any]]:
    """Yields where the package is, then the answer to each command on standard input."""
    import spiel_cfrplus

    if threads == 1:
        use_one_core()
    clock = time.process_time if threads == 1 else time.perf_counter
    solver = solver_of(algorithm, game, reduce=reduce, threads=threads)
    solver.run(1)
    yield {"package": str(pathlib.Path(spiel_cfrplus.__file__).parent)}
    for line in sys.stdin:
        command = json.loads(line)
        start = clock()
        solver.run(command["run"])
        yield {"seconds": clock() - start} | ({"digest": digest(solver)} if command.get("digest") else {})


def measure(
    contenders: Mapping[str, Contender],
    game: str,
    reduce: bool,
    threads: int,
    *,
    settle: int,
    starts: int,
    blocks: int,
    block_seconds: float,
    limit: float,
) -> dict[str, list[float]]:
    """The seconds per iteration of all blocks of contenders that should give the same doubles.

    Args:
      contenders: by name.
      game, reduce, threads: what they play, and how.
      settle: iterations before the timed ones.
      starts: how often fresh processes are started.
      blocks, block_seconds: see `timing.seconds_of_blocks`, for each start.
      limit: the most seconds for an answer.

    Raises:
      DifferentResultsError: after `settle` iterations the policies are different doubles.
      NoAnswerError: a process failed.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(starts):
        with contextlib.ExitStack() as stack:
            run, digests = {}, set()
            for name, contender in contenders.items():
                process = stack.enter_context(contender.process(game, reduce, threads))
                package = process.answer(limit)["package"]
                if contender.checkout and pathlib.Path(contender.checkout).resolve() not in pathlib.Path(package).parents:
                    raise DifferentResultsError(f"{name} ran {package}, which is not in {contender.checkout}")
                digests.add(process.tell(limit, run=settle - 1, digest=True)["digest"])
                run[name] = lambda n, process=process: process.tell(limit, run=n)
            if len(digests) > 1:
                raise DifferentResultsError(f"{', '.join(contenders)} have different policies on {game}")
            measured = seconds_of_blocks(run, blocks=blocks, block_seconds=block_seconds, measure=reported_seconds)
        for name, seconds in measured.items():
            times[name] += seconds
    return times


def pairs(algorithms: Sequence[str], other: str | None) -> Iterator[tuple[str, dict[str, Contender]]]:
    """For each row of the table its label and the two contenders, of which the second is divided by the first."""
    if other is None:
        yield "cfr+", {"built in": Contender("cfr+"), USER_RULE: Contender(USER_RULE)}
    else:
        this = str(pathlib.Path(__file__).resolve().parents[1])
        for algorithm in algorithms:
            yield algorithm, {"other": Contender(algorithm, other), "this": Contender(algorithm, this)}


def cells(times: Mapping[str, Sequence[float]], most: float) -> list[str]:
    """Microseconds of the minima of two contenders, the ratios of minima and of medians, the target."""
    first, second = times.values()
    minima = [f"{1e6 * min(seconds):.4g}" for seconds in (first, second)]
    return [*minima, f"{min(second) / min(first):.3f}", f"{median(second) / median(first):.3f}", f"{most:g}"]


def checkout_folder(text: str) -> str:
    """Parses a folder that contains the package."""
    folder = pathlib.Path(text).resolve()
    if not (folder / "spiel_cfrplus" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{text} contains no package spiel_cfrplus")
    return str(folder)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--games",
        nargs="+",
        type=lambda name: name if name in GAMES else game_string(name),
        default=list(GAMES),
        help=f"names ({', '.join(GAMES)}) or strings for pyspiel.load_game",
    )
    parser.add_argument("--other", type=checkout_folder, metavar="CHECKOUT", help="folder of another version of the package")
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS, choices=ALGORITHMS, help="for --other; default: all")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS, help="of games; default: both")
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1 and 2, with --other 1")
    parser.add_argument("--settle", type=int, default=100, help="iterations before the timed ones (default: %(default)s)")
    parser.add_argument("--starts", type=int, default=3, help="of processes for each contender (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks for each start (default: %(default)s)")
    parser.add_argument("--seconds", type=positive, default=0.1, help="length of a block (default: %(default)s)")
    parser.add_argument("--limit", type=positive, default=120, help="seconds for an answer (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="keep the numbers in this file; what it contains is not measured again")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        print_answers(contend(**json.loads(args.contender)))
        return
    threads = args.threads or ([1, 2] if args.other is None else [1])
    most = MOST_FOR_A_RULE if args.other is None else MOST_FOR_A_VERSION
    options = {"settle": args.settle, "starts": args.starts, "blocks": args.blocks, "block_seconds": args.seconds}
    record = Record(args.json)
    for game, variant, count in itertools.product(args.games, args.variants, threads):
        for algorithm, contenders in pairs(args.algorithms, args.other):
            work = functools.partial(measure, contenders, GAMES.get(game, game), VARIANTS[variant], count)
            key = (game, variant, str(count), algorithm)
            record.measure(key, functools.partial(work, limit=args.limit, **options))
            print(*key, *cells(record.rows[key], most), file=sys.stderr)
    names = next(iter(record.rows.values()))
    header = ["game", "variant", "threads", "algorithm", *(f"{name}, µs" for name in names), "ratio", "of medians", "at most"]
    print(markdown_table(header, [[*key, *cells(times, most)] for key, times in record.rows.items()]))


if __name__ == "__main__":
    main()
