"""A time limit for tests that might not terminate."""

import contextlib
import signal


@contextlib.contextmanager
def within(seconds):
    """Fails after a time limit."""

    def stop(*_):
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
