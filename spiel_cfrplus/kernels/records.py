"""NamedTuple classes of the arrays and parameters that rules ask for.

Kernels are compiled for a class, and compiled code that is kept on disk names it. So a class is an attribute of this module
whose
name tells its fields: `records.Memory__regrets__tie_tolerance`. Any process that reads the name gets the class.

>>> record_class("Memory", ("regrets", "tie_tolerance"))
<class 'spiel_cfrplus.kernels.records.Memory__regrets__tie_tolerance'>
"""

import collections
import functools
from typing import Any

from numba import config
from numba.cpython.unsafe.tuple import tuple_setitem

SEPARATOR = "__"
_KINDS = ("Memory", "Parameters")


@functools.cache
def record_class(kind: str, fields: tuple[str, ...]) -> Any:
    """The class of this kind with these fields; the same one for the same fields."""
    return collections.namedtuple(SEPARATOR.join((kind, *fields)), fields, module=__name__)


def __getattr__(name: str) -> Any:
    kind, *fields = name.split(SEPARATOR)
    if kind not in _KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return record_class(kind, tuple(fields))


def _replaced(record: Any, position: int, value: Any) -> Any:
    return record._replace(**{record._fields[position]: value})


# For kernels: a NamedTuple like `record` with another value at `position`. Numba's function cannot be called by Python.
replaced: Any = _replaced if vars(config)["DISABLE_JIT"] else tuple_setitem
