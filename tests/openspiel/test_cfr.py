"""The drop-in modules against the OpenSpiel modules they stand for."""

import gc
import math
import pathlib
import pickle
import subprocess
import sys
import types
import unittest
import warnings

import games
import numpy as np
import pyspiel
import pytest
from games import End, Turn
from open_spiel.python import examples
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr as upstream_cfr
from open_spiel.python.algorithms import cfr_br as upstream_cfr_br
from open_spiel.python.algorithms import discounted_cfr as upstream_discounted_cfr

from spiel_cfrplus.openspiel import cfr, cfr_br, discounted_cfr

KUHN = pyspiel.load_game("kuhn_poker")
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


def load(game):
    """A game by its string, or by a function of `games`."""
    return game() if callable(game) else pyspiel.load_game(game)


def quietly(solver_type, *arguments, **options):
    """A solver, without the warning about imperfect recall."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return solver_type(*arguments, **options)


# Bit for bit.


def cpp_tables(solver):
    """(regrets, cumulative policy, current policy) by information-state string, from a C++ solver's serialized hex doubles."""
    fields = solver.__getstate__().split("[SolverValuesTable]\n")[1].rstrip("\n").split("<~>")
    return {
        key: [np.array([float.fromhex(number) for number in numbers.split(",")]) for numbers in values.split(";")[1:]]
        for key, values in zip(fields[::2], fields[1::2], strict=True)
    }


def our_tables(solver):
    rows = {key: solver.current_policy().policy_for_key(key) for key in solver.current_policy().state_lookup}
    return {
        key: [
            np.array(list(node.cumulative_regret.values())),
            np.array(list(node.cumulative_policy.values())),
            rows[key][node.legal_actions],
        ]
        for key, node in solver._info_state_nodes.items()
    }


def differing_doubles(ours, theirs):
    assert ours.keys() == theirs.keys()
    return sum(
        np.count_nonzero(our.view(np.int64) != their.view(np.int64))
        for key in ours
        for our, their in zip(ours[key], theirs[key], strict=True)
    )


