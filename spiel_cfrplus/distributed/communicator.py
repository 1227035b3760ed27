"""Messages between processes: a protocol, one process alone, and MPI.

All processes call the same methods in the same order. Arrays are sent from their memory, never as pickles.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

_SPIN_SECONDS = 2e-4
_SLEEP_SECONDS = 5e-5


class Communicator(Protocol):
    """The messages that a distributed game needs; processes are numbered by their `rank`.

    Attributes:
      rank: the number of this process, from 0.
      size: the number of processes.
    """

    rank: int
    size: int

    def gather(self, values: np.ndarray, counts: Sequence[int]) -> np.ndarray:
        """The float64 vectors of all processes, in order of rank; `counts` are their lengths."""

    def gather_rows(self, rows: np.ndarray) -> list[np.ndarray]:
        """The int64 matrices of all processes, which have the same number of columns and any number of rows."""

    def scatter_rows(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """The uint64 rows that all processes have for this one, one after the other.

        Args:
          rows: for each rank, a uint64 matrix; all have the same number of columns.
        """

    def wait_for_all(self) -> None:
        """Returns when all processes have called it."""


class Alone:
    """One process, which has all parts."""

    rank = 0
    size = 1

    def gather(self, values: np.ndarray, counts: Sequence[int]) -> np.ndarray:
        """See `Communicator.gather`."""
        return values

    def gather_rows(self, rows: np.ndarray) -> list[np.ndarray]:
        """See `Communicator.gather_rows`."""
        return [rows]

    def scatter_rows(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """See `Communicator.scatter_rows`."""
        return rows[0]

    def wait_for_all(self) -> None:
        """See `Communicator.wait_for_all`."""


class MPICommunicator:
    """The processes of `MPI.COMM_WORLD`, or of another communicator of mpi4py."""

    def __init__(self, comm: Any = None):
        """Imports mpi4py, which starts MPI, unless a communicator is given.

        Raises:
          ImportError: mpi4py or an MPI library is not installed.
        """
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise ImportError(f"MPI cannot be used ({error}); install it: pip install 'spiel_cfrplus[cluster]'") from error
        self._mpi = MPI
        self._comm = MPI.COMM_WORLD if comm is None else comm
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()

    def gather(self, values: np.ndarray, counts: Sequence[int]) -> np.ndarray:
        """See `Communicator.gather`."""
        received = np.empty(sum(counts))
        kind = self._mpi.DOUBLE
        _wait(self._comm.Iallgatherv([np.ascontiguousarray(values), kind], [received, list(counts), kind]))
        return received

    def gather_rows(self, rows: np.ndarray) -> list[np.ndarray]:
        """See `Communicator.gather_rows`."""
        counts = np.empty(self.size, np.int64)
        self._comm.Allgather(np.array([rows.size]), counts)
        received = np.empty(counts.sum(), np.int64)
        sent = np.ascontiguousarray(rows, np.int64)
        self._comm.Allgatherv([sent, self._mpi.INT64_T], [received, counts.tolist(), self._mpi.INT64_T])
        return [own.reshape(-1, rows.shape[1]) for own in np.split(received, np.cumsum(counts)[:-1])]

    def scatter_rows(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """See `Communicator.scatter_rows`."""
        sent = np.array([own.size for own in rows], np.int64)
        counts = np.empty(self.size, np.int64)
        self._comm.Alltoall(sent, counts)
        received = np.empty(counts.sum(), np.uint64)
        flat = np.concatenate([own.ravel() for own in rows])
        kind = self._mpi.UINT64_T
        self._comm.Alltoallv([flat, sent.tolist(), kind], [received, counts.tolist(), kind])
        return received.reshape(-1, rows[0].shape[1])

    def wait_for_all(self) -> None:
        """See `Communicator.wait_for_all`."""
        self._comm.Barrier()

    def end_all(self, exit_code: int) -> NoReturn:
        """Ends all processes, without cleanup; for errors in one of them."""
        self._comm.Abort(exit_code)
        os._exit(exit_code)  # some implementations return before they end the process


def _wait(request: Any) -> None:
    """Waits for a message; after a short time the process sleeps, as waiting threads do, see `kernels.barrier`.

    MPI's own functions would use a core, which other processes may need.
    """
    until = time.perf_counter() + _SPIN_SECONDS
    while not request.Test():
        if time.perf_counter() > until:
            time.sleep(_SLEEP_SECONDS)
