"""Teams of threads that execute compiled code concurrently.

A team exists for one call into compiled code: its threads are started, synchronize at a barrier in that code, and end. A call
takes tenths of a second; starting the threads takes tenths of a millisecond. No thread remains after the call, so forks,
concurrent teams and the end of the program are safe. Numba's own threads are not used.
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
    """A barrier for compiled code, see `kernels.barrier`.

    Attributes:
      values: int64, the array that kernels take.
    """

    def __init__(self, num_members: int):
        self.values = np.zeros(barrier_kernels.barrier_size(num_members), np.int64)
        self._locks: list[int] = []
        for member in range(num_members):
            lock = _allocate_lock()
            if not lock:
                raise MemoryError("could not allocate a lock for a thread")
            self._locks.append(lock)
            _acquire_lock(lock, 1)
            self.values[barrier_kernels.lock_position(member)] = lock

    def __del__(self) -> None:
        for lock in self._locks:
            _free_lock(lock)


def run_together(num_members: int, work: Callable[[int, np.ndarray], None]) -> None:
    """Calls `work(member, barrier)` in `num_members` concurrent threads and waits for all of them.

    An interrupt is raised after all threads have finished.

    Args:
      num_members: number of threads.
      work: calls compiled code that is already compiled and does not raise; `barrier` is int64, see `kernels.barrier`.

    Raises:
      RuntimeError: the system cannot start the threads; `work` was not called.
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
        start.abort()  # ends the threads that wait for threads that were not started
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
        except BaseException as error:  # raised by a signal handler, such as KeyboardInterrupt
            interrupt = error
    if interrupt is not None:
        raise interrupt


class _Cores:
    """Binds each thread of a team to a different core, on systems that support it (Linux).

    A thread keeps its current core unless another thread of the team has it; then it is bound to a random free core. Without
    binding, Linux often runs two threads that wait for each other on the same core while another core is idle.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

    def claim(self) -> None:
        """Binds the calling thread to a free core, if there is one."""
        with self._lock, contextlib.suppress(AttributeError, OSError):
            if self._free:
                here = ctypes.CDLL(None).sched_getcpu()
                core = here if here in self._free else random.choice(sorted(self._free))
                self._free.discard(core)
                os.sched_setaffinity(0, {core})
