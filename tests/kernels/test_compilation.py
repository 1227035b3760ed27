"""Which compiled kernels are cached, and under which names: a cached kernel equals the one that would be compiled."""

import ast
import importlib
import pathlib
import pkgutil
import shutil
import sys
from collections import namedtuple

import numba
import numpy as np
import pyspiel
import pytest
from compiled_kernels import PACKAGE, SMALL_WORK, files_in, no_home, normalized, renewed, run_python
from numba.core.dispatcher import Dispatcher

import spiel_cfrplus
from spiel_cfrplus.kernels import compilation, passes
from spiel_cfrplus.kernels.compilation import KernelCache, jit
from spiel_cfrplus.kernels.compiled_files import VARIABLE

# Which code belongs to a digest.


def test_every_compiled_function_of_the_package_is_cached_and_its_source_is_in_the_digest():
    kernels = {}
    for module in pkgutil.walk_packages(spiel_cfrplus.__path__, "spiel_cfrplus."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher) and value.__module__.startswith("spiel_cfrplus"):
                kernels[f"{value.__module__}.{value.__qualname__}"] = value
    assert len(kernels) > 40
    for name, kernel in kernels.items():
        assert pathlib.Path(kernel.py_func.__code__.co_filename) in compilation.SOURCES, name
        assert isinstance(kernel._cache, KernelCache), name


def test_kernel_files_import_nothing_that_is_not_in_the_digest():
    for source in compilation.SOURCES:
        if source.name not in {"compilation.py", "compiled_files.py"}:  # they are not inlined
            for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    home = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
                    known = name.partition(".")[0] in {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}
                    assert known or home in compilation.SOURCES, f"{source} imports {name}"


def test_functions_that_their_name_does_not_identify_are_compiled_but_not_cached(cache):
    def double(x):
        return 2 * x

    assert jit(double)(3) == 6
    double.__module__ = "spiel_cfrplus.kernels.passes"
    assert jit(double)(3) == 6
    double.__qualname__ = "double"
    double.__module__ = "spiel_cfrplus.solving.solvers"
    assert jit(double)(3) == 6
    double.__module__ = "my_kernels"
    assert jit(double)(3) == 6
    assert not cache.exists()


def test_an_edit_of_a_kernel_reaches_the_kernels_of_other_files_that_inline_it(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "spiel_cfrplus", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path), VARIABLE: str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    assert run_python(SMALL_WORK, **environment) == ("0.25 0.75 0", "")
    assert run_python(SMALL_WORK, **environment) == ("0.25 0.75 1", "")
    source = tmp_path / "spiel_cfrplus" / "kernels" / "passes.py"
    text = source.read_text(encoding="utf-8")
    edited = text.replace("policy[s] = max(table[s], 0.0) / total", "policy[s] = 2.0 * max(table[s], 0.0) / total")
    assert edited != text
    source.write_text(edited, encoding="utf-8")
    assert run_python(SMALL_WORK, **environment) == ("0.5 1.5 0", "")


def test_nothing_is_written_into_the_package_or_numbas_cache(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "spiel_cfrplus", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "numba").mkdir()
    before = files_in(tmp_path)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    run_python(SMALL_WORK, **environment, **{VARIABLE: str(tmp_path / "cache")})
    assert sorted(set(files_in(tmp_path)) - set(before)) == files_in(tmp_path / "cache") != []


def test_the_cache_is_not_used_if_sources_changed_after_their_import(cache, monkeypatch):
    normalized()
    before = [path.stat().st_mtime_ns for path in files_in(cache)]
    monkeypatch.setattr(compilation, "_stamps", lambda: ((0, 0),))
    assert normalized() == 0
    assert [path.stat().st_mtime_ns for path in files_in(cache)] == before


@pytest.mark.parametrize("part", ["numba.__version__", "llvmlite.__version__", "np.__version__", "sys.version"])
def test_other_versions_have_another_digest(part, monkeypatch):
    before = compilation._digest(("cpu",), ())
    compilation._digest.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(f"spiel_cfrplus.kernels.compilation.{part}", "3.14.15")
        assert compilation._digest(("cpu",), ()) != before
    compilation._digest.cache_clear()
    assert compilation._digest(("cpu",), ()) == before != compilation._digest(("another cpu",), ())


def test_settings_of_numba_that_change_the_code_have_another_directory(cache, monkeypatch):
    normalized()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert normalized() == 0
    assert len({path.parent for path in files_in(cache)}) == 2
    assert normalized() == 1


# Which file belongs to which types of arguments.


