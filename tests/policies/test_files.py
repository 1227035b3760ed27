"""Policies on disk: round trips of all formats in ten games, also in processes without this package, and refusals."""

import csv
import json
import os
import random
import zipfile

import games
import numpy as np
import pyspiel
import pytest
from fresh_process import run_python
from games import GAMES, Turn

from spiel_cfrplus import (
    CFRPlusSolver,
    StrategyProfile,
    compile_game,
    compile_subgame,
    load_policy,
    lock,
    nash_conv,
    write_efg,
)
from spiel_cfrplus._utils import memory
from spiel_cfrplus.policies import files, text_files

FORMATS = ("npz", "json", "csv")
DAMAGED = "is not a policy of spiel_cfrplus, or is damaged ("


def subgame():
    state = GAMES["leduc_poker"]().new_initial_state()
    for action in (0, 3, 1, 1):
        state.apply_action(action)
    return compile_subgame(state)


def locked():
    return lock(pyspiel.load_game("kuhn_poker"), {(0, "0"): {0: 0.7, 1: 0.3}, (1, "2p"): {1: 1.0}})


# By name: the game, and Python that loads it in another process, or None if the file says enough.
CASES = {
    "kuhn_poker": (GAMES["kuhn_poker"], None),
    "kuhn_poker_3p": (GAMES["kuhn_poker_3p"], None),
    "leduc_poker": (GAMES["leduc_poker"], None),
    "goofspiel_3": (GAMES["goofspiel_3"], None),
    "tiny_hanabi": (GAMES["tiny_hanabi"], None),
    "universal_poker": (GAMES["universal_poker"], None),
    "python_kuhn_poker": (lambda: pyspiel.load_game("python_kuhn_poker"), None),
    "random_efg": (GAMES["random_efg"], "import games\ngame = games.random_efg(1)"),
    "subgame": (
        subgame,
        "import pyspiel\nfrom spiel_cfrplus import compile_subgame\n"
        "state = pyspiel.load_game('leduc_poker').new_initial_state()\n"
        "for action in (0, 3, 1, 1):\n    state.apply_action(action)\ngame = compile_subgame(state)",
    ),
    "locked": (
        locked,
        "import pyspiel\nfrom spiel_cfrplus import lock\n"
        "game = lock(pyspiel.load_game('kuhn_poker'), {(0, '0'): {0: 0.7, 1: 0.3}, (1, '2p'): {1: 1.0}})",
    ),
}


def some_profile(game):
    """The average policy after a few iterations, whose numbers have all digits."""
    solver = CFRPlusSolver(game)
    solver.run(7)
    return solver.average_profile()


QUICK = ("goofspiel_3", "python_kuhn_poker", "random_efg", "subgame")  # a process for each game takes long


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES])
def test_round_trips_through_another_process(name, tmp_path):
    make, script = CASES[name]
    profile = some_profile(compile_game(make()))
    expected = nash_conv(profile.game, profile)
    profile.save(tmp_path / "expected.npz")
    for extension in FORMATS:
        profile.save(tmp_path / f"policy.{extension}")
    load = script or f"import pyspiel\ngame = pyspiel.load_game({str(profile.game.tree.game)!r})"
    if name == "python_kuhn_poker":
        load = f"import open_spiel.python.games\n{load}"
    paths = [str(tmp_path / f"policy.{extension}") for extension in FORMATS]
    output = run_python(
        f"import sys\nsys.path.insert(0, {os.path.dirname(games.__file__)!r})\n{load}\n"
        "from spiel_cfrplus import compile_game, load_policy, nash_conv\n"
        "game = compile_game(game)\n"
        f"given = {script is not None}\n"
        f"for path in {paths!r}:\n"
        "    profile = load_policy(path, game if given or path.endswith('csv') else None)\n"
        "    print(repr(nash_conv(profile.game, profile)), profile.probabilities.tobytes().hex())\n"
    )
    lines = output.splitlines()
    assert lines == [f"{expected!r} {profile.probabilities.tobytes().hex()}"] * len(FORMATS)


