"""Where the files of the repository are."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SCRIPTS = ROOT / "scripts"
