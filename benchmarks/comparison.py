"""CFR+ of this package compared with other public solvers: set-up, iterations per second, time to NashConv, memory.

Each solver runs in a separate process for each game and measurement, on one core and, if necessary, with its own interpreter.
Times are processor times of all threads of the process, so that other load on the machine has little effect. On an idle machine
they equal wall times; for the time to NashConv, the JSON output also contains wall times.

* Set-up: from the string of the game to a solver that has done its first iteration. Modules that a package imports at its
  import are imported before; modules that it imports on first use are included.
* Iterations per second: the processes of all solvers run in turns, a block of iterations each; the result is the median block.
  Before, each solver runs `--settle` iterations, or as many as fit into half the limit.
* Seconds to NashConv: from the start of a fresh process, including the interpreter, imports and set-up, to the first of the
  iterations 1, 2, 5, 10, 20, 50, ... at which the average policy has this NashConv. Each solver evaluates its policy with its
  own package, in C++ if OpenSpiel offers the choice, and the time includes these evaluations.
* Peak memory: the peak resident memory of that process.

All averages have linear weights. OpenSpiel's solvers and noregret average the strategies 0 to t-1 of both players, this package
those defined in the CFR+ paper, LiteEFG 1 to t of both; so the iterations at which a NashConv is reached differ slightly.

After its timed iterations each solver exports its average policy. "check" is the difference between the NashConv that the
solver computes and the NashConv that this package or, for a policy of this package, OpenSpiel computes. Its time is not
included.

Caches on disk are warm: each solver has run on kuhn_poker before, so compiled kernels are on disk. LiteEFG's files of games,
which it can reuse, are not kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contenders import CONTENDERS
from processes import NoAnswerError, Process, reported_seconds
from timing import game_string, markdown_table, positive, seconds_per_repetition, shown

CONTENDERS_FILE = str(pathlib.Path(__file__).with_name("contenders.py"))
OURS = ("spiel_cfrplus", "spiel_cfrplus_reduced")
BASELINE = "openspiel_cpp"
STEPS = ("convergence", "speed")
TARGETS = (1e-2, 1e-3, 1e-4)

# By name: the argument of pyspiel.load_game, and the target speed-up over the fastest other solver.
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


class Comparison:
    """The measurements.

    Attributes:
      pythons: the interpreter of each solver.
      settle: iterations before the timed ones.
      blocks: blocks of timed iterations of each solver.
      limit: the time limit, in seconds, for the set-up of a process, for its timing, and for reaching the smallest NashConv.
      solvers: for each solver its versions, or the reason why it is absent.
      games: for each game and solver, the measurements, or a note with the reason why there are none.
    """

    def __init__(self, pythons: Mapping[str, str], settle: int, blocks: int, limit: float):
        self.pythons = pythons
        self.settle = settle
        self.blocks = blocks
        self.limit = limit
        self.solvers: dict[str, dict[str, Any]] = {solver: self._introduce(solver) for solver in pythons}
        self.games: dict[str, dict[str, dict[str, Any]]] = {}

    def _introduce(self, solver: str) -> dict[str, Any]:
        """The versions of solver and interpreter; also fills the caches of the solver."""
        try:
            command = (self.pythons[solver], CONTENDERS_FILE, solver, "kuhn_poker")
            with tempfile.TemporaryDirectory() as folder, Process(*command) as process:
                ready = process.answer(max(self.limit, 60))
                process.tell(self.limit, export=str(pathlib.Path(folder) / "policy.json"))
        except (NoAnswerError, OSError) as error:
            print(f"{solver} is omitted: {error}", file=sys.stderr)
            return {"absent": str(error)}
        return {key: ready[key] for key in ("version", "python")}

    @property
    def present(self) -> list[str]:
        """The solvers that are not absent."""
        return [solver for solver, info in self.solvers.items() if "absent" not in info]

    def measure(self, name: str, game: str, steps: Sequence[str]) -> None:
        """Measures a game: "convergence", "speed" or both."""
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
        """Measures the time to NashConv and the peak memory."""
        result |= {"seconds_to": {}, "wall_seconds_to": {}, "iterations_to": {}}
        command = (solver, game, "--converge-to", str(min(TARGETS)))
        with noted(result), Process(self.pythons[solver], CONTENDERS_FILE, *command) as process:
            while len(result["seconds_to"]) < len(TARGETS):
                row = process.answer(max(0, self.limit - process.seconds()))
                if "iteration" not in row:  # the message that the set-up is done
                    continue
                result["peak_megabytes"] = row["peak_megabytes"]
                for target in TARGETS:
                    if row["nash_conv"] <= target and target not in result["seconds_to"]:
                        result["seconds_to"][target] = row["seconds"]
                        result["wall_seconds_to"][target] = process.seconds()
                        result["iterations_to"][target] = row["iteration"]

    def _iterate(self, game: str, results: Mapping[str, dict[str, Any]]) -> None:
        """Measures set-up and iterations per second, and checks the average policy."""
        with contextlib.ExitStack() as stack:
            processes: dict[str, Process] = {}
            for solver, result in results.items():
                with noted(result):
                    process = stack.enter_context(Process(self.pythons[solver], CONTENDERS_FILE, solver, game))
                    result["setup_seconds"] = process.answer(self.limit)["setup_seconds"]
                    result["settled"] = process.tell(2 * self.limit, settle=[self.settle, self.limit])["iterations"]
                    processes[solver] = process
            long_limit = 100 * self.limit  # the number of iterations per block is chosen to take much less
            run = {solver: lambda n, process=process: process.tell(long_limit, run=n) for solver, process in processes.items()}
            times = seconds_per_repetition(run, blocks=self.blocks, limit=self.limit, measure=reported_seconds)
            for solver, seconds in times.items():
                results[solver]["seconds_per_iteration"] = seconds
            for solver, process in processes.items():
                with noted(results[solver]):
                    results[solver]["check"] = self._check(solver, game, process)

    def _check(self, solver: str, game: str, process: Process) -> float:
        """The difference between NashConv of the average policy as computed by the solver and by another package."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "policy.json")
            own_nash_conv = process.tell(2 * self.limit, export=path)["nash_conv"]
            with Process(sys.executable, CONTENDERS_FILE, solver, game, "--check", path) as checker:
                return abs(checker.answer(2 * self.limit)["checked"] - own_nash_conv)

    def times_fastest_public(self, name: str, solver: str) -> float | None:
        """The ratio of iterations per second to those of the fastest solver of another package."""
        seconds = {key: result.get("seconds_per_iteration") for key, result in self.games[name].items()}
        public = [time for key, time in seconds.items() if time is not None and key not in OURS]
        return min(public) / seconds[solver] if public and seconds.get(solver) else None

    def as_json(self) -> dict[str, Any]:
        """All numbers, in a form that can be written as JSON."""
        return {"settle": self.settle, "blocks": self.blocks, "limit": self.limit, "solvers": self.solvers, "games": self.games}

    def as_markdown(self) -> str:
        """The table of speeds, a table for each game, and the list of solvers."""
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
        lines = []
        for solver, info in self.solvers.items():
            text = f"omitted, {info['absent']}" if "absent" in info else f"{info['version']}, Python {info['python']}"
            lines.append(f"* {solver}: {text}")
        return "\n".join(lines)


@contextlib.contextmanager
def noted(result: dict[str, Any]) -> Iterator[None]:
    """Stores the reason of a missing answer as a note in the result."""
    try:
        yield
    except NoAnswerError as error:
        result.setdefault("note", str(error))


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
    parser.add_argument("--json", metavar="FILE", help="write all numbers to this file, after each game")
    args = parser.parse_args()
    pythons = dict.fromkeys(args.solvers, sys.executable)
    for pair in args.python:
        solver, separator, path = pair.partition("=")
        if not separator or solver not in CONTENDERS:
            parser.error(f"expected SOLVER=PATH with one of the solvers {', '.join(CONTENDERS)}, got {pair}")
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
