"""Exact equilibria by linear programming: time after the walk, size of the program, NashConv, and distance from known values.

The known values are in tests/data/game_values.json, which was computed without this package. NashConv and the distance are
divided by the range of the payoffs. Seconds are wall times, of one thread.

The same is measured of OpenSpiel's `sequence_form_lp.solve_zero_sum_game` with its default solver, in a process of its own. Its
seconds include its walk. Its NashConv is computed by this package; its negative probabilities are set to zero before. It
requires cvxpy and ecos, and is omitted without them. Its matrices are dense, so that large games need more memory or time than
the limits of its process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import comparison
import numpy as np
import pyspiel
from processes import NoAnswerError, Process, print_answers
from timing import markdown_table, positive

from spiel_cfrplus import compile_game, nash_conv, solve_exactly

VALUES = pathlib.Path(__file__).parents[1] / "tests" / "data" / "game_values.json"
GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards={},points_order={}))"
GAMES = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "liars_dice_4": "liars_dice(dice_sides=4)",
    "liars_dice_5": "liars_dice(dice_sides=5)",
    "liars_dice_6": "liars_dice",
    "goofspiel_4_descending": GOOFSPIEL.format(4, "descending"),
    "goofspiel_4_ascending": GOOFSPIEL.format(4, "ascending"),
    "goofspiel_4_random": GOOFSPIEL.format(4, "random"),
    "goofspiel_5_descending": GOOFSPIEL.format(5, "descending"),
    "goofspiel_6_descending": GOOFSPIEL.format(6, "descending"),
    **{name: comparison.GAMES[name][0] for name in ("dark_hex_2x2", "battleship_2x3", "tic_tac_toe", "leduc_13_ranks")},
}
TITLES = ["game", "nonzeros", "walk", "seconds", "value", "fraction", "NashConv / range", "distance / range"]
OPENSPIEL_TITLES = ["OpenSpiel: seconds", "NashConv / range", "distance / range"]
OPENSPIEL_REQUIRES = ("cvxpy", "ecos")
OPENSPIEL_BYTES = 4 * 2**30


def known_values() -> list[tuple[pyspiel.Game, float]]:
    """The games of the file that are loaded by a string, and their values."""
    rows = json.loads(VALUES.read_text())["values"]
    return [(pyspiel.load_game(row["game"]), row["value"]) for row in rows if "game" in row and "params" not in row]


def row(name: str, known: dict[str, float], openspiel_limit: float) -> list[str]:
    """Solves a game, and also with OpenSpiel if the limit is positive."""
    game = pyspiel.load_game(GAMES[name])
    start = time.perf_counter()
    compiled = compile_game(game)
    walk = time.perf_counter() - start
    solution = solve_exactly(compiled)
    payoff_range, value = float(np.ptp(compiled.tree.returns[:, 0])), known.get(str(game))
    numbers = [str(solution.size.nonzeros), f"{walk:.2f}", f"{solution.seconds:.2f}", f"{solution.value:.15g}"]
    fraction = "-" if solution.fraction is None else str(solution.fraction)
    cells = [name, *numbers, fraction, *accuracy(solution.nash_conv, solution.value, value, payoff_range)]
    if not openspiel_limit:
        return cells
    try:
        theirs = openspiel_answer(name, openspiel_limit)
    except NoAnswerError as error:
        print(f"{name}: OpenSpiel: {error}", file=sys.stderr)
        return [*cells, "-", "-", "-"]
    return [*cells, f"{theirs['seconds']:.2f}", *accuracy(theirs["nash_conv"], theirs["value"], value, payoff_range)]


def accuracy(distance: float, found: float, value: float | None, payoff_range: float) -> tuple[str, str]:
    """The cells of NashConv and of the distance from the known value."""
    return f"{distance / payoff_range:.1e}", "-" if value is None else f"{abs(found - value) / payoff_range:.1e}"


def openspiel_answer(name: str, limit: float) -> dict[str, Any]:
    """What a process that solves the game with OpenSpiel answers."""
    with Process(sys.executable, __file__, "--openspiel-only", name) as process:
        return process.answer(limit)


def solve_with_openspiel(name: str) -> Iterator[dict[str, Any]]:
    """Solves a game with OpenSpiel, and yields the answer of the process."""
    from open_spiel.python.algorithms import sequence_form_lp

    limit_memory()
    game = pyspiel.load_game(GAMES[name])
    start = time.perf_counter()
    try:
        value, _, *policies = sequence_form_lp.solve_zero_sum_game(game)
    except (MemoryError, TypeError) as error:  # a solver without a solution returns None
        yield {"error": f"no solution, {error!r}"}
        return
    seconds = time.perf_counter() - start
    for policy in policies:
        probabilities = policy.action_probability_array
        np.maximum(probabilities, 0, out=probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    yield {"seconds": seconds, "value": float(value), "nash_conv": nash_conv(game, policies)}


def limit_memory() -> None:
    """Limits the memory of this process, if the system supports it."""
    if importlib.util.find_spec("resource") is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (OPENSPIEL_BYTES, OPENSPIEL_BYTES))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES), help="all by default")
    parser.add_argument("--openspiel-limit", type=positive, default=120, help="seconds for OpenSpiel, for each game")
    parser.add_argument("--openspiel-only", choices=GAMES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.openspiel_only:
        print_answers(solve_with_openspiel(arguments.openspiel_only))
        return
    absent = [module for module in OPENSPIEL_REQUIRES if importlib.util.find_spec(module) is None]
    if absent:
        print(f"OpenSpiel's linear program is omitted, because it requires {' and '.join(absent)}", file=sys.stderr)
    limit = 0 if absent else arguments.openspiel_limit
    solve_exactly(pyspiel.load_game("kuhn_poker"))  # imports, and kernels from the cache
    known = {str(game): value for game, value in known_values()}
    titles = TITLES if absent else TITLES + OPENSPIEL_TITLES
    print(markdown_table(titles, [row(name, known, limit) for name in arguments.games]))


if __name__ == "__main__":
    main()
