"""The walk of a game: what the arrays say, and which games are refused."""

import threading
import tracemalloc

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, Chance, End, Turn
from open_spiel.python.algorithms import cfr as openspiel_cfr

from spiel_cfrplus import CFRPlusSolver, GameTree, SequenceFormGame, compile_subgame, evaluate, players_reach
from spiel_cfrplus.game.game_tree import CHANCE, NO_ACTION, NO_INFOSTATE, NO_PARENT, TERMINAL
from spiel_cfrplus.game.size_estimate import estimate_size
from spiel_cfrplus.openspiel import cfr


def load_tree(name: str) -> GameTree:
    return GameTree.from_game(GAMES[name]())


@pytest.mark.parametrize(
    ("name", "num_histories", "num_terminals", "num_infostates"),
    [  # counted by an independent program that computed the games' values by linear programming
        ("kuhn_poker", 58, 30, [6, 6]),
        ("leduc_poker", 9457, 5520, [468, 468]),
        ("liars_dice_3", 1147, 567, [96, 96]),
        ("goofspiel_3", 67, 36, [8, 8]),
        ("goofspiel_4", 1077, 576, [81, 81]),
        ("dark_hex_2", 441, 216, [33, 101]),
        ("misere_kuhn_poker", 58, 30, [6, 6]),
    ],
)
def test_sizes_of_well_known_games(name, num_histories, num_terminals, num_infostates):
    tree = load_tree(name)
    assert (tree.num_histories, tree.num_terminals) == (num_histories, num_terminals)
    assert np.bincount(tree.infostate_player).tolist() == num_infostates
    assert tree.num_infostates == sum(num_infostates)


@pytest.mark.parametrize("name", GAMES)
def test_arrays_list_the_nodes_of_a_plain_recursion_in_preorder(name):
    nodes = list(reference.nodes(games.tree_of(GAMES[name]())))
    tree = load_tree(name)
    assert tree.num_histories == len(nodes)
    assert [int(tree.actor[h]) for h in range(len(nodes))] == [
        node.player if isinstance(node, Turn) else CHANCE if isinstance(node, Chance) else TERMINAL for node in nodes
    ]
    assert tree.subtree_end.tolist() == [h + len(list(reference.nodes(node))) for h, node in enumerate(nodes)]
    assert tree.terminal.tolist() == [h for h, node in enumerate(nodes) if isinstance(node, End)]
    assert tree.returns.tolist() == [list(node.returns) for node in nodes if isinstance(node, End)]
    for node, infostate in zip(nodes, tree.infostate, strict=True):
        if isinstance(node, Turn):
            legal = slice(*tree.legal_action_start[infostate : infostate + 2])
            assert (tree.infostate_keys[infostate], tree.infostate_player[infostate]) == (node.key, node.player)
            assert tree.legal_actions[legal].tolist() == list(node.children)
        else:
            assert infostate == NO_INFOSTATE


@pytest.mark.parametrize("name", GAMES)
def test_parents_come_first_and_children_in_legal_order(name):
    tree = load_tree(name)
    assert (tree.parent[0], tree.action[0]) == (NO_PARENT, NO_ACTION)
    assert np.all(tree.parent[1:] < np.arange(1, tree.num_histories))
    children: dict[int, list[int]] = {}
    for history in range(1, tree.num_histories):
        children.setdefault(int(tree.parent[history]), []).append(history)
    for history, state in tree.states(np.arange(tree.num_histories)):
        below = children.get(history, [])
        assert tree.action[below].tolist() == state.legal_actions()
        probabilities = [p for _, p in state.chance_outcomes()] if state.is_chance_node() else [1.0] * len(below)
        assert tree.chance_probability[below].tolist() == probabilities


@pytest.mark.parametrize("name", GAMES)
def test_infostates_are_numbered_as_they_are_met(name):
    tree = load_tree(name)
    met = tree.infostate[tree.infostate != NO_INFOSTATE]
    assert list(dict.fromkeys(met.tolist())) == list(range(tree.num_infostates))
    assert tree.infostate[tree.first_history].tolist() == list(range(tree.num_infostates))
    assert np.all(np.diff(tree.first_history) > 0)


def test_one_string_of_two_players_is_two_infostates():
    tree = GameTree.from_game(games.shared_string_game())
    assert tree.infostate_keys == ("my turn", "my turn")
    assert tree.infostate_player.tolist() == [0, 1]


