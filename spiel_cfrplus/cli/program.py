"""Runs the job of a command: its exit code, errors as one line, signals, and closed streams."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.cli.stop_signals import Stopped, StopSignals

EXIT_DISAGREEMENT = 1
EXIT_VIOLATION = 1
EXIT_USAGE = 2
EXIT_OUTPUT = 74
EXIT_TIME_LIMIT = 124  # as of timeout(1)
EXIT_BROKEN_PIPE = 141

STOP_SIGNALS = StopSignals()


def prepare() -> None:
    """Prepares the process after the imports, and before the job."""
    gc.freeze()  # imported objects persist, so no collection, at exit either, needs to traverse those of Numba
    gc.enable()
    _replace_closed_streams()


def _replace_closed_streams() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w"))


def run(job: Callable[[], int]) -> NoReturn:
    """Runs the job and ends the process with its exit code, or with that of its error, which is printed as one line."""
    try:
        with STOP_SIGNALS.heard():
            exit_code = job()
            sys.stdout.flush()
            sys.exit(exit_code)
    except (UsageError, MemoryError) as error:
        exit_with_usage_error(error)
    except TimeoutError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_TIME_LIMIT)
    except KeyboardInterrupt as interrupt:
        _exit_when_stopped(interrupt)
    except OSError as error:
        _drop_output(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader of the rows has closed the pipe
            sys.exit(EXIT_BROKEN_PIPE)
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_OUTPUT)


def exit_with_usage_error(error: Exception) -> NoReturn:
    """Prints the error as one line and ends the process."""
    print(f"error: {first_line(error)}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _exit_when_stopped(interrupt: KeyboardInterrupt) -> NoReturn:
    stopped = interrupt if isinstance(interrupt, Stopped) else Stopped.at("", interrupt)
    try:
        print(stopped, file=sys.stderr)
        sys.stdout.flush()
    except OSError:  # the terminal has hung up
        _drop_output(sys.stdout)
        _drop_output(sys.stderr)
    sys.exit(stopped.exit_code)


def _drop_output(stream: TextIO) -> None:
    """Discards the buffered output and all later output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
