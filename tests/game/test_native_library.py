"""The compiled library of the native walk: its file, its compiler, its headers."""

import pyspiel
import pytest

from spiel_cfrplus.game import native_library
from spiel_cfrplus.game.native_library import UnavailableError
from spiel_cfrplus.kernels import compiled_files

CONTENT = b"not a library"


@pytest.fixture
def files(monkeypatch, tmp_path):
    """An empty cache, and a compiler, which need not exist."""
    monkeypatch.setenv(compiled_files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(native_library, "kernel_files", compiled_files.KernelFiles)
    monkeypatch.setattr(native_library, "_compiler", lambda: "/bin/echo")
    monkeypatch.setattr(native_library, "_include_directory", lambda: tmp_path)
    header = tmp_path / native_library._HEADER
    header.parent.mkdir()
    header.write_text("// a header")
    yield tmp_path
    native_library._digest.cache_clear()


def stored_files(folder):
    return list(folder.glob("kernels-*/*.so"))


def test_a_library_is_stored_and_read(files):
    assert native_library.stored() is None
    native_library.store(CONTENT)
    assert native_library.stored() == CONTENT
    assert len(stored_files(files)) == 1


@pytest.mark.parametrize("damage", [lambda stored: stored[:-1], lambda stored: stored[:-1] + b"?", lambda stored: b""])
def test_a_damaged_file_is_treated_as_missing(files, damage):
    native_library.store(CONTENT)
    (path,) = stored_files(files)
    path.write_bytes(damage(path.read_bytes()))
    assert native_library.stored() is None


@pytest.mark.parametrize("change", ["source", "compiler", "version", "header"])
def test_the_library_of_other_sources_or_compilers_is_not_used(files, monkeypatch, change):
    native_library.store(CONTENT)
    if change == "source":
        other = files / "other.cc"
        other.write_text("// other")
        monkeypatch.setattr(native_library, "SOURCE", other)
    elif change == "compiler":
        monkeypatch.setattr(native_library, "_compiler", lambda: "/bin/true")
    elif change == "version":
        monkeypatch.setattr(pyspiel, "__version__", "0")
    else:
        (files / native_library._HEADER).write_text("// another header")
    native_library._digest.cache_clear()
    assert native_library.stored() is None


def test_a_source_with_an_error_is_refused_in_one_line(monkeypatch, tmp_path):
    broken = tmp_path / "broken.cc"
    broken.write_text("int f() { return; }\n")
    monkeypatch.setattr(native_library, "SOURCE", broken)
    try:
        native_library._compiler()
    except UnavailableError as error:
        pytest.skip(str(error))
    with pytest.raises(UnavailableError, match=r"does not compile broken.cc \(.*error") as error:
        native_library.compiled()
    assert "\n" not in str(error.value)


def test_content_that_is_not_a_library_is_refused():
    with pytest.raises(UnavailableError, match="the compiled walk cannot be loaded"):
        native_library.load(CONTENT)


def test_missing_headers_are_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(pyspiel, "__file__", str(tmp_path / "pyspiel.so"))
    with pytest.raises(UnavailableError, match="open_spiel is installed without its headers"):
        native_library.compiled()


def test_other_systems_have_no_native_walk(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(UnavailableError, match="it is available on Linux only"):
        native_library.stored()


def test_the_environment_names_the_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "echo")
    assert native_library._compiler().endswith("echo")


def test_a_compiler_that_does_not_run_is_a_reason():
    with pytest.raises(UnavailableError, match="/bin/false does not run"):
        native_library._version("/bin/false")
