"""Compiled kernels on disk: what is read back is what would be compiled now, and no state of the disk stops the work."""

import ast
import errno
import functools
import importlib
import logging
import os
import pathlib
import pickle
import pkgutil
import shutil
import subprocess
import sys
import time
from collections import namedtuple

import numba
import numpy as np
import platformdirs
import pyspiel
import pytest
from numba.core.dispatcher import Dispatcher

import spiel_cfrplus
from spiel_cfrplus.kernels import compilation, compiled_files, passes
from spiel_cfrplus.kernels.compilation import KernelCache, jit
from spiel_cfrplus.kernels.compiled_files import VARIABLE, KernelFiles

PACKAGE = pathlib.Path(spiel_cfrplus.__file__).parent
DIGEST, OTHER_DIGEST = "0" * 32, "1" * 32
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="about owners and modes of files")

# Compiles one kernel of another file than the one it inlines, which takes a second.
SMALL_WORK = """
import numpy as np
from spiel_cfrplus.kernels import histories
tree = histories.HistoryArrays(None, None, None, None, None, table_start=np.array([0, 2], np.uint32), owner=None)
probabilities = np.zeros(2)
histories.match_table(tree, np.array([1.0, 3.0]), probabilities)
print(*probabilities, sum(histories.match_table.stats.cache_hits.values()))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache for kernels that are made by `renewed`; its folder does not exist yet."""
    root = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(root))
    monkeypatch.setattr(compiled_files, "_has_reported", False)
    monkeypatch.setattr(compilation, "kernel_files", KernelFiles)
    return root


def renewed(kernel):
    """The kernel as a new process has it, before it compiles or loads anything."""
    return jit(kernel.py_func)


def hits(kernel):
    """How often the kernel was loaded; once it was called it is either that or compiled."""
    assert sum(kernel.stats.cache_hits.values()) + sum(kernel.stats.cache_misses.values()) == 1
    return sum(kernel.stats.cache_hits.values())


def normalized(kernel=None):
    """Calls `passes.normalize` anew, checks the result, and says how often it was loaded."""
    kernel = renewed(passes.normalize) if kernel is None else kernel
    policy = np.zeros(2)
    kernel(np.array([1.0, 3.0]), 4.0, 0, 2, policy, None)
    np.testing.assert_array_equal(policy, [0.25, 0.75])
    return hits(kernel)


