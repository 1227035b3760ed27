"""The time of one CFR+ iteration, and a lower bound, the floor, for it on this machine.

The counts are for one iteration of all players, with alternating updates, in the state of the solver after the first
iterations. Each pass reads and writes every array that it needs once. Of the payoffs, these are the rows whose opponents all
have a non-zero reach, with their entries; of the other rows only the opponents' sequences, which must be checked. Of the
decision points, these are the ones with a non-zero utility; of the others only the utilities, because regret matching+ changes
nothing there. Each sum, product and quotient counts as one floating-point operation; comparisons are not counted.

Three rates of the machine are measured: streaming, by a triad (a = b + 2 c, 24 bytes per element) over as much memory as the
arrays of the solver take, hence in cache if they are; indexed additions (target[index] += value) in the order of the game; and
arithmetic, by polynomials in registers. The time of a pass is the largest of the three times at these rates, and the floor is
the sum over the passes. It is a bound for these passes over these arrays, not for all programs.

Times are those of the thread's clock, the best of many blocks of a millisecond or one iteration. They exclude the time of other
processes that interrupt the thread, but such processes can still reduce its cache and memory bandwidth.
"""

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pyspiel
from comparison import GAMES
from timing import game_string, print_table, use_one_core

import spiel_cfrplus

POKER = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=2 2,"
    "numSuits={},numRanks={},numHoleCards=1,numBoardCards=0 1)"
)
SCALING = {f"liars_dice, {sides} sides": f"liars_dice(dice_sides={sides})" for sides in (4, 5, 6, 7, 8)} | {
    f"poker, {suits} suits, {ranks} ranks": POKER.format(suits, ranks)
    for suits, ranks in ((2, 3), (2, 5), (2, 8), (2, 13), (3, 13), (4, 13))
}
FLAT = 3  # target for the largest ratio of times per payoff entry


@dataclasses.dataclass(frozen=True)
class Work:
    """The work of a pass, or of a repetition of a measurement: bytes moved, indexed accesses, floating-point operations."""

    bytes: float
    indexed: float
    operations: float

    def __add__(self, other: "Work") -> "Work":
        return Work(self.bytes + other.bytes, self.indexed + other.indexed, self.operations + other.operations)

    def seconds(self, rates: "Work") -> float:
        """The time at these rates per second if the three kinds of work overlap completely."""
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(rates), strict=True)
        return max(amount / rate for amount, rate in pairs)


WORK = [field.name for field in dataclasses.fields(Work)]


def live_rows(payoffs: Any, reach: np.ndarray, player: int) -> tuple[np.ndarray, np.ndarray]:
    """The player's rows whose opponents all have non-zero reach, and the number of entries of each."""
    rows = np.arange(payoffs.player_block[player], payoffs.player_block[player + 1])
    rows = rows[np.all(reach[payoffs.opponent_sequences[rows]] != 0, axis=1)]
    return rows, payoffs.entry_start[rows + 1].astype(int) - payoffs.entry_start[rows]


def passes(treeplexes: Any, payoffs: Any, memory: Any) -> Iterator[Work]:
    """Yields the work of each pass of one iteration over the arrays of a solver."""
    num_opponents = payoffs.opponent_sequences.shape[1]
    sizes = np.diff(treeplexes.sequence_start.astype(int))
    has_uniform_policy = treeplexes.uniform_policy is not None
    acted = np.maximum.reduceat(memory.values != 0, treeplexes.sequence_start[:-1])
    for player in range(len(treeplexes.player_block) - 1):
        first, last = treeplexes.player_block[player : player + 2]
        num_infostates, num_sequences = int(last - first), int(sizes[first:last].sum())
        num_rows = int(payoffs.player_block[player + 1] - payoffs.player_block[player])
        rows, counts = live_rows(payoffs, memory.reach, player)
        entries = int(counts.sum())
        # Gradient: zeros, the others' reach, opponents' sequences; for rows with non-zero reach also row ends and entries.
        moved = 8 * len(memory.reach) + 4 * num_opponents * num_rows + 4 * len(rows) + 12 * entries
        yield Work(moved, entries + num_opponents * num_rows, 2 * entries + num_opponents * num_rows)
        # Update: utilities; if one is non-zero also policy, utility, regrets (read and written), tie_tolerance, uniform_policy.
        active, touched = int(acted[first:last].sum()), int(sizes[first:last][acted[first:last]].sum())
        moved = 8 * num_sequences + 4 * num_infostates + (48 + 8 * has_uniform_policy) * touched + 4 * active
        yield Work(moved, active, (8 + 4 * has_uniform_policy) * touched + active)
        # Sequence form: policy, reach; sequence_start, parent_sequence.
        yield Work(16 * num_sequences + 8 * num_infostates, num_infostates, num_sequences)
        # Average: the sum (read and written), reach.
        yield Work(24 * num_sequences, 0, 2 * num_sequences)


def least_seconds(repeat: Callable[[int], object], seconds: float) -> float:
    """Seconds per repetition in the best block, by the thread's clock; `repeat(n)` does n repetitions."""

    def measured(n: int) -> float:
        start = time.thread_time()
        repeat(n)
        return time.thread_time() - start

    repeat(1)  # compiles kernels that are not yet compiled
    n = 1
    while measured(n) < 1e-3:
        n *= 2
    best, spent = math.inf, 0.0
    while spent < seconds:
        spent += (elapsed := measured(n))
        best = min(best, elapsed / n)
    return best


