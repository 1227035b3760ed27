"""Compilation of kernels by Numba at their first call.

A *kernel* is a function of this package, or a user's rule, with the decorator `jit`. It is compiled in two forms:

* for calls from Python: optimized machine code, which `kernel_cache` stores on disk;
* for calls from other kernels, which inline it: code that is optimized within the calling kernel only. Without this form, Numba
  would optimize every kernel in every kernel on the path from the loop to it, and generate machine code and a Python wrapper
  each time; compilation took two to three times as long.

Kernel files import only the standard library, NumPy, Numba, llvmlite and other kernel files, because the digest of the cache
must include everything that is inlined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from spiel_cfrplus.kernels.kernel_cache import KernelCache
from spiel_cfrplus.kernels.rule_sources import is_kernel

# forceinline, because a call passes tuples of arrays by value, which would take as long as an iteration of a small game.
# _nrt=False: without Numba's runtime kernels cannot allocate, and references are not counted. Counting them at every call that
# passes a tuple of arrays made iterations up to fifty times as long.
_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "forceinline": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The only compilation decorator of this package; compiles at the first call and caches compiled kernels on disk."""
    if vars(numba.config)["DISABLE_JIT"]:
        return function
    return Kernel(function, targetoptions=_OPTIONS)


class _InlinedCode(JITCodeLibrary):
    """Code that is not optimized on its own and has no machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _InlinedCompiler(Compiler):
    """Compiles to `_InlinedCode`."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, return_type: Any, flags: Any, *rest: Any
    ):
        library = _InlinedCode(target_context.codegen(), "inlined")
        flags.no_compile = True
        super().__init__(typing_context, target_context, library, args, return_type, flags, *rest)


class _InlinedKernel(CPUDispatcher):
    """The form of a kernel for calls from other kernels."""

    def add_overload(self, result: Any) -> None:
        """Registers the code with Numba under a key, for which Numba would use the function that Python calls."""
        key = object()
        self.targetctx.insert_user_function(key, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)


class Kernel(CPUDispatcher):
    """A compiled function with a separate form for calls from other kernels.

    Attributes:
      inlined: this form; its `signatures` are the types for which kernels call it.
    """

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        """Compiles nothing yet; the arguments are those of Numba's dispatchers."""
        locals = {} if locals is None else locals  # Numba 0.61 refuses None
        super().__init__(py_func, locals, targetoptions)
        if is_kernel(py_func):
            self._cache = KernelCache(f"{py_func.__module__}.{py_func.__qualname__}")
        self.inlined = _InlinedKernel(py_func, locals, {**targetoptions, "no_cpython_wrapper": True}, _InlinedCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Called by Numba to type a call from another kernel."""
        return self.inlined.get_call_template(args, kws)

    def get_overload(self, signature: Any) -> Any:
        """Called by Numba to compile a call from another kernel."""
        return self.inlined.get_overload(signature)
