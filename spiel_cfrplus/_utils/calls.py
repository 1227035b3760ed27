"""Errors in calls of a class, reported with the name of the class that was called."""

from __future__ import annotations

import types


def name_constructor_after(cls: type) -> None:
    """Gives a class that inherits its constructor one of its own, the same but for its name.

    A mistake in the arguments, such as a misspelled keyword, is then reported for this class instead of the one that it
    inherits from. For use in `__init_subclass__`.
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