@numba.njit
def triad(n, a, b, c):
    """Runs the triad n times."""
    for _ in range(n):
        for i in range(a.size):
            a[i] = b[i] + 2.0 * c[i]


@numba.njit
def add_at(n, target, index, values):
    """Runs the indexed additions n times."""
    for _ in range(n):
        for i in range(index.size):
            target[index[i]] += values[i]


@numba.njit
def polynomials(n, a):
    """Runs sixteen operations per element, n times."""
    for _ in range(n):
        for i in range(a.size):
            x = a[i]
            for _ in range(8):
                x = x * 0.5 + 1.0
            a[i] = x


def measured_rates(payoffs: Any, memory: Any, num_bytes: int, seconds: float) -> Work:
    """Bytes, indexed additions and operations per second; the first two for arrays of the sizes of those of the solver."""
    a, b, c = np.ones((3, max(16, num_bytes // 24)))
    stream = 24 * len(a) / least_seconds(lambda n: triad(n, a, b, c), seconds)
    live = [live_rows(payoffs, memory.reach, player) for player in range(len(payoffs.player_block) - 1)]
    rows, counts = (np.concatenate(parts) for parts in zip(*live, strict=True))
    entries = np.repeat(payoffs.entry_start[rows] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    index, values = payoffs.entry_sequence[entries], payoffs.entry_utility[entries]
    target = np.zeros(len(memory.reach))
    indexed = len(index) / least_seconds(lambda n: add_at(n, target, index, values), seconds)
    x = np.ones(1024)
    return Work(stream, indexed, 16 * len(x) / least_seconds(lambda n: polynomials(n, x), seconds / 5))


def size_of(*records: Any) -> int:
    """Bytes of all arrays in the records."""
    return sum(part.nbytes for record in records for part in record if part is not None)


def measure(game: spiel_cfrplus.SequenceFormGame, reduce: bool, args: argparse.Namespace) -> dict[str, Any]:
    """The measurements for one game; times in seconds."""
    solver = spiel_cfrplus.CFRPlusSolver(game, reduce=reduce)
    solver.run(args.settle)
    memory, played = solver.self_play.state, solver.reduction or game
    arrays = played.treeplex_arrays, played.payoff_arrays
    iteration = list(passes(*arrays, memory))
    seconds = least_seconds(solver.run, args.seconds)
    result = {"reduced": reduce, "entries": len(arrays[1].entry_utility), "sequences": len(memory.reach)}
    result |= dataclasses.asdict(sum(iteration, Work(0, 0, 0))) | {"seconds": seconds, "memory": size_of(*arrays, memory)}
    if not args.scaling:
        rates = measured_rates(arrays[1], memory, result["memory"], args.seconds / 2)
        floor = sum(work.seconds(rates) for work in iteration)
        result |= {"rates": dataclasses.asdict(rates), "floor": floor, "ratio": seconds / floor}
    return result


def print_roofline(results: list[dict[str, Any]]) -> None:
    """Prints the table of floors."""
    amounts, rates = ["MB", "kB moved", "k indexed", "k flop"], ["GB/s", "G indexed/s", "Gflop/s"]
    header = ["game", "reduced", *amounts, *rates, "floor, us", "us", "ratio"]
    rows = []
    for result in results:
        amounts = [f"{result['memory'] / 1e6:.2f}", *(f"{result[name] / 1e3:.4g}" for name in WORK)]
        rates = [f"{result['rates'][name] / 1e9:.3g}" for name in WORK]
        times = [f"{1e6 * result['floor']:.4g}", f"{1e6 * result['seconds']:.4g}", f"{result['ratio']:.1f}"]
        rows.append([result["name"], "yes" if result["reduced"] else "no", *amounts, *rates, *times])
    print_table(header, rows)


def print_scaling(results: list[dict[str, Any]]) -> None:
    """Prints the table of times per entry."""
    rows, per_entry = [], []
    for result in results:
        per_entry.append(1e9 * result["seconds"] / result["entries"])
        numbers = [f"{result['memory'] / 1e6:.1f}", f"{1e6 * result['seconds']:.4g}", f"{per_entry[-1]:.2f}"]
        rows.append([result["name"], result["entries"], result["sequences"], *numbers])
    print_table(["game", "payoff entries", "sequences", "MB", "us", "ns per entry"], rows)
    print(f"slowest / fastest per entry: {max(per_entry) / min(per_entry):.2f} (at most {FLAT})")


def _named_games() -> dict[str, str]:
    return {name: string for name, (string, _) in GAMES.items()} | SCALING


def _named_or_string(name: str) -> str:
    return name if name in _named_games() else game_string(name)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scaling", action="store_true", help="time per payoff entry, not reduced, from 1e4 to 1e7 entries")
    parser.add_argument(
        "--games", nargs="+", type=_named_or_string, help=f"names ({', '.join([*GAMES, *SCALING])}) or strings for pyspiel"
    )
    parser.add_argument("--settle", type=int, default=300, help="iterations before the timed ones (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="approximate time of each measurement (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    use_one_core()
    games = _named_games()
    results = []
    for name in args.games or (SCALING if args.scaling else GAMES):
        game = spiel_cfrplus.compile_game(pyspiel.load_game(games.get(name, name)))
        results += [{"name": name} | measure(game, reduce, args) for reduce in ([False] if args.scaling else [False, True])]
    if args.json:
        print(json.dumps(results, indent=2))
    else:
        print_table_of_results = print_scaling if args.scaling else print_roofline
        print_table_of_results(results)


if __name__ == "__main__":
    main()
