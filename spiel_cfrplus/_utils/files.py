"""Atomic writing of files: a file is written completely or not at all.

A writer that is killed leaves a temporary file. The next writer to the same target removes it: the name of a temporary file
identifies the target, and its lock shows whether its writer is still running. If the file system does not support locks, or the
writer ran on another machine, a temporary file is removed only after an hour.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pathlib
import secrets
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed, so no locks are needed
    fcntl = None  # type: ignore[assignment]

_ABANDONED_AFTER_SECONDS = 3600.0
# How often each process, this one or a parent from which it was forked, has reserved each file.
_RESERVED = Counter[tuple[int, pathlib.Path]]()


def checked_path(path: Any, name: str = "path") -> str:
    """The path as a string.

    Args:
      path: the argument of a public function.
      name: the name of the argument.

    Raises:
      TypeError: not a string or a path.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"{name} must be a str or a pathlib.Path, got {path!r}")
    return os.fspath(path)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file for writing; `path` contains either its previous contents or the complete new contents at all times.

    Removes temporary files of killed writers to `path`.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a path.
    """
    name, path = path, _target(path)
    remove_unfinished(path)
    with _named_in_errors(name), contextlib.ExitStack() as undo:
        with _temporary_file(path) as file:
            temporary = pathlib.Path(file.name)
            undo.callback(temporary.unlink, missing_ok=True)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # renamed while locked, so that no other process removes it before
                os.replace(temporary, path)
        if fcntl is None:  # Windows can rename closed files only
            os.replace(temporary, path)


@contextlib.contextmanager
def _named_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Adds `path` to operating-system errors that do not name a file, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Checks, without changing `path`, that `atomic_write` can write to it; removes temporary files of killed writers.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a path.
    """
    target = _target(path)
    remove_unfinished(path)
    tempfile.TemporaryFile(dir=target.parent).close()
    if not os.path.lexists(path):  # creating the file shows whether its name is valid, for example not too long
        open(path, "xb").close()
        os.unlink(path)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Removes the temporary files of killed writers to `path`; files of running writers are not removed."""
    with contextlib.suppress(OSError):
        path = _target(path)
        for temporary in path.parent.glob(f"{_prefix(path)}*"):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(temporary, here=temporary.name.startswith(_prefix(path) + _this_machine()))


def _target(path: str | os.PathLike[str]) -> pathlib.Path:
    """The file to be replaced; a link is resolved.

    Raises:
      OSError: the directory does not exist, the links form a loop, or the path is not a regular file.
      TypeError: not a path.
    """
    target = pathlib.Path(os.path.realpath(checked_path(path)))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", os.fspath(target.parent))
    return target


def _prefix(path: pathlib.Path) -> str:
    """The prefix of the temporary files of a target; its length is fixed, so long names of targets cause no error."""
    return f".unfinished-{_digest(path)}-"


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]


def _this_machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8] + "-"


@contextlib.contextmanager
def _temporary_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A new file next to `path`, open and locked."""
    while True:
        with open(path.with_name(_prefix(path) + _this_machine() + secrets.token_hex(8)), "xb") as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # the file system may not support locks
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink == 0:  # another process removed the file before it was locked
                    continue
            yield file
            return


def _remove_if_abandoned(temporary: pathlib.Path, here: bool) -> None:
    if fcntl is None or time.time() - temporary.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
        temporary.unlink()  # raises an error on Windows while the file is open
    elif here:
        with open(temporary, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises an error if its writer is running
            temporary.unlink()


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[None]:
    """Holds the lock of a file, which is created and not removed; the lock ends with the context or the process.

    Without locks (on Windows, or if the file system does not support them) several processes may enter.

    Args:
      path: the file.
      wait: whether to wait while another process holds the lock.

    Raises:
      BlockingIOError: another process holds the lock, and `wait` is False.
      OSError: the file cannot be written.
    """
    with open(path, "ab") as file:
        lock(file, wait=wait)
        yield


@contextlib.contextmanager
def reserved(path: str | os.PathLike[str]) -> Iterator[None]:
    """Reserves a file that is replaced as a whole, for this process, until the context or the process ends.

    The lock is that of an empty file next to it, because a lock of the file itself would be lost when the file is replaced. The
    empty file is removed at the end; that of a killed process is not locked, and is removed by the next one. A process may
    reserve a file several times. Without locks, see `locked`, several processes may enter.

    Raises:
      BlockingIOError: another process has reserved the file.
      OSError: the file cannot be written.
      TypeError: not a path.
    """
    target = _target(path)
    key = (os.getpid(), target)
    with contextlib.nullcontext() if _RESERVED[key] else _locked_until_removed(target, path):
        _RESERVED[key] += 1
        try:
            yield
        finally:
            _RESERVED[key] -= 1


@contextlib.contextmanager
def _locked_until_removed(target: pathlib.Path, path: str | os.PathLike[str]) -> Iterator[None]:
    name = target.with_name(f".in-use-{_digest(target)}")
    while True:
        with open(name, "ab") as file:
            try:
                lock(file, wait=False)
            except BlockingIOError as error:
                error.filename = os.fspath(path)
                raise
            if os.fstat(file.fileno()).st_nlink == 0:  # its previous owner removed it before it was locked
                continue
            try:
                yield
            finally:
                if fcntl is not None:
                    name.unlink(missing_ok=True)
        return


def lock(file: IO[bytes], *, wait: bool) -> None:
    """Locks an open file until it is closed; see `locked`.

    Raises:
      BlockingIOError: another process holds the lock, and `wait` is False.
    """
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise BlockingIOError(error.errno, "another process is writing to it", os.fspath(file.name)) from error
        except OSError:
            pass  # the file system does not support locks
