"""Digests of functions that kernels receive, which identify cached code that was compiled for a user's rule.

The name of a function does not identify its code: a user edits it, creates several functions with one closure, or repeats a
definition in a notebook. The *digest* of a function includes everything that Numba compiles: its source, its bytecode, the
options of the compiler, the values of the globals and closure variables that it reads, and the digests of compiled functions
among them. Functions in kernel files are identified by name, because the digest in `kernel_cache` includes these files.

A function has no digest if any part is unknown. Numba treats globals as constants and reads them when it compiles a function.
A function therefore has no digest either if a value may have changed after the function was compiled.
"""

from __future__ import annotations

import dataclasses
import dis
import hashlib
import inspect
import itertools
import sys
import tokenize
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher

# Packages whose versions are part of the digest of the kernels.
_VERSIONED = {"builtins", "cmath", "math", "numba", "numpy"}
_CONSTANTS = {bool, int, float, complex, str, bytes, type(None), type(...)}
# Numba copies arrays up to this size into the code, and refers to larger arrays by address.
_MOST_BYTES = 10**6
_LOADS_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


class UnknownFunctionError(Exception):
    """A function has no digest; the message states the reason."""


def is_kernel(function: Callable[..., Any]) -> bool:
    """Whether module and name identify the function and the digest includes its source; false for nested functions."""
    module = function.__module__
    return module.startswith("spiel_cfrplus.kernels.") and "<locals>" not in function.__qualname__


def full_name(dispatcher: Any) -> str:
    """The module and name of a compiled function."""
    return f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"


