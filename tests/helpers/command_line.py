"""The command line in processes of their own.

`run` forks them from a server that has imported the package and loaded its kernels, which takes longer than most commands.
"""

import functools
import multiprocessing.forkserver
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest.mock

from repository import ROOT, SCRIPTS

_SCRIPT = str(SCRIPTS / "run.py")
_HELPERS = str(pathlib.Path(__file__).parent)
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["ready_command"])
_TIMEOUT = 300  # seconds


def command(*flags):
    """The arguments of a process that runs the command."""
    return [sys.executable, _SCRIPT, *flags]


def hear_signals():
    """In a new process: no signals are ignored, as they are below `nohup` or in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*flags, preexec_fn=hear_signals):
    """Starts the command as a user does, for tests of its streams and signals."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*flags), stdout=pipe, stderr=pipe, text=True, cwd=ROOT, preexec_fn=preexec_fn)


def run(*flags, folder=ROOT, before=""):
    """Runs the command and returns its exit code and output.

    Args:
      flags: as on the command line.
      folder: the current folder.
      before: Python code that is executed before the command, in the same process.
    """
    _start_server()
    with tempfile.TemporaryDirectory() as streams:
        process = _SERVER.Process(target=_main, args=(flags, str(folder), dict(os.environ), before, streams))
        process.start()
        process.join(_TIMEOUT)
        if process.is_alive():
            process.kill()
            raise TimeoutError(f"{flags} ran for more than {_TIMEOUT} seconds")
        output, errors = (pathlib.Path(streams, name).read_text() for name in ("1", "2"))
    return subprocess.CompletedProcess(command(*flags), process.exitcode, output, errors)


@functools.cache
def _start_server():
    """Starts the server, which has its own search path and passes over modules that it does not find."""
    with unittest.mock.patch.dict(os.environ, PYTHONPATH=_HELPERS):
        multiprocessing.forkserver.ensure_running()


def _main(flags, folder, environment, before, streams):
    """Runs in the forked process."""
    assert "ready_command" in sys.modules
    for descriptor in (1, 2):
        os.dup2(os.open(os.path.join(streams, str(descriptor)), os.O_WRONLY | os.O_CREAT), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [str(SCRIPTS), *(entry for entry in sys.path if entry not in ("", _HELPERS))]
    sys.argv[:] = [_SCRIPT, *flags]
    exec(before, {})
    from spiel_cfrplus.cli import entry_point

    entry_point.main()
