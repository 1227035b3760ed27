"""Atomic writing of files, and temporary files of killed writers."""

import errno
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from games import mentions

from spiel_cfrplus import CFRPlusSolver, CFRSolver, compile_game
from spiel_cfrplus._utils import files
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.convergence import convergence
from spiel_cfrplus.analysis.plotting import plot_convergence

WRITE = """
import sys
from spiel_cfrplus._utils.files import atomic_write

with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


RESERVE = """
import sys
from spiel_cfrplus._utils.files import reserved

with reserved(sys.argv[1]):
    print("written", flush=True)
    sys.stdin.read()
"""


def start_writer(path, script=WRITE):
    writer = subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "written\n"
    return writer


def kill(writer):
    writer.send_signal(signal.SIGKILL)
    writer.communicate()


def test_temporary_files_of_killed_writers_are_removed_by_the_next_writer_to_the_target(tmp_path):
    target = tmp_path / "target"
    kill(start_writer(target))
    kill(start_writer(tmp_path / "another"))
    left = set(os.listdir(tmp_path))
    assert len(left) == 2
    with files.atomic_write(target) as file:
        file.write(b"whole")
    assert target.read_bytes() == b"whole"
    assert len(left & set(os.listdir(tmp_path))) == 1  # that of the other target
    files.check_writable(tmp_path / "another")
    assert os.listdir(tmp_path) == ["target"]


def test_a_file_is_reserved_for_one_process_until_that_ends(tmp_path):
    target = tmp_path / "target"
    process = start_writer(target, RESERVE)
    (tmp_path / "link").symlink_to(target)
    for path in (target, tmp_path / "link"):
        with pytest.raises(BlockingIOError, match=mentions("another process is writing to it", str(path))):
            next(files.reserved(path).gen)
    with files.reserved(tmp_path / "another"):
        pass
    kill(process)
    with files.reserved(target), files.reserved(target):
        assert not target.exists()
    assert os.listdir(tmp_path) == ["link"]


def test_a_process_reserves_a_file_until_its_outer_context_ends(tmp_path):
    target = tmp_path / "target"
    with files.reserved(target):
        with files.reserved(target):
            pass
        (lock_file,) = tmp_path.iterdir()
        with pytest.raises(BlockingIOError), files.locked(lock_file, wait=False):
            pass


def test_the_file_of_a_running_writer_is_not_removed(tmp_path):
    target = tmp_path / "target"
    writer = start_writer(target)
    with files.atomic_write(target) as file:
        file.write(b"first")
    assert target.read_bytes() == b"first"
    writer.communicate(timeout=60)
    assert writer.returncode == 0
    assert target.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize("change", ["other machine", "no locks"])
def test_a_file_without_lock_information_is_removed_after_an_hour(change, tmp_path, monkeypatch):
    def no_locks(*args):
        raise OSError("Function not implemented")

    target = tmp_path / "target"
    kill(start_writer(target))
    (left,) = tmp_path.iterdir()
    if change == "no locks":
        monkeypatch.setattr(files.fcntl, "flock", no_locks)
    else:
        monkeypatch.setattr(files.socket, "gethostname", lambda: "elsewhere")
    with files.atomic_write(target):
        pass
    assert left.exists()
    os.utime(left, times=2 * (time.time() - 3700,))
    with files.atomic_write(target):
        pass
    assert os.listdir(tmp_path) == ["target"]


def test_files_are_written_without_lock_support(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    with files.atomic_write(tmp_path / "target") as file:
        file.write(b"whole")
    assert (tmp_path / "target").read_bytes() == b"whole"
    with pytest.raises(RuntimeError, match="on purpose"), files.atomic_write(tmp_path / "target") as file:
        raise RuntimeError("on purpose")
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "I/O error")])
def test_errors_without_a_file_name_the_target(error, tmp_path):
    with (
        pytest.raises(OSError, match=re.escape(f"{error.strerror}: '{tmp_path / 'target'}'")),
        files.atomic_write(tmp_path / "target"),
    ):
        raise error
    assert os.listdir(tmp_path) == []


def test_other_errors_are_not_changed(tmp_path):
    for error in (OSError(errno.EACCES, "Permission denied", "another"), TimeoutError("took too long")):
        before = str(error)
        with pytest.raises(type(error)) as raised, files.atomic_write(tmp_path / "target"):
            raise error
        assert str(raised.value) == before


@pytest.mark.parametrize("path", [5, None, b"bytes", ["list"]], ids=repr)
def test_arguments_that_are_not_paths_are_named(path, kuhn):
    rows = list(convergence(CFRSolver(kuhn), 1))
    calls = {
        "path": [
            CFRPlusSolver(kuhn).save,
            CFRPlusSolver.load,
            CheckpointedRun.resume,
            lambda wrong: CheckpointedRun(CFRPlusSolver(kuhn), wrong),
        ],
    }
    if path is not None:  # None is the default of these
        calls["path"].append(lambda wrong: plot_convergence({"cfr": rows}, wrong))
        calls["cache"] = [lambda wrong: compile_game(kuhn.tree.game, cache=wrong)]
    for name, uses in calls.items():
        for use in uses:
            with pytest.raises(TypeError, match=mentions(f"{name} must be a str or a pathlib.Path, got {path!r}")):
                use(path)
