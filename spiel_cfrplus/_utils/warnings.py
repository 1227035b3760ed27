"""Warnings that are attributed to the line that calls the package."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """Issues a `UserWarning` that is attributed to the line that calls this package."""
    warnings.warn(message, UserWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The stack level of the first frame outside this package, as the caller passes it to `warnings.warn`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("spiel_cfrplus."):
        frame, level = frame.f_back, level + 1
    return level
