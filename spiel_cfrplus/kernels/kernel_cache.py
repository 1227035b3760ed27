"""The cache of compiled kernels in the user's cache directory.

Kernels inline kernels from other files, so the compiled code of one file depends on all of them. The cache therefore identifies
compiled code by a digest of the sources of all kernels, the versions of Python, Numba, llvmlite and NumPy, the processor, and
Numba's settings. Numba's own cache (`cache=True`) tracks only the file of the kernel itself, and writes into the directory of
the package.

Some kernels receive functions, for example a user's rule. Each function is a type for which the kernel is compiled. The cache
identifies this code by the digest above, the name of the kernel, and the digests of the functions, see `rule_sources`.

Kernel files import only the standard library, NumPy, Numba, llvmlite and other kernel files, because the digest must include
everything that is inlined.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import itertools
import logging
import os
import pathlib
import pickle
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompileResult
from numba.core.environment import Environment
from numba.core.serialize import NumbaPickler
from numba.core.typing import templates

from spiel_cfrplus.kernels.compiled_files import KernelFiles, kernel_files, report_failure
from spiel_cfrplus.kernels.rule_sources import UnknownFunctionError, function_digest

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


def _randomize_function_numbers() -> None:
    """Sets the next number that Numba gives to a function, which is part of the function's symbols, to a random one.

    Numba starts at 1 in every process. Cached files of two processes could then use one symbol for two functions. If both files
    are loaded, the linker uses the first function for both.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_randomize_function_numbers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_randomize_function_numbers)


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
        """The compiled code for the argument types; None if it is not in the cache and must be compiled.

        Numba's own cache first initializes the target, which imports half of Numba, and SciPy: 0.5 s, a third of the time of a
        short process. Machine code needs none of it, and the compiler initializes the target itself.
        """
        name = self._file_name(signature)
        files = self._find_files(target_context.codegen()) if name else None
        content = files.read(name) if files and name else None
        if content is None:
            return None
        try:
            arguments, _ = sigutils.normalize_signature(signature)
            return CompileResult._rebuild(target_context, *_loads(content, arguments))
        except Exception:  # for any error, the kernel can be compiled again
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Stores compiled code."""
        name = self._file_name(signature)
        files = self._find_files(result.codegen) if name else None
        if files is None or name is None or result.lifted or result.library.has_dynamic_globals:
            return
        try:
            content = _dumps(result)
        except Exception as error:  # the compiled code in memory is valid
            report_failure(f"Numba {numba.__version__} cannot store them ({error!r})")
        else:
            files.write(name, content)

    def _file_name(self, signature: Any) -> str | None:
        """The name of the kernel's file for the argument types; None if the types do not identify the code."""
        arguments, returned = sigutils.normalize_signature(signature)
        try:
            described = [_describe(kind) for kind in (*arguments, types.none if returned is None else returned)]
        except UnknownFunctionError as error:
            _report_recompilation(str(error))
            return None
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
    """A string that identifies a type in every process: its name, the class of a tuple, the digest of a function.

    None for types that are not known. The name of a Numba function type does not distinguish two functions with the same name.

    Raises:
      UnknownFunctionError: a function has no digest.
    """
    simple = types.Number | types.Boolean | types.NoneType | types.Omitted | types.IntegerLiteral | types.RangeType
    if isinstance(kind, simple):
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
    if isinstance(kind, types.Dispatcher):
        return f"function {function_digest(kind.dispatcher)}"
    return None


@functools.cache  # each reason is reported once
def _report_recompilation(reason: str) -> None:
    logging.getLogger("spiel_cfrplus").warning("spiel_cfrplus cannot cache a rule and compiles it at every start: %s", reason)


def _parts(kinds: Iterable[Any]) -> Iterator[Any]:
    """The types; after each tuple type, its class and the parts of its element types."""
    for kind in kinds:
        yield kind
        if isinstance(kind, types.BaseTuple):
            elements: Any = kind
            yield getattr(kind, "instance_class", tuple)
            yield from _parts(elements)


class _Pickler(NumbaPickler):
    """Pickles compiled code without references to objects that exist only in this process.

    The types and classes of the arguments, which include functions, are replaced by their positions. The globals of other
    modules are left out, because compiled code does not read them, and unpickling would import the modules.
    """

    def __init__(self, file: io.BytesIO, arguments: Iterable[Any]) -> None:
        super().__init__(file, protocol=4)
        self._positions = {part: position for position, part in enumerate(_parts(arguments)) if part is not tuple}

    def persistent_id(self, value: Any) -> int | None:
        return self._positions.get(value) if isinstance(value, types.Type | type) else None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Environment):
            rebuild, (_, constants, name) = value.__reduce__()
            return rebuild, (__name__, constants, name)
        return super().reducer_override(value)


class _Unpickler(pickle.Unpickler):
    """Replaces positions by the types and classes of the arguments in this process."""

    def __init__(self, file: io.BytesIO, arguments: Iterable[Any]) -> None:
        super().__init__(file)
        self._parts = list(_parts(arguments))

    def persistent_load(self, position: int) -> Any:
        return self._parts[position]


def _dumps(result: Any) -> bytes:
    """Pickles compiled code without the types of its arguments."""
    library, function, environment, signature, *others = result._reduce()
    function = copy.copy(function)
    function.argtypes = ()
    file = io.BytesIO()
    _Pickler(file, signature.args).dump((library, function, environment, signature.return_type, *others))
    return file.getvalue()


def _loads(content: bytes, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of `CompileResult._rebuild` for pickled code and the argument types of this process."""
    library, function, environment, returned, *others = _Unpickler(io.BytesIO(content), arguments).load()
    function.argtypes = tuple(arguments)
    return library, function, environment, templates.signature(returned, *arguments), *others


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
