"""The drop-in `cfr` compared with the OpenSpiel module that it replaces."""

import math

import games
import numpy as np
import pyspiel
import pytest
from drop_in import KUHN, assert_same_policies, differing_doubles, load, our_tables, quietly
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr as upstream_cfr

from spiel_cfrplus.openspiel import cfr

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(num_cards={},imp_info=True,points_order={}))"


BATTLESHIP = "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=3,allow_repeated_shots=False)"


POKER = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,maxRaises=1 1,numSuits=2,"
    "numRanks=2,numHoleCards=1,numBoardCards=0 1)"
)


FLAGS = [
    {"alternating_updates": alternating, "linear_averaging": linear, "regret_matching_plus": plus}
    for alternating in (True, False)
    for linear in (True, False)
    for plus in (True, False)
]


# Bit for bit.


def cpp_tables(solver):
    """(regrets, cumulative policy, current policy) by information-state string, from a C++ solver's serialized hex doubles."""
    fields = solver.__getstate__().split("[SolverValuesTable]\n")[1].rstrip("\n").split("<~>")
    return {
        key: [np.array([float.fromhex(number) for number in numbers.split(",")]) for numbers in values.split(";")[1:]]
        for key, values in zip(fields[::2], fields[1::2], strict=True)
    }


@pytest.mark.parametrize("name", ["CFRSolver", "CFRPlusSolver"])
@pytest.mark.parametrize(
    ("game", "last"),
    [
        ("kuhn_poker", 50),
        ("kuhn_poker(players=3)", 50),
        ("leduc_poker", 50),
        ("liars_dice(dice_sides=3)", 50),
        pytest.param("liars_dice", 2, marks=pytest.mark.slow),
        (GOOFSPIEL.format(3, "descending"), 50),
        (GOOFSPIEL.format(4, "descending"), 50),
        pytest.param(GOOFSPIEL.format(4, "random"), 2, marks=pytest.mark.slow),
        ("dark_hex(num_rows=2,num_cols=2)", 50),
        (BATTLESHIP, 50),
        ("sheriff(max_bribe=2,max_items=3,num_rounds=1)", 50),
        ("first_sealed_auction(max_value=3)", 50),
        ("tiny_hanabi", 50),
        (lambda: games.random_efg(3), 50),
        (POKER, 50),
        ("python_kuhn_poker", 10),
        ("liars_dice_ir(dice_sides=3)", 50),
        ("dark_hex_ir(num_rows=2,num_cols=2)", 50),
    ],
    ids=lambda value: "a random .efg game" if callable(value) else str(value),
)
def test_tables_equal_those_of_the_cpp_solver_bit_for_bit(game, last, name):
    game = load(game)
    ours, theirs = quietly(getattr(cfr, name), game), getattr(pyspiel, name)(game)
    for iteration in (1, 2, 10, 50):
        if iteration <= last:
            for _ in range(iteration - ours.iteration):
                ours.evaluate_and_update_policy()
                theirs.evaluate_and_update_policy()
            assert differing_doubles(our_tables(ours), cpp_tables(theirs)) == 0


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: "-".join(name for name, on in flags.items() if on) or "none")
@pytest.mark.parametrize(
    ("game", "tolerance"),
    # With three players OpenSpiel's Python solver multiplies reaches in another order than its C++ solver, which we follow.
    [("kuhn_poker", 0), ("liars_dice(dice_sides=3)", 0), ("kuhn_poker(players=3)", 1e-14), (games.shared_string_game, 0)],
)
def test_all_flags_equal_the_python_solver(game, tolerance, flags):
    game = load(game)
    assert_same_policies(cfr._CFRSolver(game, **flags), upstream_cfr._CFRSolver(game, **flags), 15, tolerance)


# The contract.


def test_nodes_read_and_write_the_tables():
    solver = cfr.CFRSolver(KUHN)
    solver.run(5)
    nodes = solver._info_state_nodes
    node = nodes["0pb"]
    assert node.legal_actions == [0, 1]
    assert node.index_in_tabular_policy == solver.current_policy().state_lookup["0pb"]
    node.cumulative_regret[0], node.cumulative_regret[1] = 1.0, 3.0
    cfr._update_current_policy(solver.current_policy(), nodes)
    np.testing.assert_array_equal(solver.current_policy().policy_for_key("0pb"), [0.25, 0.75])
    node.cumulative_regret[0] = -1.0
    cfr._apply_regret_matching_plus_reset(nodes)
    assert solver._info_state_nodes["0pb"].cumulative_regret[0] == 0
    node.cumulative_policy[0], node.cumulative_policy[1] = 0.0, 0.0
    cfr._update_average_policy(solver.average_policy(), nodes)
    np.testing.assert_array_equal(solver.average_policy().policy_for_key("0pb"), [0.5, 0.5])
    with pytest.raises(KeyError):
        node.cumulative_regret[2]