def test_a_kernel_with_a_function_argument_is_not_cached():
    def make(factor):
        def rule(x):
            return factor * x

        return numba.njit(rule)

    @numba.njit
    def apply(rule, x):
        return rule(x)

    for kind in (numba.typeof(make(2)), numba.typeof((1, make(2))), numba.types.FunctionType(numba.types.int64())):
        assert compilation._describe(kind) is None
    for factor in (2, 3):
        apply._cache = KernelCache("spiel_cfrplus.kernels.passes.apply")
        assert apply(make(factor), 5) == 5 * factor


def test_tuples_of_different_classes_and_arrays_of_different_layout_have_different_files():
    numbers = np.zeros((2, 2))
    read_only = np.zeros((2, 2))
    read_only.flags.writeable = False
    arguments = [
        *(numbers, numbers[0], numbers.T, numbers[:, ::2], numbers.astype(np.float32), read_only),
        *(1, 1.0, True, None, (1, 1), (1, 1.0), np.uint32(1)),
        *(namedtuple("Pair", "a b")(1, 2), namedtuple("Pair", "b a")(1, 2), namedtuple("Other", "a b")(1, 2)),
    ]
    described = [compilation._describe(numba.typeof(argument)) for argument in arguments]
    described += [compilation._describe(numba.types.literal(value)) for value in (1, 2)]
    described.append(compilation._describe(numba.types.Array(numba.float64, 1, "C", aligned=False)))
    assert None not in described
    assert len(set(described)) == len(described)


def test_a_kernel_compiled_to_return_another_type_has_another_file():
    name = KernelCache("spiel_cfrplus.kernels.passes.any")._file_name
    signatures = [(numba.int64,), numba.int64(numba.int64), numba.float64(numba.int64), (numba.float64,)]
    assert len({name(signature) for signature in signatures}) == len(signatures)


def test_code_with_addresses_of_its_process_is_not_cached(cache):
    table = np.tile(np.arange(10.0), 100_000)  # so large that Numba refers to it where it lies

    @numba.njit
    def look_up(i):
        return table[i]

    look_up._cache = KernelCache("spiel_cfrplus.kernels.passes.look_up")
    assert look_up(3) == 3.0
    assert files_in(cache) == []


def test_a_second_start_compiles_nothing():
    script = """
import sys, pyspiel, spiel_cfrplus
from numba.core.dispatcher import Dispatcher
from spiel_cfrplus.openspiel import cfr
game = pyspiel.load_game("kuhn_poker")
solver = spiel_cfrplus.CFRPlusSolver(game)
solver.run(3)
solver.nash_conv()
cfr.CFRSolver(game).evaluate_and_update_policy()
modules = [module for name, module in sys.modules.items() if name.startswith("spiel_cfrplus")]
kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
print(any(kernel.stats.cache_hits for kernel in kernels), {kernel.__name__ for kernel in kernels if kernel.stats.cache_misses})
"""
    run_python(script)
    assert run_python(script) == ("True set()", "")


# Several processes, damages, and recompilation.


def test_recompile_compiles(cache):
    kernel = renewed(passes.normalize)
    normalized(kernel)
    kernel.recompile()
    assert not kernel.stats.cache_hits
    assert normalized() == 1


def test_a_disabled_cache_is_not_used(cache):
    kernel = renewed(passes.normalize)
    kernel._cache.disable()
    assert normalized(kernel) == 0
    assert not cache.exists()
    kernel = renewed(passes.normalize)
    kernel._cache.disable()
    kernel._cache.enable()
    assert normalized(kernel) == 0
    assert len(files_in(cache)) == 1


# Where the files are.


def test_without_sources_kernels_work_with_one_message(cache, monkeypatch, caplog):
    """As in a zip archive."""
    monkeypatch.setattr(compilation, "SOURCES", [])
    monkeypatch.setattr(compilation, "_STAMPS", compilation._stamps())
    assert normalized() == normalized() == 0
    (record,) = caplog.records
    assert "sources" in record.getMessage()


def test_code_that_numba_cannot_store_works_with_one_message(cache, monkeypatch, caplog):
    monkeypatch.setattr(compilation, "dumps", no_home)
    assert normalized() == 0
    (record,) = caplog.records
    assert numba.__version__ in record.getMessage()


def test_with_numba_disabled_nothing_is_compiled_or_written(tmp_path):
    script = """
import pyspiel, spiel_cfrplus
from spiel_cfrplus.solving import compiled_self_play
compiled_self_play._LEAST_WORK_OF_TEAM = 0
for threads in (1, 2):
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"), threads=threads)
    solver.run(10)
    print(round(solver.nash_conv(), 6))
"""
    output, _ = run_python(script, NUMBA_DISABLE_JIT="1", **{VARIABLE: str(tmp_path / "cache")})
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
    solver.run(10)
    assert output.splitlines() == [str(round(solver.nash_conv(), 6))] * 2
    assert not (tmp_path / "cache").exists()
