"""CFR+ of this package against OpenSpiel's and other public solvers: set-up, iterations per second, time to NashConv, memory.

Each solver has a process of its own for each game and purpose, on one core, and, if need be, with an interpreter of its own.
Seconds are those that the processor spent on the process, all its threads, so that other work on the machine disturbs
little; on an idle machine that is the wall time, which for the third row is in the JSON, too.

* Set-up: from the game's string to a solver that has done its first iteration. What a package imports by itself comes before;
  what it imports when first needed does not.
* Iterations per second: the processes of all solvers take turns, a block of iterations each; the median block counts. Before,
  each does `--settle` iterations, or as many as fit into half the limit.
* Seconds to NashConv: from the start of a fresh process, hence with the interpreter, imports and set-up, to the first of the
  iterations 1, 2, 5, 10, 20, 50, ... at which the solver finds its average policy that good. It evaluates its policy as its
  package does, in C++ where OpenSpiel offers the choice, and the time that takes counts.
* Peak memory: the most resident memory of that process.

All averages have linear weights. OpenSpiel's solvers and noregret average the strategies 0 to t-1 of both players, this package
those that the CFR+ paper says, LiteEFG 1 to t of both; so the iterations at which a NashConv is reached differ a little.

After its timed iterations each solver exports its average policy. "check" is how far its NashConv, computed by this package or,
if the policy is this package's, by OpenSpiel, is from what the solver says. The time for that counts nowhere.

Files on disk are warm: each solver has run on kuhn_poker before, with its compiled kernels on disk. LiteEFG's
files of games, of which it could reuse those that it has seen before, are not kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from contenders import CONTENDERS
from timing import game_string, positive, seconds_per_repetition

CONTENDERS_FILE = str(pathlib.Path(__file__).with_name("contenders.py"))
OURS = ("spiel_cfrplus", "spiel_cfrplus_reduced")
BASELINE = "openspiel_cpp"
STEPS = ("convergence", "speed")
TARGETS = (1e-2, 1e-3, 1e-4)

# By name: what pyspiel.load_game takes, and how many times faster than the fastest other solver we hold ourselves to be.
GAMES: dict[str, tuple[str, float | None]] = {
    "kuhn": ("kuhn_poker", 20),
    "dark_hex_2x2": ("dark_hex(board_size=2,gameversion=adh)", 20),
    "goofspiel_4": ("turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))", 20),
    "liars_dice_4": ("liars_dice(dice_sides=4)", 20),
    "leduc": ("leduc_poker", 20),
    "goofspiel_4_random": ("turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=random))", None),
    "liars_dice": ("liars_dice", 5),
    "leduc_13_ranks": (
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=2 2,"
        "numSuits=2,numRanks=13,numHoleCards=1,numBoardCards=0 1)",
        2.5,
    ),
    "battleship_2x3": (
        "battleship(board_width=2,board_height=3,ship_sizes=[1;2],ship_values=[1;1],num_shots=2,allow_repeated_shots=False)",
        2.5,
    ),
    "liars_dice_7": ("liars_dice(dice_sides=7)", 5),
    "tic_tac_toe": ("tic_tac_toe", None),
}


class NoAnswerError(Exception):
    """A solver's process says that it cannot, has died, or takes too long."""


