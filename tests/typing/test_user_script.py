"""Types of the public interface, as a type checker finds them in a user's script."""

import pathlib
import runpy
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("user_script.py")
# OpenSpiel has annotations but does not declare them; pyspiel has none.
SETTINGS = """
[mypy]
strict = True
[mypy-pyspiel.*]
ignore_missing_imports = True
[mypy-open_spiel.*]
follow_untyped_imports = True
"""


@pytest.fixture
def check(tmp_path, pytestconfig):
    """Checks a script with mypy; returns the exit code and what mypy says."""
    pytest.importorskip("mypy")
    (tmp_path / "settings.ini").write_text(SETTINGS)
    cache = pytestconfig.cache.mkdir("mypy")  # the first run takes seconds, mostly for the types of NumPy

    def run_mypy(text: str) -> tuple[int, str]:
        (tmp_path / "script.py").write_text(text)
        options = ["--config-file", "settings.ini", "--cache-dir", cache, "--no-pretty", "script.py"]
        command = [sys.executable, "-m", "mypy", *options]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr

    return run_mypy


def test_type_checkers_find_the_types_of_the_public_interface(check):
    assert check(SCRIPT.read_text()) == (0, "Success: no issues found in 1 source file\n")


def test_a_wrong_type_is_an_error(check):
    code, output = check("""
from typing import Any, assert_type
import spiel_cfrplus

def script(game: spiel_cfrplus.SequenceFormGame) -> None:
    assert_type(spiel_cfrplus.CFRSolver(game).nash_conv(), Any)
    assert_type(spiel_cfrplus.CFRSolver(game).average_policy(), int)
""")
    assert code == 1
    assert 'Expression is of type "float", not "Any"' in output
    assert 'Expression is of type "TabularPolicy", not "int"' in output


def test_the_script_runs(tmp_path):
    script = runpy.run_path(str(SCRIPT))
    game = script["compiling"]()
    for name in ("solving", "evaluating", "playing", "measuring", "ruling"):
        script[name](game)
    script["saving"](game, tmp_path)
    script["minimizing"](game.treeplexes[0])
