"""Both ways of installing the package, one after the other in the same environment; its distributions and metadata."""

import email
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import types
import zipfile

import pytest
from repository import ROOT

import spiel_cfrplus

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
        shutil.copytree(ROOT, self.repository, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info"))
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


def test_the_long_description_has_no_relative_links(monkeypatch):
    options = {}
    monkeypatch.setitem(sys.modules, "setuptools", types.SimpleNamespace(setup=options.update))
    runpy.run_path(str(ROOT / "setup.py"))
    targets = re.findall(r"\]\(([^)]*)\)", options["long_description"])
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "Choosing a solver (`docs/choosing.md`) compares them" in options["long_description"]


def test_links_of_the_readme_exist():
    targets = re.findall(r"\]\(([^)]*)\)", (ROOT / "README.md").read_text())
    missing = [target for target in targets if not target.startswith("https://") and not (ROOT / target).is_file()]
    assert missing == []


def test_the_citation_is_of_this_version():
    assert f"\nversion: {spiel_cfrplus.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_wheel_contains_the_package_its_license_and_its_metadata(environment):
    environment.run(
        "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(environment.elsewhere), ".", folder=environment.repository
    )
    (path,) = environment.elsewhere.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = f"spiel_cfrplus-{spiel_cfrplus.__version__}.dist-info"
        metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert {"spiel_cfrplus/py.typed", "spiel_cfrplus/game/native_walk.cc", f"{info}/licenses/LICENSE"} <= names
    assert {name.partition("/")[0] for name in names} == {"spiel_cfrplus", info}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert (
        len(required) == 8
    )  # SciPy among them, which OpenSpiel requires, too. Extras do not enlarge the installation without them.


@pytest.mark.slow
def test_the_source_distribution_passes_its_own_tests(environment):
    environment.run("-m", "pip", "install", "setuptools>=77", folder=environment.elsewhere)
    environment.run("setup.py", "sdist", "--dist-dir", str(environment.elsewhere), folder=environment.repository)
    (path,) = environment.elsewhere.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(environment.elsewhere, filter="data")
    unpacked = environment.elsewhere / path.name.removesuffix(".tar.gz")
    for folder in ("benchmarks", "docs", "scripts", "spiel_cfrplus", "tests"):
        assert files_in(unpacked / folder) == files_in(environment.repository / folder)
    tests = ["tests/game/test_treeplex.py", "tests/integration/test_layout.py", "docs/reading_strategies.md"]
    environment.run("-m", "pytest", "-q", *tests, folder=unpacked)


def files_in(folder: pathlib.Path) -> set[pathlib.Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
