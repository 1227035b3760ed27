"""Read-only arrays, and records of them."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt

# Sums of millions of such numbers fit a float64.
LARGEST = 1e300


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    """A copy of `values` as a C-contiguous array that refuses writes."""
    return sealed(np.array(values, dtype, order="C"))


def sealed(values: np.ndarray) -> np.ndarray:
    """The array itself, which refuses writes from now on; for a large one that nobody else holds."""
    values.flags.writeable = False
    return values


def finite_vector(values: npt.ArrayLike, size: int, of_what: str = "") -> np.ndarray:
    """A copy of `values`, float64 (size,).

    Raises:
      ValueError: wrong shape, or numbers that are not finite.
    """
    vector = np.array(values, np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f"expected {size} finite numbers{of_what}, got {vector!r}")
    return vector


def saturated(values: npt.ArrayLike) -> np.ndarray:
    """The numbers, none of them beyond `LARGEST` in magnitude; infinities become that."""
    return np.clip(values, -LARGEST, LARGEST)


def powers(iterations: np.ndarray, exponent: float) -> np.ndarray:
    """Iteration ** exponent, float64, infinite where that is too large."""
    with np.errstate(over="ignore"):
        return np.asarray(iterations, np.float64) ** exponent


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Immutable:
    """A frozen dataclass of read-only arrays: its copies are itself, and pickling keeps the arrays read-only."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _summary(self) -> str:
        """What tells one from another at a glance."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return _restore, (type(self), values)


def _restore(cls: type, values: list[Any]) -> Any:
    return cls(*(frozen(value, value.dtype) if isinstance(value, np.ndarray) else value for value in values))
