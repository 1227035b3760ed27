"""--save_policy, as a user runs it."""

import numpy as np
import pyspiel
import pytest
from command_line import run
from repository import ROOT

from spiel_cfrplus import CFRPlusSolver, load_policy

FLAGS = ("--iterations=10", "--noverify")


def save(*flags, folder=ROOT):
    return run(*FLAGS, *flags, folder=folder)


def test_the_average_or_the_current_policy_is_saved(tmp_path):
    game = pyspiel.load_game("kuhn_poker")
    solver = CFRPlusSolver(game)
    solver.run(10)
    for name, flags, expected in (
        ("average.npz", (), solver.average_profile()),
        ("current.json", ("--last_iterate",), solver.current_profile()),
        ("average.csv", (), solver.average_profile()),
    ):
        result = save(f"--save_policy={tmp_path / name}", *flags)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith(f"{name.partition('.')[0]} policy saved to {tmp_path / name}\n")
        np.testing.assert_array_equal(load_policy(tmp_path / name, game).probabilities, expected.probabilities)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--save_policy=policy.txt"], "--save_policy=policy.txt: policy.txt: the name of a policy's file must end in .npz"),
        (["--save_policy=missing/policy.npz"], "no such directory"),
        (["--save_policy=a.npz", "--checkpoint=a.npz"], "--save_policy and --checkpoint are both to be written to a.npz"),
        (["--save_policy=a.npz", "--algorithm=cfr,cfr+"], "--save_policy is for one algorithm at a time, not for cfr, cfr+"),
        (["--save_policy=a.npz", "--crosscheck"], "has no effect with --crosscheck"),
    ],
)
def test_it_is_refused_before_any_work(flags, message, tmp_path):
    result = save(*flags, folder=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr or "--crosscheck" in flags
    assert not list(tmp_path.iterdir())