def test_idle_players_get_no_infostates():
    tree = GameTree.from_game(pyspiel.convert_to_turn_based(games.idle_player_game()))
    assert np.bincount(tree.infostate_player).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["leduc_poker", "python_kuhn_poker", "sheriff", "goofspiel_3"])
def test_states_replays_histories_and_leaves_what_it_yielded_alone(name):
    tree = load_tree(name)
    wanted = np.sort(np.random.default_rng(0).choice(tree.num_histories, 30, replace=False))
    yielded = list(tree.states(wanted))
    assert [history for history, _ in yielded] == wanted.tolist()
    assert [tuple(state.history()) for _, state in yielded] == [tree.history_actions(history) for history in wanted]
    assert len({id(state) for _, state in yielded}) == len(wanted)


def test_first_history_is_the_first_of_each_infostate():
    tree = load_tree("leduc_poker")
    for infostate, (_, state) in enumerate(tree.states(tree.first_history)):
        assert state.information_state_string() == tree.infostate_keys[infostate]
        assert infostate not in tree.infostate[: tree.first_history[infostate]]


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


def test_states_replays_deep_histories():
    tree = GameTree.from_game(games.chain(5000))
    ((history, state),) = tree.states(np.array([10_000]))
    assert (history, state.history(), state.returns()) == (10_000, [1] * 5000, [1, -1])


@pytest.mark.parametrize("name", ["kuhn_poker", "python_kuhn_poker", "goofspiel_3"])
def test_max_histories_admits_the_exact_size_and_nothing_below(name):
    size = load_tree(name).num_histories
    game = GAMES[name]()
    assert GameTree.from_game(game, max_histories=size).num_histories == size
    with pytest.raises(ValueError, match=rf"more than max_histories={size - 1} histories \(counted {size}"):
        GameTree.from_game(game, max_histories=size - 1)


def test_a_tree_too_large_is_refused_early():
    with pytest.raises(ValueError, match=r"chess\(\) has more than max_histories=50 .* raise the limit"):
        GameTree.from_game(pyspiel.load_game("chess"), max_histories=50)


@pytest.mark.parametrize(
    "field", ["parent", "action", "actor", "infostate", "chance_probability", "terminal", "returns", "subtree_end"]
)
def test_arrays_of_histories_are_read_only(field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(load_tree("kuhn_poker"), field)[0] = 1


@pytest.mark.parametrize("field", ["infostate_player", "legal_action_start", "legal_actions"])
def test_arrays_of_infostates_are_read_only(field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(load_tree("kuhn_poker"), field)[0] = 1


def test_iterating_touches_no_state(monkeypatch):
    solver = CFRPlusSolver(GAMES["python_kuhn_poker"]())

    def refuse(state: pyspiel.State, action: int) -> None:
        raise RuntimeError("apply_action was called")

    monkeypatch.setattr(games.python_kuhn_poker.KuhnPokerState, "_apply_action", refuse)
    with pytest.raises(RuntimeError, match="apply_action was called"):
        GameTree.from_game(GAMES["python_kuhn_poker"]())
    solver.run(1000)
    solver.evaluate_and_update_policy()
    assert solver.nash_conv() < 1e-3


def test_keyboard_interrupt_passes_through_the_walk_and_leaves_nothing(capsys):
    game = games.interrupting_game()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            GameTree.from_game(game, progress=True)
    assert capsys.readouterr() == ("", "")
    assert load_tree("kuhn_poker").num_histories == 58


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
        (games.noisy_string_game, ["test_noisy_string", "information_state_string changes", "history []"]),
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
        (lambda: games.bad_returns_game(1e301), ["test_bad_returns", "1e+301", "history [1]", "up to 1e+300"]),
        (lambda: games.wrong_returns_game([1.0, 0.0, -1.0]), ["test_wrong_returns", "not one number for each player"]),
        (lambda: games.wrong_returns_game(None), ["test_wrong_returns", "None", "not a list of numbers"]),
    ],
)
def test_games_that_cannot_be_walked_are_refused_by_name_and_reason(load, words):
    with pytest.raises(ValueError, match=games.mentions(*words)):
        GameTree.from_game(load())


@pytest.mark.parametrize("wrong", ["kuhn_poker", None, 3])
def test_what_is_no_game_is_a_type_error(wrong):
    with pytest.raises(TypeError, match=r"pyspiel\.load_game"):
        GameTree.from_game(wrong)


