"""What is printed about rows."""

from types import SimpleNamespace

import pytest

from spiel_cfrplus.cli import report
from spiel_cfrplus.solving.curve import Row

ROW = Row(7, 0.5, 0.25, 0.125, -0.5, None)


@pytest.mark.parametrize(("cce", "columns"), [(False, ["error"]), (True, ["CCE", "gap", "value", "error"])])
def test_the_distance_from_the_exact_value_is_the_last_column(cce, columns, capsys):
    options = SimpleNamespace(json=False, cce=cce, exact=True)
    report.print_header(options)
    report.print_row(options, None, -0.25, "cfr", ROW)
    titles, numbers = capsys.readouterr().out.splitlines()
    assert titles.split()[-len(columns) :] == columns
    assert numbers.split()[-1] == "2.500000e-01"
    assert len(titles) == len(numbers)


def test_without_an_exact_value_there_is_no_column(capsys):
    options = SimpleNamespace(json=False, cce=False, exact=False)
    report.print_header(options)
    report.print_row(options, None, None, "cfr", ROW)
    titles, numbers = capsys.readouterr().out.splitlines()
    assert titles.endswith("value of player 0")
    assert numbers.split()[-1] == "-0.500000000"


@pytest.mark.parametrize(("exact_value", "expected"), [(None, {}), (-0.25, {"value_error": 0.25})])
def test_rows_as_json(exact_value, expected):
    printed = []
    report.print_row(SimpleNamespace(json=True), printed.append, exact_value, "cfr", ROW)
    (row,) = printed
    assert {name: row[name] for name in row if name == "value_error"} == expected
    assert (row["algorithm"], row["iteration"], row["value"]) == ("cfr", 7, -0.5)
