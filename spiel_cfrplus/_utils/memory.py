"""How much memory this process can still get: what the machine has left, and the limits that the system sets to the process."""

from __future__ import annotations

import contextlib
import math
import pathlib
from collections.abc import Iterator

import psutil

try:
    import resource
except ImportError:  # Windows sets no such limits
    resource = None  # type: ignore[assignment]

_CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
_OWN_GROUPS = pathlib.Path("/proc/self/cgroup")
# For versions 1 and 2 of Linux control groups, by controller: where the groups are, their limit, and what they use of it.
_VERSIONS = {
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    "": ("", "memory.max", "memory.current"),
}


def available_bytes() -> float:
    """Bytes that this process can still get without swapping, as far as the system tells; infinity if it does not."""
    return max(0.0, min([math.inf, *_left_on_the_machine(), *_left_of_the_address_space(), *_left_to_the_control_groups()]))


def _left_on_the_machine() -> Iterator[float]:
    with contextlib.suppress(OSError, psutil.Error, NotImplementedError):
        yield psutil.virtual_memory().available


def _left_of_the_address_space() -> Iterator[float]:
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, psutil.Error):
            yield soft - psutil.Process().memory_info().vms


def _left_to_the_control_groups() -> Iterator[float]:
    """Of the group of this process and of those that contain it; containers are such groups."""
    for controllers, own in _own_control_groups():
        for controller, (folder, limit, usage) in _VERSIONS.items():
            if controller not in controllers.split(","):
                continue
            group = pathlib.PurePosixPath(own.lstrip("/"))
            for directory in (_CONTROL_GROUPS / folder / part for part in (group, *group.parents)):
                with contextlib.suppress(OSError, ValueError):  # no limit is the word "max", or no file
                    yield int((directory / limit).read_text()) - int((directory / usage).read_text())


def _own_control_groups() -> list[tuple[str, str]]:
    """The controllers and the path of each group that this process is in; none where the system has no control groups."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return []
    return [(controllers, path) for _, controllers, path in (line.split(":", 2) for line in lines)]
