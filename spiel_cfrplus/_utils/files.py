"""Files that are written whole or not at all.

A writer that is killed leaves its temporary file behind. The next writer to the same target removes it: the name of a temporary
file tells the target, and a lock on it tells whether its writer still lives. Where the file system knows no locks, or the
writer was on another machine, a temporary file is left alone until it is an hour old.
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
from collections.abc import Iterator
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed in the first place
    fcntl = None  # type: ignore[assignment]

_ABANDONED_AFTER_SECONDS = 3600.0


def checked_path(path: Any, name: str = "path") -> str:
    """The path as a text.

    Args:
      path: what the user gave.
      name: what the user knows it by.

    Raises:
      TypeError: neither a text nor a path.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"{name} must be a str or a pathlib.Path, got {path!r}")
    return os.fspath(path)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to; `path` holds either what it held before or all that was written, whatever happens.

    Temporary files that killed writers to `path` left behind are removed.

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
            if fcntl is not None:  # still locked, so that nobody removes it until it has its name
                os.replace(temporary, path)
        if fcntl is None:  # Windows renames closed files only
            os.replace(temporary, path)


@contextlib.contextmanager
def _named_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system that name no file, such as that of a full disk, name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Finds out before any work whether `atomic_write` can write there; removes what killed writers left, leaves no trace.

    Raises:
      OSError: it cannot.
      TypeError: not a path.
    """
    target = _target(path)
    remove_unfinished(path)
    tempfile.TemporaryFile(dir=target.parent).close()
    if not os.path.lexists(path):  # its name may be too long
        open(path, "xb").close()
        os.unlink(path)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Removes the temporary files that killed writers to `path` left behind; those of live writers stay."""
    with contextlib.suppress(OSError):
        path = _target(path)
        for temporary in path.parent.glob(f"{_prefix(path)}*"):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(temporary, here=temporary.name.startswith(_prefix(path) + _this_machine()))


def _target(path: str | os.PathLike[str]) -> pathlib.Path:
    """What is to be replaced: what a link points to, not the link.

    Raises:
      OSError: no such folder, a loop of links, or something that must not be replaced by a file, such as a device.
      TypeError: not a path.
    """
    target = pathlib.Path(os.path.realpath(checked_path(path)))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", os.fspath(target.parent))
    return target


def _prefix(path: pathlib.Path) -> str:
    """How the temporary files of a target begin; of one length, so that long names of targets are no trouble."""
    return f".unfinished-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


def _this_machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8] + "-"


@contextlib.contextmanager
def _temporary_file(path: pathlib.Path) -> Iterator[BinaryIO]:
    """A new file next to `path`, open and locked."""
    while True:
        with open(path.with_name(_prefix(path) + _this_machine() + secrets.token_hex(8)), "xb") as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink == 0:  # taken for abandoned and removed before it was locked
                    continue
            yield file
            return


def _remove_if_abandoned(temporary: pathlib.Path, here: bool) -> None:
    if fcntl is None or time.time() - temporary.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
        temporary.unlink()  # on Windows this is an error while the file is open
    elif here:
        with open(temporary, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error if its writer is alive
            temporary.unlink()
