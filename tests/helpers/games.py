"""Small games for the tests: well-known ones in `GAMES`, and constructed ones, each with its special property.

A constructed game is defined by a tree of `Turn`, `Chance`, `Together` and `End`. `efg_game` loads such a tree through
OpenSpiel's extensive-form format; `python_game` makes it a Python game, which can have faults that the format does not allow.
"""

import copy
import dataclasses
import itertools
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyspiel
from open_spiel.python.games import kuhn_poker as python_kuhn_poker

# Trees.


@dataclasses.dataclass(frozen=True)
class Turn:
    """Player `player` moves; `key` is its information-state string, or a function that returns one."""

    player: int
    key: str | Callable[[], str]
    children: dict[int, "Node"]


@dataclasses.dataclass(frozen=True)
class Chance:
    """Chance moves; outcome i leads to `children[i]`."""

    probabilities: Sequence[float]
    children: Sequence["Node"]


@dataclasses.dataclass(frozen=True)
class Together:
    """All players move at once: player p has the string `key` and the actions `legal[p]`, maybe none (an idle player)."""

    key: str
    legal: Sequence[Sequence[int]]
    child: Callable[[Sequence[int]], "Node"]


@dataclasses.dataclass(frozen=True)
class End:
    """The game is over."""

    returns: Sequence[float]


Node = Turn | Chance | Together | End


def efg_game(root: Node) -> pyspiel.Game:
    """The tree as an `efg_game`; walks with an explicit stack, since trees may be deep."""
    end = root
    while not isinstance(end, End):
        end = next(iter(end.children.values() if isinstance(end, Turn) else end.children))
    numbers: list[dict[str, int]] = [{} for _ in end.returns]
    counts = itertools.count(1)
    names = " ".join(f'"player {player}"' for player in range(len(numbers)))
    lines = [f'EFG 2 R "made for a test" {{ {names} }}', '""']
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, End):
            lines.append(f't "" {next(counts)} "" {{ {" ".join(map(repr, map(float, node.returns)))} }}')
        elif isinstance(node, Chance):
            outcomes = " ".join(f'"{i}" {probability!r}' for i, probability in enumerate(node.probabilities))
            lines.append(f'c "" {next(counts)} "" {{ {outcomes} }} 0')
            stack.extend(reversed(node.children))
        else:
            number = numbers[node.player].setdefault(node.key, len(numbers[node.player]) + 1)
            actions = " ".join(f'"{action}"' for action in node.children)
            lines.append(f'p "" {node.player + 1} {number} "{node.key}" {{ {actions} }} 0')
            stack.extend(reversed(node.children.values()))
    return pyspiel.load_efg_game("\n".join(lines) + "\n")


class _TreeState(pyspiel.State):
    """A place in a tree of nodes."""

    def __init__(self, game: "_TreeGame"):
        super().__init__(game)
        self._place = _Place(game.root)

    def current_player(self) -> int:
        match self._place.node:
            case Turn(player=player):
                return player
            case Chance():
                return pyspiel.PlayerId.CHANCE
            case Together():
                return pyspiel.PlayerId.SIMULTANEOUS
        return pyspiel.PlayerId.TERMINAL

    def is_terminal(self) -> bool:
        return isinstance(self._place.node, End)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return list(enumerate(self._place.node.probabilities))

    def _legal_actions(self, player: int) -> list[int]:
        node = self._place.node
        return list(node.legal[player] if isinstance(node, Together) else node.children)

    def _apply_action(self, action: int) -> None:
        self._place.node = self._place.node.children[action]

    def _apply_actions(self, actions: Sequence[int]) -> None:
        self._place.node = self._place.node.child(actions)

    def _action_to_string(self, player: int, action: int) -> str:
        return str(action)

    def key(self) -> str:
        node = self._place.node
        key = node.key if isinstance(node, Turn | Together) else ""
        return key() if callable(key) else key

    def returns(self) -> list[float]:
        node = self._place.node
        return copy.copy(node.returns) if isinstance(node, End) else [0.0] * self.num_players()

    def __str__(self) -> str:
        return str(self.history())


class PlayerGivenState(_TreeState):
    """A state whose `information_state_string` requires the player."""

    def information_state_string(self, player: int) -> str:
        assert player == self.current_player()
        return self.key()


class _Place:
    """A reference to the node of a state, which deep copies share, because cloning a Python state copies it deeply."""

    def __init__(self, node: Node):
        self.node = node

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Place":
        return copy.copy(self)


class _Observer:
    """The observer through which OpenSpiel obtains the strings of a Python game."""

    def __init__(self) -> None:
        self.tensor, self.dict = None, {}

    def set_from(self, state: _TreeState, player: int) -> None:
        """Does nothing, because there are no tensors."""

    def string_from(self, state: _TreeState, player: int) -> str:
        return state.key()


