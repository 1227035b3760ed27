"""Packages that import their modules on first access, because importing all of them takes seconds."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType


def modules_on_first_use(package: str, path: Iterable[str]) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for a package (PEP 562) that make each of its modules an attribute.

    Args:
      package: `__name__` of the package.
      path: `__path__` of the package.
    """

    def modules() -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(path))

    def import_module(name: str) -> ModuleType:
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return import_module, modules