def test_assignments_to_nodes_write_to_the_tables():
    solver = cfr.CFRSolver(KUHN)
    solver.run(5)
    node = solver._info_state_nodes["0"]
    node.tag = "mine"
    assert solver._info_state_nodes["0"].tag == "mine"
    node.cumulative_regret = {0: 2.0, 1: -1.0}
    assert our_tables(solver)["0"][0].tolist() == [2.0, -1.0]
    copied = node.cumulative_regret.copy()
    node.cumulative_regret.clear()
    assert (copied, dict(node.cumulative_regret)) == ({0: 2.0, 1: -1.0}, {0: 0.0, 1: 0.0})
    del node.cumulative_policy[1]
    assert node.cumulative_policy[1] == 0


def test_tables_of_another_solver_can_be_restored():
    half, whole = upstream_cfr.CFRSolver(KUHN), upstream_cfr.CFRSolver(KUHN)
    for _ in range(10):
        half.evaluate_and_update_policy()
    restored = cfr.CFRSolver(KUHN)
    for key, node in half._info_state_nodes.items():
        restored._info_state_nodes[key].cumulative_regret.update(node.cumulative_regret)
        restored._info_state_nodes[key].cumulative_policy.update(node.cumulative_policy)
    cfr._update_current_policy(restored._current_policy, restored._info_state_nodes)
    restored._iteration = half._iteration
    for _ in range(10):
        whole.evaluate_and_update_policy()
    assert_same_policies(restored, whole, 5, 0)
    assert restored.iteration == 15


def test_iterations_start_from_the_contents_of_the_current_policy():
    ours, theirs = cfr.CFRPlusSolver(KUHN), upstream_cfr.CFRPlusSolver(KUHN)
    for solver in (ours, theirs):
        solver.current_policy().action_probability_array[:] = [0.9, 0.1]
    assert_same_policies(ours, theirs, 10, 0)


@pytest.mark.parametrize(
    "name", ["_compute_counterfactual_regret_for_player", "_get_infostate_policy", "_initialize_info_state_nodes"]
)
def test_overridden_methods_that_are_never_called_are_refused(name):
    with pytest.raises(TypeError, match=f"Mine.{name} is never called"):
        type("Mine", (cfr.CFRSolver,), {name: lambda self: None})


@pytest.mark.parametrize(
    ("regrets", "actions"),
    [({}, [0, 1]), ({0: 1, 1: 2, 2: 5}, [0, 1]), ({0: -1.0, 1: 0.0}, [0, 1]), ({0: math.nan, 1: 1.0}, [0, 1]), ({3: 2.0}, [3])],
    ids=str,
)
def test_regret_matching_of_dictionaries_equals_openspiel(regrets, actions):
    assert cfr._regret_matching(regrets, actions) == upstream_cfr._regret_matching(regrets, actions)


@pytest.mark.parametrize("weights", [{}, {0: 1.0, 1: 3.0}, {0: -1.0, 1: 3.0}, {1: 2.0}, {0: 0.0, 1: 0.0}], ids=str)
def test_averaging_of_dictionaries_equals_openspiel(weights):
    rows = []
    for module in (cfr, upstream_cfr):
        table = openspiel_policy.TabularPolicy(KUHN)
        table.policy_for_key("0")[:] = [0.7, 0.3]
        node = module._InfoStateNode([0, 1], 0, cumulative_policy=dict(weights))
        module._update_average_policy(table, {"0": node})
        rows.append(table.policy_for_key("0").tolist())
    assert rows[0] == rows[1]


# Where upstream stops, and this goes on.


def test_absent_minded_players_are_refused():
    with pytest.raises(ValueError, match="absent-mindedness"):
        cfr.CFRSolver(games.absent_minded())


def test_the_base_class_has_no_iterations_of_its_own():
    with pytest.raises(NotImplementedError):
        cfr._CFRSolverBase(KUHN, True, True, True).evaluate_and_update_policy()
