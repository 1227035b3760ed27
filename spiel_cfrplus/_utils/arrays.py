"""Read-only arrays, and dataclasses of them."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt

# Sums of millions of numbers up to this bound stay finite in float64, whose largest value is 1.8e308.
LARGEST = 1e300


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    """A read-only copy of `values` as a C-contiguous array."""
    return sealed(np.array(values, dtype, order="C"))


def sealed(values: np.ndarray) -> np.ndarray:
    """Makes the array itself read-only and returns it; for large arrays that have no other references."""
    values.flags.writeable = False
    return values


def finite_vector(values: npt.ArrayLike, size: int, description: str = "") -> np.ndarray:
    """A copy of `values`, float64 (size,); `description` is part of the error message.

    Raises:
      ValueError: wrong shape, or non-finite numbers.
    """
    vector = np.array(values, np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f"expected {size} finite numbers{description}, got {vector!r}")
    return vector


def saturated(values: npt.ArrayLike) -> np.ndarray:
    """Clips the numbers, infinities included, to magnitude `LARGEST`."""
    return np.clip(values, -LARGEST, LARGEST)


def powers(iterations: np.ndarray, exponent: float) -> np.ndarray:
    """iterations ** exponent, float64; infinite on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(iterations, np.float64) ** exponent


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Immutable:
    """Base of frozen dataclasses of read-only arrays: copying returns the object itself; unpickled arrays are read-only."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _summary(self) -> str:
        """The text that `repr` shows in parentheses."""
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
