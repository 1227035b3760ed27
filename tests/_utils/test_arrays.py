"""The dataclasses of the package are immutable, and those with arrays are compared by identity."""

import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import spiel_cfrplus
from spiel_cfrplus._utils.arrays import finite_vector

# Attributes of a node of OpenSpiel's, which users write to.
MUTABLE = {"_InfoStateNode", "_SolverNode"}


def records():
    """Every dataclass that the package defines."""
    names = [module.name for module in pkgutil.walk_packages(spiel_cfrplus.__path__, "spiel_cfrplus.")]
    members = [member for name in names for _, member in inspect.getmembers(importlib.import_module(name), inspect.isclass)]
    mine = {member for member in members if member.__module__.startswith("spiel_cfrplus") and dataclasses.is_dataclass(member)}
    return sorted(mine, key=lambda record: record.__name__)


@pytest.mark.parametrize("record", [record for record in records() if record.__name__ not in MUTABLE])
def test_records_cannot_be_changed(record):
    assert record.__dataclass_params__.frozen


def has_arrays(record):
    """Whether an attribute is an array; functions of arrays are none."""
    kinds = [str(kind) for kind in record.__annotations__.values()]
    return any("ndarray" in kind for kind in kinds if not kind.startswith(("Callable", "collections.abc.Callable")))


@pytest.mark.parametrize("record", [record for record in records() if has_arrays(record)])
def test_records_of_arrays_compare_by_identity_and_have_short_reprs(record):
    assert record.__eq__ is object.__eq__
    assert record.__hash__ is object.__hash__


def test_a_finite_vector_is_a_copy_in_float64():
    values = np.array([1, 2], np.int32)
    vector = finite_vector(values, 2)
    values[:] = 0
    assert (vector.dtype, vector.tolist()) == (np.float64, [1.0, 2.0])


@pytest.mark.parametrize("values", [[1.0], [[1.0, 2.0]], [1.0, np.nan], [1.0, -np.inf]])
def test_vectors_of_other_shapes_or_with_numbers_that_are_not_finite_are_refused(values):
    with pytest.raises(ValueError, match="expected 2 finite numbers of a test, got"):
        finite_vector(values, 2, " of a test")
