"""Time of a match between two policies, and of a game between bots.

The game is compiled beforehand. A match is the smallest of some repetitions. Games of bots are played by
`pyspiel.evaluate_bots`; all bots play the same policy. The kinds of bots take turns, and each time is the smallest of
the repetitions.
"""

import argparse
import time

import numpy as np
import pyspiel
from open_spiel.python.bots import policy as policy_bots
from timing import game_string, print_table, use_one_core

import spiel_cfrplus


def seconds_per_game(game: pyspiel.Game, bots: list[pyspiel.Bot], num_games: int) -> float:
    """The seconds of a game between the bots, a mean."""
    start = time.perf_counter()
    for seed in range(num_games):
        pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)
    return (time.perf_counter() - start) / num_games


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", type=game_string, default="leduc_poker", help="the game (default: %(default)s)")
    parser.add_argument("--games", type=int, default=1_000_000, help="games of the match (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=5, help="repetitions (default: %(default)s)")
    args = parser.parse_args()
    use_one_core()
    game = pyspiel.load_game(args.game)
    profile = spiel_cfrplus.StrategyProfile.uniform(spiel_cfrplus.compile_game(game))
    players = range(game.num_players())
    table = profile.to_tabular_policy()
    bots = {
        "ProfileBot": [spiel_cfrplus.ProfileBot(profile, player) for player in players],
        "pyspiel_bot": [spiel_cfrplus.pyspiel_bot(profile, player) for player in players],
        "OpenSpiel's PolicyBot of a TabularPolicy": [
            policy_bots.PolicyBot(player, np.random.RandomState(player), table) for player in players
        ],
    }
    matches, games = [], []
    for _ in range(args.repetitions):
        start = time.perf_counter()
        spiel_cfrplus.play_match(profile.game, profile, args.games)
        matches.append(time.perf_counter() - start)
        games.append([seconds_per_game(game, pair, 300) for pair in bots.values()])
    print(f"{game}: a match of {args.games} games takes {min(matches) * 1e3:.1f} ms, the first one {matches[0] * 1e3:.1f} ms")
    per_game = np.min(games, axis=0)
    rows = [
        [name, f"{seconds * 1e6:.0f}", f"{seconds / per_game[0]:.2f}"] for name, seconds in zip(bots, per_game, strict=True)
    ]
    print_table(["bots", "µs per game", "times ProfileBot"], rows)


if __name__ == "__main__":
    main()
