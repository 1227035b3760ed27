"""Saving, loading, pickling and copying solvers."""

import copy
import json
import os
import pickle

import games
import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import ALGORITHMS, Averaging, CFRPlusSolver, CFRSolver, Solver, compile_game
from spiel_cfrplus.solvers import CompiledSolver

KUHN = pyspiel.load_game("kuhn_poker")
LEDUC = pyspiel.load_game("leduc_poker")

OPTIONS = [
    {"alternating": alternating, "averaging": averaging}
    for alternating in (True, False)
    for averaging in ("paper", "openspiel", Averaging(power=2.5))
]


def by_file(solver, folder):
    solver.save(folder / "solver.npz")
    return Solver.load(folder / "solver.npz")


def by_pickle(solver, folder):
    return pickle.loads(pickle.dumps(solver))


def by_deepcopy(solver, folder):
    return copy.deepcopy(solver)


@pytest.mark.parametrize("again", [by_file, by_pickle, by_deepcopy])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("solver_type", ALGORITHMS.values())
def test_resumed_solver_goes_on_to_the_same_doubles(solver_type, options, again, tmp_path):
    solver = solver_type(KUHN, **options)
    solver.run(20)
    resumed = again(solver, tmp_path)
    assert type(resumed) is solver_type
    assert (resumed.iteration, resumed.alternating, resumed.averaging) == (20, solver.alternating, solver.averaging)
    solver.run(50)
    resumed.run(50)
    for ours, theirs in zip(solver.self_play.memory, resumed.self_play.memory, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.any(resumed.self_play.cumulative_regrets() != 0)
    assert resumed.nash_conv() == solver.nash_conv() < 11 / 12  # of the uniform policy


def test_resumed_cfr_plus_is_not_plain_cfr():
    # pyspiel.CFRPlusSolver resumes from its pickle as plain CFR: NashConv .00666 after 200 iterations on Kuhn, where CFR+ has
    # .00059 (OpenSpiel's averaging).
    solver = CFRPlusSolver(KUHN, averaging="openspiel")
    solver.run(100)
    resumed = pickle.loads(pickle.dumps(solver))
    resumed.run(100)
    assert resumed.nash_conv() == pytest.approx(0.0005899209670296688, rel=1e-9)


def test_original_and_copy_are_independent():
    solver = CFRSolver(KUHN)
    solver.run(3)
    before = solver.current_profile().probabilities
    copy.deepcopy(solver).run(10)
    np.testing.assert_array_equal(solver.current_profile().probabilities, before)


@pytest.mark.parametrize("load_game", [games.biased_rock_paper_scissors, lambda: games.chain(4)], ids=["matrix", "efg"])
def test_games_without_a_string_are_loaded_by_passing_them(load_game, tmp_path):
    game = load_game()
    solver = CFRPlusSolver(game)
    solver.run(10)
    solver.save(tmp_path / "solver.npz")
    with pytest.raises(ValueError, match=r"which pyspiel\.load_game cannot load; pass it as game="):
        Solver.load(tmp_path / "solver.npz")
    for same_game in (game, load_game(), compile_game(game)):
        assert Solver.load(tmp_path / "solver.npz", same_game).nash_conv() == solver.nash_conv()
    with pytest.raises(ValueError, match=r"cannot be pickled.*compiled as a whole can be saved with solver\.save"):
        pickle.dumps(solver)


def test_load_refuses_other_games_and_solvers(tmp_path):
    path = tmp_path / "solver.npz"
    CFRPlusSolver(KUHN).save(path)
    with pytest.raises(ValueError, match=r"saved for another game, kuhn_poker\(\), than leduc_poker"):
        Solver.load(path, LEDUC)
    # The same infostates, other payoffs.
    with pytest.raises(ValueError, match="saved for another game"):
        Solver.load(path, pyspiel.load_game("misere(game=kuhn_poker())"))
    with pytest.raises(ValueError, match="saved by a CFRPlusSolver, expected one of CFRSolver"):
        CFRSolver.load(path)


def test_base_classes_load_any_compiled_solver_and_new_classes_their_own(tmp_path):
    class Mine(CFRPlusSolver):
        pass

    for solver_type in (CFRPlusSolver, Mine):
        solver_type(KUHN).save(tmp_path / f"{solver_type.__name__}.npz")
    assert type(CompiledSolver.load(tmp_path / "CFRPlusSolver.npz")) is CFRPlusSolver
    assert type(Mine.load(tmp_path / "Mine.npz")) is Mine
    with pytest.raises(ValueError, match="saved by a CFRPlusSolver, expected one of Mine"):
        Mine.load(tmp_path / "CFRPlusSolver.npz")


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "text", "truncated"])
def test_load_refuses_files_that_are_no_checkpoints(content, tmp_path):
    path = tmp_path / "solver.npz"
    CFRPlusSolver(KUHN).save(path)
    path.write_bytes(path.read_bytes()[:1000] if content is None else content)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        Solver.load(path)


def test_load_executes_no_pickle(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.savez(tmp_path / "solver.npz", options=np.array(Trap(), dtype=object))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        Solver.load(tmp_path / "solver.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_failed_save_leaves_the_old_checkpoint_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "solver.npz"
    solver = CFRPlusSolver(KUHN)
    solver.run(7)
    solver.save(path)
    solver.run(7)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        solver.save(path)
    assert os.listdir(tmp_path) == ["solver.npz"]
    assert Solver.load(path).iteration == 7


def test_what_is_no_file_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(ValueError, match="no regular file"):
            Solver.load(path)
    with pytest.raises(FileNotFoundError):
        Solver.load(tmp_path / "nowhere")


def test_a_shallow_copy_is_independent_too():
    solver = CFRSolver(KUHN)
    copied = copy.copy(solver)
    copied.run(3)
    assert (solver.iteration, copied.iteration) == (0, 3)


def test_averaging_of_another_class_is_not_saved_as_something_else(tmp_path):
    class Delayed(Averaging):
        def weights(self, iterations):
            return np.maximum(iterations - 10.0, 0.0)

    with pytest.raises(TypeError, match="cannot save"):
        CFRPlusSolver(KUHN, averaging=Delayed()).save(tmp_path / "solver.npz")


def rewritten(path, *, options=None, **arrays):
    """The checkpoint with other options or arrays."""
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive}
    if options is not None:
        kept["options"] = np.array(json.dumps(json.loads(str(kept["options"])) | options))
    np.savez(path, **(kept | arrays))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"options": {"averaging": [1, 2]}},
        {"options": {"averaging": {"power": -1}}},
        {"options": {"local_rule": "RegretMatching"}},
        {"options": {"local_rule": {"kind": "Unknown"}}},
        {"options": {"local_rule": {"kind": "RegretMatching", "alpha": 1}}},
        {"options": {"game": 3}},
        {"options": {"alternating": "yes"}},
        {"cumulative_regrets": np.full(26, np.nan)},
        {"cumulative_regrets": np.zeros(26, np.complex128)},
        {"cumulative_policy": np.full(26, -1.0)},
        {"iteration": np.array([-3, -3])},
        {"iteration": np.array([3, 7])},
        {"iteration": np.array([3.5, 3.5])},
    ],
    ids=str,
)
def test_what_save_would_not_have_written_is_refused(changes, tmp_path):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(pyspiel.load_game("kuhn_poker")).save(path)
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(rewritten(path, **changes))


@pytest.mark.parametrize("content", [b"", b"[1]", b"PK\x03\x04 and no more"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "saved.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(path.with_suffix(".npy"))
