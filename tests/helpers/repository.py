"""Paths of the repository."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SCRIPTS = ROOT / "scripts"
