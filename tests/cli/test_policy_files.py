"""evaluate, compare, match, show and export, in this process."""

import json
import re

import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import StrategyProfile, load_policy, read_policy
from spiel_cfrplus.cli import compare, evaluate, export, match, show, subcommands
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.play.match import play_match

# An equilibrium of Kuhn poker (Kuhn 1950) with alpha = 0: probabilities of a bet by infostate. Its value is -1/18.
EQUILIBRIUM = {
    **{"0": 0, "0pb": 0, "1": 0, "1pb": 1 / 3, "2": 0, "2pb": 1},
    **{"0p": 1 / 3, "0b": 0, "1p": 0, "1b": 1 / 3, "2p": 1, "2b": 1},
}
# OpenSpiel's C++ evaluation of the uniform policy gives NashConv 11/12; player 0's value under it is 1/8, see README.md.
UNIFORM_NASH_CONV = 11 / 12
UNIFORM_VALUE = 1 / 8


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, kuhn):
    monkeypatch.chdir(tmp_path)
    table = {key: {0: 1 - bet, 1: bet} for key, bet in EQUILIBRIUM.items()}
    read_policy(kuhn, table).save("equilibrium.npz")
    StrategyProfile.uniform(kuhn).save("uniform.json")
    StrategyProfile.uniform(kuhn).save("uniform.csv")
    return tmp_path


def rows(capsys):
    output, error = capsys.readouterr()
    return [json.loads(line) for line in output.splitlines()], error


