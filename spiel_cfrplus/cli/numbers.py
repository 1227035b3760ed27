"""Flags of whole numbers that may be written like 1e6."""

from __future__ import annotations

import contextlib

from absl import flags


class WholeNumbers(flags.IntegerParser):
    """The parser of such a flag."""

    def convert(self, argument: int | str) -> int:
        """The number; also that of texts such as "1e6", which are whole numbers."""
        with contextlib.suppress(ValueError, OverflowError):
            number = float(argument)
            if isinstance(argument, str) and "e" in argument.lower() and number.is_integer():
                return int(number)
        return super().convert(argument)
