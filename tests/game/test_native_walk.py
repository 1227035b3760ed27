"""The walk in C++ compared with the walk in Python, and everything that can prevent it."""

import dataclasses
import signal
import subprocess
import sys
import time

import games
import numpy as np
import pyspiel
import pytest
from walk_records import assert_same

from spiel_cfrplus import compile_game, compile_subgame
from spiel_cfrplus._utils.progress import no_advance
from spiel_cfrplus.game import native_library, native_walk
from spiel_cfrplus.game.native_library import UnavailableError
from spiel_cfrplus.game.native_walk import walk_natively
from spiel_cfrplus.game.walk import walk_game
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits

LIARS = "liars_dice(dice_sides=3)"
# 30 games, and one with each kind of chance move: of every family in docs/games.md that has a parameter for its size.
NAMES = [
    "bargaining(max_turns=2,max_num_instances=3)",
    "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2,allow_repeated_shots=false)",
    "cached_tree(game=kuhn_poker())",
    "cliff_walking(height=2,width=3,horizon=6)",
    "clobber(rows=3,columns=2)",
    "connect_four(rows=3,columns=3,x_in_row=3)",
    "dark_hex(num_cols=2,num_rows=2)",
    "dots_and_boxes(num_rows=1,num_cols=1)",
    "first_sealed_auction(max_value=4)",
    "go(board_size=2,max_game_length=6)",
    "go_fish(ranks=3,suits=2,initial_cards=1)",
    "havannah(board_size=2)",
    "hex(num_rows=2,num_cols=3)",
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "lewis_signaling(num_messages=2)",
    LIARS,
    "liars_dice_ir(dice_sides=3)",
    "misere(game=kuhn_poker())",
    "mnk(m=3,n=2,k=2)",
    "nim(pile_sizes=1;2;3)",
    "sheriff(max_bribe=2,max_items=3,num_rounds=1)",
    "start_at(game=latent_ttt(),history=0;1;2;3)",
    "start_at(game=phantom_ttt(),history=0;4;2;1;7;3;5)",
    "start_at(game=tic_tac_toe(),history=4;0;8)",
    "tiny_hanabi",
    "trade_comm(num_items=2)",
    "turn_based_simultaneous_game(game=blotto(coins=4))",
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3))",
    "turn_based_simultaneous_game(game=oshi_zumo(coins=3,size=1,horizon=4))",
    "universal_poker(betting=limit,numRanks=3,numSuits=2,raiseSize=200 400,maxRaises=1 1)",
    "y(board_size=2)",
]
LARGER = [
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2,allow_repeated_shots=false)",
    "dark_hex_ir(num_rows=2,num_cols=3)",
    "dots_and_boxes(num_rows=1,num_cols=2)",
    "liars_dice",
    "oh_hell(num_suits=2,num_cards_per_suit=4,num_tricks_fixed=1)",
    "repeated_leduc_poker(num_hands=1)",
    "sheriff",
    "social_deduction(players=3,max_rounds=1)",
    "tic_tac_toe",
    "tiny_bridge_2p",
    "trade_comm(num_items=4)",
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4))",
]


@pytest.fixture(scope="module", autouse=True)
def library():
    """Compiles the library once; it is stored with the kernels."""
    try:
        return native_walk._proven_library()
    except UnavailableError as error:
        pytest.skip(f"no native walk: {error}")


@pytest.fixture
def forgotten():
    """A process that has not looked for the library yet."""
    native_walk._library_or_reason.cache_clear()
    yield
    native_walk._library_or_reason.cache_clear()


def assert_same_records(name):
    game = pyspiel.load_game(name)
    assert native_walk.why_unavailable(game) is None
    expected = walk_game(game)
    for threads in (1, 2, 5):
        assert_same(walk_natively(game, threads=threads), expected)


@pytest.mark.parametrize("name", NAMES)
def test_records_equal_those_of_the_walk_in_python(name):
    assert_same_records(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_records_of_larger_games_equal_those_of_the_walk_in_python(name):
    assert_same_records(name)


@pytest.mark.parametrize("threads", [1, 3])
def test_records_of_subgames_equal_those_of_the_walk_in_python(threads):
    game = pyspiel.load_game("leduc_poker")
    for roots in ([(0, 1)], [(0, 1), (2, 3, 1), (0, 4)]):
        probabilities = [1 / len(roots)] * len(roots)
        expected = walk_game(game, roots, probabilities)
        assert_same(walk_natively(game, roots, probabilities, threads=threads), expected)


def test_progress_is_reported_up_to_the_number_of_histories():
    steps = []
    record = walk_natively(pyspiel.load_game("leduc_poker"), advance=steps.append)
    assert sum(steps) == len(record.nodes)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("limit", [1, 100, 1146])
def test_the_limit_of_histories_is_exact(threads, limit):
    game = pyspiel.load_game(LIARS)
    with pytest.raises(ValueError, match=rf"has more than max_histories={limit} histories \(counted {limit + 1} so far\)"):
        walk_natively(game, threads=threads, limits=WalkLimits(limit))
    assert len(walk_natively(game, threads=threads, limits=WalkLimits(1147)).nodes) == 1147


def test_the_time_is_limited():
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"hearts\(\): the walk reached the time limit after \d+ histories"):
        walk_natively(pyspiel.load_game("hearts"), threads=2, limits=WalkLimits.starting_now(time_limit=0.2))
    assert 0.2 <= time.monotonic() - started < 30  # the machine may be busy


