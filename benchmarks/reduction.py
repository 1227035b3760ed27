"""Cost and savings of the symmetry reduction.

For each game: infostates, sequences and payoffs of the whole and of the reduced game; seconds to compute the reduction;
microseconds of a CFR+ iteration on the whole and on the reduced game, measured in turns after the same number of iterations;
and the number of iterations after which the reduction has saved the time it took, without compilation of kernels.
"""

import argparse
import json
import math

import pyspiel
from timing import game_string, print_table, seconds_of, seconds_per_repetition, use_one_core

import spiel_cfrplus
from spiel_cfrplus.solving.symmetry import reduce_game

GAMES = [
    "kuhn_poker",
    "leduc_poker",
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=10 10,firstPlayer=1 1,numSuits=4,numRanks=3,numHoleCards=1,"
    "numBoardCards=0 1,raiseSize=20 40,maxRaises=2 2)",
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=2 2,numSuits=2,"
    "numRanks=13,numHoleCards=1,numBoardCards=0 1)",
    "liars_dice",
    "turn_based_simultaneous_game(game=goofspiel(num_cards=4,imp_info=True,points_order=descending))",
    "dark_hex(board_size=2,gameversion=adh)",
    "battleship(board_width=2,board_height=3,ship_sizes=[1;2],ship_values=[1;1],num_shots=2,allow_repeated_shots=False)",
    "tic_tac_toe",
]


def measure(name: str, warm_up: int) -> dict[str, object]:
    """The measurements for a game, times in seconds."""
    game = spiel_cfrplus.compile_game(pyspiel.load_game(name))
    whole = spiel_cfrplus.CFRPlusSolver(game, reduce=False)
    whole.run(warm_up)  # also compiles the kernels and creates the arrays that both solvers use
    seconds = seconds_of(lambda: reduce_game(game))
    reduced = spiel_cfrplus.CFRPlusSolver(game, reduce=True)
    reduced.run(warm_up)
    times = seconds_per_repetition({"whole": whole.run, "reduced": reduced.run})
    saved = times["whole"] - times["reduced"]
    reduction = reduce_game(game)
    return {
        "game": name,
        "infostates": (game.num_infostates, reduction.num_infostates),
        "sequences": (game.num_sequences, reduction.num_sequences),
        "payoffs": (len(game.payoffs), reduction.num_payoffs),
        "seconds": {"reduce": seconds, **times},
        "pays off after": math.ceil(seconds / saved) if saved > 0 else None,
    }


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", type=game_string, default=GAMES, help="arguments of pyspiel.load_game")
    parser.add_argument("--warm-up", type=int, default=300, help="iterations before the timing (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    use_one_core()
    measure("kuhn_poker", 10)  # compiles the kernels
    results = [measure(name, args.warm_up) for name in args.games]
    if args.json:
        print(json.dumps(results, indent=2))
        return
    rows = []
    for result in results:
        sizes = ["{} -> {}".format(*result[size]) for size in ("infostates", "sequences", "payoffs")]
        seconds = result["seconds"]
        micro = [f"{1e6 * seconds[played]:.2f}" for played in ("whole", "reduced")]
        speed_up = f"{seconds['whole'] / seconds['reduced']:.1f}"
        rows.append([result["game"], *sizes, f"{seconds['reduce']:.3f}", *micro, speed_up, result["pays off after"] or "-"])
    print("seconds to reduce; microseconds per CFR+ iteration; iterations after which the reduction has saved the time it took")
    columns = ["game", "infostates", "sequences", "payoffs", "s to reduce", "whole", "reduced", "speed-up", "pays off after"]
    print_table(columns, rows)


if __name__ == "__main__":
    main()
