"""Safe reading of the package's `.npz` files, which may be damaged or untrusted.

The files are uncompressed archives of a few numeric arrays and one text. `open_archive` accepts nothing else: it checks sizes
against the size of the file before it allocates memory, and it does not execute anything that a file contains. A reader
specifies the dtype and shape of each array, which bounds the memory that it allocates.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.files import checked_path

# Files of the package have fewer members.
_MAX_MEMBERS = 64
# Largest single read in bytes. The list of members is read at once, so this bounds its size too.
_MAX_READ = 1 << 20
# In characters.
_MAX_TEXT = 1 << 20
_MAX_REASON = 200


def shortened(text: str) -> str:
    """The text on one line of at most `_MAX_REASON` characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 4]} ..."


def printable(text: str) -> str:
    """The text with spaces in place of characters that cannot be printed, such as ends of lines."""
    return "".join(character if character.isprintable() else " " for character in text)


class DamagedError(ValueError):
    """A file does not have the expected contents; the message is the reason, one short line."""

    def __init__(self, reason: object):
        super().__init__(shortened(str(reason)))


# What other archives of this package are, by a member that only they have, and what reads them.
_KINDS = {
    "header": "a policy, which load_policy and the subcommands evaluate, show and export read",
    "options": "a checkpoint, which Solver.load and --checkpoint read; --save_policy writes policies",
    "identity": "the walk through a game, which is for the folder of --cache",
}


class Header(NamedTuple):
    """The header of an array in an archive.

    Attributes:
      dtype: the dtype of the elements; contains no Python objects.
      shape: the shape; all sizes are 0 or more.
    """

    dtype: np.dtype
    shape: tuple[int, ...]


class Archive:
    """An open archive whose list of members has been checked."""

    def __init__(self, members: zipfile.ZipFile, file_size: int):
        """Checks the list of members; `file_size` is in bytes.

        Raises:
          DamagedError: too many members, two members with the same name, a compressed or encrypted member, or more bytes than
            the file has.
        """
        entries = members.infolist()
        if len(entries) > _MAX_MEMBERS:
            raise DamagedError(f"{len(entries)} members")
        self._members = members
        self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        if len(self._entries) < len(entries):
            raise DamagedError("two members with the same name")
        for name, entry in self._entries.items():
            if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 1:
                raise DamagedError(f"{name} is compressed")
        if sum(entry.file_size for entry in entries) > file_size:
            raise DamagedError("members larger than the file")

    @property
    def names(self) -> set[str]:
        """The names of the members."""
        return set(self._entries)

    def check_sums(self) -> None:
        """Reads all members once, in small pieces, and verifies the checksums of the archive.

        Raises:
          DamagedError: a checksum is wrong.
        """
        if (name := self._members.testzip()) is not None:
            raise DamagedError(f"the checksum of {name} is wrong")

    def header(self, name: str) -> Header:
        """The dtype and shape of an array; checks that the size of the member matches them.

        Raises:
          DamagedError: the array does not exist, or its header is damaged.
        """
        if name not in self._entries:
            kinds = [f"it is {kind}" for own, kind in _KINDS.items() if own in self._entries]
            raise DamagedError(next(iter(kinds), f"no member {name}"))
        with self._members.open(self._entries[name]) as member:
            shape, dtype = _read_header(member)
            num_bytes = dtype.itemsize * math.prod(shape)
            if member.tell() + num_bytes != self._entries[name].file_size:
                raise DamagedError(f"{name} does not have the {num_bytes} bytes of its shape {shape}")
        return Header(dtype, shape)

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> np.ndarray:
        """An array of the given dtype and shape; None in the shape accepts any size.

        Raises:
          DamagedError: dtype or shape differ, which is checked before the array is read, or the array is damaged.
        """
        self._check_header(name, np.dtype(dtype), shape)
        with self._members.open(self._entries[name]) as member:
            values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return values

    def arrays_like(self, expected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays with the names, dtypes and shapes of `expected`; checks all headers before it reads the first array.

        Raises:
          DamagedError: see `array`.
        """
        for name, values in expected.items():
            self._check_header(name, values.dtype, values.shape)
        return {name: self.array(name, values.dtype, values.shape) for name, values in expected.items()}

    def _check_header(self, name: str, dtype: np.dtype, shape: tuple[int | None, ...]) -> None:
        found = self.header(name)
        comparable = tuple(None if size is None else other for size, other in zip(shape, found.shape, strict=False))
        if found.dtype != dtype or len(found.shape) != len(shape) or comparable != shape:
            raise DamagedError(f"{name} is {found.dtype} of shape {found.shape}, not {dtype} of shape {shape}")

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object that is stored as an ASCII text.

        Raises:
          DamagedError: the text is not a JSON object, is too long, or contains a key twice.
        """
        dtype, shape = self.header(name)
        if dtype.kind != "U" or not dtype.isnative or shape != () or dtype.itemsize > 4 * _MAX_TEXT:
            raise DamagedError(f"{name} is {dtype} of shape {shape}, not a text of up to {_MAX_TEXT} characters")
        # A NumPy string is an array of code points, which may be invalid; ASCII code points are always valid.
        code_points = np.frombuffer(self.array(name, dtype, ()).tobytes(), np.uint32)
        if code_points.max(initial=0) > 127:
            raise DamagedError(f"{name} is not an ASCII text")
        value = json.loads(code_points.astype(np.uint8).tobytes(), object_pairs_hook=without_duplicates)
        if not isinstance(value, dict):
            raise DamagedError(f"{name} is not a JSON object")
        return value


@contextlib.contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Opens an archive for reading; errors in its contents, also in the body of the `with`, become a `DamagedError`.

    Raises:
      OSError: the file does not exist or cannot be read.
      DamagedError: not a regular file, or not an archive of this package.
      TypeError: not a path.
    """
    with open_regular_file(checked_path(path)) as file:
        try:
            with zipfile.ZipFile(file) as members:
                yield Archive(members, os.fstat(file.fileno()).st_size)
        except (DamagedError, MemoryError):
            raise
        except Exception as error:  # damaged contents cause many types of exceptions
            raise DamagedError(error) from error


class ShortReads(io.BufferedReader):
    """A file that limits the size of a single read."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_READ:
            raise DamagedError(f"a single read of {size} bytes")
        return super().read(size)


def open_regular_file(path: str) -> ShortReads:
    """Opens a regular file. Directories and devices are refused, and so are pipes, because reading them could block.

    Raises:
      OSError: the file does not exist or cannot be read.
      DamagedError: it is not a regular file.
    """
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DamagedError("a loop of links") from error
        raise
    if not is_regular:
        raise DamagedError("not a regular file")
    return ShortReads(io.FileIO(path))


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    # Version 1.0 is sufficient for the headers of the package's arrays.
    if np.lib.format.read_magic(member) != (1, 0):
        raise DamagedError("unsupported version of the .npy format")
    try:
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(member)
    except MemoryError as error:  # raised by Python's parser for deeply nested expressions
        raise DamagedError("a nested header") from error
    if fortran_order or dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise DamagedError(f"an array of {dtype} and shape {shape}")
    return shape, dtype


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The `object_pairs_hook` of `json.loads` that refuses objects with a key twice."""
    names = dict(pairs)
    if len(names) < len(pairs):
        raise DamagedError("a duplicate key in a JSON object")
    return names