READ_WITHOUT_THE_PACKAGE = """
import csv, json, sys
sys.modules["spiel_cfrplus"] = None
import numpy as np
import pyspiel
from open_spiel.python import games

def from_npz(path):
    file = np.load(path)
    text, ends = bytes(file["infostate_text"]), file["infostate_text_end"].tolist()
    actions, probabilities = file["actions"].tolist(), file["probabilities"].tolist()
    table, start, first = {}, 0, 0
    for end, count in zip(ends, file["num_actions"].tolist()):
        table[text[start:end].decode()] = list(zip(actions[first:first + count], probabilities[first:first + count]))
        start, first = end, first + count
    return table

def from_json(path):
    players = json.load(open(path))["players"]
    return {key: [(a, p) for a, _, p in rows] for infostates in players for key, rows in infostates.items()}

def from_csv(path):
    table = {}
    for row in csv.DictReader(open(path, encoding="utf-8", newline="")):
        table.setdefault(row["infostate"], []).append((int(row["action"]), float(row["probability"])))
    return table

def infostates(game):  # legal actions by infostate, in the order of players and then of the first visit
    found = [{} for _ in range(game.num_players())]
    def visit(state):
        if state.is_player_node():
            found[state.current_player()].setdefault(state.information_state_string(), state.legal_actions())
        for action in () if state.is_terminal() else state.legal_actions():
            visit(state.child(action))
    visit(game.new_initial_state())
    return [pair for own in found for pair in own.items()]

def with_keys_of(game, table):
    return {
        key: list(zip(actions, [probability for _, probability in row], strict=True))
        for (key, actions), row in zip(infostates(game), table.values(), strict=True)
    }

game = pyspiel.load_efg_game(open(EFG).read()) if EFG else pyspiel.load_game(GAME)
for read, path in ((from_npz, NPZ), (from_json, JSON), (from_csv, CSV)):
    table = with_keys_of(game, read(path)) if EFG else read(path)
    print(repr(pyspiel.nash_conv(game, pyspiel.TabularPolicy(table))))
"""
# Games that OpenSpiel alone can load only from the `.efg` file that this package writes.
AS_EFG = ("random_efg", "subgame", "locked")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in (*AS_EFG, "python_kuhn_poker") else ()) for name in CASES]
)
def test_files_are_read_without_this_package(name, tmp_path):
    profile = some_profile(compile_game(CASES[name][0]()))
    efg = str(tmp_path / "game.efg") if name in AS_EFG else ""
    if efg:
        write_efg(profile.game, efg)
    script = f"GAME, EFG = {str(profile.game.tree.game)!r}, {efg!r}\n"
    for extension in FORMATS:
        profile.save(tmp_path / f"policy.{extension}")
        script += f"{extension.upper()} = {str(tmp_path / f'policy.{extension}')!r}\n"
    values = [float(line) for line in run_python(script + READ_WITHOUT_THE_PACKAGE).splitlines()]
    assert values == pytest.approx([nash_conv(profile.game, profile)] * len(FORMATS), abs=1e-12, rel=1e-12)


def odd_strings():
    """Infostates and actions whose strings need care."""
    keys = ['a "quoted", one', "two\r\nlines\r", "\u00e9\u2028 \U0001f0a1", "=1+1", "", " spaces ", "a\x00b"]

    def node(position):
        if position == len(keys):
            return games.End((1.0, -1.0))
        end = games.End((float(position), -float(position)))
        return Turn(position % 2, keys[position], {0: end, 3: node(position + 1)})

    return games.python_game("python_odd_strings", node(0))


@pytest.mark.parametrize("extension", FORMATS)
def test_any_string_is_kept(extension, tmp_path):
    profile = some_profile(compile_game(odd_strings()))
    path = tmp_path / f"policy.{extension}"
    profile.save(path)
    np.testing.assert_array_equal(load_policy(path, profile.game).probabilities, profile.probabilities)


