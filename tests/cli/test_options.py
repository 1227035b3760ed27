"""The flags as one object."""

import dataclasses

import pytest
from absl import flags

from spiel_cfrplus import Averaging
from spiel_cfrplus.cli import options


@pytest.fixture
def read():
    def read_flags(*arguments):
        options.FLAGS.unparse_flags()
        for name in options.FLAGS:
            options.FLAGS[name].unparse()
        options.FLAGS(["run.py", *arguments])
        return options.read_options()

    return read_flags


def test_flags_are_read_once_into_an_object_that_does_not_change(read):
    default = read()
    changed = read(
        "--algorithm=cfr,pcfr+", "--simultaneous", "--reduce=off", "--iterations=7", "--averaging_delay=3", "--verify"
    )
    assert (default.num_iterations, default.alternating, default.reduce, default.verify_large) == (10_000, True, "auto", False)
    assert [run.algorithm.name for run in changed.runs] == ["cfr", "pcfr+"]
    assert [run.averaging for run in changed.runs] == [Averaging(0, delay=3), Averaging(2, delay=3)]
    assert (changed.num_iterations, changed.alternating, changed.reduce, changed.verify_large) == (7, False, False, True)
    assert [run.algorithm.name for run in default.runs] == ["cfr+"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        default.threads = 2


def test_crosscheck_has_iterations_of_its_own(read):
    assert read("--crosscheck").num_iterations == 50
    assert read("--crosscheck", "--iterations=3").num_iterations == 3


def test_parameters_of_an_algorithm_are_in_its_row(read):
    (run,) = read("--algorithm=cfr_hedge", "--step_size=0.5").runs
    assert "step_size" in run.algorithm.parameters
    assert read("--iterations=1e3", "--print_freq=2.5E1").num_iterations == 1000
    (run,) = read("--algorithm=pcfr+", "--prediction_weight=0.25").runs
    assert run.algorithm.rule.prediction_weight == 0.25
    with pytest.raises(options.UsageError, match="cfr takes no step size"):
        read("--algorithm=cfr", "--step_size=0.5")


def test_what_absl_refuses_is_no_matter_of_options(read):
    with pytest.raises(flags.Error):
        read("--iterations=0")