@pytest.mark.parametrize("name", ["CFRSolver", "CFRPlusSolver"])
@pytest.mark.parametrize(
    ("game", "last"),
    [
        ("kuhn_poker", 50),
        ("kuhn_poker(players=3)", 50),
        ("leduc_poker", 50),
        ("liars_dice(dice_sides=3)", 50),
        ("liars_dice", 2),
        (GOOFSPIEL.format(3, "descending"), 50),
        (GOOFSPIEL.format(4, "descending"), 50),
        (GOOFSPIEL.format(4, "random"), 2),
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
    ids=str,
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


def assert_same_policies(ours, theirs, num_iterations, tolerance):
    for _ in range(num_iterations):
        ours.evaluate_and_update_policy()
        theirs.evaluate_and_update_policy()
        for our, their in (
            (ours.current_policy(), theirs.current_policy()),
            (ours.average_policy(), theirs.average_policy()),
        ):
            assert list(our.state_lookup) == list(their.state_lookup)
            np.testing.assert_allclose(our.action_probability_array, their.action_probability_array, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "arguments", [{}, {"alpha": 2, "beta": -1, "gamma": 3}, {"alpha": 0.5, "beta": 0.5, "gamma": 0}], ids=str
)
@pytest.mark.parametrize("game", ["kuhn_poker", "liars_dice(dice_sides=3)", "kuhn_poker(players=3)"])
def test_discounted_cfr_equals_upstream(game, arguments):
    game = load(game)
    ours, theirs = discounted_cfr.DCFRSolver(game, **arguments), upstream_discounted_cfr.DCFRSolver(game, **arguments)
    assert_same_policies(ours, theirs, 20, 0 if game.num_players() == 2 else 1e-13)


def test_linear_cfr_equals_upstream():
    game = load("liars_dice(dice_sides=3)")
    assert_same_policies(discounted_cfr.LCFRSolver(game), upstream_discounted_cfr.LCFRSolver(game), 20, 0)


def test_discounted_cfr_after_a_hundred_iterations():
    solver = discounted_cfr.DCFRSolver(KUHN)
    solver.run(100)
    # Measured on upstream's solver.
    assert pyspiel.nash_conv(KUHN, solver.tabular_average_policy()) == pytest.approx(0.003332684, abs=5e-10)


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("game", "num_iterations"), [("kuhn_poker", 30), ("liars_dice(dice_sides=3)", 10), ("leduc_poker", 3)])
def test_cfr_br_equals_upstream(game, num_iterations, linear, plus):
    game = load(game)
    options = {"linear_averaging": linear, "regret_matching_plus": plus}
    assert_same_policies(cfr_br.CFRBRSolver(game, **options), upstream_cfr_br.CFRBRSolver(game, **options), num_iterations, 0)


# Upstream's own tests and examples, import swapped.


def swapped(source, module):
    """The source text of an OpenSpiel script, importing our module instead of its own."""
    theirs, ours = f"from open_spiel.python.algorithms import {module}\n", f"from spiel_cfrplus.openspiel import {module}\n"
    assert theirs in source
    return source.replace(theirs, ours)


@pytest.mark.parametrize(
    ("test_file", "module", "num_cases"),
    [
        ("cfr_test.py", "cfr", 31),
        ("discounted_cfr_test.py", "discounted_cfr", 2),
        ("cfr_br_test.py", "cfr_br", 9),
        ("sequence_form_utils_test.py", "cfr", 6),
    ],
)
def test_upstream_tests_pass(test_file, module, num_cases):
    source = (pathlib.Path(upstream_cfr.__file__).parent / test_file).read_text()
    suite = types.ModuleType("swapped")
    exec(compile(swapped(source, module), test_file, "exec"), suite.__dict__)
    assert getattr(suite, module).__name__ == f"spiel_cfrplus.openspiel.{module}"
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(suite).run(result)
    assert [text for _, text in result.failures + result.errors] == []
    assert result.testsRun == num_cases


@pytest.mark.parametrize(
    ("script", "module", "flags"),
    [
        ("cfr_example.py", "cfr", ["--iterations=41"]),
        ("cfr_example.py", "cfr", ["--iterations=3", "--game=leduc_poker", "--print_freq=1"]),
        ("discounted_cfr.py", "discounted_cfr", ["--iterations=31"]),
    ],
    ids=str,
)
def test_upstream_examples_print_the_same_numbers(script, module, flags, tmp_path):
    source = (pathlib.Path(examples.__path__[0]) / script).read_text()
    outputs = []
    for name, text in (("theirs.py", source), ("ours.py", swapped(source, module))):
        (tmp_path / name).write_text(text)
        process = subprocess.run([sys.executable, tmp_path / name, *flags], capture_output=True, text=True, check=True)
        outputs.append(process.stdout.splitlines())
    theirs, ours = outputs
    assert len(theirs) >= 3
    assert ours == theirs


# The contract.


ALL_SOLVERS = [cfr.CFRSolver, cfr.CFRPlusSolver, discounted_cfr.DCFRSolver, discounted_cfr.LCFRSolver, cfr_br.CFRBRSolver]
all_solvers = pytest.mark.parametrize("solver_type", ALL_SOLVERS, ids=lambda solver_type: solver_type.__name__)


@all_solvers
def test_policies_are_the_same_objects_updated_in_place(solver_type):
    solver = solver_type(KUHN)
    current, average = solver.current_policy(), solver.average_policy()
    assert type(current) is type(average) is openspiel_policy.TabularPolicy
    before = current.action_probability_array.copy(), average.action_probability_array.copy()
    assert solver.evaluate_and_update_policy() is None
    solver.evaluate_and_update_policy()
    assert solver.current_policy() is current
    assert np.any(current.action_probability_array != before[0])
    np.testing.assert_array_equal(average.action_probability_array, before[1])  # only average_policy() updates it
    assert solver.average_policy() is average
    assert np.any(average.action_probability_array != before[1])
    assert current.action_probability_array is not average.action_probability_array


@all_solvers
def test_fresh_policies_are_uniform_and_can_be_sampled_from(solver_type):
    solver = solver_type(KUHN)
    state = KUHN.new_initial_state().child(0).child(1)
    for policy in (solver.current_policy(), solver.average_policy()):
        np.testing.assert_array_equal(policy.action_probability_array, np.full((12, 2), 0.5))
        assert policy.sample_action(state) in (0, 1)


@all_solvers
def test_run_equals_single_iterations(solver_type):
    one_by_one, at_once = solver_type(KUHN), solver_type(KUHN)
    for _ in range(25):
        one_by_one.evaluate_and_update_policy()
    at_once.run(20)
    at_once.run(0)
    at_once.run(5)
    assert one_by_one.iteration == at_once.iteration == 25
    assert differing_doubles(our_tables(one_by_one), our_tables(at_once)) == 0
    with pytest.raises(ValueError, match="must not be negative"):
        at_once.run(-1)


@all_solvers
def test_pickled_solver_goes_on_to_the_same_doubles(solver_type):
    solver = solver_type(KUHN)
    solver.run(20)
    resumed = pickle.loads(pickle.dumps(solver))
    solver.run(50)
    resumed.run(50)
    assert resumed.iteration == 70
    assert differing_doubles(our_tables(resumed), our_tables(solver)) == 0
    np.testing.assert_array_equal(
        resumed.average_policy().action_probability_array, solver.average_policy().action_probability_array
    )


@all_solvers
def test_pyspiel_forms_are_snapshots_that_outlive_the_solver(solver_type):
    solver = solver_type(KUHN)
    solver.run(10)
    average, current = solver.tabular_average_policy(), solver.tabular_current_policy()
    before = pyspiel.nash_conv(KUHN, average), pyspiel.nash_conv(KUHN, current)
    solver.run(10)
    del solver
    gc.collect()
    assert (pyspiel.nash_conv(KUHN, average), pyspiel.nash_conv(KUHN, current)) == before


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


def test_nodes_are_kept_and_what_is_assigned_to_them_goes_to_the_tables():
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


def test_what_is_written_into_the_current_policy_is_played():
    ours, theirs = cfr.CFRPlusSolver(KUHN), upstream_cfr.CFRPlusSolver(KUHN)
    for solver in (ours, theirs):
        solver.current_policy().action_probability_array[:] = [0.9, 0.1]
    assert_same_policies(ours, theirs, 10, 0)


@pytest.mark.parametrize(
    "name", ["_compute_counterfactual_regret_for_player", "_get_infostate_policy", "_initialize_info_state_nodes"]
)
def test_hooks_that_would_never_be_called_are_refused(name):
    with pytest.raises(TypeError, match=f"Mine.{name} would never be called"):
        type("Mine", (cfr.CFRSolver,), {name: lambda self: None})


@pytest.mark.parametrize(
    ("regrets", "actions"),
    [({}, [0, 1]), ({0: 1, 1: 2, 2: 5}, [0, 1]), ({0: -1.0, 1: 0.0}, [0, 1]), ({0: math.nan, 1: 1.0}, [0, 1]), ({3: 2.0}, [3])],
    ids=str,
)
def test_regret_matching_of_dictionaries_is_upstreams(regrets, actions):
    assert cfr._regret_matching(regrets, actions) == upstream_cfr._regret_matching(regrets, actions)


@pytest.mark.parametrize("weights", [{}, {0: 1.0, 1: 3.0}, {0: -1.0, 1: 3.0}, {1: 2.0}, {0: 0.0, 1: 0.0}], ids=str)
def test_averaging_of_dictionaries_is_upstreams(weights):
    rows = []
    for module in (cfr, upstream_cfr):
        table = openspiel_policy.TabularPolicy(KUHN)
        table.policy_for_key("0")[:] = [0.7, 0.3]
        node = module._InfoStateNode([0, 1], 0, cumulative_policy=dict(weights))
        module._update_average_policy(table, {"0": node})
        rows.append(table.policy_for_key("0").tolist())
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("module", "upstream", "name", "arguments"),
    [
        (cfr, upstream_cfr, "CFRSolver", [pyspiel.load_game("goofspiel(num_cards=3)")]),
        (cfr, upstream_cfr, "CFRPlusSolver", [pyspiel.load_game("matrix_rps")]),
        (cfr, upstream_cfr, "CFRSolver", [pyspiel.load_game("mfg_crowd_modelling")]),
        (cfr, upstream_cfr, "CFRSolver", []),
        (cfr, upstream_cfr, "CFRSolver", ["kuhn_poker"]),
        (cfr, pyspiel, "CFRSolver", [pyspiel.load_game("catch")]),
        (discounted_cfr, upstream_discounted_cfr, "DCFRSolver", [pyspiel.load_game("goofspiel(num_cards=3)")]),
        (cfr_br, upstream_cfr_br, "CFRBRSolver", [pyspiel.load_game("kuhn_poker(players=3)")]),
    ],
)
def test_errors_are_upstreams(module, upstream, name, arguments):
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError, pyspiel.SpielError)) as theirs:
        getattr(upstream, name)(*arguments)
    with pytest.raises(theirs.type) as ours:
        getattr(module, name)(*arguments)
    if arguments:  # a missing argument is Python's own text, which names the method's class
        assert str(ours.value) == str(theirs.value)


