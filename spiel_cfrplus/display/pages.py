"""Self-contained HTML pages: one file with its style, program and data, which neither needs nor allows a network.

The parts of a page are files of this folder: NAME.html has places `{{part}}`, of which `{{style}}` is NAME.css and
`{{program}}` is NAME.js. Data are JSON without the characters that HTML interprets, or arrays that are compressed and written
in base64.
"""

from __future__ import annotations

import base64
import importlib.resources
import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path

_PLACE = re.compile(r"\{\{(\w+)\}\}")
# Arrays start at multiples of this many bytes, as the typed arrays of browsers require.
_ALIGNMENT = 8


def page(name: str, parts: Mapping[str, str]) -> str:
    """The page of a template.

    Args:
      name: the template.
      parts: HTML for the places of the template other than its style and program; see `json_text` for data.
    """
    files = {"style": f"{name}.css", "program": f"{name}.js"}
    template = _resource(f"{name}.html")
    return _PLACE.sub(lambda place: _resource(files[place[1]]) if place[1] in files else parts[place[1]], template)


def _resource(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def json_text(value: Any) -> str:
    """A value as JSON in ASCII that can be put into a script element of a page."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, list[Any]], str]:
    """Arrays as text for a page.

    Args:
      arrays: by name, of the types uint8, uint32 and float32.

    Returns:
      For each array [type, first byte, length]; and the bytes of all arrays, little-endian, compressed by zlib, in base64.
    """
    directory: dict[str, list[Any]] = {}
    blocks, size = [], 0
    for name, array in arrays.items():
        directory[name] = [array.dtype.name, size, array.size]
        block = array.astype(array.dtype.newbyteorder("<")).tobytes()
        blocks.append(block + bytes(-len(block) % _ALIGNMENT))
        size += len(blocks[-1])
    return directory, base64.b64encode(zlib.compress(b"".join(blocks), 9)).decode("ascii")


def check_page(path: str | os.PathLike[str]) -> None:
    """Checks in advance that `write_page` can write to `path`.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a path.
      ValueError: the name does not end in `.html`.
    """
    if os.path.splitext(checked_path(path))[1].lower() != ".html":
        raise ValueError(f"the name of a page must end in .html, got {os.fspath(path)!r}")
    check_writable(path)


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Writes a page; the file is replaced atomically.

    Raises:
      OSError, TypeError, ValueError: as for `check_page`.
    """
    check_page(path)
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))
