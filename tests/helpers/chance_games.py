"""Games that start with a chance move."""

import games
from games import End, Turn


def guess_the_outcome(probabilities):
    """Player 0 bets on a hidden outcome and earns 10 for a hit: the best bet is on the most probable outcome."""
    ends = [Turn(0, "bet", {a: End([10.0 * (a == i), -10.0 * (a == i)]) for a in range(3)}) for i in range(len(probabilities))]
    return games.bad_chance_game(probabilities, ends)
