"""The error of the command line that is printed as one line."""

from __future__ import annotations


class UsageError(Exception):
    """An error in the user's input; printed as one line."""


def first_line(error: BaseException) -> str:
    """The first line of the message of an error."""
    return str(error).partition("\n")[0]
