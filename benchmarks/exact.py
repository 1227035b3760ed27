"""Exact equilibria by linear programming: time after the walk, size of the program, NashConv, and distance from known values.

The known values are in tests/data/game_values.json, which was computed without this package. NashConv and the distance are
divided by the range of the payoffs. Seconds are wall times, of one thread.
"""

from __future__ import annotations

import argparse
import json
import pathlib

import comparison
import numpy as np
import pyspiel
from timing import markdown_table

from spiel_cfrplus import compile_game, solve_exactly

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
TITLES = ["game", "nonzeros", "seconds", "value", "fraction", "NashConv / range", "distance / range"]


def known_values() -> list[tuple[pyspiel.Game, float]]:
    """The games of the file that are loaded by a string, and their values."""
    rows = json.loads(VALUES.read_text())["values"]
    return [(pyspiel.load_game(row["game"]), row["value"]) for row in rows if "game" in row and "params" not in row]


def row(name: str, known: dict[str, float]) -> list[str]:
    """Solves a game."""
    game = pyspiel.load_game(GAMES[name])
    compiled = compile_game(game)
    solution = solve_exactly(compiled)
    payoff_range = float(np.ptp(compiled.tree.returns[:, 0]))
    value = known.get(str(game))
    distance = "-" if value is None else f"{abs(solution.value - value) / payoff_range:.1e}"
    accuracy = f"{solution.nash_conv / payoff_range:.1e}"
    numbers = [str(solution.size.nonzeros), f"{solution.seconds:.2f}", f"{solution.value:.15g}"]
    return [name, *numbers, str(solution.fraction or ("0" if solution.fraction == 0 else "-")), accuracy, distance]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES), help="all by default")
    games = parser.parse_args().games
    solve_exactly(pyspiel.load_game("kuhn_poker"))  # imports, and kernels from the cache
    known = {str(game): value for game, value in known_values()}
    print(markdown_table(TITLES, [row(name, known) for name in games]))


if __name__ == "__main__":
    main()
