"""Forked processes that run code which may crash, so that a crash does not end this process."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import warnings
from collections.abc import Callable


def status_of_fork(run: Callable[[], int], *, seconds: int) -> int:
    """Runs `run` in a forked process without output, and returns the status of the process as `os.waitpid` does.

    Args:
      run: returns the exit code. An exception that it raises ends the process with exit code 1.
      seconds: a signal, SIGALRM, ends the process after this time.
    """
    with warnings.catch_warnings():
        # Python warns about forks of processes with threads. The child is safe, because it calls OpenSpiel only.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_and_exit(run, seconds)
    try:
        return os.waitpid(child, 0)[1]
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _run_and_exit(run: Callable[[], int], seconds: int) -> None:
    """Never returns."""
    exit_code = 1
    try:
        faulthandler.disable()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.alarm(seconds)
        null_device = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null_device, stream)
        _write_no_core_file()
        exit_code = run()
    finally:
        os._exit(exit_code)


def _write_no_core_file() -> None:
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
