"""Compares all built-in learners in self-play: NashConv over iterations, and regret relative to its bound.

python scripts/learners.py --output=docs/learners.md
"""

import dataclasses
import sys
from collections.abc import Iterator

import numpy as np
import pyspiel
from absl import app, flags
from pages import write_whole

from spiel_cfrplus import ALGORITHMS, Algorithm, SequenceFormGame, Solver, compile_game, evaluate
from spiel_cfrplus.analysis.convergence import report_iterations
from spiel_cfrplus.regret_minimizers.minimizer import regret_bound
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import Feature

FLAGS = flags.FLAGS
flags.DEFINE_string("output", None, "Write the page, in Markdown, to this file as well.")
flags.DEFINE_integer("iterations", 10_000, "Iterations of each learner in each game.", lower_bound=1)

TARGETS = {"kuhn_poker": 0.02, "leduc_poker": 0.2}

PAGE = """# Comparison of all learners

Self-play of all algorithms in `spiel_cfrplus.ALGORITHMS` except CFR-BR, with alternating updates, adaptive step sizes, and the
default weights of the average of each algorithm. Output of

```bash
python scripts/learners.py --output=docs/learners.md
```

For each game: the first of 1, 2, 5, 10, 20, ... iterations at which the average policy has a NashConv below the target;
NashConv of the average and of the last policy after {iterations} iterations, in game units; and the largest ratio of a player's
regret to the bound in the learner's docstring, over the same iterations. The bound requires a ratio of at most 1.

{table}"""


@dataclasses.dataclass(frozen=True)
class Run:
    """The results of one learner in one game.

    Attributes:
      first_below: the first reported iteration with a NashConv below the target, or None.
      average, last: NashConv of the average and of the current policy at the end.
      share_of_bound: the largest regret / bound over players and reports.
    """

    first_below: int | None
    average: float
    last: float
    share_of_bound: float

    def cells(self) -> list[str]:
        """The cells of the table."""
        first = "-" if self.first_below is None else str(self.first_below)
        return [first, f"{self.average:.1e}", f"{self.last:.1e}", f"{self.share_of_bound:.2f}"]


def run(learner: Algorithm, game: SequenceFormGame, target: float, num_iterations: int) -> Run:
    """Runs self-play from iteration 0."""
    session = SelfPlay(game, learner.minimizers(game), learner.default_averaging)
    solver = Solver.of_session(session, learner.name)
    first_below, share = None, 0.0
    for iteration in report_iterations(0, num_iterations):
        solver.run(iteration - solver.iteration)
        if first_below is None and solver.nash_conv() < target:
            first_below = iteration
        bounds = np.array([regret_bound(minimizer) for minimizer in session.minimizers])
        share = max(share, float((session.regrets() / bounds).max()))
    return Run(first_below, solver.nash_conv(), evaluate(game, solver.current_profile()).nash_conv, share)


def table(num_iterations: int) -> Iterator[str]:
    """The table, line by line."""
    header = ["learner"]
    for name, target in TARGETS.items():
        header += [f"{name}: below {target} at", "average", "last", "regret / bound"]
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    games = {name: compile_game(pyspiel.load_game(name)) for name in TARGETS}
    for learner in ALGORITHMS.values():
        if learner.refusal(Feature.THEORY) or not learner.has_minimizers:  # the players of CFR-BR do not meet
            continue
        runs = [run(learner, games[name], target, num_iterations) for name, target in TARGETS.items()]
        yield f"| `{learner.name}` | {' | '.join(cell for outcome in runs for cell in outcome.cells())} |"


def main(arguments: list[str]) -> None:
    """Entry point, called by absl after it has parsed the flags."""
    if len(arguments) > 1:
        sys.exit(f"error: unexpected argument {arguments[1]!r}")
    lines = []
    for line in table(FLAGS.iterations):
        print(line, flush=True)
        lines.append(line + "\n")
    if FLAGS.output:
        write_whole(FLAGS.output, PAGE.format(iterations=FLAGS.iterations, table="".join(lines)))


if __name__ == "__main__":
    app.run(main)
