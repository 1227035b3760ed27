"""The named solvers and some averages of theirs on a shelf of games: NashConv after 100, 1,000 and 10,000 iterations.

python scripts/variants.py --output=docs/variants.md
python scripts/variants.py --rows=restarts
python scripts/variants.py --rows=stabilized
"""

import sys
from collections.abc import Iterator

import numpy as np
import pyspiel
from absl import app, flags
from pages import write_whole
from stabilized import Smooth, Stable, cfr_with

from spiel_cfrplus import (
    ALGORITHMS,
    LEARNERS,
    Averaging,
    CFRBRSolver,
    LearningSolver,
    PredictiveCFRPlusSolver,
    SequenceFormGame,
    Solver,
    compile_game,
    evaluate,
)

FLAGS = flags.FLAGS
flags.DEFINE_string("output", None, "Write the page, in Markdown, to this file as well.")
flags.DEFINE_list("games", None, "Only these of the games, by the first word of their titles.")
flags.DEFINE_list("iterations", ["100", "1000", "10000"], "When to measure, in ascending order.")

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards={}))"
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "liars_dice(dice_sides=4)": "liars_dice(dice_sides=4)",
    "liars_dice": "liars_dice",
    "goofspiel, 4 cards, descending": GOOFSPIEL.format("4,points_order=descending"),
    "goofspiel, 5 cards, descending": GOOFSPIEL.format("5,points_order=descending"),
    "goofspiel, 4 cards, random order": GOOFSPIEL.format("4"),
    "battleship(2x2, one ship of 2, 3 shots)": (
        "battleship(board_width=2,board_height=2,ship_sizes=[2],ship_values=[1],num_shots=3,allow_repeated_shots=False)"
    ),
}
MATRIX = ("matrix game", [[2, -1, 0], [-1, 1, 3], [1, 0, -2]])
# What else than its own weights of the average is worth trying with an algorithm.
OTHER_POWERS = {"cfr+": (2.0,), "pcfr+": (10.0,), "pdcfr+": (20.0,)}

PAGE = """# The family, measured

NashConv, in game units, of the average policy after 100, 1,000 and 10,000 iterations with alternating updates, and of the last
policy after 10,000; the smallest number of each column is bold. An algorithm has its own weights of the average unless others
stand beside it. In the battleship the strategies are those of an equilibrium from early on, and NashConv is what the weights
remember of the first ones. [Which solver to choose](choosing.md) draws the conclusions. Made by

```bash
python scripts/variants.py --output=docs/variants.md
```

{tables}"""


def games() -> Iterator[tuple[str, SequenceFormGame]]:
    """The games with their titles."""
    for title, name in GAMES.items():
        if chosen(title):
            yield title, compile_game(pyspiel.load_game(name))
    title, rows = MATRIX
    if chosen(title):
        columns = (-np.array(rows)).tolist()
        yield title, compile_game(pyspiel.convert_to_turn_based(pyspiel.create_matrix_game(rows, columns)))


def chosen(title: str) -> bool:
    """Whether the flags ask for it."""
    return FLAGS.games is None or title.split()[0].rstrip(",") in FLAGS.games


def family(game: SequenceFormGame) -> Iterator[tuple[str, Solver]]:
    """All variants, ready to begin."""
    for algorithm, solver_type in ALGORITHMS.items():
        yield algorithm, solver_type(game)
        for power in OTHER_POWERS.get(algorithm, ()):
            yield f"{algorithm}, weights t^{power:g}", solver_type(game, averaging=Averaging(power))
    yield CFRBRSolver.algorithm, CFRBRSolver(game)


class Restarting(Solver):
    """Goes on with a session, whose average begins anew after every iteration that is a power of two."""

    def run(self, num_iterations: int) -> None:
        last = self.iteration + num_iterations
        while self.iteration < last:
            power_of_two = 2 ** self.iteration.bit_length()
            super().run(min(power_of_two, last) - self.iteration)
            if self.iteration == power_of_two:
                self.self_play.state.cumulative_policy[:] = 0.0


def restarts(game: SequenceFormGame) -> Iterator[tuple[str, Solver]]:
    """Solvers with averages of all strategies beside those since the last restart."""
    for algorithm in ("cfr+", "dcfr", "dcfr+", "pcfr+", "pdcfr+"):
        solver_type = ALGORITHMS[algorithm]
        for power in sorted({solver_type.averaging_power, *OTHER_POWERS.get(algorithm, ())}):
            yield f"{algorithm}, weights t^{power:g}", solver_type(game, averaging=Averaging(power))
        for power in (0.0, solver_type.averaging_power):
            yield (
                f"{algorithm}, weights t^{power:g}, restarts",
                Restarting(solver_type(game, averaging=Averaging(power)).self_play),
            )


def stabilized(game: SequenceFormGame) -> Iterator[tuple[str, Solver]]:
    """Predictive CFR+ beside its smooth and stable forms, for which no regret is too small to count."""
    for power in (2.0, 10.0):
        averaging = Averaging(power)
        yield f"pcfr+, weights t^{power:g}", PredictiveCFRPlusSolver(game, averaging=averaging)
        plain = LEARNERS["pcfr+"].__call__
        yield f"pcfr+ without rounding, t^{power:g}", LearningSolver(game, plain, averaging=averaging)
        for minimizer in (Smooth, Stable):
            for floor in (0.01, 1.0):
                make = cfr_with(minimizer, game, floor)
                name = f"{minimizer.__name__.lower()}, floor {floor:g}, t^{power:g}"
                yield name, LearningSolver(game, make, averaging=averaging)


ROWS = {"family": family, "restarts": restarts, "stabilized": stabilized}
flags.DEFINE_enum("rows", "family", list(ROWS), "What to measure.")


def measure(solver: Solver) -> list[float]:
    """The numbers of one row."""
    numbers = []
    for iteration in map(int, FLAGS.iterations):
        solver.run(iteration - solver.iteration)
        numbers.append(solver.nash_conv())
    return [*numbers, evaluate(solver.game, solver.current_profile()).nash_conv]


def table(title: str, game: SequenceFormGame) -> str:
    """All variants on one game, in Markdown."""
    rows = {name: measure(solver) for name, solver in ROWS[FLAGS.rows](game)}
    best = np.min(list(rows.values()), axis=0)
    lines = [f"## {title}", ""]
    lines.append(f"| | {' | '.join(f'{int(iteration):,}' for iteration in FLAGS.iterations)} | last policy |")
    lines.append(f"|---{'|---:' * len(best)}|")
    for name, numbers in rows.items():
        cells = [f"**{x:.2e}**" if x == least else f"{x:.2e}" for x, least in zip(numbers, best, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Is called by absl with flags parsed."""
    if len(arguments) > 1:
        sys.exit(f"error: unexpected argument {arguments[1]!r}")
    words = [title.split()[0].rstrip(",") for title in (*GAMES, MATRIX[0])]
    if unknown := set(FLAGS.games or []) - set(words):
        sys.exit(f"error: no game is called {', '.join(sorted(unknown))}; there are {', '.join(dict.fromkeys(words))}")
    tables = []
    for title, game in games():
        tables.append(table(title, game))
        print(tables[-1], flush=True)
    if FLAGS.output:
        write_whole(FLAGS.output, PAGE.format(tables="\n".join(tables)))


if __name__ == "__main__":
    app.run(main)
