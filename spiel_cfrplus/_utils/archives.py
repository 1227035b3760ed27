"""Reading of our `.npz` files, which may be damaged or written by somebody else.

We write uncompressed archives of a few arrays of numbers and one text. `open_archive` accepts nothing else: sizes are checked
against the file before memory is allocated, and nothing that a file contains is executed. A reader asks for each array by its
dtype and shape, so that it never holds more than it expects.
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

# More members than any of our files has.
_MOST_MEMBERS = 64
# Longest piece that is read at once, in bytes. The list of an archive's members is one piece, so this bounds it too.
_LONGEST_READ = 1 << 20
# Most characters of a text.
_LONGEST_TEXT = 1 << 20
_LONGEST_REASON = 200


def shortened(text: str) -> str:
    """The text as a line of at most `_LONGEST_REASON` characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 4]} ..."


class DamagedError(ValueError):
    """A file is not what it is read as; the message is the reason, one short line."""

    def __init__(self, reason: object):
        super().__init__(shortened(str(reason)))


class Header(NamedTuple):
    """What a member says of its array.

    Attributes:
      dtype: of the elements, without objects.
      shape: sizes of 0 or more.
    """

    dtype: np.dtype
    shape: tuple[int, ...]


class Archive:
    """An open archive whose list of members has been checked."""

    def __init__(self, members: zipfile.ZipFile, file_size: int):
        """Checks the members against each other and against the size of the file, in bytes.

        Raises:
          DamagedError: too many members, two of one name, compressed or encrypted ones, or more bytes than the file has.
        """
        entries = members.infolist()
        if len(entries) > _MOST_MEMBERS:
            raise DamagedError(f"{len(entries)} members")
        self._members = members
        self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        if len(self._entries) < len(entries):
            raise DamagedError("two members of one name")
        for name, entry in self._entries.items():
            if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 1:
                raise DamagedError(f"{name} is compressed")
        if sum(entry.file_size for entry in entries) > file_size:
            raise DamagedError("members larger than the file")

    @property
    def names(self) -> set[str]:
        """Names of the members."""
        return set(self._entries)

    def check_sums(self) -> None:
        """Reads everything once, in small pieces, and compares it with the archive's checksums.

        Raises:
          DamagedError: they disagree.
        """
        if (name := self._members.testzip()) is not None:
            raise DamagedError(f"the checksum of {name} is wrong")

    def header(self, name: str) -> Header:
        """Dtype and shape of an array, which has as many bytes as these say.

        Raises:
          DamagedError: there is no such array, or its header is damaged.
        """
        if name not in self._entries:
            raise DamagedError(f"no {name}")
        with self._members.open(self._entries[name]) as member:
            shape, dtype = _read_header(member)
            num_bytes = dtype.itemsize * math.prod(shape)
            if member.tell() + num_bytes != self._entries[name].file_size:
                raise DamagedError(f"{name} does not have the {num_bytes} bytes of its shape {shape}")
        return Header(dtype, shape)

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> np.ndarray:
        """An array of this dtype and shape, where None stands for any size.

        Raises:
          DamagedError: it has others, which is found out before it is read, or it is damaged.
        """
        self._check_header(name, np.dtype(dtype), shape)
        with self._members.open(self._entries[name]) as member:
            values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return values

    def arrays_like(self, expected: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays under these names, with the dtypes and the shapes that are expected; all are checked before one is read.

        Raises:
          DamagedError: see `array`.
        """
        for name, values in expected.items():
            self._check_header(name, values.dtype, values.shape)
        return {name: self.array(name, values.dtype, values.shape) for name, values in expected.items()}

    def _check_header(self, name: str, dtype: np.dtype, shape: tuple[int | None, ...]) -> None:
        found = self.header(name)
        any_size = tuple(None if size is None else there for size, there in zip(shape, found.shape, strict=False))
        if found.dtype != dtype or len(found.shape) != len(shape) or any_size != shape:
            raise DamagedError(f"{name} is {found.dtype} of shape {found.shape}, not {dtype} of shape {shape}")

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object that was written as an ASCII text.

        Raises:
          DamagedError: it is none, is too long, or has a key twice.
        """
        dtype, shape = self.header(name)
        if dtype.kind != "U" or not dtype.isnative or shape != () or dtype.itemsize > 4 * _LONGEST_TEXT:
            raise DamagedError(f"{name} is {dtype} of shape {shape}, not a text of up to {_LONGEST_TEXT} characters")
        # A NumPy string is an array of code points. ASCII ones cannot be invalid.
        code_points = np.frombuffer(self.array(name, dtype, ()).tobytes(), np.uint32)
        if code_points.max(initial=0) > 127:
            raise DamagedError(f"{name} is not an ASCII text")
        value = json.loads(code_points.astype(np.uint8).tobytes(), object_pairs_hook=_without_duplicates)
        if not isinstance(value, dict):
            raise DamagedError(f"{name} is no JSON object")
        return value


@contextlib.contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """An archive to read from. What goes wrong with its contents, in the block too, is raised as a `DamagedError`.

    Raises:
      OSError: there is no such file, or it may not be read.
      DamagedError: it is no regular file or no archive of ours.
      TypeError: not a path.
    """
    with _open_regular_file(checked_path(path)) as file:
        try:
            with zipfile.ZipFile(file) as members:
                yield Archive(members, os.fstat(file.fileno()).st_size)
        except (DamagedError, MemoryError):
            raise
        except Exception as error:  # archives, texts and numbers can be wrong in many ways
            raise DamagedError(error) from error


class _ShortReads(io.BufferedReader):
    """A file that refuses to read a long piece at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _LONGEST_READ:
            raise DamagedError(f"{size} bytes in one piece")
        return super().read(size)


def _open_regular_file(path: str) -> _ShortReads:
    """Opens what is neither a directory nor a device, nor a pipe, whose end would be waited for."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DamagedError("a loop of links") from error
        raise
    if not is_regular:
        raise DamagedError("no regular file")
    return _ShortReads(io.FileIO(path))


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    # Later versions of the format have longer headers, which our arrays do not need.
    if np.lib.format.read_magic(member) != (1, 0):
        raise DamagedError("another version of the .npy format")
    try:
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(member)
    except MemoryError as error:  # what Python's parser raises for some nested expressions
        raise DamagedError("a nested header") from error
    if fortran_order or dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise DamagedError(f"an array of {dtype} and shape {shape}")
    return shape, dtype


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise DamagedError("a key twice in one JSON object")
    return names
