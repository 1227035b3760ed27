"""Warnings are attributed to the line that calls the package."""

import pytest

from spiel_cfrplus._utils.warnings import warn


def warning_of(module: str) -> pytest.WarningsRecorder:
    """The recorded warning if a function of a module is called by another function of the module and warns."""
    members = {"__name__": module, "warn": warn}
    exec(compile("def inner():\n    warn('a word')\n\ndef outer():\n    inner()\n", "elsewhere.py", "exec"), members)
    with pytest.warns(UserWarning, match="^a word$") as record:
        members["outer"]()
    assert len(record) == 1
    return record


def test_frames_of_the_package_are_left_out():
    assert warning_of("spiel_cfrplus.somewhere")[0].filename == __file__


@pytest.mark.parametrize("module", ["my_module", "spiel_cfrplus_and_more"])
def test_other_modules_are_callers(module):
    (record,) = warning_of(module)
    assert (record.filename, record.lineno) == ("elsewhere.py", 2)
