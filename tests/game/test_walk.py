"""The walk of a game: refused games, limits, and its record."""

import threading

import games
import pyspiel
import pytest
from games import GAMES, End, Turn

from spiel_cfrplus import CFRPlusSolver, GameTree
from spiel_cfrplus.game.size_estimate import estimate_size


@pytest.mark.parametrize(("load", "depth"), [(games.chain, 5000), (games.python_chain, 20_000)])
def test_deep_trees_are_walked_and_solved(load, depth):
    solver = CFRPlusSolver(load(depth))
    tree = solver.game.tree
    assert tree.num_histories == 2 * depth + 1
    assert tree.history_actions(2 * depth) == (1,) * depth
    solver.run(1000)
    evaluation = solver.evaluate()
    # The value is 1, by hand: player 0's best response earns no less, player 1's best response leaves player 0 no more.
    assert -evaluation.best_response_values[1] <= 1 <= evaluation.best_response_values[0]
    assert evaluation.nash_conv < 1e-4


@pytest.mark.parametrize("name", ["kuhn_poker", "python_kuhn_poker", "goofspiel_3"])
def test_max_histories_accepts_the_exact_size_and_nothing_smaller(name):
    size = GameTree.from_game(GAMES[name]()).num_histories
    game = GAMES[name]()
    assert GameTree.from_game(game, max_histories=size).num_histories == size
    with pytest.raises(ValueError, match=rf"more than max_histories={size - 1} histories \(counted {size}"):
        GameTree.from_game(game, max_histories=size - 1)


def test_a_tree_that_is_too_large_is_refused_early():
    with pytest.raises(ValueError, match=r"chess\(\) has more than max_histories=50 .* raise the limit"):
        GameTree.from_game(pyspiel.load_game("chess"), max_histories=50)


def test_keyboard_interrupt_ends_the_walk(capsys):
    game = games.interrupting_game()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            GameTree.from_game(game, progress=True)
    assert capsys.readouterr() == ("", "")
    assert GameTree.from_game(GAMES["kuhn_poker"]()).num_histories == 58


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda: pyspiel.load_game("goofspiel(num_cards=3)"), ["goofspiel", "simultaneous", "pyspiel.convert_to_turn_based("]),
        (lambda: pyspiel.load_game("matrix_rps"), ["matrix_rps", "pyspiel.convert_to_turn_based("]),
        (games.idle_player_game, ["test_idle_player", "pyspiel.convert_to_turn_based("]),
        (lambda: pyspiel.load_game("mfg_crowd_modelling"), ["mfg_crowd_modelling", "MEAN_FIELD"]),
        (lambda: pyspiel.load_game("negotiation"), ["negotiation", "SAMPLED_STOCHASTIC"]),
        (lambda: pyspiel.load_game("catch"), ["catch", "information_state_string"]),
        (lambda: pyspiel.load_game("deep_sea"), ["deep_sea", "information_state_string"]),
        (lambda: pyspiel.load_game("pig"), ["pig", "information_state_string"]),
        (games.noisy_string_game, ["test_noisy_string", "information_state_string differs between two calls", "history []"]),
        (games.different_actions_game, ["test_different_actions", "'same' of player 0", "[0, 1]", "[0, 1, 2]", "history [1]"]),
        (games.no_legal_actions_game, ["test_no_legal_actions", "player 1", "history [1]", "no legal actions"]),
        (lambda: pyspiel.load_game("dark_hex(num_cols=3,num_rows=1)"), ["dark_hex", "no legal actions"]),
        (lambda: games.bad_chance_game([0.5, 0.4]), ["test_bad_chance", "history []", "sum to 0.9"]),
        (lambda: games.bad_chance_game([0.5, 0.6]), ["test_bad_chance", "history []", "sum to 1.1"]),
        (lambda: games.bad_chance_game([1.5, -0.5]), ["test_bad_chance", "history []", "probability"]),
        (lambda: games.bad_chance_game([NAN, 1.0]), ["test_bad_chance", "history []", "probability"]),
        (lambda: games.bad_chance_game([]), ["test_bad_chance", "history []", "chance outcomes"]),
        (lambda: games.bad_returns_game(NAN), ["test_bad_returns", "nan", "history [1]"]),
        (lambda: games.bad_returns_game(INFINITY), ["test_bad_returns", "inf", "history [1]"]),
        (lambda: games.bad_returns_game(1e301), ["test_bad_returns", "1e+301", "history [1]", "at most 1e+300"]),
        (lambda: games.wrong_returns_game([1.0, 0.0, -1.0]), ["test_wrong_returns", "not one number for each player"]),
        (lambda: games.wrong_returns_game(None), ["test_wrong_returns", "None", "not a list of numbers"]),
    ],
)
def test_games_that_cannot_be_walked_are_refused_by_name_and_reason(load, words):
    with pytest.raises(ValueError, match=games.mentions(*words)):
        GameTree.from_game(load())


@pytest.mark.parametrize("name", ["crazy_eights", "solitaire(depth_limit=25)"])
def test_endless_chance_moves_before_the_first_decision_reach_the_limit(name):
    # Chance may redeal for ever in the one, and has astronomically many ways to deal in the other.
    with pytest.raises(ValueError, match=r"information-state strings|max_histories=1000"):
        GameTree.from_game(pyspiel.load_game(name), max_histories=1000)


def test_compiling_starts_no_thread():
    before = threading.active_count()
    GameTree.from_game(GAMES["kuhn_poker"](), progress=True)
    assert threading.active_count() == before


def test_an_action_that_is_legal_twice_is_refused(monkeypatch):
    game = games.bad_returns_game(1.0)
    monkeypatch.setattr(type(game.new_initial_state()), "_legal_actions", lambda state, player: [0, 1, 1])
    with pytest.raises(ValueError, match=games.mentions("player 0", "[0, 1, 1]", "twice")):
        GameTree.from_game(game)


class _OddLegalActions(games._TreeState):
    """Legal actions in the order in which the tree defines them."""

    def legal_actions(self, player=None):
        return list(self._place.node.children) if isinstance(self._place.node, Turn) else []


@pytest.mark.parametrize("action", [1.5, -1, "1", None, 2**63])
def test_invalid_legal_actions_are_refused(action):
    moves = Turn(0, "pick", {0: End([1, -1]), action: End([0, 0])})
    game = games.python_game("test_odd_legal_actions", moves, state=_OddLegalActions)
    for use in (GameTree.from_game, estimate_size):
        with pytest.raises(
            ValueError, match=games.mentions("test_odd_legal_actions", "history []", f"but {action!r} is not an action")
        ):
            use(game)


def test_information_state_strings_that_are_not_strings_are_refused():
    game = games.python_game("test_number_as_string", Turn(0, "start", {0: End([1, -1])}), state=_NumberAsString)
    with pytest.raises(ValueError, match=games.mentions("test_number_as_string", "history []", "is 7; it must be a string")):
        GameTree.from_game(game)


class _NumberAsString(games.PlayerGivenState):
    def information_state_string(self, player):
        return 7
