"""Calls setuptools. pyproject.toml describes the package; the long description is README.md without its relative links."""

import pathlib
import re

import setuptools

README = (pathlib.Path(__file__).parent / "README.md").read_text(encoding="utf-8")
# A package index does not contain the files that these links name; the repository and the source distribution do.
RELATIVE_LINK = re.compile(r"\[([^]]+)\]\((?!https?://|#)([^)]+)\)")

setuptools.setup(
    long_description=RELATIVE_LINK.sub(lambda link: link[1] if link[1] == link[2] else f"{link[1]} (`{link[2]}`)", README),
    long_description_content_type="text/markdown",
)
