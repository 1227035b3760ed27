"""Read-only arrays."""

import array

import numpy as np
import numpy.typing as npt


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    """`values` as a C-contiguous array that refuses writes; a grown `array.array` is wrapped without a copy."""
    if isinstance(values, array.array) and len(values) > 0:
        result = np.frombuffer(values, dtype)
    else:
        result = np.array(values, dtype, order="C")
    result.flags.writeable = False
    return result
