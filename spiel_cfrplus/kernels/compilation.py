"""How functions of this package are compiled: by Numba, at their first call, and kept in the user's cache folder.

A *kernel* is a function of this package with the decorator `jit`. Kernels inline each other across
files, so what is compiled from one file depends on all of them. Compiled code is therefore kept under a digest of the sources
of all kernels, of the versions of everything that compiles them, of the processor and of Numba's settings. Numba's own cache
(`cache=True`) knows a kernel's own file only, and writes into the package's folder.

Kernel files import the standard library, NumPy, Numba, llvmlite and other kernel files only: what they inline must be in the
digest.
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

# Numba's settings that change the code it makes.
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


# Inlined by force: calls that pass tuples of arrays by value cost as much as a small game's whole iteration. Without Numba's
# runtime nothing can be allocated and no references are counted; counting them wherever a tuple of arrays is handed on made
# iterations up to fifty times as long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The one way in which functions of this package are compiled: at their first call, kept on disk if they are kernels."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if _is_kernel(function) and hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT it is the function
        dispatcher._cache = KernelCache(f"{function.__module__}.{function.__qualname__}")
    return dispatcher


def _is_kernel(function: Callable[..., Any]) -> bool:
    """Whether its module and its name identify the function, and the digest covers it. Not so for functions in functions."""
    module = function.__module__
    return module.startswith("spiel_cfrplus.kernels.") and "<locals>" not in function.__qualname__


class KernelCache:
    """A kernel's compiled code on disk, as Numba's dispatcher asks for it (the interface of `numba.core.caching`).

    Args:
      kernel: the kernel's module and name.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._enabled = True
        self._files: KernelFiles | None = None  # those that were used last

    @property
    def cache_path(self) -> str | None:
        """The folder that was used last."""
        return None if self._files is None or self._files.folder is None else str(self._files.folder)

    def enable(self) -> None:
        """Reads and writes files from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither reads nor writes files from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Removes the kernel's files."""
        if self._files is not None:
            self._files.remove(f"{self._kernel}-")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled code for these types of arguments; None if there is none, so that it must be compiled."""
        target_context.refresh()
        name = self._file_name(signature)
        files = self._find_files(target_context.codegen()) if name else None
        content = files.read(name) if files and name else None
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # whatever is wrong with it, compiling it anew mends it
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keeps what was compiled."""
        name = self._file_name(signature)
        files = self._find_files(result.codegen) if name else None
        if files is None or name is None or result.lifted or result.library.has_dynamic_globals:
            return
        try:
            content = dumps(result._reduce())
        except Exception as error:  # the code works all the same
            report_failure(f"Numba {numba.__version__} cannot store them ({error!r})")
        else:
            files.write(name, content)

    def _file_name(self, signature: Any) -> str | None:
        """Of the kernel's file for these types; None if the types do not identify the code."""
        arguments, returned = sigutils.normalize_signature(signature)
        described = [_describe(kind) for kind in (*arguments, types.none if returned is None else returned)]
        if None in described:
            return None
        return f"{self._kernel}-{hashlib.sha256(repr(described).encode()).hexdigest()[:32]}"

    def _find_files(self, codegen: Any) -> KernelFiles | None:
        """The files for the code that this process would compile now."""
        if _STAMPS is None:
            report_failure(f"the package's sources are not in {FOLDER}")
        # A process that imported a source before it changed compiles the old one.
        if not self._enabled or _STAMPS is None or _stamps() != _STAMPS:
            return None
        settings = tuple((name, repr(getattr(numba.config, name, None))) for name in _SETTINGS)
        self._files = kernel_files(_digest(codegen.magic_tuple(), settings))
        return self._files


def _describe(kind: Any) -> str | None:
    """What identifies a type in every process: its name, and a tuple's class; None for types that stand for functions.

    The names of Numba's types of functions do not tell two functions with one name apart.
    """
    if isinstance(kind, types.Number | types.Boolean | types.NoneType | types.Omitted | types.IntegerLiteral):
        return repr(kind)
    if isinstance(kind, types.Array):  # its name varies with how it was made
        dtype = _describe(kind.dtype)
        return None if dtype is None else f"array {dtype} {kind.ndim} {kind.layout} {kind.mutable} {kind.aligned}"
    if isinstance(kind, types.BaseTuple):
        elements: Any = kind  # for mypy, to which the class has none
        parts = [_describe(element) for element in elements]
        tuple_class = getattr(kind, "instance_class", tuple)
        fields = getattr(tuple_class, "_fields", ())
        return None if None in parts else f"{tuple_class.__module__}.{tuple_class.__qualname__} {fields} {parts}"
    return None


def _stamps() -> tuple[tuple[int, int], ...] | None:
    """When the sources were changed last, in nanoseconds, and their sizes; None if any is missing."""
    if not SOURCES:  # as in an archive
        return None
    try:
        return tuple((status.st_mtime_ns, status.st_size) for status in (path.stat() for path in SOURCES))
    except OSError:
        return None


_STAMPS = _stamps()


@functools.cache
def _digest(machine: tuple[str, ...], settings: tuple[tuple[str, str], ...]) -> str:
    """Of all that the compiled code depends on but a kernel's name and its types of arguments; 32 hexadecimal digits."""
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    sources = [(path.name, path.read_bytes()) for path in SOURCES]
    return hashlib.sha256(repr((versions, machine, settings, sources)).encode()).hexdigest()[:32]
