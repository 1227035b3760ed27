"""Contenders in processes of their own, which answer on lines of JSON.

The side of the contender may be run by another interpreter, so this file imports only the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # Python 3.11, which not every contender has


class AbsentError(Exception):
    """The contender is not available in this interpreter."""


class NoAnswerError(Exception):
    """A process reports an error, has ended, or has exceeded the limit."""


class Process:
    """A process that runs a script with `print_answers`; killed at the end of the `with`."""

    def __init__(self, python: str, script: str, *arguments: str, environment: Mapping[str, str] | None = None):
        self.start = time.perf_counter()
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, script, *arguments],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def answer(self, limit: float) -> dict[str, Any]:
        """The next line that the process prints.

        Raises:
          NoAnswerError: there is none within `limit` seconds, or the line reports an error.
        """
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        over = not timer.is_alive()
        timer.cancel()
        if not line:
            raise NoAnswerError("over the limit of time" if over else "its process ended without an answer")
        result = json.loads(line)
        if message := result.get("absent") or result.get("error"):
            raise NoAnswerError(message)
        return result

    def tell(self, limit: float, **command: object) -> dict[str, Any]:
        """Sends a command and returns the answer."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command) + "\n")
        return self.answer(limit)


def reported_seconds(repeat: Callable[[int], dict[str, Any]], n: int) -> float:
    """The seconds that a process reports for n iterations."""
    return repeat(n)["seconds"]


def print_answers(answers: Iterable[dict[str, Any]]) -> None:
    """Prints the answers, or why there are no more; redirects other output, also that of C++ code, to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1) as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            for answer in answers:
                print(json.dumps(answer), file=out)
        except (AbsentError, ImportError) as error:
            print(json.dumps({"absent": str(error)}), file=out)
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=out)
