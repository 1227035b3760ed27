"""Messages that OpenSpiel prints before it raises an error are suppressed; output of Python is not."""

import os
import subprocess
import sys
import threading
import warnings

import pyspiel
import pytest

from spiel_cfrplus import CFRSolver, compile_game
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.game.checks import why_string_is_not_enough

MATRIX = pyspiel.convert_to_turn_based(pyspiel.create_matrix_game([[1.0, -1.0]], [[-1.0, 1.0]]))


def run_python(script: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, **options)


def test_a_matrix_game_is_refused_without_output_on_standard_error(capfd, tmp_path):
    assert why_string_is_not_enough(MATRIX) is not None
    assert compile_game(MATRIX).tree.can_be_pickled
    with pytest.raises(ValueError, match="use processes=1"):
        compile_game(MATRIX, processes=2)
    with pytest.warns(UserWarning, match="is not cached"):
        compile_game(MATRIX, cache=tmp_path)
    solver = CFRSolver(MATRIX)
    solver.save(tmp_path / "solver.npz")
    with pytest.raises(ValueError, match="pass it as game="):
        CFRSolver.load(tmp_path / "solver.npz")
    with pytest.raises(ValueError, match="no information-state strings"):
        compile_game(pyspiel.load_game("catch"))
    assert capfd.readouterr().err == ""


def test_output_of_python_is_not_suppressed():
    result = run_python("""
import os, sys, warnings
from spiel_cfrplus._utils.openspiel_output import silent_stderr
with silent_stderr():
    os.write(2, b"upstream\\n")
    warnings.warn("a warning")
    print("a line", file=sys.stderr)
print("the end", file=sys.stderr)
os.write(2, b"again\\n")
""")
    assert result.returncode == 0
    *_, line, end, again = result.stderr.splitlines()
    assert "a warning" in result.stderr
    assert [line, end, again] == ["a line", "the end", "again"]
    assert "upstream" not in result.stderr


@pytest.mark.parametrize("change", ["os.close(2)", "sys.stderr = None", "sys.stderr.close()", "sys.stderr = io.StringIO()"])
def test_standard_error_may_be_closed_or_replaced(change):
    result = run_python(f"""
import io, os, sys
from spiel_cfrplus._utils.openspiel_output import silent_stderr
{change}
before = sys.stderr
with silent_stderr():
    os.write(1, b"inside\\n")
assert sys.stderr is before
""")
    assert result.stdout == "inside\n"
    if "os.close" not in change:
        assert result.returncode == 0


def test_concurrent_use_restores_standard_error(capfd):
    def enter_often() -> None:
        for _ in range(200):
            with silent_stderr():
                pass

    workers = [threading.Thread(target=enter_often) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os.write(2, b"still here")
    assert capfd.readouterr().err == "still here"


def test_suppression_may_be_nested(capfd):
    with silent_stderr():
        with silent_stderr():
            os.write(2, b"one")
        os.write(2, b"two")
    os.write(2, b"three")
    assert capfd.readouterr().err == "three"


def test_warning_filters_are_not_changed():
    with warnings.catch_warnings(record=True) as caught, silent_stderr():
        warnings.warn("seen", stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["seen"]
