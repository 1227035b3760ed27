"""Threads that run one piece of compiled code together.

A team lives for one call into compiled code. Its threads are made, meet at a barrier inside that code as often as it says, and
end. A call takes tenths of a second; making threads takes tenths of a millisecond. Nothing is left that a fork, another team at
the same time or the end of the program could disturb. Numba's own threads are not used.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import os
import random
import threading
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfrplus.kernels import barrier as barrier_kernels

_allocate_lock = ctypes.pythonapi.PyThread_allocate_lock
_allocate_lock.argtypes, _allocate_lock.restype = (), ctypes.c_void_p
_acquire_lock = ctypes.pythonapi.PyThread_acquire_lock
_acquire_lock.argtypes, _acquire_lock.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
_free_lock = ctypes.pythonapi.PyThread_free_lock
_free_lock.argtypes, _free_lock.restype = (ctypes.c_void_p,), None


class Barrier:
    """A barrier for compiled code, see `barrier_kernels`.

    Attributes:
      values: int64, what kernels take.
    """

    def __init__(self, num_members: int):
        self.values = np.zeros(barrier_kernels.barrier_size(num_members), np.int64)
        self._locks: list[int] = []
        for member in range(num_members):
            lock = _allocate_lock()
            if not lock:
                raise MemoryError("no lock for a thread could be made")
            self._locks.append(lock)
            _acquire_lock(lock, 1)
            self.values[barrier_kernels.place_of_lock(member)] = lock

    def __del__(self) -> None:
        for lock in self._locks:
            _free_lock(lock)


def run_together(num_members: int, work: Callable[[int, np.ndarray], None]) -> None:
    """Calls `work(member, barrier)` in so many threads at the same time and waits for all of them.

    An interrupt meanwhile is raised when all are done.

    Args:
      num_members: how many threads.
      work: calls compiled code that does not raise, once it has started, and is compiled already; `barrier` is int64, see
        `barrier_kernels`.

    Raises:
      RuntimeError: the system has no more threads; `work` was not called.
    """
    barrier, start, cores = Barrier(num_members), threading.Barrier(num_members), _Cores()

    def run_member(member: int) -> None:
        start.wait()
        cores.claim()
        work(member, barrier.values)

    executor = concurrent.futures.ThreadPoolExecutor(num_members, "spiel_cfrplus")
    try:
        members = [executor.submit(run_member, member) for member in range(num_members)]
        _wait_for_all(members)
    except BaseException:
        start.abort()  # those that wait for others that will not come
        raise
    finally:
        executor.shutdown()
    for member in members:
        member.result()


def _wait_for_all(members: Sequence[concurrent.futures.Future[None]]) -> None:
    interrupt = None
    while not all(member.done() for member in members):
        try:
            concurrent.futures.wait(members)
        except BaseException as error:  # of a signal handler
            interrupt = error
    if interrupt is not None:
        raise interrupt


class _Cores:
    """Gives each thread of a team a core of its own for as long as it lives, where the system tells cores apart (Linux).

    Each keeps the core where the system put it, unless another has that; then it takes some other one. Left to itself, Linux
    often has two threads that wait for each other take turns on one core while another core is idle.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

    def claim(self) -> None:
        """Binds the calling thread to a core, if one is left."""
        with self._lock, contextlib.suppress(AttributeError, OSError):
            if self._free:
                here = ctypes.CDLL(None).sched_getcpu()
                core = here if here in self._free else random.choice(sorted(self._free))
                self._free.discard(core)
                os.sched_setaffinity(0, {core})
