"""Teams of threads: the barrier is correct for every order of arrival."""

import threading

import numba
import numpy as np
import pytest

from spiel_cfrplus.kernels.barrier import MAX_SPINS, ROUND, arrive, release_team, wait
from spiel_cfrplus.solving.threads import run_together


@numba.njit(nogil=True)
def count_together(barrier, member, num_members, counts, sums, spins):
    """In each round all threads increment a count, then the last one to arrive sums the counts."""
    adaptive = spins == MAX_SPINS
    for round_number in range(sums.size):
        counts[member] += 1
        if arrive(barrier, num_members):
            for count in counts[:num_members]:
                sums[round_number] += count
            release_team(barrier, num_members)
        else:
            next_spins = wait(barrier, member, round_number, spins)
            spins = next_spins if adaptive else spins


@pytest.mark.parametrize("spins", [0, MAX_SPINS])
@pytest.mark.parametrize("num_members", [1, 2, 5])
def test_every_thread_passes_every_barrier(num_members, spins):
    counts, sums = np.zeros(num_members, np.int64), np.zeros(2000, np.int64)
    count_together(np.zeros(100, np.int64), 0, 1, np.zeros(1, np.int64), sums[:0], spins)  # compiles
    rounds = []

    def work(member: int, barrier: np.ndarray) -> None:
        count_together(barrier, member, num_members, counts, sums, spins)
        rounds.append(barrier[ROUND])

    run_together(num_members, work)
    # After round t everybody has counted to t + 1; a member that came too early or too late would show in some sum.
    np.testing.assert_array_equal(sums, num_members * np.arange(1, 2001))
    assert rounds == [2000 if num_members > 1 else 0] * num_members


def test_an_error_of_a_member_is_raised():
    def work(member: int, barrier: np.ndarray) -> None:
        if member == 1:
            raise LookupError("member 1")

    with pytest.raises(LookupError, match="member 1"):
        run_together(2, work)


def test_members_run_concurrently_in_threads_that_end():
    threads, meeting = set(), threading.Barrier(4, timeout=60)

    def work(member: int, barrier: np.ndarray) -> None:
        threads.add(threading.current_thread())
        meeting.wait()

    run_together(4, work)
    assert len(threads) == 4
    assert not any(thread.is_alive() for thread in threads)
