"""Imports of the package: which modules are imported, and which names are public. benchmarks/cold_start.py measures times."""

import ast
import importlib
import inspect
import pkgutil
import sys

import pytest
from fresh_process import run_python
from open_spiel.python.games.kuhn_poker import KuhnPokerGame as PythonKuhn

import spiel_cfrplus


def imported_by(script: str) -> set[str]:
    return set(run_python(f"import sys, pyspiel\n{script}\nprint(*sys.modules)").split())


def test_import_alone_imports_only_the_package_and_the_standard_library():
    brought = imported_by("import spiel_cfrplus") - imported_by("")
    assert {module for module in brought if module.partition(".")[0] not in sys.stdlib_module_names} == {"spiel_cfrplus"}


def test_signals_are_handled_before_slow_imports():
    brought = imported_by("from spiel_cfrplus.cli import entry_point") - imported_by("")
    assert {module for module in brought if module.partition(".")[0] not in sys.stdlib_module_names} == {
        "spiel_cfrplus",
        "spiel_cfrplus.cli",
        "spiel_cfrplus.cli.entry_point",
        "spiel_cfrplus.cli.stop_signals",
    }


def test_the_command_imports_no_module_that_few_of_its_flags_need():
    modules = imported_by("from spiel_cfrplus.cli import main")
    assert "spiel_cfrplus.display.explorer" in modules
    assert not {"matplotlib", "mpi4py", "open_spiel.python.games", "open_spiel.python.policy", "scipy.sparse"} & modules


def test_solving_imports_only_required_modules():
    modules = imported_by("""
import spiel_cfrplus
solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
solver.run(10)
solver.nash_conv()
""")
    assert {"numba", "spiel_cfrplus.solving.solvers"} <= modules
    assert not {"absl", "hypothesis", "matplotlib", "open_spiel.python.games", "open_spiel.python.policy"} & modules


def test_loading_a_checkpoint_of_a_python_game_imports_the_game(tmp_path):
    path = tmp_path / "python_kuhn.npz"
    solver = spiel_cfrplus.CFRSolver(PythonKuhn())
    solver.run(7)
    solver.save(path)
    assert run_python(f"import spiel_cfrplus; print(spiel_cfrplus.Solver.load({str(path)!r}).iteration)") == "7\n"


@pytest.mark.slow  # a process for each module; the test of the layout finds circles as well
def test_every_module_can_be_imported_first():
    """No module depends on an earlier import of another one, as in circular imports."""
    run_python("""
import importlib, pkgutil, sys, spiel_cfrplus
modules = [module.name for module in pkgutil.walk_packages(spiel_cfrplus.__path__, "spiel_cfrplus.")]
assert len(modules) > 30
for module in modules:
    for known in [known for known in sys.modules if known.partition(".")[0] == "spiel_cfrplus"]:
        del sys.modules[known]
    importlib.import_module(module)
""")


def test_public_names_are_those_that_type_checkers_see():
    """The imports in `if TYPE_CHECKING`, read from the source, compared with the public names."""
    homes = {
        alias.name: node.module
        for node in ast.walk(ast.parse(inspect.getsource(spiel_cfrplus)))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("spiel_cfrplus.")
        for alias in node.names
    }
    assert sorted(homes) == sorted(spiel_cfrplus.__all__)
    for name, module in homes.items():
        assert getattr(spiel_cfrplus, name) is getattr(importlib.import_module(module), name), name


@pytest.mark.parametrize("package", ["", ".analysis", ".display", ".game", ".openspiel", ".policies", ".solving", ".sweeps"])
def test_modules_of_a_package_are_those_that_type_checkers_see(package):
    """Type checkers do not see what `__getattr__` imports."""
    package = importlib.import_module(f"spiel_cfrplus{package}")
    seen = [
        alias.asname
        for node in ast.walk(ast.parse(inspect.getsource(package)))
        if isinstance(node, ast.ImportFrom) and node.module == package.__name__
        for alias in node.names
    ]
    modules = {module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")}
    assert seen == sorted(modules - {"cli"})


def test_public_names_are_listed_before_their_first_use():
    run_python("""
import spiel_cfrplus
assert set(spiel_cfrplus.__all__) <= set(dir(spiel_cfrplus)) and "__version__" in dir(spiel_cfrplus)
from spiel_cfrplus import *
from spiel_cfrplus.solving import solvers
assert CFRPlusSolver is solvers.CFRPlusSolver
""")


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="module 'spiel_cfrplus' has no attribute 'CFRPLusSolver'"):
        _ = spiel_cfrplus.CFRPLusSolver