class Process:
    """`contenders.py` at work on a game; killed when left."""

    def __init__(self, python: str, *arguments: str):
        self.start = time.perf_counter()
        command = [python, CONTENDERS_FILE, *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    def answer(self, limit: float) -> dict[str, Any]:
        """The next line that it prints.

        Raises:
          NoAnswerError: there is none within `limit` seconds, or it says why there is none.
        """
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        over = not timer.is_alive()
        timer.cancel()
        if not line:
            raise NoAnswerError("over the limit of time" if over else "its process ended without an answer")
        result = json.loads(line)
        if message := result.get("absent") or result.get("error"):
            raise NoAnswerError(message)
        return result

    def tell(self, limit: float, **command: object) -> dict[str, Any]:
        """Gives a command and returns the answer."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command) + "\n")
        return self.answer(limit)


class Comparison:
    """What was measured.

    Attributes:
      pythons: the interpreter of each solver.
      settle: iterations before the timed ones.
      blocks: blocks of timed iterations of each solver.
      limit: seconds that a process may take to be ready, and to be timed; and from its start to the smallest NashConv.
      solvers: what each solver says of itself, or why it is absent.
      games: for each game and solver, the measurements, or a note that says why there are none.
    """

    def __init__(self, pythons: Mapping[str, str], settle: int, blocks: int, limit: float):
        self.pythons = pythons
        self.settle = settle
        self.blocks = blocks
        self.limit = limit
        self.solvers: dict[str, dict[str, Any]] = {solver: self._introduce(solver) for solver in pythons}
        self.games: dict[str, dict[str, dict[str, Any]]] = {}

    def _introduce(self, solver: str) -> dict[str, Any]:
        """Version of solver and interpreter; has the solver's files read, and written where it caches any."""
        try:
            with tempfile.TemporaryDirectory() as folder, Process(self.pythons[solver], solver, "kuhn_poker") as process:
                ready = process.answer(max(self.limit, 60))
                process.tell(self.limit, export=str(pathlib.Path(folder) / "policy.json"))
        except (NoAnswerError, OSError) as error:
            print(f"{solver} is left out: {error}", file=sys.stderr)
            return {"absent": str(error)}
        return {key: ready[key] for key in ("version", "python")}

    @property
    def present(self) -> list[str]:
        """The solvers that are there."""
        return [solver for solver, words in self.solvers.items() if "absent" not in words]

    def measure(self, name: str, game: str, steps: Sequence[str]) -> None:
        """Adds a game: its "convergence", its "speed" or both."""
        results: dict[str, dict[str, Any]] = {solver: {"seconds_to": {}} for solver in self.present}
        self.games[name] = results
        if "convergence" in steps:
            for solver, result in results.items():
                print(f"{name}: convergence of {solver}", file=sys.stderr)
                self._converge(solver, game, result)
        if "speed" in steps:
            print(f"{name}: speed", file=sys.stderr)
            self._iterate(game, results)
        for result in results.values():
            if "seconds_per_iteration" in result and "seconds_per_iteration" in results.get(BASELINE, {}):
                result["times_openspiel_cpp"] = results[BASELINE]["seconds_per_iteration"] / result["seconds_per_iteration"]

    def _converge(self, solver: str, game: str, result: dict[str, Any]) -> None:
        """Time to NashConv, and memory."""
        result |= {"seconds_to": {}, "wall_seconds_to": {}, "iterations_to": {}}
        command = (solver, game, "--converge-to", str(min(TARGETS)))
        with noted(result), Process(self.pythons[solver], *command) as process:
            while len(result["seconds_to"]) < len(TARGETS):
                row = process.answer(max(0, self.limit - process.seconds()))
                if "iteration" not in row:  # It is ready.
                    continue
                result["peak_megabytes"] = row["peak_megabytes"]
                for target in TARGETS:
                    if row["nash_conv"] <= target and target not in result["seconds_to"]:
                        result["seconds_to"][target] = row["seconds"]
                        result["wall_seconds_to"][target] = process.seconds()
                        result["iterations_to"][target] = row["iteration"]

    def _iterate(self, game: str, results: Mapping[str, dict[str, Any]]) -> None:
        """Set-up, iterations per second, and the check."""
        with contextlib.ExitStack() as stack:
            processes: dict[str, Process] = {}
            for solver, result in results.items():
                with noted(result):
                    process = stack.enter_context(Process(self.pythons[solver], solver, game))
                    result["setup_seconds"] = process.answer(self.limit)["setup_seconds"]
                    result["settled"] = process.tell(2 * self.limit, settle=[self.settle, self.limit])["iterations"]
                    processes[solver] = process
            patience = 100 * self.limit  # They have shown how long an iteration takes.
            repeat = {solver: lambda n, process=process: process.tell(patience, run=n) for solver, process in processes.items()}
            for solver, seconds in seconds_per_repetition(repeat, blocks=self.blocks, limit=self.limit, measure=told).items():
                results[solver]["seconds_per_iteration"] = seconds
            for solver, process in processes.items():
                with noted(results[solver]):
                    results[solver]["check"] = self._check(solver, game, process)

    def _check(self, solver: str, game: str, process: Process) -> float:
        """Difference between NashConv of the average policy as the solver says and as another says."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "policy.json")
            said = process.tell(2 * self.limit, export=path)["nash_conv"]
            with Process(sys.executable, solver, game, "--check", path) as checker:
                return abs(checker.answer(2 * self.limit)["checked"] - said)

    def times_fastest_public(self, name: str, solver: str) -> float | None:
        """Times as many iterations per second as the fastest solver that is not ours."""
        seconds = {key: result.get("seconds_per_iteration") for key, result in self.games[name].items()}
        public = [time for key, time in seconds.items() if time is not None and key not in OURS]
        return min(public) / seconds[solver] if public and seconds.get(solver) else None

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {"settle": self.settle, "blocks": self.blocks, "limit": self.limit, "solvers": self.solvers, "games": self.games}

    def as_markdown(self) -> str:
        """Two tables, and a line for each solver."""
        parts = [self._speed_table(), *(self._game_table(name) for name in self.games), self._solver_list()]
        return "\n\n".join(parts)

    def _speed_table(self) -> str:
        header = ["game", f"{BASELINE}, µs", *self.present, *(f"{solver} / fastest other" for solver in OURS), "required"]
        rows = []
        for name, results in self.games.items():
            times = [shown(results[solver].get("times_openspiel_cpp"), "{:.3g}x") for solver in self.present]
            seconds = results.get(BASELINE, {}).get("seconds_per_iteration")
            leads = [shown(self.times_fastest_public(name, solver), "{:.3g}x") for solver in OURS]
            required = GAMES[name][1] if name in GAMES else None
            rows.append([name, shown(seconds and 1e6 * seconds, "{:.4g}"), *times, *leads, shown(required, "{:g}x")])
        return "CFR+ iterations per second, times those of OpenSpiel's C++ solver:\n\n" + markdown_table(header, rows)

    def _game_table(self, name: str) -> str:
        targets = [f"s to {target:g}" for target in TARGETS]
        rows = []
        for solver, result in self.games[name].items():
            seconds = result.get("seconds_per_iteration")
            row = [solver, shown(result.get("setup_seconds"), "{:.3g}"), shown(seconds and 1 / seconds, "{:.4g}")]
            for target in TARGETS:
                row.append(shown(result["seconds_to"].get(target), "{:.3g}"))
            row += [shown(result.get("peak_megabytes"), "{:.0f}"), shown(result.get("check"), "{:.0e}"), result.get("note", "")]
            rows.append(row)
        return f"{name}:\n\n" + markdown_table(["solver", "set-up, s", "iterations/s", *targets, "peak MB", "check", ""], rows)

    def _solver_list(self) -> str:
        lines = [
            f"* {solver}: "
            + (f"left out, {words['absent']}" if "absent" in words else "{version}, Python {python}".format(**words))
            for solver, words in self.solvers.items()
        ]
        return "\n".join(lines)


def told(repeat: Callable[[int], dict[str, Any]], n: int) -> float:
    """The seconds that a process says n iterations took."""
    return repeat(n)["seconds"]


@contextlib.contextmanager
def noted(result: dict[str, Any]) -> Iterator[None]:
    """Makes a missing answer a note in the result."""
    try:
        yield
    except NoAnswerError as error:
        result.setdefault("note", str(error))


def shown(number: float | None, text_format: str) -> str:
    """The number, or a dash."""
    return "-" if number is None else text_format.format(number)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--games",
        nargs="+",
        type=lambda name: name if name in GAMES else game_string(name),
        default=list(GAMES),
        help=f"names ({', '.join(GAMES)}) or strings for pyspiel",
    )
    parser.add_argument("--solvers", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS), help="default: all")
    parser.add_argument(
        "--python",
        nargs="+",
        action="extend",
        default=[],
        metavar="SOLVER=PATH",
        help="interpreters that have a solver installed",
    )
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS, help="default: both")
    parser.add_argument("--settle", type=int, default=300, help="iterations before the timed ones (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks for each solver (default: %(default)s)")
    parser.add_argument(
        "--limit", type=positive, default=120, help="seconds for each step of each process (default: %(default)s)"
    )
    parser.add_argument("--json", metavar="FILE", help="write all numbers there, too; after each game")
    args = parser.parse_args()
    pythons = dict.fromkeys(args.solvers, sys.executable)
    for pair in args.python:
        solver, separator, path = pair.partition("=")
        if not separator or solver not in CONTENDERS:
            parser.error(f"expected SOLVER=PATH with a solver out of {', '.join(CONTENDERS)}, not {pair}")
        if solver in pythons:
            pythons[solver] = path
    comparison = Comparison(pythons, args.settle, args.blocks, args.limit)
    for name in args.games:
        comparison.measure(name, GAMES[name][0] if name in GAMES else name, args.steps)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(comparison.as_json(), indent=2) + "\n")
    print(comparison.as_markdown())


if __name__ == "__main__":
    main()
