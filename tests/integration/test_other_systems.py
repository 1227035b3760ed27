"""Systems without POSIX modules, such as Windows: the package can be imported and the command runs."""

import subprocess
import sys

from repository import ROOT

# After what the package builds on has been imported, which knows the system that it runs on.
WITHOUT_POSIX = """
import sys
import absl.app, numba, numpy, open_spiel.python.games, platformdirs, psutil, pyspiel, tqdm
import os, signal

os.environ.setdefault("SPIEL_CFRPLUS_CACHE_DIR", platformdirs.user_cache_dir("spiel_cfrplus", appauthor=False))

POSIX_ONLY = {"resource", "fcntl", "pwd", "grp", "termios", "pty", "tty", "syslog", "posix", "crypt", "spwd"}

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in POSIX_ONLY:
            raise ModuleNotFoundError(f"No module named {name!r}")

for name in POSIX_ONLY:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in ("fork", "getuid", "getgid", "killpg", "setsid", "mkfifo", "sched_getaffinity", "sched_setaffinity",
             "uname", "chown", "WIFSIGNALED", "WTERMSIG"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "SIGKILL", "SIGUSR1", "SIGCHLD", "SIGPIPE", "SIGQUIT", "SIGTSTP", "alarm", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
"""


def run_without_posix(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + script], capture_output=True, text=True, timeout=300, check=False
    )


def test_every_module_can_be_imported():
    result = run_without_posix("""
import importlib, pkgutil, spiel_cfrplus
for module in pkgutil.walk_packages(spiel_cfrplus.__path__, "spiel_cfrplus."):
    importlib.import_module(module.name)
assert not POSIX_ONLY & set(sys.modules)
""")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_command_runs(tmp_path):
    checkpoint, plot = tmp_path / "solver.npz", tmp_path / "plot.svg"
    for iterations in (5, 20):
        flags = ["--game=goofspiel(num_cards=3)", f"--iterations={iterations}", f"--cache={tmp_path / 'walks'}"]
        result = run_without_posix(f"""
sys.argv = ["spiel-cfrplus", *{[*flags, f"--checkpoint={checkpoint}", f"--plot={plot}"]!r}]
from spiel_cfrplus.cli import main as command_line
command_line.main()
""")
        assert (result.returncode, result.stderr) == (0, "")
    assert "at iteration 5" in result.stdout
    assert "by OpenSpiel, of the exported TabularPolicy" in result.stdout
    assert plot.read_text().endswith("</svg>\n")


def test_large_games_are_announced_where_no_limit_is_known(tmp_path):
    result = run_without_posix("""
import psutil
def fail():
    raise NotImplementedError
psutil.virtual_memory = fail
import pathlib
pathlib.Path.read_text = lambda path, **options: (_ for _ in ()).throw(FileNotFoundError(path))
from spiel_cfrplus._utils import memory
from spiel_cfrplus.cli import main as command_line
assert memory.available_bytes() == float("inf")
sys.argv = ["spiel-cfrplus", "--game=chess", "--max_histories=1000"]
command_line.main()
""")
    assert result.returncode == 2
    assert "more than" in result.stdout
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["error"]


def test_posix_modules_are_imported_conditionally():
    """Modules that do not exist on Windows are imported in functions or in a try statement."""
    for path in (ROOT / "spiel_cfrplus").rglob("*.py"):
        for line in path.read_text().splitlines():
            assert line not in {f"import {name}" for name in ("resource", "fcntl", "pwd", "grp", "termios")}, path
