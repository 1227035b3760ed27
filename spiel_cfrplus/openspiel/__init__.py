"""Drop-in replacements for the CFR modules of `open_spiel.python.algorithms`: `cfr`, `discounted_cfr`, `cfr_br`."""

import importlib
from types import ModuleType

_MODULES = ("cfr", "cfr_br", "discounted_cfr")


def __getattr__(name: str) -> ModuleType:
    """Imports a module when it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
