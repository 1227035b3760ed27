"""The memory that is available to this process, given its limits and the free memory of the machine; and its peak so far."""

from __future__ import annotations

import contextlib
import itertools
import math
import pathlib
import sys
from collections.abc import Iterator

import psutil

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
_OWN_GROUPS = pathlib.Path("/proc/self/cgroup")
_STATUS = pathlib.Path("/proc/self/status")
# For versions 1 and 2 of Linux control groups, by controller: the directory of the groups, and the files with limit and usage.
_VERSIONS = {
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    "": ("", "memory.max", "memory.current"),
}


def available_bytes() -> float:
    """The bytes that this process can allocate without swapping; infinity if the system provides no information."""
    return max(0.0, min([math.inf, *_free_on_machine(), *_free_in_address_space(), *_free_in_control_groups()]))


def peak_bytes() -> int | None:
    """The largest resident memory of this process so far, in bytes; None if the system does not provide it."""
    return next(itertools.chain(_peak_of_linux(), _peak_of_unix(), _peak_of_windows()), None)


def _peak_of_linux() -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):
        (line,) = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        yield 1024 * int(line.split()[1])


def _peak_of_unix() -> Iterator[int]:
    """On Linux this is at least the peak of the parent process, so it is the second choice."""
    if resource is not None:
        yield resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _peak_of_windows() -> Iterator[int]:
    with contextlib.suppress(OSError, psutil.Error, AttributeError):
        yield psutil.Process().memory_info().peak_wset


def _free_on_machine() -> Iterator[float]:
    with contextlib.suppress(OSError, psutil.Error, NotImplementedError):
        yield psutil.virtual_memory().available


def _free_in_address_space() -> Iterator[float]:
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, psutil.Error):
            yield soft - psutil.Process().memory_info().vms


def _free_in_control_groups() -> Iterator[float]:
    """The free memory in the group of this process and in each group that contains it; containers are such groups."""
    for controllers, own in _own_control_groups():
        for controller, (folder, limit, usage) in _VERSIONS.items():
            if controller not in controllers.split(","):
                continue
            group = pathlib.PurePosixPath(own.lstrip("/"))
            for directory in (_CONTROL_GROUPS / folder / part for part in (group, *group.parents)):
                with contextlib.suppress(OSError, ValueError):  # without a limit the file contains "max" or does not exist
                    yield int((directory / limit).read_text()) - int((directory / usage).read_text())


def _own_control_groups() -> list[tuple[str, str]]:
    """The controllers and the path of each group of this process; empty if the system has no control groups."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return []
    return [(controllers, path) for _, controllers, path in (line.split(":", 2) for line in lines)]