class _TreeGame(pyspiel.Game):
    """Plays a tree of nodes."""

    def __init__(self, game_type: pyspiel.GameType, root: Node, state: type[_TreeState]):
        info = pyspiel.GameInfo(
            num_distinct_actions=4,
            max_chance_outcomes=4,
            num_players=game_type.min_num_players,
            min_utility=-10.0,
            max_utility=10.0,
            utility_sum=0.0,
            max_game_length=10,
        )
        super().__init__(game_type, info, {})
        self.root = root
        self._state = state

    def new_initial_state(self) -> _TreeState:
        return self._state(self)

    def make_py_observer(self, observation_type: Any = None, params: Any = None) -> _Observer:
        return _Observer()


def python_game(name: str, root: Node, num_players: int = 2, state: type[_TreeState] = _TreeState) -> pyspiel.Game:
    """The tree as a Python game, registered under `name`."""
    dynamics = pyspiel.GameType.Dynamics
    game_type = pyspiel.GameType(
        short_name=name,
        long_name=name,
        dynamics=dynamics.SIMULTANEOUS if isinstance(root, Together) else dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=num_players,
        min_num_players=num_players,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=False,
        provides_observation_tensor=False,
    )

    class NamedGame(_TreeGame):  # a class, since OpenSpiel's registry must not be the last to hold what it is given
        def __init__(self, params: Any = None):
            super().__init__(game_type, root, state)

    pyspiel.register_game(game_type, NamedGame)
    return pyspiel.load_game(name)


# Games with a known answer.


def matrix_game(rows: Sequence[Sequence[float]], columns: Sequence[Sequence[float]] | None = None) -> pyspiel.Game:
    """Player 0 picks a row unseen, player 1 a column. `rows` pays player 0, `columns` player 1; by default the negative."""
    columns = [[-value for value in row] for row in rows] if columns is None else columns
    return pyspiel.convert_to_turn_based(pyspiel.create_matrix_game(rows, columns))


def biased_rock_paper_scissors() -> pyspiel.Game:
    """Rock against scissors pays double. Equilibrium (1/4, 1/2, 1/4) for both: every row then earns 0, so the value is 0."""
    return matrix_game([[0, -1, 2], [1, 0, -1], [-2, 1, 0]])


def battle_of_the_sexes() -> pyspiel.Game:
    """General sum. Mixed equilibrium: player 0 plays (3/5, 2/5), player 1 (2/5, 3/5); both earn 6/5. Uniform pays 5/4 each."""
    return matrix_game([[3, 0], [0, 2]], [[2, 0], [0, 3]])


def chain(depth: int, load: Callable[[Node], pyspiel.Game] = efg_game) -> pyspiel.Game:
    """Two players in turn stop or go on, `depth` times. A stop after i moves pays i % 3 to player 0, the end pays 1. Value 1.

    Player 0 goes on, and player 1 stops at a cost of 1, since otherwise player 0 would stop for 2 (or the game ends for 1).
    """
    node: Node = End([1, -1])
    for i in reversed(range(depth)):
        node = Turn(i % 2, str(i), {0: End([i % 3, -(i % 3)]), 1: node})
    return load(node)


def python_chain(depth: int) -> pyspiel.Game:
    """`chain` as a Python game: OpenSpiel's extensive-form loader recurses and crashes with 20,000 moves."""
    return chain(depth, lambda root: python_game("test_chain", root))


def player_given_game() -> pyspiel.Game:
    """Matching pennies where a match pays 2 at heads, in a Python game whose strings require the player. Value 1/5.

    The matrix is [[2, -1], [-1, 1]]; both play heads with 2/5. The chance move has no effect.
    """
    rows = [[2, -1], [-1, 1]]
    ends = [Turn(1, "second", {j: End([value, -value]) for j, value in enumerate(row)}) for row in rows]
    pennies = Turn(0, "first", dict(enumerate(ends)))
    return python_game("test_player_given", Chance([0.5, 0.5], [pennies, pennies]), state=PlayerGivenState)


def shared_string_game() -> pyspiel.Game:
    """Both players' only information-state string is "my turn". Equilibrium: action 0 with 3/7 and 2/7; value 1/7.

    Player 0's p makes 3p - 2(1 - p) equal to -p + (1 - p); player 1's q makes 3q - (1 - q) equal to -2q + (1 - q).
    """
    rows = [[3, -1], [-2, 1]]
    ends = [Turn(1, "my turn", {j: End([value, -value]) for j, value in enumerate(row)}) for row in rows]
    return python_game("test_shared_string", Turn(0, "my turn", dict(enumerate(ends))))