def test_ctrl_c_ends_the_walk_and_the_next_one_is_complete():
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            walk_natively(pyspiel.load_game("hearts"), threads=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert_same_records("kuhn_poker")


def test_an_error_names_the_walk_when_memory_runs_out():
    script = """
import resource, psutil, pyspiel
from spiel_cfrplus.game import native_walk
game = pyspiel.load_game("hearts")
assert native_walk.why_unavailable(game) is None
limit = psutil.Process().memory_info().vms + 40_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    native_walk.walk_natively(game)
except MemoryError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.startswith("hearts(), after ")
    assert "infostates of the walk: memory ran out; choose smaller game parameters" in result.stdout


def test_faults_of_a_game_have_the_errors_of_the_walk_in_python():
    game = pyspiel.load_game("dark_hex(num_cols=3,num_rows=1)")
    assert walk_natively(game) is None
    messages = []
    for walk in ("python", "native"):
        with pytest.raises(ValueError, match="no legal actions") as error:
            compile_game(game, walk=walk)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_compiled_games_and_subgames_are_the_same():
    game = pyspiel.load_game("leduc_poker")
    state = game.new_initial_state().child(0).child(1)
    for compiled in (lambda walk: compile_game(game, walk=walk), lambda walk: compile_subgame(state, walk=walk)):
        assert compiled("native").fingerprint == compiled("python").fingerprint


NOISY = "misere(game=add_noise(epsilon=0.1,seed=1,game=kuhn_poker()))"


@pytest.mark.parametrize(
    "load",
    [games.GAMES["python_kuhn_poker"], lambda: games.chain(3), lambda: games.python_chain(3), lambda: pyspiel.load_game(NOISY)],
)
def test_games_that_cpp_cannot_load_are_refused(load):
    game = load()
    assert not native_walk.is_ready(game)
    with pytest.raises(ValueError, match=games.mentions(str(game), "cannot be walked natively", "use walk='auto'")):
        compile_game(game, walk="native")


def test_no_compiler_is_a_reason(forgotten, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    game = pyspiel.load_game("kuhn_poker")
    assert native_walk.why_unavailable(game) == "there is no C++ compiler (g++)"
    assert not native_walk.is_ready(game)


def tiny_library(monkeypatch, tmp_path, run):
    """A library whose records are empty; `run` is the body of walk_run. It needs no headers, so it is compiled at once."""
    functions = [
        f"{'void' if result is None else 'long'} {name}() {{ {'return 1;' if result else ''} }}"
        for name, (result, _) in native_library._SIGNATURES.items()
        if name not in ("walk_run", "walk_sizes")
    ]
    functions += [
        f"int walk_run() {{ {run} }}",
        "void walk_sizes(void*, long* sizes) { for (int i = 0; i < 7; ++i) sizes[i] = 0; }",
    ]
    source = tmp_path / "tiny.cc"
    source.write_text(f'extern "C" {{ {" ".join(functions)} }}')
    monkeypatch.setattr(native_library, "SOURCE", source)
    monkeypatch.setattr(native_library, "stored", lambda: None)
    monkeypatch.setattr(native_library, "store", lambda content: pytest.fail("a library that failed its trial was stored"))


def test_a_library_that_crashes_ends_its_trial_only(forgotten, monkeypatch, tmp_path):
    tiny_library(monkeypatch, tmp_path, "__builtin_trap();")
    reason = native_walk.why_unavailable(pyspiel.load_game("kuhn_poker"))
    assert reason == "its trial with kuhn_poker and leduc_poker ended with signal 4"


def test_a_library_with_a_wrong_record_is_not_used(forgotten, monkeypatch, tmp_path):
    tiny_library(monkeypatch, tmp_path, "return 0;")
    game = pyspiel.load_game("kuhn_poker")
    assert native_walk.why_unavailable(game).endswith("ended with a wrong record or an error")
    with pytest.raises(UnavailableError, match="its record of kuhn_poker differs from the one that Python makes"):
        native_walk._prove(native_library.load(native_library.compiled()))


def test_a_stored_library_proves_itself_in_each_process(forgotten, monkeypatch, tmp_path):
    tiny_library(monkeypatch, tmp_path, "return 0;")
    content = native_library.compiled()
    monkeypatch.setattr(native_library, "stored", lambda: content)
    assert "its record of kuhn_poker differs" in native_walk.why_unavailable(pyspiel.load_game("kuhn_poker"))


@pytest.mark.slow
def test_strings_with_equal_hashes_are_different_infostates(monkeypatch, tmp_path):
    source, same_hash = native_library.SOURCE.read_text(), tmp_path / "same_hash.cc"
    same_hash.write_text(source.replace("return std::hash<std::string_view>()(key) * 31 + player;", "return 7;"))
    assert same_hash.read_text() != source
    monkeypatch.setattr(native_library, "SOURCE", same_hash)
    library, game = native_library.load(native_library.compiled()), pyspiel.load_game("leduc_poker")
    for threads in (1, 2):
        assert_same(native_walk._walk(library, game, [()], [1.0], threads, NO_LIMITS, no_advance), walk_game(game))


def test_records_that_differ_in_one_number_differ():
    record = walk_game(pyspiel.load_game("leduc_poker"))
    assert native_walk._are_equal(record, record)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple):
            changed = (*value[:-1], value[-1] + " ")
        else:
            changed = value.copy()
            changed.reshape(-1).view(np.uint8)[-1] ^= 1
        assert not native_walk._are_equal(dataclasses.replace(record, **{field.name: changed}), record)


def test_a_string_that_is_not_utf8_is_left_to_the_walk_in_python(library, monkeypatch):
    monkeypatch.setattr(native_walk, "_texts", lambda joined, lengths: (b"\xff" + joined).decode())
    assert native_walk._walk(library, pyspiel.load_game("kuhn_poker"), [()], [1.0], 1, NO_LIMITS, no_advance) is None
