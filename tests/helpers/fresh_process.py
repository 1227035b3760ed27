"""Scripts that run in a process of their own."""

import subprocess
import sys


def run_python(script: str) -> str:
    """What a fresh process prints."""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout
