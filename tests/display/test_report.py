"""The report of a sweep, read back from the page."""

import html
import re

import pytest

from spiel_cfrplus.cli import subcommands, sweep_report
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.display.report import write_report
from spiel_cfrplus.sweeps.plans import OPTIONS

RUNS = """run,game,algorithm,iterations,{options}status,message,{sizes},{results},command
a,kuhn_poker,cfr,50,{cells}done,,58,12,26,50,0.5,0.0259876,0.0129938,-0.05,1000,spiel-cfrplus --algorithm=cfr
b,kuhn_poker,cfr+,50,{cells}done,,58,12,26,50,0.25,0.0026,0.0013,-0.0555,1000,spiel-cfrplus --algorithm=cfr+
c,kuhn_poker,<b>bad</b>,50,{cells}refused,<script>no</script>,,,,,,,,,,spiel-cfrplus '--algorithm=<b>'
"""
CURVES = """run,game,algorithm,iteration,seconds,nash_conv,exploitability,value,cce_gap,peak_bytes
a,kuhn_poker,cfr,1,0.1,0.8,0.4,0.5,,1000
a,kuhn_poker,cfr,50,0.5,0.0259876,0.0129938,-0.05,,1000
b,kuhn_poker,cfr+,50,0.25,0.0026,0.0013,-0.0555,,1000
"""


@pytest.fixture
def folder(tmp_path):
    names = [name for name in OPTIONS if name != "iterations"]
    sizes, results = "num_histories,num_infostates,num_sequences", "iteration,seconds,nash_conv,exploitability,value,peak_bytes"
    text = RUNS.replace("{sizes}", sizes).replace("{results}", results)
    text = text.replace("{options}", "".join(f"{name}," for name in names)).replace("{cells}", "," * len(names))
    (tmp_path / "runs.csv").write_text(text)
    (tmp_path / "curves.csv").write_text(CURVES)
    return tmp_path


def test_the_report_has_the_table_curves_and_commands(folder, capsys):
    assert subcommands.run(sweep_report, [str(folder)]) == 0
    assert "report written to" in capsys.readouterr().out
    page = (folder / "report.html").read_text(encoding="utf-8")
    lines = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", page)
    cells = {html.unescape(name): re.findall(r'<td title="(.*?)">(.*?)</td>', line) for name, line in lines}
    assert list(cells) == ["cfr", "cfr+", "<b>bad</b>"]
    assert ("0.0259876", "0.02599") in cells["cfr"]
    # The smallest NashConv, exploitability and seconds; the memory of both is the same.
    assert [title for title, text in cells["cfr+"] if "★" in text] == ["0.25", "0.0026", "0.0013", "1000"]
    assert [title for title, text in cells["cfr"] if "★" in text] == ["1000"]
    assert page.count('<img alt="NashConv against iterations') == 1
    assert html.escape("spiel-cfrplus '--algorithm=<b>'") in page
    assert "<script" not in page
    assert "58 histories, 12 infostates" in page


def test_other_folders_are_refused_in_one_line(folder, tmp_path):
    with pytest.raises(UsageError, match=r"No such file.*runs\.csv"):
        subcommands.run(sweep_report, [str(tmp_path / "missing"), f"--output={tmp_path}/a.html"])
    (folder / "runs.csv").write_text("run,game\na,kuhn_poker\n")
    with pytest.raises(ValueError, match="does not have the tables of a sweep"):
        write_report(folder, folder / "report.html")
    with pytest.raises(ValueError, match=r"must end in \.html"):
        write_report(folder, folder / "report.txt")
    assert not (folder / "report.html").exists()
