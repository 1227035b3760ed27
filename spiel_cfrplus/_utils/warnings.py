"""Warnings that point to the caller of the package."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """Issues a `UserWarning` at the line that called into this package."""
    warnings.warn(message, UserWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The stack level, as `warnings.warn` counts it in the calling function, of the first frame outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("spiel_cfrplus."):
        frame, level = frame.f_back, level + 1
    return level
