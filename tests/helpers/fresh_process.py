"""Scripts that run in a separate process."""

import subprocess
import sys


def run_python(script: str) -> str:
    """The output of a fresh process."""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
