"""Tests of what might wait for ever."""

import contextlib
import signal


@contextlib.contextmanager
def within(seconds):
    """Fails instead of waiting for ever."""

    def stop(*_):
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
