"""Files of compiled kernels: damage, unusable directories, permissions, and removal of old files."""

import errno
import functools
import logging
import os
import pathlib
import pickle
import shutil
import time

import platformdirs
import pytest
from compiled_kernels import SMALL_WORK, files_in, no_home, normalized, run_python, start_python

from spiel_cfrplus.kernels import compiled_files, kernel_cache
from spiel_cfrplus.kernels.compiled_files import VARIABLE, KernelFiles

DIGEST, OTHER_DIGEST = "0" * 32, "1" * 32
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="about owners and modes of files")


def test_several_processes_may_start_at_once_on_an_empty_cache(tmp_path):
    environment = {VARIABLE: str(tmp_path / "cache")}
    processes = [start_python(SMALL_WORK, **environment) for _ in range(4)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert output.startswith("0.25 0.75 ")
        assert errors == ""
    assert run_python(SMALL_WORK, **environment) == ("0.25 0.75 1", "")
    assert all(path.name.startswith("spiel_cfrplus.") for path in files_in(tmp_path / "cache"))


DAMAGES = {
    "empty": lambda content: b"",
    "in its checksum": lambda content: content[:20],
    "truncated": lambda content: content[:-1],
    "half": lambda content: content[: len(content) // 2],
    "a bit flipped": lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
    "zeros": lambda content: bytes(len(content)),
    "longer": lambda content: content + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced(damage, cache, caplog):
    assert normalized() == 0
    assert normalized() == 1
    (path,) = files_in(cache)
    intact = path.read_bytes()
    path.write_bytes(DAMAGES[damage](intact))
    assert normalized() == 0
    assert normalized() == 1
    assert caplog.records == []


def test_a_file_that_is_not_compiled_code_is_replaced(cache):
    normalized()
    (path,) = files_in(cache)
    files = KernelFiles(path.parent.name.removeprefix("kernels-"))
    for content in (b"no pickle", pickle.dumps((1, 2, 3))):
        files.write(path.name, content)
        assert normalized() == 0
        assert normalized() == 1


def test_a_file_under_another_name_is_not_read(cache):
    files, others = KernelFiles(DIGEST), KernelFiles(OTHER_DIGEST)
    files.write("a", b"code of a")
    assert files.read("a") == b"code of a"
    shutil.copy(files.folder / "a", files.folder / "b")
    shutil.copy(files.folder / "a", others.folder / "a")
    assert files.read("b") is None
    assert others.read("a") is None


def test_the_directory_is_in_the_users_cache_unless_the_variable_is_set(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert compiled_files.cache_root() == platformdirs.user_cache_path("spiel_cfrplus", appauthor=False)
    monkeypatch.setenv(VARIABLE, "")
    assert compiled_files.cache_root() == platformdirs.user_cache_path("spiel_cfrplus", appauthor=False)
    monkeypatch.setenv(VARIABLE, "somewhere")
    assert compiled_files.cache_root() == pathlib.Path.cwd() / "somewhere"
    monkeypatch.setenv(VARIABLE, os.path.join("~", "somewhere"))
    assert compiled_files.cache_root() == pathlib.Path.home() / "somewhere"


@pytest.mark.parametrize("answer", [no_home, lambda *_, **__: pathlib.Path("~/.cache/spiel_cfrplus")])
def test_without_a_home_directory_kernels_work_with_one_message(answer, cache, monkeypatch, caplog):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(platformdirs, "user_cache_path", answer)
    assert normalized() == normalized() == 0
    (record,) = caplog.records
    assert "home" in record.getMessage()
    assert VARIABLE in record.getMessage()


def test_without_a_directory_kernels_work_with_one_message_on_stderr(tmp_path):
    (tmp_path / "file").write_text("")
    output, errors = run_python(SMALL_WORK, **{VARIABLE: str(tmp_path / "file" / "cache")})
    assert output == "0.25 0.75 0"
    (line,) = errors.splitlines()
    assert str(tmp_path / "file") in line
    assert VARIABLE in line


def test_the_command_line_prints_a_note_if_kernels_cannot_be_stored():
    script = """
import sys
from spiel_cfrplus.kernels import compiled_files
from spiel_cfrplus.cli import main
main._run = lambda arguments: compiled_files.report_failure("a reason")
sys.argv = ["run.py", "--game=kuhn_poker"]
main.main()
"""
    _, errors = run_python(script)
    (line,) = errors.splitlines()
    assert line.startswith("note: ")
    assert "a reason" in line


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_kernels_work_with_one_message_if_files_cannot_be_written(reason, cache, monkeypatch, caplog):
    tried = []

    def refuse(path):
        tried.append(path)
        raise OSError(reason, os.strerror(reason), str(path))

    monkeypatch.setattr(compiled_files, "atomic_write", refuse)
    monkeypatch.setattr(kernel_cache, "kernel_files", functools.cache(KernelFiles))
    assert normalized() == normalized() == 0
    assert len(tried) == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert os.strerror(reason) in record.getMessage()
    assert str(cache) in record.getMessage()
    assert VARIABLE in record.getMessage()
    assert "\n" not in record.getMessage()


def test_files_in_a_read_only_directory_are_read(cache, monkeypatch, caplog):
    normalized()
    monkeypatch.setattr(compiled_files, "atomic_write", None)
    monkeypatch.setattr(os, "utime", no_home)
    assert normalized() == 1
    assert caplog.records == []


def test_a_directory_that_was_removed_is_created_again(cache, caplog):
    files = KernelFiles(DIGEST)
    shutil.rmtree(files.folder)
    files.write("a", b"code")
    assert files.read("a") == b"code"
    assert caplog.records == []


def test_a_file_with_the_same_content_that_cannot_be_replaced_is_no_failure(cache, monkeypatch, caplog):
    """As on Windows, where another process has the file open."""
    files = KernelFiles(DIGEST)
    files.write("a", b"code")

    def refuse(path):
        raise PermissionError(errno.EACCES, "in use")

    monkeypatch.setattr(compiled_files, "atomic_write", refuse)
    files.write("a", b"code")
    assert caplog.records == []
    files.write("a", b"other code")
    assert len(caplog.records) == 1


@POSIX_ONLY
def test_the_directory_is_private_to_the_user(cache):
    before = os.umask(0)
    try:
        assert KernelFiles(DIGEST).folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@POSIX_ONLY
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_directory_that_others_can_write_to_is_not_used(mode, cache, caplog):
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    files.folder.chmod(mode)
    files = KernelFiles(DIGEST)
    assert files.read("a") is None
    files.write("b", b"code")
    assert not (cache / f"kernels-{DIGEST}" / "b").exists()
    (record,) = caplog.records
    assert "other users can write" in record.getMessage()


@POSIX_ONLY
def test_files_of_another_user_are_not_used_except_those_of_the_administrator(cache, monkeypatch, caplog):
    def of_owner(owner):
        return os.stat_result((0o100644, 0, 0, 1, owner, 0, 0, 0, 0, 0))

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [compiled_files._is_owner_trusted(of_owner(owner)) for owner in (1000, 0, 1001)] == [True, True, False]
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    assert (files.read("a") is None) == (files.folder.stat().st_uid not in (0, 1000))
    monkeypatch.setattr(compiled_files, "_is_owner_trusted", lambda status: False)
    assert files.read("a") is None
    assert KernelFiles(DIGEST).folder is None
    assert "belongs to another user" in caplog.records[-1].getMessage()


def age(path, days):
    then = time.time() - days * 24 * 60 * 60
    os.utime(path, (then, then))


def test_only_directories_unused_for_a_month_are_removed(cache):
    unused, used, link = (cache / f"kernels-{digit * 32}" for digit in "abc")
    foreign = [cache / "kernels-of-somebody", cache / "notes"]
    for folder in (unused, used, *foreign):
        folder.mkdir(parents=True)
        (folder / "file").write_text("kept")
        age(folder, days=31)
    age(used, days=29)
    if os.name == "posix":
        link.symlink_to(foreign[1])
    KernelFiles(DIGEST)
    assert not unused.exists()
    assert all((folder / "file").exists() for folder in (used, *foreign))


def test_the_time_of_use_is_updated_at_most_once_a_day(cache):
    files = KernelFiles(DIGEST)
    files.write("a", b"code")
    folder = files.folder
    for days, marked in ((0.5, False), (2, True)):
        age(folder, days)
        before = folder.stat().st_mtime
        KernelFiles(DIGEST)
        assert (folder.stat().st_mtime > before) == marked
