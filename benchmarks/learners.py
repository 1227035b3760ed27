"""Times one iteration of each algorithm: compiled, iterated in Python, and its counterpart in LiteEFG.

* compiled: `make_solver(name, game, reduce=False)`.
* Python: the same learner as Python objects with two methods, `Solver.of_minimizers`. With `--other CHECKOUT` also as another
  checkout of this package, in which learners iterated in Python, does it.
* LiteEFG: the baseline named in `COUNTERPARTS`, with `--liteefg PYTHON`, an interpreter that has LiteEFG installed. Iterations
  are `update_graph` and `update_strategy`, as in its own loop `LiteEFG.baselines.utils.train`.

The compiled solvers run with their defaults: alternating updates, and steps tuned to the game by those that take steps.
LiteEFG's baselines have fixed steps, and some update both players at once. That they are the same algorithms is checked apart
from the timing: with their steps and their order of updates, the current policies have the same NashConv after
`CHECKED_ITERATIONS` iterations. (Policies where nobody comes may differ: LiteEFG treats regrets that are all zero otherwise.)

Each contender runs in a process of its own, on one core; the processes take turns. Times are processor times, and the medians
over the blocks.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import itertools
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from contenders import LiteEfg, Policy, settle, without_actions
from processes import AbsentError, NoAnswerError, Process, print_answers, reported_seconds
from timing import Record, game_string, markdown_table, positive, seconds_of_blocks, shown, use_one_core

# By game, how many times as fast as LiteEFG the compiled algorithms have to be.
GAMES = {"kuhn_poker": 20, "leduc_poker": 20, "liars_dice": 5}
CHECKED_ITERATIONS = 10
_STEP = 0.1


@dataclasses.dataclass(frozen=True)
class Counterpart:
    """A baseline of LiteEFG.

    Attributes:
      baseline: the name of its module in `LiteEFG.baselines`.
      options: of its `graph`.
      matching: the options of `make_solver` with which an algorithm of this package plays the same.
      differs: what differs nevertheless.
    """

    baseline: str
    options: Mapping[str, Any]
    matching: Mapping[str, Any]
    differs: str = ""

    def __str__(self) -> str:
        return f"{self.baseline}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


def _stepping(baseline: str, differs: str = "", **options: Any) -> Counterpart:
    """One with a fixed step that updates both players at once."""
    return Counterpart(baseline, {"eta": _STEP, **options}, {"step_size": _STEP, "alternating": False}, differs)


_LOCAL = {"tau": 0.0, "feedback": "counterfactual"}
_MAGNET = "a baseline with regularization, here of weight 0"
_START = "starts from the uniform policy, not from all vertices alike; not checked"

# Algorithms that are not listed have no counterpart.
COUNTERPARTS = {
    "cfr": Counterpart("CFR", {}, {"alternating": False}),
    "cfr+": Counterpart("CFRplus", {}, {}),
    "lcfr": Counterpart("DCFR", {"alpha": 1, "beta": 1, "gamma": 1}, {}),
    "dcfr": Counterpart("DCFR", {}, {}),
    # LiteEFG takes exponents below -10 for minus infinity.
    "dcfr+": Counterpart("DCFR", {"beta": -11, "gamma": 4}, {}),
    "pcfr+": Counterpart("PCFR", {}, {}),
    "cfr_hedge": _stepping("MMD", _MAGNET, **_LOCAL),
    "predictive_cfr_hedge": _stepping("QFR", _MAGNET, gamma=0.0, **_LOCAL),
    "cfr_gradient_ascent": _stepping("MMD", _MAGNET, regularizer="Euclidean", **_LOCAL),
    "predictive_cfr_gradient_ascent": _stepping("QFR", _MAGNET, gamma=0.0, regularizer="Euclidean", **_LOCAL),
    "dilated_entropy": _stepping("CMD", inner_epoch=1, regularizer="Entropy", weighted=True),
    "predictive_dilated_entropy": _stepping("DOMD", regularizer="Entropy", weighted=True),
    "dilated_euclidean": _stepping("CMD", inner_epoch=1, weighted=True),
    "predictive_dilated_euclidean": _stepping("DOMD", weighted=True),
    "multiplicative_weights": _stepping("CMD", _START, inner_epoch=1, regularizer="Entropy"),
    "predictive_multiplicative_weights": _stepping("DOMD", _START, regularizer="Entropy"),
}
KINDS = ("compiled", "python", "before", "liteefg")


class DifferentResultsError(Exception):
    """An algorithm and its counterpart do not play the same."""


class Ours:
    """A solver of this package, compiled or not."""

    def __init__(self, solver: Any):
        self.solver = solver

    def run(self, num_iterations: int) -> None:
        self.solver.run(num_iterations)

    def current_policy(self) -> Policy:
        """The current policy."""
        return without_actions(self.solver.current_profile().to_dict())


def compiled(algorithm: str, game: str, **options: Any) -> Ours:
    """The algorithm in compiled code, on the whole game."""
    import pyspiel

    from spiel_cfrplus import make_solver

    return Ours(make_solver(algorithm, pyspiel.load_game(game), reduce=False, **options))


def in_python(algorithm: str, game: str) -> Ours:
    """The algorithm as Python objects.

    Raises:
      AbsentError: there are none.
    """
    import pyspiel

    from spiel_cfrplus import ALGORITHMS, Solver, compile_game

    row, compiled_game = ALGORITHMS[algorithm], compile_game(pyspiel.load_game(game))
    if algorithm == "cfr-br":
        raise AbsentError("two minimizers in self-play are not CFR-BR")
    minimizers = row.minimizers(compiled_game)
    averaging = row.default_averaging
    return Ours(Solver.of_minimizers(compiled_game, lambda treeplex: minimizers[treeplex.player], averaging=averaging))


def before(algorithm: str, game: str) -> Ours:
    """The algorithm in a checkout of the package from before learners were compiled.

    Raises:
      AbsentError: it has another interface.
    """
    import pyspiel

    import spiel_cfrplus

    if "LEARNERS" not in spiel_cfrplus.__all__:
        raise AbsentError("the other checkout has no LEARNERS")
    if algorithm == "cfr-br":
        return Ours(spiel_cfrplus.CFRBRSolver(pyspiel.load_game(game)))
    learner = spiel_cfrplus.LEARNERS[algorithm.replace("predictive_", "optimistic_")]
    return Ours(spiel_cfrplus.LearningSolver(pyspiel.load_game(game), learner))


def contend(kind: str, algorithm: str, game: str, home: str) -> Iterator[dict[str, Any]]:
    """Yields that the contender is ready, then the answer to each command on standard input."""
    if kind == "liteefg":
        counterpart = COUNTERPARTS[algorithm]
        contender: Any = LiteEfg(game, counterpart.baseline, home, **counterpart.options)
    else:
        contender = {"compiled": compiled, "python": in_python, "before": before}[kind](algorithm, game)
    contender.run(1)
    yield {"ready": True}
    for line in sys.stdin:
        command = json.loads(line)
        if "settle" in command:
            yield {"iterations": settle(contender, *command["settle"])}
        elif "run" in command:
            start = time.process_time()
            contender.run(command["run"])
            yield {"seconds": time.process_time() - start}
        else:
            yield {"policy": contender.current_policy()}


@functools.cache
def compiled_game(game: str) -> Any:
    """A compiled game."""
    import pyspiel

    from spiel_cfrplus import compile_game

    return compile_game(pyspiel.load_game(game))


def nash_conv(game: str, policy: Policy) -> float:
    """NashConv of a policy, computed by this package."""
    import numpy as np

    import spiel_cfrplus

    compiled = compiled_game(game)
    parts = [np.concatenate([[1.0], *(policy[key] for key in treeplex.infostate_keys)]) for treeplex in compiled.treeplexes]
    return spiel_cfrplus.nash_conv(compiled, spiel_cfrplus.StrategyProfile(compiled, np.concatenate(parts)))


def check(kind: str, algorithm: str, game: str, policy: Policy) -> None:
    """Compares the policy of a contender after `CHECKED_ITERATIONS` with that of the compiled algorithm.

    Raises:
      DifferentResultsError: NashConv differs by more than 1e-9.
    """
    matching: Mapping[str, Any] = {}
    if kind == "liteefg":
        if COUNTERPARTS[algorithm].differs == _START:
            return
        matching = COUNTERPARTS[algorithm].matching
    solver = compiled(algorithm, game, **matching)
    solver.run(CHECKED_ITERATIONS)
    ours, theirs = nash_conv(game, solver.current_policy()), nash_conv(game, policy)
    if abs(ours - theirs) > 1e-9:
        raise DifferentResultsError(f"{algorithm} on {game}: NashConv {theirs} of {kind} instead of {ours}")


class Measurement:
    """The contenders' interpreters, and how long they are measured.

    Attributes:
      commands: by kind of contender, its interpreter and its additional environment.
      home: where LiteEFG keeps its files of games.
      settle: iterations before the timed ones.
      blocks, block_seconds, limit: see `timing.seconds_of_blocks`; `limit` also is the most seconds for an answer.
    """

    def __init__(
        self,
        commands: Mapping[str, tuple[str, Mapping[str, str]]],
        home: str,
        settle: int,
        blocks: int,
        block_seconds: float,
        limit: float,
    ):
        self.commands = commands
        self.home = home
        self.settle = settle
        self.blocks = blocks
        self.block_seconds = block_seconds
        self.limit = limit

    def __call__(self, algorithm: str, game: str) -> dict[str, list[float] | str]:
        """By kind of contender, the seconds per iteration of its blocks, or the reason why there are none."""
        result: dict[str, list[float] | str] = {}
        run = {}
        with contextlib.ExitStack() as stack:
            for kind in self.commands:
                if kind == "liteefg" and algorithm not in COUNTERPARTS:
                    result[kind] = "no counterpart"
                    continue
                try:
                    process = stack.enter_context(self._process(kind, algorithm, game))
                    process.answer(self.limit)
                    process.tell(self.limit, run=CHECKED_ITERATIONS - 1)
                    check(kind, algorithm, game, process.tell(self.limit, policy=True)["policy"])
                    process.tell(self.limit, settle=[self.settle, 2 * self.block_seconds * self.blocks])
                    run[kind] = lambda n, process=process: process.tell(100 * self.limit, run=n)
                except NoAnswerError as error:
                    result[kind] = str(error)
            options = {"blocks": self.blocks, "block_seconds": self.block_seconds, "limit": self.limit}
            return result | seconds_of_blocks(run, measure=reported_seconds, **options)

    def _process(self, kind: str, algorithm: str, game: str) -> Process:
        python, environment = self.commands[kind]
        arguments = json.dumps({"kind": kind, "algorithm": algorithm, "game": game, "home": self.home})
        return Process(python, __file__, "--contender", arguments, environment=environment)


def cells(numbers: Mapping[str, Any], game: str, algorithm: str) -> list[str]:
    """Microseconds of the compiled algorithm; microseconds and ratio for each other contender; the target."""
    medians = {kind: median(times) for kind, times in numbers.items() if isinstance(times, list)}  # else the reason for none
    own = medians.get("compiled")
    result = [shown(own and 1e6 * own, "{:.4g}")]
    for kind in KINDS[1:]:
        seconds = medians.get(kind)
        result += [shown(seconds and 1e6 * seconds, "{:.4g}"), shown(seconds and own and seconds / own, "{:.1f}x")]
    return [*result, shown(GAMES.get(game) if algorithm in COUNTERPARTS else None, "{:g}x")]


def table(record: Record) -> str:
    """All rows, in Markdown."""
    header = [
        "algorithm",
        "game",
        "compiled, µs",
        "Python, µs",
        "ratio",
        "before, µs",
        "ratio",
        "LiteEFG, µs",
        "ratio",
        "required",
    ]
    rows = [[f"`{algorithm}`", game, *cells(numbers, game, algorithm)] for (algorithm, game), numbers in record.rows.items()]
    return markdown_table(header, rows)


def counterpart_table() -> str:
    """The counterparts, in Markdown."""
    rows = []
    for algorithm, counterpart in COUNTERPARTS.items():
        options = ", ".join(f"{name}={value}" for name, value in counterpart.matching.items())
        rows.append([f"`{algorithm}`", f"`{counterpart}`", f"`{options}`" if options else "", counterpart.differs])
    return markdown_table(["algorithm", "baseline of LiteEFG", "plays the same with", "differs"], rows)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--games", nargs="+", type=game_string, default=list(GAMES), help="strings for pyspiel.load_game (default: %(default)s)"
    )
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--liteefg", metavar="PYTHON", help="an interpreter that has LiteEFG installed")
    parser.add_argument("--other", metavar="CHECKOUT", help="folder of an older version of the package")
    parser.add_argument(
        "--only", nargs="+", choices=KINDS[1:], help="beside the compiled algorithms; default: all there are interpreters for"
    )
    parser.add_argument("--home", help="where LiteEFG keeps its files of games; by default they are not kept")
    parser.add_argument("--settle", type=int, default=100, help="most iterations before the timed ones (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks of each contender (default: %(default)s)")
    parser.add_argument("--seconds", type=positive, default=0.1, help="length of a block (default: %(default)s)")
    parser.add_argument("--limit", type=positive, default=60, help="seconds for each step (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="keep the numbers in this file; what it contains is not measured again")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        use_one_core()
        print_answers(contend(**json.loads(args.contender)))
        return
    from spiel_cfrplus import ALGORITHMS

    if unknown := set(args.algorithms or ()) - set(ALGORITHMS):
        parser.error(f"unknown algorithms {', '.join(sorted(unknown))}; choose from {', '.join(ALGORITHMS)}")
    commands: dict[str, tuple[str, Mapping[str, str]]] = dict.fromkeys(("compiled", "python"), (sys.executable, {}))
    if args.other:
        commands["before"] = (sys.executable, {"PYTHONPATH": str(pathlib.Path(args.other).resolve())})
    if args.liteefg:
        commands["liteefg"] = (args.liteefg, {})
    commands = {kind: command for kind, command in commands.items() if kind in ("compiled", *(args.only or KINDS))}
    with tempfile.TemporaryDirectory() as folder:
        home = str(pathlib.Path(args.home or folder).resolve())
        measure = Measurement(commands, home, args.settle, args.blocks, args.seconds, args.limit)
        record = Record(args.json)
        for game, algorithm in itertools.product(args.games, args.algorithms or ALGORITHMS):
            key = (algorithm, game)
            record.measure(key, functools.partial(measure, algorithm, game))
            print(*key, *cells(record.rows[key], game, algorithm), file=sys.stderr)
    print(table(record))
    if args.liteefg:
        print("\n" + counterpart_table())


if __name__ == "__main__":
    main()
