"""The library of the native walk: compiles `native_walk.cc` once, and keeps the result in the user's cache directory.

OpenSpiel's wheels for Linux contain the headers of OpenSpiel, Abseil and the JSON library, and `pyspiel` exports the symbols of
all its games. The library is linked to the file of `pyspiel`, so the classes of OpenSpiel that it calls are those that Python
has loaded. It is stored under a digest of its source, the command and version of the compiler, and of OpenSpiel's version and
file.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import pyspiel

from spiel_cfrplus.kernels.compiled_files import KernelFiles, kernel_files

SOURCE = pathlib.Path(__file__).with_name("native_walk.cc")
_NAME = "native_walk.so"
# Compilers to look for; the environment variable CXX is asked first.
_COMPILERS = ("g++", "c++", "clang++")
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-w")
_COMPILE_SECONDS = 300
_HEADER = "open_spiel/spiel.h"

_POINTER, _INT, _INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
# The result and the arguments of each function of the library.
_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "walk_new": (_POINTER, (ctypes.c_char_p, _INT64, _POINTER, _POINTER, _POINTER, _INT, _INT64)),
    "walk_run": (_INT, (_POINTER,)),
    "walk_stop": (None, (_POINTER,)),
    "walk_counted": (_INT64, (_POINTER,)),
    "walk_infostates": (_INT64, (_POINTER,)),
    "walk_reason": (ctypes.c_char_p, (_POINTER,)),
    "walk_sizes": (None, (_POINTER, _POINTER)),
    "walk_take_histories": (None, (_POINTER,) * 6),
    "walk_take_infostates": (None, (_POINTER,) * 6),
    "walk_delete": (None, (_POINTER,)),
}


class UnavailableError(Exception):
    """The native walk is not available; the message is the reason."""


def stored() -> bytes | None:
    """The content of the library, if it was compiled before; damaged and untrusted files are treated as missing.

    Raises:
      UnavailableError: there is no compiler, or there are no headers.
    """
    return _files().read(_NAME)


def store(content: bytes) -> None:
    """Stores the content of the library for other processes; a failure is logged."""
    _files().write(_NAME, content)


def compiled() -> bytes:
    """Compiles the library, which takes 5 to 10 seconds, and returns its content.

    Raises:
      UnavailableError: there is no compiler, there are no headers, or the compilation fails.
    """
    compiler, include = _compiler(), _include_directory()
    folders = (include, include / "open_spiel/abseil-cpp", include / "open_spiel/json/include")
    with tempfile.TemporaryDirectory() as directory:
        target = pathlib.Path(directory, _NAME)
        headers = [text for folder in folders for text in ("-isystem", str(folder))]
        command = [compiler, *_FLAGS, *headers, str(SOURCE), pyspiel.__file__, "-o", str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_COMPILE_SECONDS, stdin=subprocess.DEVNULL)
            return target.read_bytes()
        except subprocess.CalledProcessError as error:
            raise UnavailableError(f"{compiler} does not compile {SOURCE.name} ({_first_error(error.stderr)})") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{compiler} does not compile {SOURCE.name} ({error})") from error


def load(content: bytes) -> ctypes.CDLL:
    """Loads the library into this process.

    It is loaded from a file in memory, whose descriptor stays open: the content is the one whose checksum was compared, and no
    directory must allow the execution of files.

    Raises:
      UnavailableError: it cannot be loaded, for example because another C++ library is installed than at its compilation.
    """
    try:
        descriptor = os.memfd_create(_NAME)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        library = ctypes.CDLL(f"/proc/self/fd/{descriptor}")
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise UnavailableError(f"the compiled walk cannot be loaded ({error})") from error
    return library


def _files() -> KernelFiles:
    return kernel_files(_digest(_compiler(), os.environ.get("PATH", "")))


@functools.cache
def _digest(compiler: str, path: str) -> str:
    """32 hexadecimal digits that identify what the library depends on; `path` is the PATH, on which a compiler may depend."""
    status = os.stat(pyspiel.__file__)
    header = (_include_directory() / _HEADER).read_bytes()
    parts = (
        *(SOURCE.read_bytes(), header, repr(_FLAGS), compiler, _version(compiler), platform.machine(), platform.libc_ver()),
        *(pyspiel.__version__, pyspiel.__file__, status.st_size, status.st_mtime_ns),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _compiler() -> str:
    if not sys.platform.startswith("linux"):
        raise UnavailableError("it is available on Linux only")
    for name in filter(None, (os.environ.get("CXX"), *_COMPILERS)):
        if found := shutil.which(name):
            return found
    raise UnavailableError("there is no C++ compiler (g++)")


def _version(compiler: str) -> bytes:
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(f"{compiler} does not run ({error})") from error


def _include_directory() -> pathlib.Path:
    directory = pathlib.Path(pyspiel.__file__).parent
    if not (directory / _HEADER).is_file():
        raise UnavailableError(f"open_spiel is installed without its headers ({directory / _HEADER})")
    return directory


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "without a message")