@pytest.mark.parametrize("extension", FORMATS)
def test_all_numbers_are_kept(extension, tmp_path, kuhn):
    numbers = StrategyProfile.uniform(kuhn).probabilities.copy()
    for first, values in (
        (1, (1e-300, 1.0)),
        (3, (1 / 3, 2 / 3)),
        (5, (-0.0, 1.0)),
        (7, (5e-324, 1 - 1e-16)),
        (9, (1e-7, 1.0)),
    ):
        numbers[first : first + 2] = values
    profile = StrategyProfile(kuhn, numbers)
    path = tmp_path / f"policy.{extension}"
    profile.save(path)
    assert load_policy(path, kuhn).probabilities.tobytes() == profile.probabilities.tobytes()


def test_a_csv_file_has_the_documented_columns(tmp_path, kuhn):
    StrategyProfile.uniform(kuhn).save(tmp_path / "policy.csv")
    text = (tmp_path / "policy.csv").read_bytes().decode("utf-8")
    assert text.startswith("player,infostate,action,action_name,probability\r\n0,0,0,Pass,0.5\r\n0,0,1,Bet,0.5\r\n")
    assert text.count("\r\n") == text.count("\n") == 1 + 24


def test_rows_of_a_csv_file_have_any_order(tmp_path, kuhn):
    profile = some_profile(kuhn)
    path = tmp_path / "policy.csv"
    profile.save(path)
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    random.Random(0).shuffle(rows)
    path.write_text("\ufeff" + "\n".join([header, *rows]), encoding="utf-8")  # as spreadsheets write it
    np.testing.assert_array_equal(load_policy(path, kuhn).probabilities, profile.probabilities)


def test_a_json_file_has_the_documented_entries(tmp_path, kuhn):
    StrategyProfile.uniform(kuhn).save(tmp_path / "policy.json")
    value = json.loads((tmp_path / "policy.json").read_text(encoding="ascii"))
    assert value["players"][0]["0pb"] == [[0, "Pass", 0.5], [1, "Bet", 0.5]]
    assert value["game"] == "kuhn_poker()"
    assert value["fingerprint"] == kuhn.fingerprint
    assert value["versions"].keys() == {"spiel_cfrplus", "open_spiel"}


def test_no_format_makes_a_table_of_openspiel(tmp_path, monkeypatch):
    from spiel_cfrplus.policies import profile as profile_module

    monkeypatch.setattr(profile_module, "TabularTable", None)
    profile = some_profile(compile_game(GAMES["goofspiel_3"]()))
    for extension in FORMATS:
        profile.save(tmp_path / f"policy.{extension}")
    monkeypatch.undo()
    for extension in FORMATS:
        loaded = load_policy(tmp_path / f"policy.{extension}", profile.game)
        np.testing.assert_array_equal(loaded.probabilities, profile.probabilities)


def test_a_file_is_replaced_at_once(tmp_path, kuhn, monkeypatch):
    profile = some_profile(kuhn)
    path = tmp_path / "policy.json"
    profile.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(text_files, "json_players", fail)
    with pytest.raises(OSError, match="no space"):
        StrategyProfile.uniform(kuhn).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["policy.json"]


# Refusals.


def test_other_endings_are_refused(tmp_path, kuhn):
    for name in ("policy", "policy.txt", "policy.pkl"):
        with pytest.raises(ValueError, match=r"must end in .npz, .json, .csv"):
            StrategyProfile.uniform(kuhn).save(tmp_path / name)
        with pytest.raises(ValueError, match=r"must end in .npz, .json, .csv"):
            load_policy(tmp_path / name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError):
        load_policy(3)


@pytest.mark.parametrize("extension", FORMATS)
def test_policies_of_other_games_are_refused(extension, tmp_path, kuhn, leduc):
    path = tmp_path / f"policy.{extension}"
    StrategyProfile.uniform(kuhn).save(path)
    others = [leduc, compile_game(GAMES["kuhn_poker_3p"]()), locked()]
    if extension != "csv":  # which does not hold the payoffs
        others.append(compile_game(GAMES["misere_kuhn_poker"]()))
    for other in others:
        with pytest.raises(ValueError, match="policy") as refused:
            load_policy(path, other)
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("name", ["subgame", "locked"])
@pytest.mark.parametrize("extension", FORMATS)
def test_parts_of_games_are_refused_unless_they_are_given(name, extension, tmp_path):
    part = CASES[name][0]()
    profile = some_profile(part)
    path = tmp_path / f"policy.{extension}"
    profile.save(path)
    with pytest.raises(ValueError, match="pass it as game="):
        load_policy(path)
    with pytest.raises(ValueError, match=str(path)):
        load_policy(path, part.tree.game)
    np.testing.assert_array_equal(load_policy(path, part).probabilities, profile.probabilities)