def test_evaluate_prints_the_worth_of_a_policy(capsys):
    assert subcommands.run(evaluate, ["uniform.json", "--json"]) == 0
    (row,), _ = rows(capsys)
    assert (row["file"], row["game"]) == ("uniform.json", "kuhn_poker()")
    assert row["nash_conv"] == pytest.approx(UNIFORM_NASH_CONV, rel=1e-12)
    assert row["exploitability"] == pytest.approx(UNIFORM_NASH_CONV / 2, rel=1e-12)
    assert row["values"] == pytest.approx([UNIFORM_VALUE, -UNIFORM_VALUE])
    assert subcommands.run(evaluate, ["equilibrium.npz"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("kuhn_poker(), 12 infostates, 26 sequences, 30 payoffs\nNashConv ")
    assert float(re.search(r"NashConv (\S+)", output)[1]) < 1e-15
    assert re.search(r"^ +0 +-0.055555556 +-0.055555556 ", output, re.MULTILINE)


def test_a_csv_file_needs_the_game(capsys):
    with pytest.raises(UsageError, match=r"uniform.csv: a .csv file does not say which game it is for; pass it with --game="):
        subcommands.run(evaluate, ["uniform.csv"])
    assert subcommands.run(evaluate, ["uniform.csv", "--game=kuhn_poker", "--json"]) == 0
    (row,), notes = rows(capsys)
    assert row["nash_conv"] == pytest.approx(UNIFORM_NASH_CONV, rel=1e-12)
    assert "58 histories" in notes


def test_compare_mixes_the_policies(capsys):
    assert subcommands.run(compare, ["equilibrium.npz", "uniform", "--json"]) == 0
    (first, *pairings), _ = rows(capsys)
    assert first["nash_conv"] == pytest.approx([0, UNIFORM_NASH_CONV], abs=1e-15)
    assert first["largest_difference"] == pytest.approx(1 / 2)
    values = {tuple(pairing["players"]): pairing["values"][0] for pairing in pairings}
    assert len(values) == 4
    assert values["equilibrium.npz", "equilibrium.npz"] == pytest.approx(-1 / 18)
    assert values["uniform", "uniform"] == pytest.approx(UNIFORM_VALUE)
    # An equilibrium strategy gets at least the value of the game against any opponent.
    assert values["equilibrium.npz", "uniform"] >= -1 / 18
    assert values["uniform", "equilibrium.npz"] <= -1 / 18


def test_compare_names_the_largest_difference(kuhn, capsys):
    uniform = StrategyProfile.uniform(kuhn)
    read_policy(kuhn, {**uniform.to_dict(), "2pb": {0: 0.125, 1: 0.875}}).save("changed.npz")
    assert subcommands.run(compare, ["changed.npz", "uniform.json"]) == 0
    output = capsys.readouterr().out
    assert "0.375000: player 0, infostate '2pb', action 0 Pass: 0.125000 and 0.500000" in output
    # Play reaches "2pb" with probability 1/3 * 1/2 * 1/2 = 1/12. Each game visits one infostate of player 0 at the start, one
    # of player 1, and a third one if it goes pass, bet: 1 + 1 + 1/4 infostates. The distance at "2pb" is 3/8.
    assert f"mean total variation distance {1 / 12 * 3 / 8 / (9 / 4):.6f}" in output


def test_match_plays_games_in_all_seats(capsys):
    assert subcommands.run(match, ["equilibrium.npz", "uniform", "--games=1e3", "--seed=1", "--json", "--swap_seats"]) == 0
    scores, _ = rows(capsys)
    assert [score["file"] for score in scores] == ["equilibrium.npz", "uniform"]
    assert [score["num_games"] for score in scores] == [1000, 1000]
    assert scores[0]["expected"] == pytest.approx(-scores[1]["expected"])
    low, high = scores[0]["confidence_interval"]
    assert low < scores[0]["mean"] < high
    assert subcommands.run(match, ["equilibrium.npz", "uniform"]) == 0
    assert "participant 1: uniform" in capsys.readouterr().out


def test_seats_are_fixed_by_default_as_in_the_function(capsys):
    assert subcommands.run(match, ["equilibrium.npz", "uniform", "--games=1000", "--json"]) == 0
    equilibrium = load_policy("equilibrium.npz")
    expected = play_match(equilibrium.game, [equilibrium, StrategyProfile.uniform(equilibrium.game)], 1000, 0)
    scores, _ = rows(capsys)
    assert [score["mean"] for score in scores] == [score.mean for score in expected.scores]
    assert [score["seat"] for score in scores] == [0, 1]


def test_show_prints_names_of_actions(capsys):
    assert subcommands.run(show, ["equilibrium.npz"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 24
    assert re.match(r" +1 +1b +1 +Bet +0\.3333 ", next(line for line in lines if " 1b  " in line and "Bet" in line))
    assert subcommands.run(show, ["equilibrium.npz", "--player=1", "--infostate=1b", "--json"]) == 0
    shown, _ = rows(capsys)
    assert [(row["action_name"], row["probability"]) for row in shown] == [("Pass", 1 - 1 / 3), ("Bet", 1 / 3)]


def test_show_prints_the_top_of_a_large_game(leduc, capsys):
    StrategyProfile.uniform(leduc).save("leduc.npz")
    assert subcommands.run(show, ["leduc.npz", "--game=leduc_poker"]) == 0
    output = capsys.readouterr().out
    infostates = re.findall(r"^player \d, infostate '(.*)'$", output, re.MULTILINE)
    assert len(set(infostates)) == 20
    assert all(
        key in leduc.treeplexes[0].decision_point_at or key in leduc.treeplexes[1].decision_point_at for key in infostates
    )
    assert output.endswith(f"of {leduc.num_sequences - 2} rows, the infostates reached most often)\n")
    assert subcommands.run(show, ["leduc.npz", "--top=2"]) == 0
    assert capsys.readouterr().out.count("infostate '") == 2


def test_export_converts_policies_and_writes_games(folder, kuhn):
    assert subcommands.run(export, ["equilibrium.npz", "copy.csv"]) == 0
    expected = load_policy("equilibrium.npz", kuhn).probabilities
    np.testing.assert_array_equal(load_policy("copy.csv", kuhn).probabilities, expected)
    assert subcommands.run(export, ["equilibrium.npz", "by_policy.efg"]) == 0
    assert subcommands.run(export, ["--game=kuhn_poker", "by_name.efg"]) == 0
    assert (folder / "by_policy.efg").read_text() == (folder / "by_name.efg").read_text()
    assert pyspiel.load_efg_game((folder / "by_name.efg").read_text()).num_players() == 2


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (evaluate, [], "expected 1 arguments, got none; usage: spiel-cfrplus evaluate FILE"),
        (evaluate, ["missing.npz"], "missing.npz: No such file or directory"),
        (evaluate, ["policy.txt"], "must end in .npz, .json, .csv"),
        (evaluate, ["uniform"], "uniform: which game?"),
        (evaluate, ["uniform.json", "--players=3"], "--players has no effect without --game"),
        (evaluate, ["uniform.json", "--game=leduc_poker"], "was saved for a game other than leduc_poker"),
        (evaluate, ["uniform.json", "--max_histories=10"], "has more than max_histories=10 histories"),
        (compare, ["uniform.json"], "expected 2 arguments, got 1: uniform.json"),
        (match, ["uniform.json"], "kuhn_poker.. has 2 players, got 1 participants"),
        (show, ["uniform.json", "--player=2"], "has no infostate of --player and --infostate"),
        (export, ["uniform.json"], "expected the file of a policy and a file to write"),
        (export, ["uniform.json", "policy.txt"], "must end in .npz, .json, .csv"),
        (export, ["uniform.json", "missing/policy.npz"], "no such directory"),
    ],
)
def test_errors_are_one_line(module, arguments, message, folder, capfd):
    before = sorted(folder.iterdir())
    with pytest.raises(UsageError, match=message) as error:
        subcommands.run(module, arguments)
    assert "\n" not in str(error.value)
    assert capfd.readouterr().out == "" or "--game=leduc_poker" in arguments
    assert sorted(folder.iterdir()) == before
