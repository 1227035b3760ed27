"""Files of the documentation that scripts write."""

import pathlib


def write_whole(path: str, text: str) -> None:
    """Writes the file under another name, then renames it, so that it holds either what it held or all of `text`."""
    unfinished = pathlib.Path(path + ".tmp")
    unfinished.write_text(text)
    unfinished.replace(path)