# Where upstream stops, and this goes on.


def test_deep_trees():
    game = games.chain(2000)
    solver = cfr.CFRPlusSolver(game)
    solver.run(3)
    with pytest.raises(RecursionError):
        upstream_cfr.CFRPlusSolver(game)
    assert solver.iteration == 3


def test_chance_outcomes_of_probability_zero():
    game = games.zero_chance_game()
    ours = cfr.CFRPlusSolver(game)
    ours.run(50)
    assert np.isfinite(ours.average_policy().action_probability_array).all()
    theirs = upstream_cfr.CFRPlusSolver(game)
    with pytest.raises(AssertionError):
        theirs.evaluate_and_update_policy()


def test_imperfect_recall_warns_and_runs():
    with pytest.warns(UserWarning, match=r"(?s)player 0 at infostate .* does not recall its own past") as record:
        solver = cfr.CFRPlusSolver(games.forgetful_game())
    assert record[0].filename == __file__
    with pytest.warns(UserWarning, match="does not recall its own past") as record:
        discounted_cfr.DCFRSolver(games.forgetful_game())
    assert record[0].filename == __file__
    solver.run(10)
    assert_same_policies(quietly(cfr.CFRSolver, games.forgetful_game()), upstream_cfr.CFRSolver(games.forgetful_game()), 10, 0)
    with pytest.raises(ValueError, match="does not recall its own past"):
        cfr_br.CFRBRSolver(games.forgetful_game())