def idle_player_game() -> pyspiel.Game:
    """Matching pennies where a match pays 2; if player 0 shows 1 it then moves again, while player 1 has no legal action.

    Simultaneous; convert it with `pyspiel.convert_to_turn_based`. After that second move player 0 earns 1 more for action 1, so
    the matrix in effect is [[2, -2], [-1, 3]], with equilibrium (1/2, 1/2) against (5/8, 3/8) and value 1/2.
    """

    def second(actions: Sequence[int]) -> Node:
        earned = 2 if actions[0] == actions[1] else -2
        if actions[0] == 0:
            return End([earned, -earned])
        return Together("again", [[0, 1], []], lambda actions: End([earned + actions[0], -earned - actions[0]]))

    return python_game("test_idle_player", Together("start", [[0, 1], [0, 1]], second))


def zero_chance_game() -> pyspiel.Game:
    """Biased pennies in which a chance outcome of probability 0 would pay player 0 much more: [[1, -1], [-1, 2]], value 1/5.

    Equilibrium: both play action 0 with 3/5.
    """

    def pennies(bonus: float) -> Node:
        rows = [[1 + bonus, -1 + bonus], [-1 + bonus, 2 + bonus]]
        ends = [Turn(1, "second", {j: End([value, -value]) for j, value in enumerate(row)}) for row in rows]
        return Turn(0, "first", dict(enumerate(ends)))

    return bad_chance_game([1.0, 0.0], [pennies(0), pennies(9)])


def lone_player_game() -> pyspiel.Game:
    """One player guesses a hidden coin that shows 1 with 3/4. Best: guess 1, worth 3/4."""
    guesses = [Turn(0, "guess", {guess: End([float(guess == coin)]) for guess in range(2)}) for coin in range(2)]
    return python_game("test_lone_player", Chance([0.25, 0.75], guesses), num_players=1)


# Games that cannot be solved, or not as they are.


def absent_minded() -> pyspiel.Game:
    """Player 0 meets the same infostate twice on one path."""
    again = Turn(0, "junction", {0: End([4, -4]), 1: End([1, -1])})
    return efg_game(Turn(0, "junction", {0: End([0, 0]), 1: again}))


def forgetful_game() -> pyspiel.Game:
    """Player 0 moves, then player 1, then player 0 again, without observing its first move: imperfect recall."""

    def last(first: int, reply: int) -> Node:
        return Turn(0, "later", {a: End([first + 2 * reply + a, -first - 2 * reply - a]) for a in range(2)})

    replies = [Turn(1, "reply", {b: last(a, b) for b in range(2)}) for a in range(2)]
    return efg_game(Turn(0, "early", dict(enumerate(replies))))


def noisy_string_game() -> pyspiel.Game:
    """The information-state string is different at every call."""
    return python_game("test_noisy_string", Turn(0, lambda: str(random.random()), {0: End([1, -1]), 1: End([-1, 1])}))


def interrupting_game() -> pyspiel.Game:
    """Ctrl-C arrives while player 1's information-state string is computed."""

    def interrupt() -> str:
        raise KeyboardInterrupt

    return python_game("test_interrupting", Turn(0, "calm", {0: End([1, -1]), 1: Turn(1, interrupt, {0: End([0, 0])})}))


def endless_chance_game() -> pyspiel.Game:
    """An infinite sequence of chance moves."""
    children: list[Node] = []
    again = Chance([1.0], children)
    children.append(again)
    return python_game("test_endless_chance", again)


def different_actions_game() -> pyspiel.Game:
    """Player 0's only infostate "same" has the legal actions [0, 1] after chance outcome 0 and [0, 1, 2] after outcome 1."""
    turns = [Turn(0, "same", {action: End([action, -action]) for action in range(count)}) for count in (2, 3)]
    return python_game("test_different_actions", Chance([0.5, 0.5], turns))


def no_legal_actions_game() -> pyspiel.Game:
    """After player 0's action 1 player 1 is to move and has no legal action."""
    return python_game("test_no_legal_actions", Turn(0, "start", {0: End([1, -1]), 1: Turn(1, "stuck", {})}))


def bad_chance_game(probabilities: Sequence[float], children: Sequence[Node] | None = None) -> pyspiel.Game:
    """The chance outcomes of the root have the given `probabilities`, valid or not; then player 0 chooses 1 or -1."""
    turn = Turn(0, "pick", {0: End([1, -1]), 1: End([-1, 1])})
    return python_game("test_bad_chance", Chance(probabilities, children or [turn] * len(probabilities)))


def bad_returns_game(value: float) -> pyspiel.Game:
    """Player 0's action 1 returns `value` to player 0 and its negative to player 1."""
    return python_game("test_bad_returns", Turn(0, "pick", {0: End([1, -1]), 1: End([value, -value])}))


def wrong_returns_game(returns: Any) -> pyspiel.Game:
    """`State.returns()` is `returns`, valid or not, at every terminal state."""
    return python_game("test_wrong_returns", Turn(0, "pick", {0: End(returns), 1: End(returns)}))


