"""Both ways of installing the package, one after the other in the same environment."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest
from repository import ROOT

WORK = """
import numpy, spiel_cfrplus
from spiel_cfrplus.kernels import passes
policy = numpy.zeros(2)
passes.normalize(numpy.array([1.0, 3.0]), 4.0, 0, 2, policy, None)
print(spiel_cfrplus.__file__)
"""


class Environment:
    """A copy of the repository with an environment that shares the dependencies of the one that runs the tests."""

    def __init__(self, folder: pathlib.Path):
        self.repository = folder / "repository"
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        shutil.copytree(ROOT / "spiel_cfrplus", self.repository / "spiel_cfrplus")
        for name in ("setup.py", "pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, self.repository)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        base = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
        self.site_packages = pathlib.Path(sysconfig.get_path("purelib", "venv", base))
        self.python = pathlib.Path(sysconfig.get_path("scripts", "venv", base)) / "python"
        (self.site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    def run(self, *arguments: str, folder: pathlib.Path) -> str:
        result = subprocess.run([self.python, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def install(self, *options: str) -> None:
        self.run("-m", "pip", "install", "--no-deps", *options, ".", folder=self.repository)

    def home(self, *options: str) -> pathlib.Path:
        """The directory from which a process in another directory imports the package, after it has compiled a kernel."""
        return pathlib.Path(self.run(*options, "-c", WORK, folder=self.elsewhere)).parent


@pytest.fixture
def environment(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("SPIEL_CFRPLUS_CACHE_DIR", str(tmp_path / "cache"))
    return Environment(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("order", [["", "-e"], ["-e", ""], ["", "-e", "", "-e"]], ids=" then ".join)
def test_the_installed_package_is_imported_from_any_directory(order, environment):
    for option in order:
        environment.install(*option.split())
        home = (environment.repository if option else environment.site_packages) / "spiel_cfrplus"
        assert environment.home() == home
        assert environment.home("-O") == home  # Leaves bytecode of another name.
        assert (home / "py.typed").is_file()


@pytest.mark.slow
def test_a_directory_of_an_older_version_does_not_hide_the_package(environment):
    leftover = environment.site_packages / "spiel_cfrplus" / "__pycache__"
    os.makedirs(leftover)
    (leftover / "_kernels.learn-209.py311.nbi").touch()
    environment.install("-e")
    assert environment.home() == environment.repository / "spiel_cfrplus"
