"""Files of compiled kernels in the user's cache directory.

A *digest* identifies everything that the compiled code of all kernels depends on. All files of one digest are in one directory,
and each file contains one kernel for one signature. A file consists of a checksum and the content. Files are replaced
atomically, so several processes may start with an empty cache at the same time. A file with a wrong checksum is treated as
missing.

The content is executable code. Files and directories that other users could have written are therefore not read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pathlib
import re
import shutil
import time

from spiel_cfrplus._utils.files import atomic_write

VARIABLE = "SPIEL_CFRPLUS_CACHE_DIR"
_DAY = 24 * 60 * 60
_KEPT_UNUSED = 30 * _DAY
_FOLDER = "kernels-{}"
_ANY_FOLDER = re.compile(r"kernels-[0-9a-f]{32}")
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_root() -> pathlib.Path:
    """The directory given by the environment variable, or the package's directory in the user's cache.

    Raises:
      OSError: the user has no home directory.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return pathlib.Path(os.path.abspath(os.path.expanduser(named)))
    import platformdirs

    try:
        root = platformdirs.user_cache_path("spiel_cfrplus", appauthor=False)
    except RuntimeError as error:
        raise OSError(str(error)) from error
    if not root.is_absolute():
        raise OSError("this user has no home directory")
    return root


class KernelFiles:
    """The files of one digest.

    Args:
      digest: 32 hexadecimal digits.
    """

    def __init__(self, digest: str) -> None:
        self.folder: pathlib.Path | None = None  # None if no trusted directory is available
        self._digest = digest
        self._writable = True
        try:
            folder = cache_root() / _FOLDER.format(digest)
            _make_private(folder)
        except OSError as error:
            report_failure(str(error))
            return
        self.folder = folder
        with contextlib.suppress(OSError):
            _mark_use(folder)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if the file does not exist, is not trusted, or is damaged."""
        if self.folder is None:
            return None
        try:
            with open(self.folder / name, "rb") as file:
                if not _is_owner_trusted(os.fstat(file.fileno())):
                    return None
                stored = file.read()
        except OSError:
            return None
        checksum, content = stored[:_CHECKSUM_BYTES], stored[_CHECKSUM_BYTES:]
        return content if checksum == self._checksum(name, content) else None

    def write(self, name: str, content: bytes) -> None:
        """Writes a file. A failure is not an error; the first one of the process is logged."""
        if self.folder is None or not self._writable:
            return
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with atomic_write(self.folder / name) as file:
                file.write(self._checksum(name, content))
                file.write(content)
        except OSError as error:
            # On Windows a file that another process has open cannot be replaced. That process writes the same content.
            if self.read(name) != content:
                self._writable = False
                report_failure(f"{self.folder}: {error.strerror or error}")

    def remove(self, prefix: str) -> None:
        """Removes the files whose names start with `prefix`."""
        if self.folder is not None:
            for path in self.folder.glob(f"{prefix}*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _checksum(self, name: str, content: bytes) -> bytes:
        """The checksum of the content, the digest and the name, so that a renamed file is detected as damaged."""
        return hashlib.sha256(f"{self._digest}/{name}/".encode() + content).digest()


_has_reported = False


def report_failure(reason: str) -> None:
    """Logs, once per process, that compiled kernels cannot be stored."""
    global _has_reported
    if not _has_reported:
        _has_reported = True
        logging.getLogger("spiel_cfrplus").warning(
            "spiel_cfrplus cannot store its compiled kernels and compiles them in every process: %s; "
            "set the environment variable %s to a writable directory",
            reason,
            VARIABLE,
        )


def _make_private(folder: pathlib.Path) -> None:
    """Creates a directory that is private to this user; accepts an existing one if no other user can write to it.

    Raises:
      OSError: the directory cannot be created, or other users can write to it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if not _is_owner_trusted(status):
        raise PermissionError(f"{folder} belongs to another user")
    if os.name == "posix" and status.st_mode & 0o022:
        raise PermissionError(f"other users can write to {folder}")


def _is_owner_trusted(status: os.stat_result) -> bool:
    """Whether the owner is this user or the administrator. On Windows the user's cache directory is protected by default."""
    return os.name != "posix" or status.st_uid in (0, os.geteuid())


def _mark_use(folder: pathlib.Path) -> None:
    """At most once a day: updates the modification time of the directory, and removes those of other digests unused for 30
    days.
    """
    now = time.time()
    if now - folder.stat().st_mtime < _DAY and any(folder.iterdir()):
        return
    os.utime(folder)
    for other in folder.parent.iterdir():
        if _ANY_FOLDER.fullmatch(other.name) and now - other.stat().st_mtime > _KEPT_UNUSED:
            shutil.rmtree(other, ignore_errors=True)


kernel_files = functools.cache(KernelFiles)
