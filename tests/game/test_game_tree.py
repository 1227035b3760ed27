"""The arrays of the game tree."""

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
def test_infostates_are_numbered_in_the_order_of_the_walk(name):
    tree = load_tree(name)
    met = tree.infostate[tree.infostate != NO_INFOSTATE]
    assert list(dict.fromkeys(met.tolist())) == list(range(tree.num_infostates))
    assert tree.infostate[tree.first_history].tolist() == list(range(tree.num_infostates))
    assert np.all(np.diff(tree.first_history) > 0)


def test_one_string_for_two_players_is_two_infostates():
    tree = GameTree.from_game(games.shared_string_game())
    assert tree.infostate_keys == ("my turn", "my turn")
    assert tree.infostate_player.tolist() == [0, 1]


def test_idle_players_have_no_infostates():
    tree = GameTree.from_game(pyspiel.convert_to_turn_based(games.idle_player_game()))
    assert np.bincount(tree.infostate_player).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["leduc_poker", "python_kuhn_poker", "sheriff", "goofspiel_3"])
def test_states_replays_histories_and_does_not_modify_yielded_states(name):
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


def test_states_replays_deep_histories():
    tree = GameTree.from_game(games.chain(5000))
    ((history, state),) = tree.states(np.array([10_000]))
    assert (history, state.history(), state.returns()) == (10_000, [1] * 5000, [1, -1])


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


def test_iterations_use_no_states(monkeypatch):
    solver = CFRPlusSolver(GAMES["python_kuhn_poker"]())

    def refuse(state: pyspiel.State, action: int) -> None:
        raise RuntimeError("apply_action was called")

    monkeypatch.setattr(games.python_kuhn_poker.KuhnPokerState, "_apply_action", refuse)
    with pytest.raises(RuntimeError, match="apply_action was called"):
        GameTree.from_game(GAMES["python_kuhn_poker"]())
    solver.run(1000)
    solver.evaluate_and_update_policy()
    assert solver.nash_conv() < 1e-3


def test_a_chance_outcome_of_probability_zero_has_no_effect():
    solver = CFRPlusSolver(games.zero_chance_game())
    solver.run(20_000)
    evaluation = solver.evaluate()
    assert solver.game.tree.chance_probability.min() == 0
    # Equilibrium by hand, see the game.
    assert np.allclose(solver.average_profile().probabilities, [1, 3 / 5, 2 / 5, 1, 3 / 5, 2 / 5], atol=1e-3)
    assert evaluation.values == pytest.approx([1 / 5, -1 / 5], abs=1e-3)


@pytest.mark.parametrize("large", [2**31 - 1, 2**31, 2**40])
def test_large_action_ids_are_stored(large):
    ends = {action: End([float(number), -float(number)]) for number, action in enumerate((3, large))}
    tree = GameTree.from_game(games.python_game("test_large_ids", Turn(0, "only", ends)))
    assert tree.action.tolist() == [NO_ACTION, 3, large]
    assert tree.history_actions(2) == (large,)


def test_walking_and_compiling_take_little_memory():
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


def test_games_whose_methods_require_the_player_are_solved_as_by_openspiel():
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


def test_subgames_and_estimates_of_games_whose_methods_require_the_player():
    game = games.player_given_game()
    state = game.new_initial_state().child(0).child(1)
    assert compile_subgame(state).treeplexes[1].infostate_keys == ("second",)
    assert estimate_size(game).num_decisions == 6
    table = CFRPlusSolver(game).average_policy()
    assert players_reach(state, table).tolist() == [[0.5, 1.0]]
