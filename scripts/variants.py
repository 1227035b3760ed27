"""The named solvers and some averages of theirs on a shelf of games: NashConv after 100, 1,000 and 10,000 iterations.

python scripts/variants.py --runs=9 --output=docs/variants.md --measured=variants.csv
python scripts/variants.py --rows=restarts
python scripts/variants.py --rows=stabilized
python scripts/variants.py --rows=recent
python scripts/variants.py --rows=recommended

Rows are stored in the file of `--measured` and not measured again: delete the file after a change of the package. Processes
that measure different games at the same time need different files, which `--measured=a.csv,b.csv` reads together.
"""

import functools
import pathlib
import random
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyspiel
from absl import app, flags
from measurements import Key, Measurements
from pages import write_whole
from perturbation import perturbed
from stabilized import Smooth, Stable, cfr_with

from spiel_cfrplus import (
    ALGORITHMS,
    Averaging,
    SequenceFormGame,
    Solver,
    compile_game,
    evaluate,
    make_solver,
)
from spiel_cfrplus.regret_minimizers import CFR, RegretMatchingPlus

FLAGS = flags.FLAGS
flags.DEFINE_string("output", None, "Write the page, in Markdown, to this file as well.")
flags.DEFINE_list("games", None, "Only these of the games, by the first word of their titles.")
flags.DEFINE_list("iterations", ["100", "1000", "10000"], "When to measure, in ascending order.")
flags.DEFINE_integer("runs", 0, "Repeat the first 1,000 iterations of some games in so many runs.", lower_bound=0)
flags.DEFINE_boolean("stored_only", False, "Measure nothing: a table without the rows that are not stored.")
flags.DEFINE_list("measured", [], "CSV files of rows that are not measured again; new rows are added to the first of them.")

Make = Callable[[SequenceFormGame], Solver]

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards={}))"
HELPERS = pathlib.Path(__file__).parents[1] / "tests" / "helpers"


def named(name: str) -> Callable[[], pyspiel.Game]:
    """Loads a game of OpenSpiel."""
    return functools.partial(pyspiel.load_game, name)


def matrix_game(rows: list[list[int]]) -> pyspiel.Game:
    """The zero-sum game with these payoffs of player 0."""
    return pyspiel.convert_to_turn_based(pyspiel.create_matrix_game(rows, (-np.array(rows)).tolist()))


def random_matrix_game(size: int) -> pyspiel.Game:
    """A square matrix of payoffs from -9 to 9."""
    rng = random.Random(1)
    return matrix_game([[rng.randint(-9, 9) for _ in range(size)] for _ in range(size)])


def random_tree(seed: int) -> pyspiel.Game:
    """One of the random games of the tests."""
    return runpy.run_path(str(HELPERS / "games.py"))["random_efg"](seed, depth=9)


