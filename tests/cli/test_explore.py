"""explore, in this process."""

import pytest

from spiel_cfrplus import StrategyProfile
from spiel_cfrplus.analysis.row_files import RowFile
from spiel_cfrplus.cli import explore, subcommands
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.solving.curve import Row


def test_explore_writes_a_page(kuhn, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    StrategyProfile.uniform(kuhn).save("policy.npz")
    with RowFile("rows.csv") as file:
        file.write("cfr+", Row(1, 0.1, 0.5, 0.25, 0.0, None))
    assert subcommands.run(explore, ["policy.npz"]) == 0
    assert "explorer written to policy.html" in capsys.readouterr().out
    assert '"name": "policy.npz"' in (tmp_path / "policy.html").read_text()
    assert subcommands.run(explore, ["policy.npz", "uniform", "--output=two.html", "--rows=rows.csv"]) == 0
    text = (tmp_path / "two.html").read_text()
    assert '"name": "uniform"' in text
    assert '"rows": {"cfr+": [[1, 0.5]]}' in text


def test_explore_refuses_other_files_in_one_line(kuhn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    StrategyProfile.uniform(kuhn).save("policy.npz")
    with pytest.raises(UsageError, match=r"must end in \.html"):
        subcommands.run(explore, ["policy.npz", "--output=policy.txt"])
    with pytest.raises(UsageError, match="no such directory"):
        subcommands.run(explore, ["policy.npz", "--output=missing/policy.html"])
    with pytest.raises(UsageError, match=r"rows\.csv"):
        subcommands.run(explore, ["policy.npz", "--rows=rows.csv"])
