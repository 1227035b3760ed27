"""Prints the versions of the package, of the libraries that it uses and of Python."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.cli import json_lines
from spiel_cfrplus.cli.errors import UsageError

USAGE = "version [--json]"
_PACKAGES = ("spiel_cfrplus", "open_spiel", "numpy", "numba", "llvmlite")


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Prints the versions, one per line or as one JSON object."""
    if arguments:
        raise UsageError(f"unexpected argument {arguments[0]!r}; usage: spiel-cfrplus {USAGE}")
    versions = {package: importlib.metadata.version(package) for package in _PACKAGES}
    versions["python"] = platform.python_version()
    with json_lines.printer(wanted=values.json) as print_row:
        if print_row is not None:
            print_row(versions)
    if print_row is None:
        print("\n".join(f"{name} {version}" for name, version in versions.items()))
    return 0