def files_in(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


def start_python(script, **environment):
    """A process that writes no bytecode and imports `spiel_cfrplus` from `PYTHONPATH`, by default the one under test."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(PACKAGE.parent), **environment}
    command = [sys.executable, "-P", "-c", script]  # -P: not from the current folder
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_python(script, **environment):
    """What such a process prints on both streams."""
    process = start_python(script, **environment)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.strip(), errors


# Which code belongs to a digest.


def test_every_compiled_function_of_the_package_is_kept_and_its_source_is_in_the_digest():
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


def test_functions_that_their_name_does_not_identify_are_compiled_but_not_kept(cache):
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


def test_a_process_whose_sources_changed_after_their_import_neither_reads_nor_writes(cache, monkeypatch):
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


def test_settings_of_numba_that_change_the_code_have_another_folder(cache, monkeypatch):
    normalized()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert normalized() == 0
    assert len({path.parent for path in files_in(cache)}) == 2
    assert normalized() == 1


# Which file belongs to which types of arguments.


def test_a_kernel_that_was_given_a_function_is_not_kept():
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


def test_code_that_refers_to_an_address_of_its_process_is_not_kept(cache):
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


def test_several_processes_may_start_at_once_on_an_empty_cache(tmp_path):
    environment = {VARIABLE: str(tmp_path / "cache")}
    processes = [start_python(SMALL_WORK, **environment) for _ in range(4)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert output.startswith("0.25 0.75 ")
        assert errors == ""
    assert run_python(SMALL_WORK, **environment) == ("0.25 0.75 1", "")
    assert all(path.name.startswith("spiel_cfrplus.") for path in files_in(tmp_path / "cache"))


DAMAGES = {
    "empty": lambda content: b"",
    "in its checksum": lambda content: content[:20],
    "truncated": lambda content: content[:-1],
    "half": lambda content: content[: len(content) // 2],
    "a bit flipped": lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
    "zeros": lambda content: bytes(len(content)),
    "longer": lambda content: content + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew(damage, cache, caplog):
    assert normalized() == 0
    assert normalized() == 1
    (path,) = files_in(cache)
    intact = path.read_bytes()
    path.write_bytes(DAMAGES[damage](intact))
    assert normalized() == 0
    assert normalized() == 1
    assert caplog.records == []


def test_a_file_whose_content_is_no_compiled_code_is_made_anew(cache):
    normalized()
    (path,) = files_in(cache)
    files = KernelFiles(path.parent.name.removeprefix("kernels-"))
    for content in (b"no pickle", pickle.dumps((1, 2, 3))):
        files.write(path.name, content)
        assert normalized() == 0
        assert normalized() == 1


def test_a_file_in_the_place_of_another_is_not_read(cache):
    files, others = KernelFiles(DIGEST), KernelFiles(OTHER_DIGEST)
    files.write("a", b"code of a")
    assert files.read("a") == b"code of a"
    shutil.copy(files.folder / "a", files.folder / "b")
    shutil.copy(files.folder / "a", others.folder / "a")
    assert files.read("b") is None
    assert others.read("a") is None


def test_recompile_compiles(cache):
    kernel = renewed(passes.normalize)
    normalized(kernel)
    kernel.recompile()
    assert not kernel.stats.cache_hits
    assert normalized() == 1


def test_a_disabled_cache_is_neither_read_nor_written(cache):
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


def test_the_folder_is_in_the_users_cache_unless_the_variable_names_one(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert compiled_files.cache_root() == platformdirs.user_cache_path("spiel_cfrplus", appauthor=False)
    monkeypatch.setenv(VARIABLE, "")
    assert compiled_files.cache_root() == platformdirs.user_cache_path("spiel_cfrplus", appauthor=False)
    monkeypatch.setenv(VARIABLE, "somewhere")
    assert compiled_files.cache_root() == pathlib.Path.cwd() / "somewhere"
    monkeypatch.setenv(VARIABLE, os.path.join("~", "somewhere"))
    assert compiled_files.cache_root() == pathlib.Path.home() / "somewhere"


def no_home(*arguments, **options):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("answer", [no_home, lambda *_, **__: pathlib.Path("~/.cache/spiel_cfrplus")])
def test_without_a_home_kernels_work_and_one_line_says_so(answer, cache, monkeypatch, caplog):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(platformdirs, "user_cache_path", answer)
    assert normalized() == normalized() == 0
    (record,) = caplog.records
    assert "home" in record.getMessage()
    assert VARIABLE in record.getMessage()


def test_where_no_folder_can_be_made_work_goes_on_and_one_line_on_stderr_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    output, errors = run_python(SMALL_WORK, **{VARIABLE: str(tmp_path / "file" / "cache")})
    assert output == "0.25 0.75 0"
    (line,) = errors.splitlines()
    assert str(tmp_path / "file") in line
    assert VARIABLE in line


def test_the_command_line_says_so_in_a_note():
    script = """
import sys
from spiel_cfrplus.kernels import compiled_files
from spiel_cfrplus.cli import main
main._run = lambda arguments: compiled_files.report_failure("a reason")
sys.argv = ["run.py", "--game=kuhn_poker"]
main.main()
"""
    _, errors = run_python(script)
    (line,) = errors.splitlines()
    assert line.startswith("note: ")
    assert "a reason" in line


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_where_files_cannot_be_written_work_goes_on_and_one_line_says_so(reason, cache, monkeypatch, caplog):
    tried = []

    def refuse(path):
        tried.append(path)
        raise OSError(reason, os.strerror(reason), str(path))

    monkeypatch.setattr(compiled_files, "atomic_write", refuse)
    monkeypatch.setattr(compilation, "kernel_files", functools.cache(KernelFiles))
    assert normalized() == normalized() == 0
    assert len(tried) == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert os.strerror(reason) in record.getMessage()
    assert str(cache) in record.getMessage()
    assert VARIABLE in record.getMessage()
    assert "\n" not in record.getMessage()


def test_what_is_there_is_read_where_nothing_can_be_written(cache, monkeypatch, caplog):
    normalized()
    monkeypatch.setattr(compiled_files, "atomic_write", None)
    monkeypatch.setattr(os, "utime", no_home)
    assert normalized() == 1
    assert caplog.records == []


def test_a_folder_that_was_removed_meanwhile_is_made_again(cache, caplog):
    files = KernelFiles(DIGEST)
    shutil.rmtree(files.folder)
    files.write("a", b"code")
    assert files.read("a") == b"code"
    assert caplog.records == []


def test_a_file_that_cannot_be_replaced_but_holds_the_same_is_no_failure(cache, monkeypatch, caplog):
    """As on Windows, where another process reads what it has just written."""
    files = KernelFiles(DIGEST)
    files.write("a", b"code")

    def refuse(path):
        raise PermissionError(errno.EACCES, "in use")

    monkeypatch.setattr(compiled_files, "atomic_write", refuse)
    files.write("a", b"code")
    assert caplog.records == []
    files.write("a", b"other code")
    assert len(caplog.records) == 1


def test_where_there_are_no_sources_kernels_work_and_one_line_says_so(cache, monkeypatch, caplog):
    """As in an archive."""
    monkeypatch.setattr(compilation, "SOURCES", [])
    monkeypatch.setattr(compilation, "_STAMPS", compilation._stamps())
    assert normalized() == normalized() == 0
    (record,) = caplog.records
    assert "sources" in record.getMessage()


def test_code_that_numba_cannot_store_works_and_one_line_says_so(cache, monkeypatch, caplog):
    monkeypatch.setattr(compilation, "dumps", no_home)
    assert normalized() == 0
    (record,) = caplog.records
    assert numba.__version__ in record.getMessage()


def test_with_numbas_compiler_turned_off_nothing_is_compiled_or_written(tmp_path):
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


# Who may write them.


@POSIX_ONLY
def test_the_folder_is_for_its_user_alone(cache):
    before = os.umask(0)
    try:
        assert KernelFiles(DIGEST).folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@POSIX_ONLY
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(mode, cache, caplog):
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    files.folder.chmod(mode)
    files = KernelFiles(DIGEST)
    assert files.read("a") is None
    files.write("b", b"code")
    assert not (cache / f"kernels-{DIGEST}" / "b").exists()
    (record,) = caplog.records
    assert "other users can write" in record.getMessage()


@POSIX_ONLY
def test_what_belongs_to_another_user_is_not_used_unless_that_is_the_administrator(cache, monkeypatch, caplog):
    def of_owner(owner):
        return os.stat_result((0o100644, 0, 0, 1, owner, 0, 0, 0, 0, 0))

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [compiled_files._is_owner_trusted(of_owner(owner)) for owner in (1000, 0, 1001)] == [True, True, False]
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    assert (files.read("a") is None) == (files.folder.stat().st_uid not in (0, 1000))
    monkeypatch.setattr(compiled_files, "_is_owner_trusted", lambda status: False)
    assert files.read("a") is None
    assert KernelFiles(DIGEST).folder is None
    assert "belongs to another user" in caplog.records[-1].getMessage()


# How long they are kept.


def age(path, days):
    then = time.time() - days * 24 * 60 * 60
    os.utime(path, (then, then))


def test_folders_that_were_not_used_for_a_month_are_removed_and_nothing_else(cache):
    unused, used, link = (cache / f"kernels-{digit * 32}" for digit in "abc")
    foreign = [cache / "kernels-of-somebody", cache / "notes"]
    for folder in (unused, used, *foreign):
        folder.mkdir(parents=True)
        (folder / "file").write_text("kept")
        age(folder, days=31)
    age(used, days=29)
    if os.name == "posix":
        link.symlink_to(foreign[1])
    KernelFiles(DIGEST)
    assert not unused.exists()
    assert all((folder / "file").exists() for folder in (used, *foreign))


def test_use_is_marked_at_most_once_a_day(cache):
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    folder = files.folder
    for days, marked in ((0.5, False), (2, True)):
        age(folder, days)
        before = folder.stat().st_mtime
        KernelFiles(DIGEST)
        assert (folder.stat().st_mtime > before) == marked