def test_a_game_without_a_string_must_be_given(tmp_path):
    game = GAMES["battle_of_the_sexes"]()
    profile = some_profile(compile_game(game))
    profile.save(tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="pass it as game="):
        load_policy(tmp_path / "policy.npz")
    np.testing.assert_array_equal(load_policy(tmp_path / "policy.npz", game).probabilities, profile.probabilities)


def test_max_histories(tmp_path, kuhn):
    StrategyProfile.uniform(kuhn).save(tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="max_histories"):
        load_policy(tmp_path / "policy.npz", max_histories=10)


def test_a_checkpoint_is_no_policy_and_a_policy_no_checkpoint(tmp_path, kuhn):
    solver = CFRPlusSolver(kuhn)
    solver.run(3)
    solver.save(tmp_path / "solver.npz")
    with pytest.raises(ValueError, match=r"is not a policy.*it is a checkpoint, which Solver\.load and --checkpoint read"):
        load_policy(tmp_path / "solver.npz")
    solver.average_profile().save(tmp_path / "policy.npz")
    with pytest.raises(ValueError, match=r"is not a checkpoint.*it is a policy, which load_policy and the subcommands"):
        CFRPlusSolver.load(tmp_path / "policy.npz")


def test_special_files_are_refused(tmp_path, kuhn):
    for extension in FORMATS:
        path = tmp_path / f"directory.{extension}"
        path.mkdir()
        with pytest.raises(ValueError, match="not a regular file"):
            load_policy(path, kuhn)
        with pytest.raises(FileNotFoundError):
            load_policy(tmp_path / f"missing.{extension}", kuhn)
        if hasattr(os, "mkfifo"):
            os.mkfifo(tmp_path / f"pipe.{extension}")
            with pytest.raises(ValueError, match="not a regular file"):
                load_policy(tmp_path / f"pipe.{extension}", kuhn)


def changed_json(path, **entries):
    value = json.loads(path.read_text(encoding="ascii"))
    path.write_text(json.dumps({**value, **entries}), encoding="ascii")


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"policy_format": 2}, "its format is 2"),
        ({"policy_format": True}, "no policy_format"),
        ({"more": 1}, "other entries"),
        ({"num_histories": 0}, "num_histories is 0"),
        ({"num_histories": 10**30}, "num_histories is"),
        ({"game": "kuhn_poker()\n"}, "cannot be printed"),
        ({"versions": []}, "versions is"),
        ({"versions": {"a": 1}}, "cannot be printed"),
        ({"checksum": None}, "checksum is wrong"),
        ({"players": None}, "players is not a list"),
        ({"players": [[], []]}, "players is not a list"),
        ({"players": [{}, {}]}, "no action 0 of player 0 at infostate '0'"),
        ({"players": [{"0": 1}, {}]}, "infostate '0' has 1"),
        ({"players": [{"0": [[True, "Pass", 0.5]]}, {}]}, "infostate '0' has"),
        ({"players": [{"0": [[0, "Pass", "0.5"]]}, {}]}, "infostate '0' has"),
        ({"players": [{"0": [[0, "Pass", 0.5], [0, "Pass", 0.5]]}, {}]}, "comes twice"),
        ({"players": [{"0": [[7, "Pass", 0.5]]}, {}]}, "no action 7"),
        ({"players": [{"x": [[0, "Pass", 0.5]]}, {}]}, "no infostate 'x'"),
        ({"players": [{}, {}, {"0": [[0, "Pass", 0.5]]}]}, "no player 2"),
    ],
)
def test_json_files_with_other_contents_are_refused(entries, reason, tmp_path, kuhn):
    path = tmp_path / "policy.json"
    StrategyProfile.uniform(kuhn).save(path)
    changed_json(path, **entries)
    with pytest.raises(ValueError, match=DAMAGED.replace("(", r"\(")) as refused:
        load_policy(path, kuhn)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": 1, "a": 2}', "\ufeff{}", '{"a": ' + "1" * 5000 + "}", "{"])
def test_texts_that_are_no_policy_are_refused(text, tmp_path, kuhn):
    for extension in ("json", "csv"):
        path = tmp_path / f"policy.{extension}"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="is not a policy of spiel_cfrplus, or is damaged"):
            load_policy(path, kuhn)


