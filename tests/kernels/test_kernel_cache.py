"""Which compiled kernels are cached, and under which names: a cached kernel equals the one that would be compiled."""

import ast
import importlib
import os
import pathlib
import pkgutil
import shutil
import sys
import uuid
from collections import namedtuple

import numba
import numpy as np
import pytest
from compiled_kernels import PACKAGE, SMALL_WORK, files_in, hits, no_home, normalized, renewed, run_python, start_python
from numba.core.dispatcher import Dispatcher

import spiel_cfrplus
from spiel_cfrplus.kernels import kernel_cache, passes, self_play
from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.compiled_files import VARIABLE, KernelFiles
from spiel_cfrplus.kernels.kernel_cache import KernelCache

# Which code belongs to a digest.


def test_every_compiled_function_of_the_package_is_cached_and_its_source_is_in_the_digest():
    kernels = {}
    for module in pkgutil.walk_packages(spiel_cfrplus.__path__, "spiel_cfrplus."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher) and value.__module__.startswith("spiel_cfrplus"):
                kernels[f"{value.__module__}.{value.__qualname__}"] = value
    assert len(kernels) > 40
    for name, kernel in kernels.items():
        assert pathlib.Path(kernel.py_func.__code__.co_filename) in kernel_cache.SOURCES, name
        assert isinstance(kernel._cache, KernelCache), name


def test_kernel_files_import_nothing_that_is_not_in_the_digest():
    for source in kernel_cache.SOURCES:
        if source.name not in {"compilation.py", "compiled_files.py", "kernel_cache.py"}:  # they are not inlined
            for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    home = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
                    known = name.partition(".")[0] in {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}
                    assert known or home in kernel_cache.SOURCES, f"{source} imports {name}"


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
    monkeypatch.setattr(kernel_cache, "_stamps", lambda: ((0, 0),))
    assert normalized() == 0
    assert [path.stat().st_mtime_ns for path in files_in(cache)] == before


@pytest.mark.parametrize("part", ["numba.__version__", "llvmlite.__version__", "np.__version__", "sys.version"])
def test_other_versions_have_another_digest(part, monkeypatch):
    before = kernel_cache._digest(("cpu",), ())
    kernel_cache._digest.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(f"spiel_cfrplus.kernels.kernel_cache.{part}", "3.14.15")
        assert kernel_cache._digest(("cpu",), ()) != before
    kernel_cache._digest.cache_clear()
    assert kernel_cache._digest(("cpu",), ()) == before != kernel_cache._digest(("another cpu",), ())


def test_settings_of_numba_that_change_the_code_have_another_directory(cache, monkeypatch):
    normalized()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert normalized() == 0
    assert len({path.parent for path in files_in(cache)}) == 2
    assert normalized() == 1


# Which file belongs to which types of arguments.


def test_a_kernel_is_cached_for_each_function_argument(cache):
    def make(factor):
        def rule(x):
            return factor * x

        return numba.njit(rule)

    @numba.njit
    def apply(rule, x):
        return rule(x)

    rules = [make(factor) for factor in (2, 2, 3)]
    for described in (
        [kernel_cache._describe(numba.typeof(rule)) for rule in rules],
        [kernel_cache._describe(numba.typeof((1, rule))) for rule in rules],
    ):
        assert described[0] == described[1] != described[2]
    apply._cache = KernelCache("spiel_cfrplus.kernels.passes.apply")
    assert [apply(rule, 5) for rule in rules] == [10, 10, 15]
    assert sum(apply.stats.cache_hits.values()) == 1
    assert len(files_in(cache)) == 2


def test_types_of_function_pointers_have_no_file():
    assert kernel_cache._describe(numba.types.FunctionType(numba.types.int64())) is None


def test_kernels_as_arguments_are_identified_by_name():
    kind = numba.typeof(passes.normalize)
    assert kernel_cache._describe(kind) == "function spiel_cfrplus.kernels.passes.normalize"


def test_a_kernel_is_loaded_for_a_class_created_at_run_time(cache):
    for hit in (0, 1):
        kernel = renewed(self_play.row_of_parameters)
        made = namedtuple("Made", "a b", module="no_module_of_this_name")
        kernel.compile(numba.typeof((made(0.0, 0.0), np.zeros((1, 2)), 0)).types)
        (signature,) = [overload.signature for overload in kernel.overloads.values()]
        assert signature.return_type.instance_class is made
        assert hits(kernel) == hit


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"no pickle"])
def test_a_damaged_file_of_a_rule_is_replaced(damage, cache):
    @numba.njit
    def rule(treeplexes, player, values, policy, memory, parameters, t):
        policy[0] = 2.0 * values[0]

    def play():
        kernel, policy = renewed(self_play.update_by_treeplex_rule), np.zeros(1)
        kernel(None, 0, np.ones(1), policy, rule, None, None, 1, False)
        assert policy[0] == 2.0
        return hits(kernel)

    assert (play(), play()) == (0, 1)
    (path,) = files_in(cache)
    KernelFiles(path.parent.name.removeprefix("kernels-")).write(path.name, damage(path.read_bytes()))
    assert (play(), play()) == (0, 1)


