"""Runs of a game in parts: rows, limits and periodic checkpoints, which all processes decide alike."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cfrplus._utils.memory import peak_bytes
from spiel_cfrplus.distributed import checkpoints
from spiel_cfrplus.distributed.session import DistributedSelfPlay
from spiel_cfrplus.solving.curve import Row

_SECONDS_PER_BLOCK = 0.1


class Processes(NamedTuple):
    """Measurements of all processes, in order of rank.

    Attributes:
      exchanging: float64, the fraction of the time of iterations that each process has spent in exchanges, which includes the
        time that it waited for slower processes.
      peak_bytes: float64, the largest resident memory of each process; 0 if the system does not provide it.
    """

    exchanging: np.ndarray
    peak_bytes: np.ndarray


class DistributedRun:
    """Runs a session; all processes call the same methods.

    Attributes:
      session: the session.
      seconds: the duration of the run before this process.
    """

    def __init__(
        self,
        session: DistributedSelfPlay,
        folder: str | os.PathLike[str] | None = None,
        *,
        every: float = 60.0,
        last_iterate: bool = False,
    ):
        """Continues from the checkpoint in `folder`, if there is one.

        Args:
          session: a session at iteration 0, with the cut of the checkpoint if there is one.
          folder: of the checkpoints; None for none.
          every: seconds between checkpoints.
          last_iterate: whether rows evaluate the current policies instead of the averages.

        Raises:
          OSError, ValueError: see `checkpoints.load`.
        """
        self.session = session
        self.seconds = checkpoints.load(session, folder) if folder is not None and checkpoints.exists(folder) else 0.0
        self._folder = folder
        self._every = every
        self._last_iterate = last_iterate
        self._iterating = self._exchanging = 0.0  # seconds in iterations, and in their exchanges
        self._saved_at, self._saved_iteration = time.perf_counter(), session.iteration

    def rows(
        self, reports: Iterable[int], *, target_nash_conv: float | None = None, time_limit: float | None = None
    ) -> Iterator[Row]:
        """Runs to each iteration of `reports` and yields its row; saves a checkpoint every so many seconds and at the end.

        Args:
          reports: iterations, ascending; the last one ends the run.
          target_nash_conv: stop at the first row with at most this NashConv.
          time_limit: stop after about this many seconds, with a row.
        """
        self.session.run(0)
        started = time.perf_counter()
        deadline = math.inf if time_limit is None else started + time_limit
        for report in reports:
            in_time = self._run_until(report, deadline, started)
            row = self._row(started)
            yield row
            if not in_time or (target_nash_conv is not None and row.nash_conv <= target_nash_conv):
                break
        self._save(started)

    def processes(self) -> Processes:
        """The time of exchanges and the memory of all processes."""
        numbers = self._of_all([self._exchanging / max(self._iterating, 1e-9), peak_bytes() or 0])
        return Processes(numbers[:, 0], numbers[:, 1])

    def _of_all(self, numbers: list[float]) -> np.ndarray:
        """float64 (processes, k), numbers of all processes."""
        communicator = self.session.game.communicator
        counts = [len(numbers)] * communicator.size
        return communicator.gather(np.array(numbers, np.float64), counts).reshape(communicator.size, -1)

    def _run_until(self, iteration: int, deadline: float, started: float) -> bool:
        """Runs to `iteration` in blocks; returns False if the deadline of process 0 has passed.

        All processes use the clock of process 0, so that they do the same blocks and save at the same iterations.
        """
        block = 1
        while self.session.iteration < iteration:
            before, exchanging = time.perf_counter(), self.session.seconds_of_exchanges
            self.session.run(min(block, iteration - self.session.iteration))
            now = time.perf_counter()
            self._iterating += now - before
            self._exchanging += self.session.seconds_of_exchanges - exchanging
            due = self._folder is not None and now - self._saved_at >= self._every
            seconds, is_late, is_due = self._of_all([now - before, now >= deadline, due])[0].tolist()
            if is_due:
                self._save(started)
            if is_late:
                return False
            if seconds < _SECONDS_PER_BLOCK:
                block *= 2
        return True

    def _save(self, started: float) -> None:
        if self._folder is not None and self.session.iteration != self._saved_iteration:
            checkpoints.save(self.session, self._folder, self.seconds + time.perf_counter() - started)
            self._saved_at, self._saved_iteration = time.perf_counter(), self.session.iteration

    def _row(self, started: float) -> Row:
        values = self.session.evaluate(self._last_iterate)
        peaks = self.processes().peak_bytes
        return Row(
            iteration=self.session.iteration,
            seconds=self.seconds + time.perf_counter() - started,
            nash_conv=values.nash_conv,
            exploitability=values.nash_conv / 2 if self.session.game.is_two_player_constant_sum else None,
            value=float(values.values[0]),
            cce_gap=None,
            peak_bytes=int(peaks.max()) or None,
        )
