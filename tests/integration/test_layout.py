"""The layout of the package: which module imports which, also for type checkers only and in functions."""

import ast
import functools
import graphlib
import pathlib
import sys

import pytest
from repository import ROOT

# A folder imports from itself and from the layers before its own.
LAYERS = (
    {"_utils"},
    {"kernels"},
    {"game"},
    {"policies", "regret_minimizers"},
    {"solving", "play"},
    {"distributed"},
    {"analysis"},
    {"sweeps"},
    {"display"},
    {"cli"},
    {"__main__"},
)
# Drop-in solvers are beside the layers: what they import, and who may import them.
BELOW_OPENSPIEL = {"_utils", "kernels", "game", "policies", "regret_minimizers", "solving"}
ABOVE_OPENSPIEL = {"analysis", "sweeps", "display", "cli", "__main__"}
# Kernels import one another and these. Compilation and the files that it writes are not kernels.
BENEATH_KERNELS = {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}
NO_KERNELS = {f"spiel_cfrplus.kernels.{name}" for name in ("compilation", "compiled_files", "kernel_cache")}


def name_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.AST) -> set[str]:
    """Every module or member of a module that is imported anywhere in a file."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each module of the package imports: modules of the package, and other packages by their first name."""
    sources = {name_of(path): path for path in (ROOT / "spiel_cfrplus").rglob("*.py")}

    def module_of(name: str) -> str:
        if not name.startswith("spiel_cfrplus"):
            return name.partition(".")[0]
        return name if name in sources else name.rpartition(".")[0]

    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sources.items()}
    return {name: {module_of(found) for found in imported_names(tree)} for name, tree in trees.items()}


def within(modules: set[str]) -> set[str]:
    return {module for module in modules if module.startswith("spiel_cfrplus")}


def folder(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def folders_of(module: str) -> set[str]:
    """The folders that a module imports from; the empty one is the package itself, which imports everything on first use."""
    return {folder(name) for name in within(imports()[module])}


def test_every_module_is_in_a_layer():
    assert len(imports()) > 50
    assert {folder(module) for module in imports()} - {""} == set().union(*LAYERS, {"openspiel"})
    assert [module for module in imports() if "." not in module] == ["spiel_cfrplus"]


def test_imports_have_no_cycles():
    graph = {module: within(imported) for module, imported in imports().items()}
    del graph["spiel_cfrplus"]  # it lists the public names, and imports them when they are asked for
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_folders_import_from_themselves_and_the_layers_before():
    below: set[str] = set()
    for layer in LAYERS:
        if layer <= ABOVE_OPENSPIEL:
            below = below | {"openspiel"}
        for module in imports():
            if folder(module) in layer:
                assert folders_of(module) <= {folder(module)} | below, f"{module} imports {within(imports()[module])}"
        below = below | layer


def test_drop_in_solvers_are_beside_the_layers():
    for module in imports():
        if folder(module) == "openspiel":
            assert folders_of(module) <= {"openspiel"} | BELOW_OPENSPIEL, f"{module} imports {within(imports()[module])}"


def test_kernels_import_numpy_and_numba_only():
    kernels = {module for module in imports() if folder(module) == "kernels"}
    assert len(kernels) > 10
    assert kernels > NO_KERNELS
    for module in kernels - NO_KERNELS:
        others = imports()[module] - kernels
        assert others <= BENEATH_KERNELS, f"{module} imports {others - BENEATH_KERNELS}"