def test_tuples_of_different_classes_and_arrays_of_different_layout_have_different_files():
    numbers = np.zeros((2, 2))
    read_only = np.zeros((2, 2))
    read_only.flags.writeable = False
    arguments = [
        *(numbers, numbers[0], numbers.T, numbers[:, ::2], numbers.astype(np.float32), read_only),
        *(1, 1.0, True, None, (1, 1), (1, 1.0), np.uint32(1)),
        *(namedtuple("Pair", "a b")(1, 2), namedtuple("Pair", "b a")(1, 2), namedtuple("Other", "a b")(1, 2)),
    ]
    described = [kernel_cache._describe(numba.typeof(argument)) for argument in arguments]
    described += [kernel_cache._describe(numba.types.literal(value)) for value in (1, 2)]
    described.append(kernel_cache._describe(numba.types.Array(numba.float64, 1, "C", aligned=False)))
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


# Several processes, damages, and rekernel_cache.


USERS_SCRIPT = """
import sys, pyspiel, spiel_cfrplus
from numba.core.dispatcher import Dispatcher
from spiel_cfrplus.regret_minimizers import local_rule

@local_rule(per_action=("regrets",), parameters={"factor": 0.5})
def my_rule(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] * parameters.factor + values[a] - point.value, 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)

solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"), rule=my_rule)
solver.run(3)
modules = [module for name, module in sys.modules.items() if name.startswith("spiel_cfrplus")]
kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
print(sorted({kernel.__name__ for kernel in kernels if kernel.stats.cache_misses}), len(my_rule.function.overloads))
"""


def test_a_second_start_does_not_compile_a_users_rule(tmp_path):
    script = tmp_path / "script.py"
    run = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    # The source is part of the digest, and the cache may hold what an earlier run of this test compiled.
    original = USERS_SCRIPT.replace("    total = 0.0\n", f"    total = 0.0  # {uuid.uuid4()}\n", 1)
    edited = original.replace("0.0)", "-0.0)")
    for text, is_new in ((original, True), (original, False), (edited, True)):
        script.write_text(text, encoding="utf-8")
        output, errors = run_python(run)
        assert errors == ""
        assert ("'self_play'" in output) == is_new
        assert is_new or output == "[] 0"


def test_files_of_two_processes_can_be_loaded_together(tmp_path):
    """Compiled code calls functions by symbols, which must differ between processes."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
import numba
import numpy as np
from spiel_cfrplus.kernels import self_play

def make(factor):
    @numba.njit
    def halve(x):  # cannot be inlined
        return factor if x < 1.0 else halve(x - 1.0) + halve(x - 2.0)

    @numba.njit
    def rule(treeplexes, player, values, policy, memory, parameters, t):
        policy[0] = halve(values[0])

    return rule

policy = np.zeros(1)
for factor in sys.argv[1:]:
    self_play.update_by_treeplex_rule(None, 0, np.array([3.0]), policy, make(float(factor)), None, None, 1, False)
    print(policy[0], end=" ")
print(sum(self_play.update_by_treeplex_rule.stats.cache_hits.values()))
""",
        encoding="utf-8",
    )

    def start(*factors):
        run = f"import runpy, sys; sys.argv = {['', *factors]}; runpy.run_path({str(script)!r}, run_name='__main__')"
        return start_python(run, **{VARIABLE: str(tmp_path / "cache")})

    outputs = [process.communicate(timeout=120)[0].split() for process in (start("1"), start("2"))]
    assert outputs == [["5.0", "0"], ["10.0", "0"]]
    assert start("1", "2").communicate(timeout=120)[0].split() == ["5.0", "10.0", "2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_function_numbers_of_a_forked_process_differ():
    script = """
import os
from numba.core.bytecode import FunctionIdentity
from spiel_cfrplus.kernels import kernel_cache
child = os.fork()
if child:
    os.waitpid(child, 0)
print(next(FunctionIdentity._unique_ids), flush=True)
"""
    child, parent = run_python(script)[0].split()
    assert parent != child


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
    monkeypatch.setattr(kernel_cache, "SOURCES", [])
    monkeypatch.setattr(kernel_cache, "_STAMPS", kernel_cache._stamps())
    assert normalized() == normalized() == 0
    (record,) = caplog.records
    assert "sources" in record.getMessage()


def test_code_that_numba_cannot_store_works_with_one_message(cache, monkeypatch, caplog):
    monkeypatch.setattr(kernel_cache, "_dumps", no_home)
    assert normalized() == 0
    (record,) = caplog.records
    assert numba.__version__ in record.getMessage()