GAMES = {
    "kuhn_poker": named("kuhn_poker"),
    "leduc_poker": named("leduc_poker"),
    "universal poker, 3 ranks of 2 suits": named(
        "universal_poker(betting=limit,numRanks=3,numSuits=2,raiseSize=200 400,maxRaises=1 1)"
    ),
    "liars_dice(dice_sides=4)": named("liars_dice(dice_sides=4)"),
    "liars_dice": named("liars_dice"),
    "goofspiel, 4 cards, descending": named(GOOFSPIEL.format("4,points_order=descending")),
    "goofspiel, 4 cards, ascending": named(GOOFSPIEL.format("4,points_order=ascending")),
    "goofspiel, 4 cards, random order": named(GOOFSPIEL.format("4")),
    "goofspiel, 5 cards, descending": named(GOOFSPIEL.format("5,points_order=descending")),
    "battleship(2x2, one ship of 2, 3 shots)": named(
        "battleship(board_width=2,board_height=2,ship_sizes=[2],ship_values=[1],num_shots=3,allow_repeated_shots=False)"
    ),
    "dark_hex(2x2)": named("dark_hex(board_size=2,gameversion=adh)"),
    "matrix game": functools.partial(matrix_game, [[2, -1, 0], [-1, 1, 3], [1, 0, -2]]),
    "random matrix game, 8x8": functools.partial(random_matrix_game, 8),
    "random tree 1": functools.partial(random_tree, 1),
    "random tree 3": functools.partial(random_tree, 3),
}
# Games whose NashConv depends on rounding, and that take little time.
REPEATED = ("leduc_poker", "universal poker, 3 ranks of 2 suits")
# A NashConv below this counts as this in ratios.
NEGLIGIBLE = 1e-9
VARIANTS = ("cfr", "cfr+", "lcfr", "dcfr", "dcfr+", "pcfr", "pcfr+", "pdcfr+", "sapcfr+", "sapdcfr+")
RECENT = (
    "apcfr+",
    "spcfr+",
    "mi-spcfr+",
    "hs-dcfr",
    "hs-pcfr+",
    "hs-pdcfr+",
    "ireg-pcfr+",
    "ireg-cfr+",
    "vad-cfr",
    "vad-cfr-core",
)
# What else than its own weights of the average is worth trying with an algorithm.
OTHER_POWERS = {"cfr+": (2.0,), "pcfr+": (10.0,), "pdcfr+": (20.0,), "vad-cfr-core": (5.0,)}

PAGE = """# NashConv of CFR variants

NashConv, in game units, of the average policy after 100, 1,000 and 10,000 iterations with alternating updates, and of the last
policy after 10,000; the smallest number of each column is bold. Each algorithm uses its own averaging weights unless others are
stated: those of `vad-cfr` and `vad-cfr-core` begin at iteration 500, so their average policy is uniform before; the schedules
of the `hs-` rows are for 1,000 iterations. `auto` is `sapdcfr+` with weights t^5. In battleship the strategies reach an
equilibrium early, so NashConv measures the remaining weight of the first strategies. The random trees are those of two seeds
of `random_efg` in `tests/helpers/games.py`. [Choosing a solver](choosing.md) interprets the results. Generated by

```bash
{command}
```

{tables}"""


@functools.cache
def compiled(title: str, run: int = 0) -> SequenceFormGame:
    """A game in sequence form, perturbed if `run` is not 0."""
    return perturbed(compiled(title), run) if run else compile_game(GAMES[title]())


def chosen(title: str) -> bool:
    """Whether the flags ask for it."""
    return FLAGS.games is None or title.split()[0].rstrip(",") in FLAGS.games


def row(algorithm: str, *powers: float) -> Iterator[tuple[str, Make]]:
    """An algorithm with weights t^p for each of the powers p."""
    for power in powers:
        yield f"{algorithm}, weights t^{power:g}", functools.partial(make_solver, algorithm, averaging=Averaging(power))


def family() -> Iterator[tuple[str, Make]]:
    """All variants with their own averages, and what else is worth trying."""
    for algorithm in (*VARIANTS, *RECENT, "auto", "cfr-br"):
        yield algorithm, functools.partial(make_solver, algorithm)
        yield from row(algorithm, *OTHER_POWERS.get(algorithm, ()))


class Restarting(Solver):
    """Goes on with a session, whose average begins anew after every iteration that is a power of two."""

    def run(self, num_iterations: int) -> None:
        last = self.iteration + num_iterations
        while self.iteration < last:
            power_of_two = 2 ** self.iteration.bit_length()
            super().run(min(power_of_two, last) - self.iteration)
            if self.iteration == power_of_two:
                self.self_play.state.cumulative_policy[:] = 0.0


def restarting(algorithm: str, power: float) -> Make:
    """Makes a solver whose average restarts."""
    return lambda game: Restarting.of_session(make_solver(algorithm, game, averaging=Averaging(power)).self_play, algorithm)


