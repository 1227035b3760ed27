"""Policies in folders: read as one profile, or by infostate."""

import numpy as np
import pytest

from spiel_cfrplus import load_policy
from spiel_cfrplus._utils.archives import DamagedError
from spiel_cfrplus.distributed import DistributedSelfPlay, compile_in_parts
from spiel_cfrplus.distributed.results import save_policy
from spiel_cfrplus.policies.folders import probabilities_at


@pytest.fixture
def folder(leduc, tmp_path):
    session = DistributedSelfPlay(compile_in_parts(leduc.tree.game, num_parts=3), "cfr+")
    session.run(5)
    save_policy(session, tmp_path / "policy")
    return tmp_path / "policy"


def test_a_folder_is_read_as_one_policy_or_by_infostate(leduc, folder):
    profile = load_policy(folder, leduc)
    assert profile.game is leduc
    assert load_policy(folder).game.fingerprint == leduc.fingerprint
    # Another 5 iterations of the plain solver agree, see tests/distributed; here only places are compared.
    for treeplex, own in zip(leduc.treeplexes, leduc.player_slices, strict=True):
        for point in (0, 7, treeplex.num_decision_points - 1):
            sequences = treeplex.sequences(point)
            expected = dict(
                zip(treeplex.actions[sequences].tolist(), profile.probabilities[own][sequences].tolist(), strict=True)
            )
            assert probabilities_at(folder, treeplex.player, treeplex.infostate_keys[point]) == expected
    with pytest.raises(KeyError, match="no infostate 'nowhere' of player 0"):
        probabilities_at(folder, 0, "nowhere")


def test_folders_that_were_not_completed_or_are_damaged_are_refused(leduc, kuhn, folder):
    with pytest.raises(ValueError, match="is not a policy of spiel_cfrplus"):
        load_policy(folder, kuhn)
    part = folder / "part-0001.npz"
    whole = part.read_bytes()
    part.write_bytes(whole[:-40])
    with pytest.raises(ValueError, match="is damaged"):
        load_policy(folder, leduc)
    part.write_bytes((folder / "part-0000.npz").read_bytes())
    with pytest.raises(ValueError, match="comes twice"):
        load_policy(folder, leduc)
    (folder / "policy.json").write_text('{"files": []}')
    with pytest.raises(DamagedError, match=r"policy\.json"):
        probabilities_at(folder, 0, "0")
    (folder / "policy.json").unlink()
    with pytest.raises(ValueError, match=r"a folder without policy\.json"):
        load_policy(folder, leduc)


def test_uneven_numbers_are_found(leduc, folder):
    with np.load(folder / "part-0000.npz") as archive:
        arrays = dict(archive)
    np.savez(folder / "part-0000.npz", **{**arrays, "num_actions": arrays["num_actions"] + 1})
    with pytest.raises(ValueError, match="sizes do not agree"):
        load_policy(folder, leduc)