def test_absent_minded_players_are_refused():
    with pytest.raises(ValueError, match="absent-mindedness"):
        cfr.CFRSolver(games.absent_minded())


def test_players_with_one_string_are_pooled_as_upstream_pools_them():
    game = games.shared_string_game()
    solver = cfr.CFRPlusSolver(game)
    solver.run(200)
    assert len(solver._info_state_nodes) == 1
    # One table for both players cannot hold the equilibrium (3/7, 4/7), (2/7, 5/7).
    probability = solver.average_policy().action_probability_array[0, 0]
    assert max(abs(probability - 3 / 7), abs(probability - 2 / 7)) > 0.05
    with pytest.raises(ValueError, match="share information-state strings"):
        cfr_br.CFRBRSolver(game)


def test_simultaneous_discounted_cfr_updates():
    # Upstream's does nothing. With all exponents 0 and infinity it is regret matching with uniform averaging.
    options = {"alternating_updates": False, "linear_averaging": True, "regret_matching_plus": False}
    discounted = discounted_cfr._DCFRSolver(KUHN, **options, alpha=math.inf, beta=math.inf, gamma=0)
    plain = cfr._CFRSolver(KUHN, alternating_updates=False, linear_averaging=False, regret_matching_plus=False)
    assert_same_policies(discounted, plain, 20, 0)
    assert np.any(discounted.average_policy().action_probability_array != 0.5)


@pytest.mark.parametrize(
    "options", [{"regret_matching_plus": False, "beta": -math.inf}, {"regret_matching_plus": True, "beta": 7}]
)
def test_infinite_exponents_and_the_plus_flag_mean_regret_matching_plus(options):
    discounted = discounted_cfr._DCFRSolver(
        KUHN, alternating_updates=True, linear_averaging=True, alpha=math.inf, gamma=1, **options
    )
    assert_same_policies(discounted, cfr.CFRPlusSolver(KUHN), 50, 0)


@pytest.mark.parametrize("solver_type", [cfr.CFRSolver, cfr.CFRPlusSolver, discounted_cfr.DCFRSolver])
def test_an_interrupted_run_keeps_what_was_done_and_goes_on_from_it(solver_type, monkeypatch):
    solver, expected = solver_type(KUHN), solver_type(KUHN)
    current = solver.current_policy()

    def interrupted(done, num_iterations, work):
        yield np.arange(done + 1, done + 4)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cfr, "blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solver.run(100)
    expected.run(3)
    assert solver.iteration == 3
    np.testing.assert_array_equal(current.action_probability_array, expected.current_policy().action_probability_array)
    solver.run(20)
    expected.run(20)
    np.testing.assert_array_equal(current.action_probability_array, expected.current_policy().action_probability_array)


@pytest.mark.parametrize("second", [(0, 2), (0, 1, 2)], ids=str)
def test_players_who_share_a_string_but_not_its_actions_are_refused(second):
    ends = {action: End([action, -action]) for action in second}
    root = Turn(0, "my turn", {action: Turn(1, "my turn", ends) for action in (0, 1)})
    game = games.python_game(f"test_shared_string_{len(second)}", root)
    with pytest.raises(ValueError, match=games.mentions("string 'my turn'", "different actions")):
        cfr.CFRSolver(game)


def test_the_base_class_has_no_iterations_of_its_own():
    with pytest.raises(NotImplementedError):
        cfr._CFRSolverBase(KUHN, True, True, True).evaluate_and_update_policy()