def test_numbers_that_are_no_distribution_are_refused(tmp_path, kuhn):
    path = tmp_path / "policy.csv"
    StrategyProfile.uniform(kuhn).save(path)
    text = path.read_text(encoding="utf-8")
    for number in ("0.6", "nan", "inf", "-0.5", "", "half", "1e999"):
        path.write_text(text.replace("0,0pb,0,Pass,0.5", f"0,0pb,0,Pass,{number}"), encoding="utf-8")
        with pytest.raises(ValueError, match="is not a policy of spiel_cfrplus, or is damaged"):
            load_policy(path, kuhn)


def test_csv_files_with_other_rows_are_refused(tmp_path, kuhn):
    path = tmp_path / "policy.csv"
    StrategyProfile.uniform(kuhn).save(path)
    text = path.read_text(encoding="utf-8")
    row = "0,0pb,0,Pass,0.5\n"
    changes = [
        "",
        row + row,
        "0,0pb,0,Pass\n",
        "2,0pb,0,Pass,0.5\n",
        "0,0pc,0,Pass,0.5\n",
        "0,0pb,5,Pass,0.5\n",
        '0,"0pb,0,Pass,0.5',
    ]
    for change in changes:
        path.write_text(text.replace(row, change), encoding="utf-8")
        with pytest.raises(ValueError, match="is not a policy of spiel_cfrplus, or is damaged"):
            load_policy(path, kuhn)


def test_memory_is_not_allocated_for_sizes_that_a_file_claims(tmp_path, kuhn, monkeypatch):
    path = tmp_path / "policy.csv"
    path.write_text("x" * 10**6, encoding="utf-8")
    with pytest.raises(ValueError, match="a line of 655360 characters or more"):
        load_policy(path, kuhn)
    path = tmp_path / "policy.json"
    path.write_text("[" + "[]," * 10**5 + "[]]", encoding="utf-8")
    monkeypatch.setattr(text_files, "available_bytes", lambda: 1e7)
    with pytest.raises(ValueError, match="entries, which do not fit into memory"):
        load_policy(path, kuhn)
    monkeypatch.setattr(text_files, "available_bytes", lambda: 1e5)
    with pytest.raises(ValueError, match="bytes, which do not fit into memory"):
        load_policy(path, kuhn)
    assert memory.available_bytes() > 1e7


def test_arrays_of_another_game_under_its_fingerprint_are_refused(tmp_path, kuhn):
    path = tmp_path / "policy.npz"
    StrategyProfile.uniform(kuhn).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name, value in (
        ("actions", arrays["actions"][::-1]),
        ("probabilities", arrays["probabilities"][:-1]),
        ("probabilities", arrays["probabilities"].astype(np.float32)),
        ("infostate_text", arrays["infostate_text"] + np.uint8(1)),
        ("more", arrays["actions"]),
    ):
        np.savez(path, **{**arrays, name: value})
        with pytest.raises(ValueError, match="is not a policy of spiel_cfrplus, or is damaged"):
            load_policy(path, kuhn)
    np.savez_compressed(path, **arrays)
    with pytest.raises(ValueError, match="is compressed"):
        load_policy(path, kuhn)
    np.savez(path, **{**arrays, "actions": arrays["actions"].astype(object)})
    with pytest.raises(ValueError, match="is not a policy"):
        load_policy(path, kuhn)