def test_a_chance_outcome_of_probability_zero_counts_for_nothing():
    solver = CFRPlusSolver(games.zero_chance_game())
    solver.run(20_000)
    evaluation = solver.evaluate()
    assert solver.game.tree.chance_probability.min() == 0
    # Equilibrium by hand, see the game.
    assert np.allclose(solver.average_profile().probabilities, [1, 3 / 5, 2 / 5, 1, 3 / 5, 2 / 5], atol=1e-3)
    assert evaluation.values == pytest.approx([1 / 5, -1 / 5], abs=1e-3)


@pytest.mark.parametrize("name", ["crazy_eights", "solitaire(depth_limit=25)"])
def test_endless_dealing_before_the_first_decision_meets_the_limit(name):
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


@pytest.mark.parametrize("large", [2**31 - 1, 2**31, 2**40])
def test_action_ids_of_any_size_are_kept(large):
    ends = {action: End([float(number), -float(number)]) for number, action in enumerate((3, large))}
    tree = GameTree.from_game(games.python_game("test_large_ids", Turn(0, "only", ends)))
    assert tree.action.tolist() == [NO_ACTION, 3, large]
    assert tree.history_actions(2) == (large,)


def test_a_walk_and_what_is_made_of_it_take_little_memory():
    # 51181 histories and 5120 infostates. Per history, in bytes, the tree itself takes 31; the infostates some 20.
    game = pyspiel.load_game("liars_dice(dice_sides=5)")
    assert len(SequenceFormGame.from_tree(load_tree("kuhn_poker")).payoff_arrays.entry_utility) == 60  # loads the kernels
    tracemalloc.start()
    try:
        tree = GameTree.from_game(game)
        walked = tracemalloc.get_traced_memory()[1]
        arrays = SequenceFormGame.from_tree(tree).payoff_arrays
        compiled = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(arrays.entry_utility) == 2 * tree.num_terminals
    assert walked / tree.num_histories < 65
    assert compiled / tree.num_histories < 100


def test_games_whose_methods_must_be_told_the_player_are_solved_as_by_openspiel():
    game = games.player_given_game()
    theirs = openspiel_cfr.CFRPlusSolver(game)
    drop_in = cfr.CFRPlusSolver(game)
    solver = CFRPlusSolver(game)
    for _ in range(20):
        theirs.evaluate_and_update_policy()
    drop_in.run(20)
    solver.run(1000)
    expected = theirs.average_policy().action_probability_array
    np.testing.assert_array_equal(drop_in.average_policy().action_probability_array, expected)
    assert solver.evaluate().values.tolist() == pytest.approx([0.2, -0.2], abs=1e-3)
    assert evaluate(solver.game, solver.average_policy()).nash_conv == pytest.approx(solver.nash_conv(), abs=1e-15)


def test_sub_games_and_estimates_of_games_whose_methods_must_be_told_the_player():
    game = games.player_given_game()
    state = game.new_initial_state().child(0).child(1)
    assert compile_subgame(state).treeplexes[1].infostate_keys == ("second",)
    assert estimate_size(game).num_decisions == 6
    table = CFRPlusSolver(game).average_policy()
    assert players_reach(state, table).tolist() == [[0.5, 1.0]]


class _OddLegalActions(games._TreeState):
    """Legal actions as they are written, in the order of the tree."""

    def legal_actions(self, player=None):
        return list(self._place.node.children) if isinstance(self._place.node, Turn) else []


@pytest.mark.parametrize("action", [1.5, -1, "1", None, 2**63])
def test_legal_actions_that_openspiel_does_not_play_are_refused(action):
    moves = Turn(0, "pick", {0: End([1, -1]), action: End([0, 0])})
    game = games.python_game("test_odd_legal_actions", moves, state=_OddLegalActions)
    for use in (GameTree.from_game, estimate_size):
        with pytest.raises(
            ValueError, match=games.mentions("test_odd_legal_actions", "history []", f"but {action!r} is no action")
        ):
            use(game)


def test_information_state_strings_that_are_no_strings_are_refused():
    game = games.python_game("test_number_as_string", Turn(0, "start", {0: End([1, -1])}), state=_NumberAsString)
    with pytest.raises(ValueError, match=games.mentions("test_number_as_string", "history []", "is 7; it must be a string")):
        GameTree.from_game(game)


class _NumberAsString(games.PlayerGivenState):
    def information_state_string(self, player):
        return 7