def mentions(*words: str) -> str:
    """A pattern for `pytest.raises(match=...)`: the message contains all the words, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)


# Games derived from others.


def tree_of(game: pyspiel.Game) -> Node:
    """The tree of a sequential game, read from its states by plain recursion."""
    return tree_below(game.new_initial_state())


def tree_below(state: pyspiel.State) -> Node:
    """The tree below a state."""
    if state.is_terminal():
        return End(state.returns())
    children = {action: tree_below(state.child(action)) for action in state.legal_actions()}
    if state.is_chance_node():
        return Chance([probability for _, probability in state.chance_outcomes()], list(children.values()))
    return Turn(state.current_player(), state.information_state_string(), children)


def scaled_game(game: pyspiel.Game, factor: float) -> pyspiel.Game:
    """The two-player `game` as an `efg_game` with all returns times `factor`."""

    def scaled(node: Node) -> Node:
        match node:
            case End(returns):
                return End([factor * value for value in returns])
            case Chance(probabilities, children):
                return Chance(probabilities, [scaled(child) for child in children])
            case Turn(player, key, children):
                return Turn(player, key, {action: scaled(child) for action, child in children.items()})
        raise TypeError(node)

    return efg_game(scaled(tree_of(game)))


def random_efg(seed: int, depth: int = 5, num_players: int = 2, zero_sum: bool = True) -> pyspiel.Game:
    """A random game of perfect recall with chance and imperfect information.

    Each player's string is the list of its own moves and of the events that it observes; the number of legal actions is
    drawn when a string first occurs. Payoffs are small integers, so ties occur.
    """
    rng = random.Random(seed)
    players = range(num_players)
    num_actions: dict[tuple[int, str], int] = {}

    def grow(depth: int, seen: Sequence[str]) -> Node:
        if depth == 0 or (depth < 4 and rng.random() < 0.15):
            payoffs = [rng.randint(-5, 5) for _ in range(num_players - zero_sum)]
            return End([*payoffs, -sum(payoffs)] if zero_sum else payoffs)
        actor = rng.choice([-1, *players, *players])
        count = rng.randint(2, 3) if actor < 0 else num_actions.setdefault((actor, seen[actor]), rng.randint(1, 3))
        watched = [player == actor or rng.random() < 0.4 for player in players]
        children = []
        for action in range(count):
            event = f"{'cabd'[actor + 1]}{action}"
            children.append(grow(depth - 1, [past + event * sees for past, sees in zip(seen, watched, strict=True)]))
        if actor < 0:
            weights = [rng.randint(1, 4) for _ in children]
            return Chance([weight / sum(weights) for weight in weights], children)
        return Turn(actor, seen[actor], dict(enumerate(children)))

    return efg_game(grow(depth, [""] * num_players))


def _load(name: str) -> Callable[[], pyspiel.Game]:
    return lambda: pyspiel.load_game(name)


def _goofspiel(num_cards: int) -> Callable[[], pyspiel.Game]:
    parameters = f"imp_info=True,num_cards={num_cards},points_order=descending"
    return _load(f"turn_based_simultaneous_game(game=goofspiel({parameters}))")


GAMES: dict[str, Callable[[], pyspiel.Game]] = {
    "kuhn_poker": _load("kuhn_poker"),
    "kuhn_poker_3p": _load("kuhn_poker(players=3)"),
    "leduc_poker": _load("leduc_poker"),
    "liars_dice_3": _load("liars_dice(dice_sides=3)"),
    "goofspiel_3": _goofspiel(3),
    "goofspiel_4": _goofspiel(4),
    "tiny_hanabi": _load("tiny_hanabi"),
    "sheriff": _load("sheriff(max_bribe=2,max_items=3,num_rounds=1)"),
    "dark_hex_2": _load("dark_hex(num_cols=2,num_rows=2)"),
    "python_kuhn_poker": python_kuhn_poker.KuhnPokerGame,
    "universal_poker": _load(
        "universal_poker(betting=limit,blind=1 1,firstPlayer=1 1,maxRaises=1 1,numBoardCards=0 1,numHoleCards=1,numPlayers=2,"
        "numRanks=3,numRounds=2,numSuits=2,raiseSize=2 4,stack=1200 1200)"
    ),
    "misere_kuhn_poker": _load("misere(game=kuhn_poker())"),
    "biased_rock_paper_scissors": biased_rock_paper_scissors,
    "battle_of_the_sexes": battle_of_the_sexes,
    "scaled_kuhn_poker": lambda: scaled_game(pyspiel.load_game("kuhn_poker"), 10.0),
    "random_efg": lambda: random_efg(1),
}
"""Loaders by name: two to three players, zero and general sum, C++, Python, wrapped and extensive-form games."""