def test_an_information_state_string_too_long_for_csv_is_refused(tmp_path):
    key = "k" * 140_000
    game = games.python_game("python_long_string", Turn(0, key, {0: games.End((1.0, -1.0)), 1: games.End((0.0, 0.0))}))
    profile = StrategyProfile.uniform(compile_game(game))
    with pytest.raises(ValueError, match="too long for a field"):
        profile.save(tmp_path / "policy.csv")
    for extension in ("npz", "json"):
        profile.save(tmp_path / f"policy.{extension}")
        assert load_policy(tmp_path / f"policy.{extension}", profile.game).game is profile.game


# Random damage.


def flip(data, generator):
    damaged = bytearray(data)
    for _ in range(generator.randint(1, 3)):
        damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(damaged)


def delete(data, generator):
    start = generator.randrange(len(data))
    return data[:start] + data[start + generator.choice([1, 2, 7, 100]) :]


def insert(data, generator):
    start = generator.randrange(len(data) + 1)
    return data[:start] + generator.randbytes(generator.choice([1, 2, 7, 100])) + data[start:]


def truncate(data, generator):
    return data[: generator.randrange(len(data))]


def swap(data, generator):
    size = generator.choice([4, 30, 200])
    first, second = sorted(generator.sample(range(len(data) - size), 2))
    damaged = bytearray(data)
    damaged[first : first + size], damaged[second : second + size] = data[second : second + size], data[first : first + size]
    return bytes(damaged[: len(data)])


@pytest.mark.parametrize("extension", FORMATS)
def test_damaged_files_are_refused_or_change_nothing(extension, tmp_path, kuhn):
    profile = some_profile(kuhn)
    path = tmp_path / f"policy.{extension}"
    profile.save(path)
    data, generator, refused = path.read_bytes(), random.Random(extension), 0
    for number in range(100):
        damage = (flip, delete, insert, truncate, swap)[number % 5]
        path.write_bytes(damage(data, generator))
        loaded, reason = policy_or_reason(path, kuhn)
        if loaded is None:
            refused += 1
            assert str(path) in reason
            assert "\n" not in reason
        elif extension == "csv":  # it has no checksum: a digit may be another one if the sum is still 1 within the tolerance
            np.testing.assert_allclose(loaded.probabilities, profile.probabilities, rtol=0, atol=2e-6)
        else:
            np.testing.assert_array_equal(loaded.probabilities, profile.probabilities)
    assert refused > 50


def policy_or_reason(path, game):
    """The policy, or None and the message of the refusal."""
    try:
        return load_policy(path, game), ""
    except ValueError as error:
        return None, str(error)


def test_archives_have_no_pickles(tmp_path, kuhn):
    StrategyProfile.uniform(kuhn).save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as file:
        assert all(not file[name].dtype.hasobject for name in file.files)
    with zipfile.ZipFile(tmp_path / "policy.npz") as archive:
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())


def test_check_path_refuses_what_write_refuses(tmp_path):
    files.check_path(tmp_path / "a.JSON")
    with pytest.raises(ValueError, match="must end in"):
        files.check_path(tmp_path / "a.pickle")


def test_names_are_those_of_the_game(tmp_path):
    profile = StrategyProfile.uniform(compile_game(GAMES["leduc_poker"]()))
    profile.save(tmp_path / "policy.csv")
    with open(tmp_path / "policy.csv", encoding="utf-8", newline="") as file:
        assert {row["action_name"] for row in csv.DictReader(file)} == {"Fold", "Call", "Raise"}


def test_an_efg_file_makes_a_game_for_policies(tmp_path, kuhn):
    write_efg(kuhn, tmp_path / "kuhn.efg")
    game = pyspiel.load_efg_game((tmp_path / "kuhn.efg").read_text(encoding="utf-8"))
    profile = some_profile(compile_game(game))
    profile.save(tmp_path / "policy.csv")
    np.testing.assert_array_equal(load_policy(tmp_path / "policy.csv", game).probabilities, profile.probabilities)
