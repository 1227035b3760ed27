"""Checkpoints of games in parts: the same doubles after a resumption, and errors for what does not belong together."""

import json

import numpy as np
import pytest

from spiel_cfrplus.distributed import DistributedSelfPlay, checkpoints, compile_in_parts
from spiel_cfrplus.distributed.run import DistributedRun


def resumed(game, folder, algorithm="cfr+") -> DistributedSelfPlay:
    session = DistributedSelfPlay(compile_in_parts(game, cut=checkpoints.read_cut(folder, game)), algorithm)
    checkpoints.load(session, folder)
    return session


def test_a_checkpoint_resumes_with_the_same_doubles(kuhn, tmp_path):
    game = kuhn.tree.game
    session = DistributedSelfPlay(compile_in_parts(game, num_parts=4), "cfr+")
    for _ in range(2):  # the second one replaces the first one
        session.run(3)
        checkpoints.save(session, tmp_path, seconds=1.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "iteration-6"]
    again = resumed(game, tmp_path)
    assert again.iteration == 6
    for one in (session, again):
        one.run(5)
    assert again.evaluate().nash_conv == session.evaluate().nash_conv
    np.testing.assert_array_equal(again.top_policy(), session.top_policy())


def test_a_save_that_is_cut_short_leaves_the_previous_checkpoint(kuhn, tmp_path, monkeypatch):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game, num_parts=4), "cfr+")
    session.run(2)
    checkpoints.save(session, tmp_path)
    session.run(2)

    def killed(*arguments, **options):
        raise OSError("as if killed")

    monkeypatch.setattr(session.game.communicator, "wait_for_all", killed, raising=False)
    with pytest.raises(OSError, match="as if killed"):
        checkpoints.save(session, tmp_path)
    monkeypatch.undo()
    assert resumed(kuhn.tree.game, tmp_path).iteration == 2


def test_other_options_are_refused(kuhn, leduc, tmp_path):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game), "cfr+")
    checkpoints.save(session, tmp_path)
    with pytest.raises(ValueError, match=r"saved with algorithm 'cfr\+', not 'dcfr'"):
        resumed(kuhn.tree.game, tmp_path, "dcfr")
    with pytest.raises(ValueError, match=r"saved for the game 'kuhn_poker\(\)', not for leduc"):
        checkpoints.read_cut(tmp_path, leduc.tree.game)


def test_damaged_checkpoints_are_refused(kuhn, tmp_path):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game, num_parts=2), "cfr+")
    checkpoints.save(session, tmp_path)
    part = tmp_path / "iteration-0" / "part-0001.npz"
    whole = part.read_bytes()
    part.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=r"part-0001\.npz is not a checkpoint"):
        checkpoints.load(session, tmp_path)
    part.write_bytes((tmp_path / "iteration-0" / "part-0000.npz").read_bytes())
    with pytest.raises(ValueError, match="saved for other infostates or payoffs"):
        checkpoints.load(session, tmp_path)
    listed = json.loads((tmp_path / "checkpoint.json").read_text())
    (tmp_path / "checkpoint.json").write_text(json.dumps({**listed, "folder": "../elsewhere"}))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        checkpoints.read_list(tmp_path)


def test_a_run_stops_at_its_target_and_saves(kuhn, tmp_path):
    def make() -> DistributedRun:
        return DistributedRun(DistributedSelfPlay(compile_in_parts(kuhn.tree.game), "cfr+"), tmp_path)

    run = make()
    rows = list(run.rows([1, 10, 100, 1000], target_nash_conv=0.01))
    assert [row.iteration for row in rows] == [1, 10, 100]
    assert rows[-1].nash_conv <= 0.01 < rows[-2].nash_conv
    assert rows[-1].exploitability == rows[-1].nash_conv / 2
    again = make()
    assert again.session.iteration == 100
    assert again.seconds >= rows[-1].seconds
    processes = run.processes()
    assert processes.exchanging.shape == processes.peak_bytes.shape == (1,)
    assert 0 < processes.exchanging[0] < 1
    assert again.processes().exchanging.tolist() == [0.0]  # it has done no iteration


def test_a_time_limit_ends_a_run_with_a_row(kuhn):
    run = DistributedRun(DistributedSelfPlay(compile_in_parts(kuhn.tree.game), "cfr+"))
    (row,) = run.rows([10**9], time_limit=0.0)
    assert row.iteration == run.session.iteration < 100
