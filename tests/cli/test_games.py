"""Games of the command line: those of files and of modules."""

import pyspiel
import pytest

from spiel_cfrplus import compile_game, nash_conv, write_efg
from spiel_cfrplus.cli import games
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.game.walk_limits import NO_LIMITS
from spiel_cfrplus.policies.profile import StrategyProfile

# Rows (u, d), columns (l, r): player 0 gets [[1, 0], [0, 2]] and player 1 the opposite.
NFG = 'NFG 1 R "test" { "one" "two" } { 2 2 }\n\n1 -1 0 0 0 0 2 -2\n'
MODULE = """
import pyspiel
from open_spiel.python.games import kuhn_poker

class Game(kuhn_poker.KuhnPokerGame):
    pass

old = kuhn_poker._GAME_TYPE
short_name = "my_kuhn_poker"
names = [name for name in dir(old) if not name.startswith("_") and name not in ("pretty_print", "short_name")]
kuhn_type = pyspiel.GameType(short_name=short_name, **{
    name: getattr(old, name) for name in (
        "long_name", "dynamics", "chance_mode", "information", "utility", "reward_model", "max_num_players", "min_num_players",
        "provides_information_state_string", "provides_information_state_tensor", "provides_observation_string",
        "provides_observation_tensor", "provides_factored_observation_string",
    )
})
pyspiel.register_game(kuhn_type, Game)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(games.sys.path))
    return tmp_path


def uniform_nash_conv(game):
    return nash_conv(game, StrategyProfile.uniform(game))


def test_an_efg_file_is_a_game(folder):
    write_efg(pyspiel.load_game("kuhn_poker"), folder / "kuhn.efg")
    game = compile_game(games.load_game("kuhn.efg"))
    assert game.num_infostates == 12
    assert uniform_nash_conv(game) == pytest.approx(11 / 12)  # of Kuhn poker, as in README.md


def test_an_nfg_file_is_a_game_in_its_turn_based_form(folder, capsys):
    (folder / "small.NFG").write_text(NFG)
    game = compile_game(games.load_game("small.NFG"))
    # The uniform policies get 3/4; the best row gets 1 and the best column loses 1/2.
    assert uniform_nash_conv(game) == pytest.approx(1 / 2)
    assert "simultaneous moves" in capsys.readouterr().out


def test_a_module_of_the_current_folder_registers_a_game(folder):
    (folder / "my_kuhn.py").write_text(MODULE)
    game = games.load_game("my_kuhn_poker", modules=["my_kuhn"])
    assert compile_game(game).num_infostates == 12


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.efg", None, "cannot load 'missing.efg': No such file or directory"),
        ("text.efg", "hello", "cannot load 'text.efg': OpenSpiel cannot read it as an .efg file"),
        ("small.efg", NFG, "cannot load 'small.efg': OpenSpiel cannot read it as an .efg file"),
        (
            "cut.efg",
            'EFG 2 R "g" { "a" "b" }\np "" 1 1 "" { "l" "r" } 0\nt "" 1 "" { 1',
            "cannot load 'cut.efg': OpenSpiel cannot read it as an .efg file",
        ),
        ("cut.nfg", NFG.rstrip()[:-2], "cannot load 'cut.nfg': "),
        ("text.nfg", "hello", "cannot load 'text.nfg': OpenSpiel cannot read it as an .nfg file"),
        (".", None, "unknown game"),
    ],
)
def test_other_files_are_refused(folder, name, content, message, capfd):
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(UsageError, match=message):
        games.load_game(name)
    assert capfd.readouterr() == ("", "")


def test_a_folder_is_no_file(folder):
    (folder / "folder.efg").mkdir()
    with pytest.raises(UsageError, match=r"cannot load 'folder.efg': Is a directory"):
        games.load_game("folder.efg")


@pytest.mark.parametrize(
    ("module", "content", "message"),
    [
        ("missing_module", None, "--import=missing_module: No module named 'missing_module'"),
        ("game.py", "", "--import=game.py: this is the name of a file, not of a module"),
        ("wrong_game", "1 / 0", "--import=wrong_game: ZeroDivisionError: division by zero"),
        ("wrong_syntax", "def", "--import=wrong_syntax: SyntaxError: invalid syntax"),
        ("without_text", "raise ValueError", "--import=without_text: ValueError: ValueError"),
        ("that_exits", "raise SystemExit(0)", "--import=that_exits: SystemExit: 0"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(folder, module, content, message):
    if content is not None:
        (folder / module.removesuffix(".py")).with_suffix(".py").write_text(content)
    with pytest.raises(UsageError, match=message):
        games.load_game("kuhn_poker", modules=[module])


@pytest.mark.parametrize("method", ["__init__", "new_initial_state"])
def test_a_game_that_ends_the_program_is_refused(folder, method):
    own = f"def {method}(self, *_):\n        raise SystemExit(0)"
    name = f"exits_in{method.strip('_')}"
    (folder / f"{name}.py").write_text(MODULE.replace("my_kuhn_poker", name).replace("pass\n", own))
    with pytest.raises(UsageError, match="SystemExit"):  # noqa: PT012
        game = games.load_game(name, modules=[name])
        games.compile_with_notes(game, NO_LIMITS)


def test_a_game_that_is_not_registered_by_its_module_is_unknown(folder):
    (folder / "empty_module.py").write_text("")
    with pytest.raises(UsageError, match="unknown game 'my_game'"):
        games.load_game("my_game", modules=["empty_module"])
