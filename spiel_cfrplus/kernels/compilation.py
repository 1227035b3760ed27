"""Compilation of kernels by Numba at their first call, and the cache of compiled code in the user's cache directory.

A *kernel* is a function of this package with the decorator `jit`. Kernels inline kernels from other files, so the compiled code
of one file depends on all of them. The cache therefore identifies compiled code by a digest of the sources of all kernels, the
versions of Python, Numba, llvmlite and NumPy, the processor, and Numba's settings. Numba's own cache (`cache=True`) tracks only
the file of the kernel itself, and writes into the directory of the package.

Kernel files import only the standard library, NumPy, Numba, llvmlite and other kernel files, because the digest must include
everything that is inlined.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from spiel_cfrplus.kernels.compiled_files import KernelFiles, kernel_files, report_failure

FOLDER = pathlib.Path(__file__).parent
SOURCES = sorted(FOLDER.glob("*.py"))

# Numba's settings that affect the compiled code.
_SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "DISABLE_INTEL_SVML",
    "ENABLE_AVX",
    "ENABLE_PROFILING",
    "EXTEND_VARIABLE_LIFETIMES",
    "JIT_COVERAGE",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "NRT_STATS",
    "OPT",
    "PARFOR_MAX_TUPLE_SIZE",
    "SLP_VECTORIZE",
    "USING_SVML",
)


# forceinline, because a call passes tuples of arrays by value, which would take as long as an iteration of a small game.
# _nrt=False: without Numba's runtime kernels cannot allocate, and references are not counted. Counting them at every call that
# passes a tuple of arrays made iterations up to fifty times as long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The only compilation decorator of this package; compiles at the first call and caches compiled kernels on disk."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if _is_kernel(function) and hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT, njit returns the function itself
        dispatcher._cache = KernelCache(f"{function.__module__}.{function.__qualname__}")
    return dispatcher


def _is_kernel(function: Callable[..., Any]) -> bool:
    """Whether module and name identify the function and the digest includes its source; false for nested functions."""
    module = function.__module__
    return module.startswith("spiel_cfrplus.kernels.") and "<locals>" not in function.__qualname__


class KernelCache:
    """The cache of one kernel; implements the interface of `numba.core.caching` that Numba's dispatcher uses.

    Args:
      kernel: the kernel's module and name.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._enabled = True
        self._files: KernelFiles | None = None  # of the last access

    @property
    def cache_path(self) -> str | None:
        """The directory of the last access."""
        return None if self._files is None or self._files.folder is None else str(self._files.folder)

    def enable(self) -> None:
        """Enables reading and writing."""
        self._enabled = True

    def disable(self) -> None:
        """Disables reading and writing."""
        self._enabled = False

    def flush(self) -> None:
        """Removes the kernel's files."""
        if self._files is not None:
            self._files.remove(f"{self._kernel}-")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled code for the argument types; None if it is not in the cache and must be compiled."""
        target_context.refresh()
        name = self._file_name(signature)
        files = self._find_files(target_context.codegen()) if name else None
        content = files.read(name) if files and name else None
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # for any error, the kernel can be compiled again
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Stores compiled code."""
        name = self._file_name(signature)
        files = self._find_files(result.codegen) if name else None
        if files is None or name is None or result.lifted or result.library.has_dynamic_globals:
            return
        try:
            content = dumps(result._reduce())
        except Exception as error:  # the compiled code in memory is valid
            report_failure(f"Numba {numba.__version__} cannot store them ({error!r})")
        else:
            files.write(name, content)

    def _file_name(self, signature: Any) -> str | None:
        """The name of the kernel's file for the argument types; None if the types do not identify the code."""
        arguments, returned = sigutils.normalize_signature(signature)
        described = [_describe(kind) for kind in (*arguments, types.none if returned is None else returned)]
        if None in described:
            return None
        return f"{self._kernel}-{hashlib.sha256(repr(described).encode()).hexdigest()[:32]}"

    def _find_files(self, codegen: Any) -> KernelFiles | None:
        """The files of the digest for the code that this process compiles; None if the cache cannot be used."""
        if _STAMPS is None:
            report_failure(f"the package's sources are not in {FOLDER}")
        # If a source file changed after it was imported, the code in memory does not match the digest of the file.
        if not self._enabled or _STAMPS is None or _stamps() != _STAMPS:
            return None
        settings = tuple((name, repr(getattr(numba.config, name, None))) for name in _SETTINGS)
        self._files = kernel_files(_digest(codegen.magic_tuple(), settings))
        return self._files


def _describe(kind: Any) -> str | None:
    """A string that identifies a type in every process: its name, and the class of a tuple; None for types of functions.

    The name of a Numba function type does not distinguish two functions with the same name.
    """
    if isinstance(kind, types.Number | types.Boolean | types.NoneType | types.Omitted | types.IntegerLiteral):
        return repr(kind)
    if isinstance(kind, types.Array):  # the name of an array type is not canonical
        dtype = _describe(kind.dtype)
        return None if dtype is None else f"array {dtype} {kind.ndim} {kind.layout} {kind.mutable} {kind.aligned}"
    if isinstance(kind, types.BaseTuple):
        elements: Any = kind  # for mypy: the class does not declare that it is iterable
        parts = [_describe(element) for element in elements]
        tuple_class = getattr(kind, "instance_class", tuple)
        fields = getattr(tuple_class, "_fields", ())
        return None if None in parts else f"{tuple_class.__module__}.{tuple_class.__qualname__} {fields} {parts}"
    return None


def _stamps() -> tuple[tuple[int, int], ...] | None:
    """The modification times, in nanoseconds, and sizes of the source files; None if a file is missing."""
    if not SOURCES:  # for example if the package is imported from a zip archive
        return None
    try:
        return tuple((status.st_mtime_ns, status.st_size) for status in (path.stat() for path in SOURCES))
    except OSError:
        return None


_STAMPS = _stamps()


@functools.cache
def _digest(machine: tuple[str, ...], settings: tuple[tuple[str, str], ...]) -> str:
    """The digest of everything that compiled code depends on except kernel name and argument types; 32 hexadecimal digits."""
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    sources = [(path.name, path.read_bytes()) for path in SOURCES]
    return hashlib.sha256(repr((versions, machine, settings, sources)).encode()).hexdigest()[:32]
