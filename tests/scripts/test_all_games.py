"""scripts/all_games.py as a user runs it."""

import subprocess
import sys

from repository import ROOT, SCRIPTS


def run(*flags):
    """Returns the exit code, the rows by game, and standard error."""
    command = [sys.executable, str(SCRIPTS / "all_games.py"), *flags]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    rows = [[cell.strip() for cell in line.split(" | ")] for line in result.stdout.splitlines()]
    return result.returncode, {game: cells for game, *cells in rows}, result.stderr


def test_outcomes_are_rows_and_exit_code_0(tmp_path):
    page = tmp_path / "games.md"
    code, rows, errors = run("--games=kuhn_poker,leduc_poker,catch", "--max_histories=1000", f"--output={page}")
    assert code == 0, errors
    # Six deals, each with 4 decisions and 5 ends, below 1 + 3 chance histories; each player has 2 infostates per card.
    *kuhn, nash_conv, remark = rows["kuhn_poker"]
    assert kuhn == ["solved", "native", "58", "12", "1000"]
    assert 0 < float(nash_conv) < 2e-4
    assert remark == ""
    assert rows["leduc_poker"] == ["too large", "-", "more than 1000", "-", "-", "-", ""]
    outcome, *numbers, remark = rows["catch"]
    assert (outcome, numbers) == ("refused", ["-"] * 5)
    assert remark.startswith("ValueError: has no information-state strings")
    written = page.read_text()
    assert "3 games: 1 solved, 1 too large, 1 refused" in written
    assert all(f"| `{game}` | {' | '.join(cells)} |" in written for game, cells in rows.items())
    assert list(tmp_path.iterdir()) == [page]


def test_a_timeout_is_a_row_and_exit_code_1():
    code, rows, _ = run("--games=leduc_poker", "--time_limit=0")
    assert code == 1
    assert rows["leduc_poker"][0] == "hung"


def test_unknown_game_is_named():
    code, rows, errors = run("--games=kuhn_poker,kuhn")
    assert code == 1
    assert rows == {}
    assert errors == "error: no game is called kuhn\n"
