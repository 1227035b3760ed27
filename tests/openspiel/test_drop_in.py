"""Properties that all drop-in solvers share with OpenSpiel's: OpenSpiel's tests and examples, interface and errors."""

import gc
import pathlib
import pickle
import subprocess
import sys
import types
import unittest

import games
import numpy as np
import pyspiel
import pytest
from drop_in import KUHN, assert_same_policies, differing_doubles, our_tables, quietly
from fresh_process import run_python
from open_spiel.python import examples
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr as upstream_cfr
from open_spiel.python.algorithms import cfr_br as upstream_cfr_br
from open_spiel.python.algorithms import discounted_cfr as upstream_discounted_cfr

from spiel_cfrplus import write_efg
from spiel_cfrplus.openspiel import cfr, cfr_br, discounted_cfr


def swapped(source, module):
    """The source of an OpenSpiel script that imports the drop-in module."""
    theirs, ours = f"from open_spiel.python.algorithms import {module}\n", f"from spiel_cfrplus.openspiel import {module}\n"
    assert theirs in source
    return source.replace(theirs, ours)


@pytest.mark.parametrize(
    ("test_file", "module", "num_cases"),
    [
        pytest.param("cfr_test.py", "cfr", 31, marks=pytest.mark.slow),
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
def test_a_pickled_solver_resumes_with_identical_results(solver_type):
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


def test_solvers_of_matrix_and_efg_games_are_resumed_in_another_process(tmp_path):
    write_efg(KUHN, tmp_path / "kuhn.efg")
    efg = pyspiel.load_efg_game((tmp_path / "kuhn.efg").read_text())
    solvers = [cfr.CFRSolver(efg), cfr.CFRPlusSolver(games.matrix_game([[1, -1], [-1, 2]], [[-1, 1], [1, -2]]))]
    for solver in solvers:
        solver.run(5)
    (tmp_path / "solvers").write_bytes(pickle.dumps(solvers))
    printed = run_python(f"""
import pathlib, pickle
for solver in pickle.loads(pathlib.Path({str(tmp_path / "solvers")!r}).read_bytes()):
    solver.run(5)
    print(solver.average_policy().action_probability_array.tolist())
""")
    for solver, line in zip(solvers, printed.splitlines(), strict=True):
        solver.run(5)
        assert line == str(solver.average_policy().action_probability_array.tolist())


@all_solvers
def test_pyspiel_policies_are_snapshots_that_outlive_the_solver(solver_type):
    solver = solver_type(KUHN)
    solver.run(10)
    average, current = solver.tabular_average_policy(), solver.tabular_current_policy()
    before = pyspiel.nash_conv(KUHN, average), pyspiel.nash_conv(KUHN, current)
    solver.run(10)
    del solver
    gc.collect()
    assert (pyspiel.nash_conv(KUHN, average), pyspiel.nash_conv(KUHN, current)) == before


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
def test_errors_equal_those_of_openspiel(module, upstream, name, arguments):
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError, pyspiel.SpielError)) as theirs:
        getattr(upstream, name)(*arguments)
    with pytest.raises(theirs.type) as ours:
        getattr(module, name)(*arguments)
    if arguments:  # a missing argument is Python's own text, which names the method's class
        assert str(ours.value) == str(theirs.value)


def test_imperfect_recall_warns_and_runs():
    with pytest.warns(UserWarning, match=r"(?s)player 0 at infostate .* does not have perfect recall") as record:
        solver = cfr.CFRPlusSolver(games.forgetful_game())
    assert record[0].filename == __file__
    with pytest.warns(UserWarning, match="does not have perfect recall") as record:
        discounted_cfr.DCFRSolver(games.forgetful_game())
    assert record[0].filename == __file__
    solver.run(10)
    assert_same_policies(quietly(cfr.CFRSolver, games.forgetful_game()), upstream_cfr.CFRSolver(games.forgetful_game()), 10, 0)
    with pytest.raises(ValueError, match="does not have perfect recall"):
        cfr_br.CFRBRSolver(games.forgetful_game())


@pytest.mark.parametrize("solver_type", [cfr.CFRSolver, cfr.CFRPlusSolver, discounted_cfr.DCFRSolver])
def test_an_interrupted_run_can_be_continued(solver_type, monkeypatch):
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
