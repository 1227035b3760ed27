"""Forked processes."""

import os
import signal
import time

import pytest

from spiel_cfrplus._utils.forks import status_of_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")


def test_the_exit_code_of_the_function(capfd):
    assert os.waitstatus_to_exitcode(status_of_fork(lambda: os.write(1, b"written"), seconds=20)) == 7
    assert capfd.readouterr() == ("", "")


def test_an_exception_is_exit_code_1():
    assert os.waitstatus_to_exitcode(status_of_fork(lambda: 1 // 0, seconds=20)) == 1


def test_a_crash_is_a_signal():
    status = status_of_fork(lambda: os.kill(os.getpid(), signal.SIGSEGV) or time.sleep(60), seconds=20)
    assert os.WTERMSIG(status) == signal.SIGSEGV


def test_the_time_is_limited():
    assert os.WTERMSIG(status_of_fork(lambda: time.sleep(60) or 0, seconds=1)) == signal.SIGALRM
