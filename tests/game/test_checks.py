"""Checks made before the walk: games without initial state or information states, and other objects."""

import types

import games
import pyspiel
import pytest
from games import mentions

from spiel_cfrplus import GameTree, compile_game


@pytest.mark.parametrize("wrong", ["kuhn_poker", None, 3])
def test_arguments_that_are_not_games_are_type_errors(wrong):
    with pytest.raises(TypeError, match=r"pyspiel\.load_game"):
        GameTree.from_game(wrong)


@pytest.mark.parametrize("observer", ["absent", "none", "refused", "without a string"])
def test_the_error_for_a_python_game_without_an_observer_names_the_observer(observer, monkeypatch):
    game = games.python_game("unobserved", games.Turn(0, "here", {0: games.End((1, -1)), 1: games.End((-1, 1))}))

    def make_py_observer(self: object, iig_obs_type: object = None, params: object = None) -> object:
        if observer == "refused":
            raise NotImplementedError
        return types.SimpleNamespace(string_from=lambda state, player: None) if observer == "without a string" else None

    if observer == "absent":
        for kind in type(game).__mro__:
            if "make_py_observer" in vars(kind):
                monkeypatch.delattr(kind, "make_py_observer")
    else:
        monkeypatch.setattr(type(game), "make_py_observer", make_py_observer)
    with pytest.raises(
        ValueError, match=mentions("unobserved()", "no information-state strings (", "its make_py_observer()")
    ) as error:
        compile_game(game)
    assert "()," not in str(error.value).replace("unobserved()", "")
    assert "strings ()" not in str(error.value)


def test_games_that_cannot_start_are_refused():
    for name, reason in (("go(board_size=-1)", "unsupported board size"), ("connect_four(rows=-3)", "larger than max_size")):
        with pytest.raises(ValueError, match=mentions(f"{name} has no initial state", reason, "choose other game parameters")):
            compile_game(pyspiel.load_game(name))


def test_a_memory_error_of_the_initial_state_names_the_game(monkeypatch):
    game = games.python_game("enormous", games.End((1, -1)))

    def fail(self: object) -> None:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(type(game), "new_initial_state", fail)
    with pytest.raises(MemoryError, match=mentions("enormous(), its initial state: memory ran out", "choose smaller game")):
        compile_game(game)