def restarts() -> Iterator[tuple[str, Make]]:
    """Solvers with averages of all strategies beside those since the last restart."""
    for algorithm in ("cfr+", "dcfr", "dcfr+", "pcfr+", "pdcfr+"):
        own_power = ALGORITHMS[algorithm].averaging_power
        yield from row(algorithm, *sorted({own_power, *OTHER_POWERS.get(algorithm, ())}))
        for power in (0.0, own_power):
            yield f"{algorithm}, weights t^{power:g}, restarts", restarting(algorithm, power)


def of_minimizers(minimizer: type[Smooth], floor: float, averaging: Averaging) -> Make:
    """Makes a solver of a minimizer with a floor."""
    return lambda game: Solver.of_minimizers(game, cfr_with(minimizer, game, floor), averaging=averaging)


def stabilized() -> Iterator[tuple[str, Make]]:
    """Predictive CFR+ beside its smooth and stable forms, for which no regret is too small to count."""
    plain = functools.partial(CFR, local_rule=RegretMatchingPlus(), prediction_weight=1.0)
    for power in (2.0, 10.0):
        averaging = Averaging(power)
        yield from row("pcfr+", power)
        yield (
            f"pcfr+ without rounding, t^{power:g}",
            functools.partial(Solver.of_minimizers, minimizer=plain, averaging=averaging),
        )
        for minimizer in (Smooth, Stable):
            for floor in (0.01, 1.0):
                name = f"{minimizer.__name__.lower()}, floor {floor:g}, t^{power:g}"
                yield name, of_minimizers(minimizer, floor, averaging)


def recent() -> Iterator[tuple[str, Make]]:
    """Rules published from 2024 on beside older ones; schedules and late averages for 1,000 iterations."""
    for algorithm in ("dcfr", "pcfr+", "pdcfr+", *RECENT):
        yield algorithm, functools.partial(make_solver, algorithm)
        if not algorithm.startswith("hs-"):
            late = functools.partial(make_solver, algorithm, averaging=Averaging.late(1000))
            yield f"{algorithm}, late half", late


def recommended() -> Iterator[tuple[str, Make]]:
    """Rules with averages that need no planned number of iterations; `auto` is one of them."""
    for algorithm in ("vad-cfr-core", "vad-cfr", "spcfr+", "mi-spcfr+", *VARIANTS[3:], "apcfr+", "ireg-pcfr+"):
        yield from row(algorithm, 2.0, 5.0, 10.0, 20.0)


ROWS = {
    "family": family,
    "restarts": restarts,
    "stabilized": stabilized,
    "recent": recent,
    "recommended": recommended,
}
flags.DEFINE_enum("rows", "family", list(ROWS), "What to measure.")


def measure(solver: Solver, marks: list[int]) -> list[float]:
    """NashConv of the average policy at each of the marks, and of the last policy."""
    numbers = []
    for iteration in marks:
        solver.run(iteration - solver.iteration)
        numbers.append(solver.nash_conv())
    return [*numbers, evaluate(solver.game, solver.current_profile()).nash_conv]


def rows_of(title: str, marks: list[int], stored: Measurements, run: int = 0) -> dict[str, list[float]]:
    """All rows of a game, those that are stored and those that are measured now."""

    def numbers(name: str, make: Make) -> list[float]:
        key = Key(title, run, name, " ".join(map(str, marks)))
        return stored.get(key, lambda: [] if FLAGS.stored_only else measure(make(compiled(title, run)), marks))

    rows = {name: numbers(name, make) for name, make in ROWS[FLAGS.rows]()}
    return {name: found for name, found in rows.items() if found}


def table(title: str, columns: list[str], cells: Mapping[str, list[str]]) -> str:
    """A table of numbers with a title, in Markdown."""
    lines = [f"## {title}", "", f"| | {' | '.join(columns)} |", f"|---{'|---:' * len(columns)}|"]
    lines.extend(f"| {name} | {' | '.join(row)} |" for name, row in cells.items())
    return "\n".join(lines) + "\n"


