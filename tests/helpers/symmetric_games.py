"""Games with symmetries, on which results with and without symmetry reduction or threads are compared."""

from collections.abc import Callable

import games
import pyspiel
from games import GAMES, Chance, End, Node, Turn

BATTLESHIP = "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=3,allow_repeated_shots=False)"
GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,points_order=descending,num_turns=-1,players=2,"
    "returns_type=win_loss))"
)


def twins(root: Node, payoff: Callable[[float], float] = lambda value: value) -> Node:
    """Chance first selects one of two copies of the game, whose infostates have different names.

    Args:
      root: the game.
      payoff: maps the returns to those of the second copy.
    """

    def renamed(node: Node, mark: str) -> Node:
        match node:
            case End(returns):
                return End([payoff(value) for value in returns] if mark == "b" else returns)
            case Chance(probabilities, children):
                return Chance(probabilities, [renamed(child, mark) for child in children])
            case Turn(player, key, children):
                return Turn(player, f"{mark} {key}", {action: renamed(child, mark) for action, child in children.items()})
        raise TypeError(node)

    return Chance([0.5, 0.5], [renamed(root, "a"), renamed(root, "b")])


def random_tree(seed: int, num_players: int = 2, zero_sum: bool = True) -> Node:
    return games.tree_of(games.random_efg(seed, depth=4, num_players=num_players, zero_sum=zero_sum))


RANDOM = {
    "twins": lambda: games.efg_game(twins(random_tree(3))),
    "twins of three players": lambda: games.efg_game(twins(random_tree(4, 3, zero_sum=False))),
    "twins of twins": lambda: games.efg_game(twins(twins(random_tree(5)))),
}
COMPARED = {
    **{name: GAMES[name] for name in ("kuhn_poker", "kuhn_poker_3p", "leduc_poker", "dark_hex_2")},
    "liars_dice_3": lambda: pyspiel.load_game("liars_dice(dice_sides=3)"),
    "goofspiel": lambda: pyspiel.load_game(GOOFSPIEL),
    "battleship": lambda: pyspiel.load_game(BATTLESHIP),
    "idle player": lambda: pyspiel.convert_to_turn_based(games.idle_player_game()),
    **RANDOM,
}
