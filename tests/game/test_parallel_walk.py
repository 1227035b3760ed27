"""The walk in several processes compared with the walk in one."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import games
import pyspiel
import pytest
from walk_records import assert_same

from spiel_cfrplus import compile_game
from spiel_cfrplus.game import parallel_walk
from spiel_cfrplus.game.parallel_walk import walk_whole_game
from spiel_cfrplus.game.walk_limits import NO_LIMITS

LIARS = pyspiel.load_game("liars_dice(dice_sides=3)")


@pytest.fixture
def only_in_parts(monkeypatch):
    """Makes the walk fail, instead of walking in one process, if it cannot be done in parts."""

    def refuse(*arguments, **options):
        raise AssertionError("walked in this process")

    monkeypatch.setattr(parallel_walk, "walk_in_one_process", refuse)


def walked_here(game, parts, limits=NO_LIMITS):
    """The parts that workers would send, walked in this process."""

    def walked(roots):
        try:
            return parallel_walk._walk_part(game, roots, limits)
        except ValueError as error:
            raise parallel_walk._PartError from error

    return contextlib.nullcontext(map(walked, parts))


NAMES = [
    *("kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)", "kuhn_poker(players=3)", "misere(game=kuhn_poker())"),
    *("turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4))", "dark_hex(num_cols=2,num_rows=2)"),
    *("sheriff(max_bribe=2,max_items=3,num_rounds=1)", "start_at(game=tic_tac_toe(),history=4;0)", "tiny_hanabi"),
    "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2,allow_repeated_shots=false)",
]


@pytest.mark.parametrize("processes", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_joined_parts_equal_one_walk(name, processes, only_in_parts, monkeypatch):
    game = pyspiel.load_game(name)
    monkeypatch.setattr(parallel_walk, "_workers", lambda game, parts, *_: walked_here(game, parts))
    assert_same(walk_whole_game(game, processes=processes), walk_whole_game_alone(game))


def walk_whole_game_alone(game):
    walk = parallel_walk.TreeWalk(game)
    walk.visit_all_below(game.new_initial_state())
    return walk.record()


@pytest.mark.parametrize("processes", [2, 3])
def test_workers_produce_the_record_of_one_walk(processes, only_in_parts):
    assert_same(walk_whole_game(LIARS, processes=processes), walk_whole_game_alone(LIARS))


def test_a_game_walked_in_several_processes_compiles_to_the_same_arrays(only_in_parts, tmp_path):
    shared = compile_game(LIARS, processes=2, cache=tmp_path)
    read = compile_game(LIARS, cache=tmp_path)
    assert shared.fingerprint == read.fingerprint
    assert shared.tree.num_histories == 1147


@pytest.mark.parametrize("processes", [0, -2, 1.5, "2", None, True])
def test_the_number_of_processes_is_positive(processes):
    with pytest.raises(ValueError, match=f"the number of processes must be an integer of 1 or more, got {processes!r}"):
        compile_game(LIARS, processes=processes)


NOISY = "misere(game=add_noise(epsilon=0.1,seed=1,game=kuhn_poker()))"


@pytest.mark.parametrize(
    "load",
    [games.GAMES["python_kuhn_poker"], lambda: games.chain(3), lambda: games.python_chain(3), lambda: pyspiel.load_game(NOISY)],
)
def test_games_that_workers_cannot_load_are_refused(load):
    game = load()
    with pytest.raises(ValueError, match=games.mentions(str(game), "cannot be walked by several processes", "use processes=1")):
        compile_game(game, processes=2)


@pytest.mark.parametrize("limit", [1146, 500, 3])
def test_limits_apply_to_all_processes_together(limit, monkeypatch):
    monkeypatch.setattr(parallel_walk, "_workers", lambda game, parts, _, limits: walked_here(game, parts, limits))
    with pytest.raises(ValueError, match=rf"has more than max_histories={limit} histories \(counted {limit + 1} so far\)"):
        compile_game(LIARS, processes=2, max_histories=limit)
    assert compile_game(LIARS, processes=2, max_histories=1147).tree.num_histories == 1147


def test_errors_are_the_same_as_with_one_process():
    game = pyspiel.load_game("dark_hex(num_cols=3,num_rows=1)")
    messages = []
    for processes in (1, 2):
        with pytest.raises(ValueError, match="no legal actions") as error:
            compile_game(game, processes=processes)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_infostates_whose_actions_differ_between_parts_are_refused(monkeypatch):
    # No native game has such infostates, so a Python one takes its place. Its parts are single histories.
    game = games.different_actions_game()
    monkeypatch.setattr(parallel_walk, "why_copies_differ", lambda game: None)
    monkeypatch.setattr(parallel_walk, "_workers", lambda game, parts, *_: walked_here(game, parts))
    with pytest.raises(ValueError, match=games.mentions("'same' of player 0", "[0, 1]", "[0, 1, 2]", "history [1]")):
        walk_whole_game(game, processes=2)


@pytest.mark.parametrize("executable", ["/bin/false", "/bin/true", "/bin/cat"])
def test_the_main_process_repeats_the_walk_if_a_worker_fails(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    assert_same(walk_whole_game(LIARS, processes=2), walk_whole_game_alone(LIARS))


def children_of(pid):
    return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()


def is_there(pid):
    """Running, or a zombie."""
    return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0


def test_ctrl_c_ends_all_processes():
    options = "processes=2, walk='python'"
    script = f"import pyspiel, spiel_cfrplus; spiel_cfrplus.compile_game(pyspiel.load_game('tic_tac_toe'), {options})"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, start_new_session=True, text=True)
    while len(workers := children_of(process.pid)) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=30)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1
    assert not any(map(is_there, workers))


def test_workers_are_in_another_process_group():
    if sys.platform == "win32":
        assert parallel_walk._IN_NEW_GROUP == {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        assert parallel_walk._IN_NEW_GROUP == {"process_group": 0}