def function_digest(dispatcher: Any) -> str:
    """Identifies a compiled function in every process: the name of a kernel, 64 hexadecimal digits for other functions.

    Raises:
      UnknownFunctionError: the code depends on something unknown.
    """
    if is_kernel(dispatcher.py_func):
        return full_name(dispatcher)
    functions, contents = [dispatcher], []
    for function in functions:  # the list grows in the loop
        content = _content_when_compiled(function)
        functions += [other for other in dict.fromkeys(content.called) if other not in functions]
        contents.append((content.text, [functions.index(other) for other in content.called]))
    return hashlib.sha256(repr(contents).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class _Content:
    """Everything that the code of one function depends on.

    Attributes:
      text: describes everything except called functions.
      called: the called functions that are not kernels, in the order of their positions in `text`.
      has_variables: whether the function reads a variable whose value can change.
    """

    text: str
    called: tuple[Any, ...]
    has_variables: bool


# The content of functions before their first compilation.
_before_compilation: weakref.WeakKeyDictionary[Any, _Content] = weakref.WeakKeyDictionary()


def _content_when_compiled(dispatcher: Any) -> _Content:
    """The content of the function when it was compiled, or its present content if it has not been compiled.

    Raises:
      UnknownFunctionError: the content is unknown, or was possibly different when the function was compiled.
    """
    content = _FunctionReader(dispatcher).content()
    if not _is_compiled(dispatcher):
        _before_compilation[dispatcher] = content
    elif content.has_variables and _before_compilation.get(dispatcher) != content:
        _before_compilation.pop(dispatcher, None)
        raise UnknownFunctionError(f"variables of {full_name(dispatcher)} may have changed since it was compiled")
    return content


def _is_compiled(dispatcher: Any) -> bool:
    """Whether code of the function exists, for calls from Python or from kernels."""
    return bool(dispatcher.overloads or getattr(dispatcher, "inlined", dispatcher).overloads)


class _FunctionReader:
    """Describes one function.

    Args:
      dispatcher: the compiled function.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._function = dispatcher.py_func
        self._called: list[Any] = []
        self._has_variables = False

    def content(self) -> _Content:
        """Everything that the function depends on.

        Raises:
          UnknownFunctionError: a value has no description.
        """
        function, code = self._function, self._function.__code__
        defaults = function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))
        text = (
            self._source(),
            self._options(),
            self._value("its code", code),
            self._value("a default value", defaults),
            [self._variable(*path) for path in dict.fromkeys(_paths(code))],
        )
        return _Content(repr(text), tuple(self._called), self._has_variables)

    def _unknown(self, reason: str) -> UnknownFunctionError:
        return UnknownFunctionError(f"{full_name(self._dispatcher)} {reason}")

    def _source(self) -> str:
        try:
            return inspect.getsource(self._function)
        except (OSError, TypeError, SyntaxError, tokenize.TokenError) as error:
            raise self._unknown("has no source") from error

    def _options(self) -> Any:
        """The options of Numba's decorator."""
        dispatcher = self._dispatcher
        if dispatcher.locals or not dispatcher._can_compile or dispatcher._compiler.pipeline_class is not Compiler:
            raise self._unknown("has a fixed signature, types of variables, or a compiler of its own")
        return [(name, self._value(f"option {name}", value)) for name, value in sorted(dispatcher.targetoptions.items())]

    def _variable(self, opname: str, name: str, *attributes: str) -> Any:
        """The value of a global or closure variable; if it is a module, the value of the attribute that is read."""
        if opname == "LOAD_DEREF":
            cell = self._function.__closure__[self._function.__code__.co_freevars.index(name)]
            try:
                value = cell.cell_contents
            except ValueError as error:
                raise self._unknown(f"refers to {name}, which has no value") from error
        elif name in self._function.__globals__:
            value = self._function.__globals__[name]
        else:
            return name, "builtin"
        self._has_variables = self._has_variables or not _is_versioned(value)
        for attribute in attributes:
            if not isinstance(value, ModuleType) or _is_versioned(value):
                break  # the description of the value includes its attributes
            name = f"{name}.{attribute}"
            try:
                value = getattr(value, attribute)
            except AttributeError as error:
                raise self._unknown(f"refers to {name}, which does not exist") from error
        return name, self._value(name, value)

    def _value(self, name: str, value: Any) -> Any:
        """A description of a value that is the same in every process."""
        if _is_versioned(value):
            return "versioned", getattr(value, "__module__", ""), value.__name__
        if isinstance(value, Dispatcher):
            if is_kernel(value.py_func):
                return "kernel", full_name(value)
            self._called.append(value)
            return "function"
        if type(value) in _CONSTANTS or isinstance(value, np.number | np.bool_):
            return type(value).__name__, repr(value)
        if isinstance(value, CodeType):
            return self._code(name, value)
        if isinstance(value, tuple) and (type(value) is tuple or _is_class_of_tuples(type(value))):
            return *_class_name(type(value)), [self._value(name, part) for part in value]
        if isinstance(value, set | frozenset):
            return "set", sorted(repr(self._value(name, part)) for part in value)
        if type(value) is np.ndarray and value.dtype.kind in "biufc" and value.nbytes <= _MOST_BYTES:
            content = hashlib.sha256(value.tobytes()).hexdigest()
            return "array", value.dtype.str, value.shape, value.strides, value.flags.aligned, content
        if _is_class_of_tuples(value):
            return _class_name(value)
        if isinstance(value, types.Number | types.Boolean):
            return "type", repr(value)
        kind = f"an array of {value.nbytes} bytes" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise self._unknown(f"refers to {name}, {kind}, which cannot be identified")

    def _code(self, name: str, code: CodeType) -> Any:
        """A code object without file names and line numbers."""
        numbers = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        constants = [self._value(name, constant) for constant in code.co_consts]
        return "code", code.co_code, code.co_exceptiontable, numbers, names, constants


def _paths(code: CodeType) -> Iterator[tuple[str, ...]]:
    """The reads of globals and closure variables: operation, name, and the attributes that are read from the value."""
    instructions = list(dis.get_instructions(code))
    for i, instruction in enumerate(instructions):
        is_closed = instruction.opname == "LOAD_DEREF" and instruction.argval in code.co_freevars
        if is_closed or instruction.opname == "LOAD_GLOBAL":
            rest = instructions[i + 1 :]
            attributes = itertools.takewhile(lambda following: following.opname in _LOADS_ATTRIBUTE, rest)
            yield instruction.opname, instruction.argval, *(following.argval for following in attributes)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from (path for path in _paths(constant) if path[0] == "LOAD_GLOBAL" or path[1] in code.co_freevars)


def _is_versioned(value: Any) -> bool:
    """Whether the value is a module, class or function of a package whose version is part of the digest of the kernels."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in _VERSIONED
    if not callable(value) or not isinstance(getattr(value, "__name__", None), str):
        return False
    module = "numpy" if isinstance(value, np.ufunc) else getattr(value, "__module__", None) or ""
    # Instances can have the module of their class and another name, which the module does not contain.
    return module.partition(".")[0] in _VERSIONED and getattr(sys.modules.get(module), value.__name__, None) is value


def _is_class_of_tuples(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def _class_name(tuple_class: Any) -> tuple[str, tuple[str, ...]]:
    """The name and the fields of a class of tuples."""
    return f"{tuple_class.__module__}.{tuple_class.__qualname__}", getattr(tuple_class, "_fields", ())