def marks() -> list[int]:
    """The iterations of the flag."""
    return [int(iteration) for iteration in FLAGS.iterations]


def with_best_in_bold(rows: dict[str, list[float]]) -> dict[str, list[str]]:
    """The numbers as text."""
    best = np.min(list(rows.values()), axis=0)
    return {
        name: [f"**{x:.2e}**" if x == least else f"{x:.2e}" for x, least in zip(numbers, best, strict=True)]
        for name, numbers in rows.items()
    }


def table_of_ratios(measured: Mapping[str, dict[str, list[float]]]) -> str:
    """The ratios of all rows to the best row of each game with all rows: geometric means over games and largest."""
    num_rows = max(map(len, measured.values()))
    measured = {title: rows for title, rows in measured.items() if len(rows) == num_rows}
    numbers = np.maximum([list(rows.values()) for rows in measured.values()], NEGLIGIBLE)[:, :, :-1]
    ratios = numbers / numbers.min(axis=1, keepdims=True)
    means, largest = np.exp(np.log(ratios).mean(axis=0)), ratios.max(axis=0)
    columns = [f"{mark:,}: {what}" for mark in marks() for what in ("mean", "largest")]
    pairs = np.stack([means, largest], axis=-1).reshape(len(means), -1)
    names = next(iter(measured.values()))
    cells = {name: [f"{ratio:.3g}" for ratio in ratios] for name, ratios in zip(names, pairs, strict=True)}
    return table("Ratios to the best row of each game", columns, cells) + RATIOS


RATIOS = """
Geometric means over the games whose tables have all rows, and largest ratios. A NashConv below 1e-9 counts as 1e-9.
"""


def table_of_runs(stored: Measurements) -> str:
    """Medians and ranges over runs."""
    titles = list(filter(chosen, REPEATED))
    runs = {title: [rows_of(title, [1000], stored, run) for run in range(FLAGS.runs)] for title in titles}
    cells = {
        name: [median_and_range([rows[name][0] for rows in runs[title]]) for title in titles] for name, _ in ROWS[FLAGS.rows]()
    }
    return table(f"{FLAGS.runs} runs of 1,000 iterations", titles, cells) + RUNS


def median_and_range(numbers: list[float]) -> str:
    """For instance 2.00e-04 [1.00e-04, 3.00e-04]."""
    return f"{np.median(numbers):.2e} [{min(numbers):.2e}, {max(numbers):.2e}]"


RUNS = """
Median [smallest, largest] NashConv. The first run is that of the tables above; in each other run one payoff differs by one or a
few units of its last bit, at all places where its absolute value occurs.
"""


def main(arguments: list[str]) -> None:
    """Is called by absl with flags parsed."""
    if len(arguments) > 1:
        sys.exit(f"error: unexpected argument {arguments[1]!r}")
    words = [title.split()[0].rstrip(",") for title in GAMES]
    if unknown := set(FLAGS.games or []) - set(words):
        sys.exit(f"error: no game is called {', '.join(sorted(unknown))}; there are {', '.join(dict.fromkeys(words))}")
    stored = Measurements(FLAGS.measured)
    measured, tables = {}, []
    columns = [*(f"{mark:,}" for mark in marks()), "last policy"]
    for title in filter(chosen, GAMES):
        measured[title] = rows_of(title, marks(), stored)
        tables.append(table(title, columns, with_best_in_bold(measured[title])))
        print(tables[-1], flush=True)
    for needed, make in ((len(measured) > 1, lambda: table_of_ratios(measured)), (FLAGS.runs, lambda: table_of_runs(stored))):
        if needed:
            tables.append(make())
            print(tables[-1], flush=True)
    if FLAGS.output:
        write_whole(FLAGS.output, PAGE.format(command=COMMAND, tables="\n".join(tables)))


COMMAND = "python scripts/variants.py --runs=9 --output=docs/variants.md --measured=variants.csv"


if __name__ == "__main__":
    app.run(main)
