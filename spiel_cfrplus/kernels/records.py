"""NamedTuple classes of the arrays and parameters that rules declare.

Kernels are compiled for a class, and compiled code on disk refers to the class by name. A class is therefore an attribute of
this module whose name contains its fields: `records.Memory__regrets__tie_tolerance`. Any process that looks up the name gets
the class.

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
    """The class of this kind with these fields; the same arguments give the same class."""
    return collections.namedtuple(SEPARATOR.join((kind, *fields)), fields, module=__name__)


def __getattr__(name: str) -> Any:
    kind, *fields = name.split(SEPARATOR)
    if kind not in _KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return record_class(kind, tuple(fields))


def _replaced(record: Any, position: int, value: Any) -> Any:
    return record._replace(**{record._fields[position]: value})


# For kernels: a NamedTuple like `record` with another value at `position`. Python cannot call Numba's function.
replaced: Any = _replaced if vars(config)["DISABLE_JIT"] else tuple_setitem
