"""Comparison of the records of walks."""

import dataclasses

import numpy as np


def assert_same(ours, expected):
    for field in dataclasses.fields(expected):
        mine, theirs = getattr(ours, field.name), getattr(expected, field.name)
        if isinstance(theirs, np.ndarray):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            assert mine.tobytes() == theirs.tobytes()
        else:
            assert mine == theirs
