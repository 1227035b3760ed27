"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to; `path` holds either what it held before or all that was written, whatever happens.

    Raises:
      OSError: the file cannot be written.
    """
    path = pathlib.Path(path).resolve()  # what a link points to is replaced, not the link
    temporary = path.with_name(f".unfinished-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Finds out before any work whether `whole_file` can write there; leaves no trace.

    Raises:
      OSError: it cannot.
    """
    tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
    if not os.path.lexists(path):  # its name may be too long
        open(path, "xb").close()
        os.unlink(path)
