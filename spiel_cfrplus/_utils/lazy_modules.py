"""Packages whose modules are imported on first use, because importing all of them takes seconds."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType


def modules_on_first_use(package: str, path: Iterable[str]) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` of a package (PEP 562), with which each of its modules is an attribute.

    Args:
      package: the package's `__name__`.
      path: its `__path__`.
    """

    def modules() -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(path))

    def import_module(name: str) -> ModuleType:
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return import_module, modules
