"""Progress bars are shown on terminals on request, and nowhere else."""

import io
import sys

import pytest

from spiel_cfrplus._utils import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("show", "stream", "is_shown"),
    [(True, Terminal, True), (False, Terminal, False), (True, io.StringIO, False), (False, io.StringIO, False)],
)
def test_a_bar_is_shown_on_a_terminal_on_request(show, stream, is_shown, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    with progress.progress_bar(show, unit="things", total=10) as advance:
        advance(4)
        assert (advance is progress.no_advance) is not is_shown
        if is_shown:
            assert (advance.__self__.n, advance.__self__.total) == (4, 10)
