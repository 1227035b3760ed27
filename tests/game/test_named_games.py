"""Games by name."""

import pyspiel
import pytest

from spiel_cfrplus import write_efg
from spiel_cfrplus.game.named_games import file_ending, game_parameters, import_modules, load_parameters


@pytest.mark.parametrize(
    ("name", "ending"),
    [("kuhn_poker", None), ("a/b.efg", ".efg"), ("A.NFG", ".nfg"), ("efg_game(filename=a.efg)", None), ("a.txt", None)],
)
def test_files_are_known_by_their_ending(name, ending):
    assert file_ending(name) == ending


def test_strings_and_files_are_loaded(tmp_path):
    path = tmp_path / "kuhn.efg"
    write_efg(pyspiel.load_game("kuhn_poker"), path)
    assert load_parameters(game_parameters(str(path))).get_type().short_name == "efg_game"
    name = "goofspiel(imp_info=True,num_cards=3)"
    assert str(load_parameters(game_parameters(name))) == str(pyspiel.load_game(name))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing_games", None, "No module named 'missing_games'"),
        ("games_with_error", "raise ValueError('first\\nsecond')", "ValueError: first"),
        ("games.py", None, "this is the name of a file, not of a module"),
    ],
)
def test_errors_name_the_module(name, text, words, tmp_path, monkeypatch):
    if text is not None:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        import_modules(["math", name])
    assert (caught.value.name, str(caught.value)) == (name, words)
