"""Argument errors of constructors that name the class that was called."""

from __future__ import annotations

import types


def name_constructor_after(cls: type) -> None:
    """Copies an inherited constructor to the class and sets its name.

    Python then reports an invalid argument, such as a misspelled keyword, for this class instead of its base class. For use in
    `__init_subclass__`.
    """
    if "__init__" in vars(cls):
        return
    inherited = cls.__init__  # type: ignore[misc]
    if not isinstance(inherited, types.FunctionType):
        return
    own = types.FunctionType(
        inherited.__code__, inherited.__globals__, inherited.__name__, inherited.__defaults__, inherited.__closure__
    )
    own.__kwdefaults__, own.__annotations__, own.__doc__ = (
        inherited.__kwdefaults__,
        inherited.__annotations__,
        inherited.__doc__,
    )
    own.__module__, own.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    cls.__init__ = own  # type: ignore[misc]
