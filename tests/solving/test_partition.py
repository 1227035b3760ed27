"""Several threads: the work is divided, and the results are identical to those of one thread."""

import _thread
import copy
import itertools
import multiprocessing
import pickle
import subprocess
import sys
import threading
from typing import Any

import games
import numba
import numpy as np
import pyspiel
import pytest
from families import REGRET_MATCHING
from games import GAMES
from repository import SCRIPTS
from symmetric_games import COMPARED, RANDOM

from spiel_cfrplus import CFRPlusSolver, CFRSolver, Solver, compile_game, make_solver
from spiel_cfrplus.solving import compiled_self_play
from spiel_cfrplus.solving.partition import Partition, partition_game

LIARS_DICE = "liars_dice(dice_sides=4)"
PLAYED = {
    **{name: COMPARED[name] for name in ("kuhn_poker", "kuhn_poker_3p", "liars_dice_3", "goofspiel", "idle player", *RANDOM)},
    "leduc_poker": GAMES["leduc_poker"],
    "one player": games.lone_player_game,
    "nothing to earn": lambda: games.matrix_game([[0, 0], [0, 0]]),
    "a long chain": lambda: games.chain(40),
}


@pytest.fixture(autouse=True)
def teams_for_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes sessions use several threads for the small games of these tests."""
    monkeypatch.setattr(compiled_self_play, "_LEAST_WORK_OF_TEAM", 0)


def assert_same(one: Solver, other: Solver) -> None:
    """To the last bit: what is remembered, and what is made of it."""
    mine, others = one.self_play.state_dict(), other.self_play.state_dict()
    assert mine.keys() == others.keys()
    for name, values in mine.items():
        assert others[name].tobytes() == values.tobytes(), name
    for session in ("current_policy", "average_policy", "cumulative_regrets", "tie_tolerance"):
        assert getattr(other.self_play, session)().tobytes() == getattr(one.self_play, session)().tobytes(), session


# The same doubles.


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        pytest.param(name, algorithm, marks=() if name == "kuhn_poker" or algorithm == "pdcfr+" else pytest.mark.slow)
        for name, algorithm in itertools.product(PLAYED, REGRET_MATCHING)
    ],
)
@pytest.mark.parametrize("alternating", [True, False])
def test_results_do_not_depend_on_the_number_of_threads(name, algorithm, alternating):
    game = compile_game(PLAYED[name]())
    for reduce in (False, True):
        options: dict[str, Any] = {"alternating": alternating, "reduce": reduce, "exact_ties": name != "leduc_poker"}
        one, two, three = (make_solver(algorithm, game, threads=threads, **options) for threads in (1, 2, 3))
        for num_iterations in (0, 1, 30):
            for solver in (one, two, three):
                solver.run(num_iterations)
            assert_same(one, two)
            assert_same(one, three)


@pytest.mark.parametrize("averaging", ["paper", "openspiel"])
def test_averages_of_either_convention_are_the_same(averaging):
    game = compile_game(pyspiel.load_game(LIARS_DICE))
    one, two = (CFRPlusSolver(game, averaging=averaging, threads=threads) for threads in (1, 2))
    for solver in (one, two):
        solver.run(20)
    assert_same(one, two)
    assert two.nash_conv() == one.nash_conv() > 0


def test_a_warm_start_is_the_same():
    game = compile_game(GAMES["leduc_poker"]())
    teacher = CFRPlusSolver(game)
    teacher.run(30)
    one, two = (CFRPlusSolver(game, threads=threads) for threads in (1, 2))
    for solver in (one, two):
        solver.warm_start(teacher.average_policy(), 30)
        solver.run(10)
    assert two.partition is not None
    assert_same(one, two)


# How the work is divided.


def test_kuhn_poker_by_hand():
    # Work is 10 for each sequence and 1 for each payoff. Player 0's three cards have an answer to a bet below them: the top
    # tree is the root, 10, and the cards, 10 * 2 + 2 (pass, pass) + 4 (bet; pass or bet) = 26 each; the answers, 10 * 2 + 2 +
    # 2, are subtrees. Player 1's top tree is the root; after a pass 10 * 2 + 2 + 4 for each card, after a bet 10 * 2 + 2 + 2.
    # Answers that meet rows in common are more than half of a share, so that each goes where least is yet, heaviest first:
    # 26 | 26, 52 | 26, 52 | 50, 52 | 74, 76 | 74.
    partition = partition_game(compile_game(GAMES["kuhn_poker"]()), 2)
    assert partition.work.tolist() == [[88, 48, 24], [10, 76, 74]]
    # 12 infostates, 2 roots, 9 boundary infostates, 4 roots of parts.
    assert len(partition.treeplex_arrays.parent_sequence) == 12 + 2 + 9 + 4
    assert str(partition) == "2 parts, the largest with 38.8 % of the work; 30.6 % in common"  # 124 and 98 of 320


def parts_of(partition: Partition, sequence: int) -> int:
    """The block of a sequence in the partition."""
    arrays = partition.treeplex_arrays
    return int(np.searchsorted(arrays.sequence_start[arrays.player_block], sequence, "right")) - 1


@pytest.mark.parametrize("name", ["leduc_poker", "liars_dice_3", "goofspiel", "kuhn_poker_3p"])
@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_parts_are_independent(name, num_parts):
    game = compile_game(PLAYED[name]())
    partition = partition_game(game, num_parts)
    arrays, payoffs, top_trees = partition.treeplex_arrays, partition.payoff_arrays, partition.top_trees.tolist()
    used = set()
    for block in range(len(top_trees) * (num_parts + 1)):
        first, last = arrays.player_block[block], arrays.player_block[block + 1]
        for j in range(first + 1, last):
            parent = int(arrays.parent_sequence[j])
            assert parent < arrays.sequence_start[j]
            above = parts_of(partition, parent)
            assert above == block or above == top_trees[block // (num_parts + 1)]
            if above != block:  # below a boundary infostate, which is nobody else's
                assert parent not in used
                used.add(parent)
        for row in range(payoffs.player_block[block], payoffs.player_block[block + 1]):
            for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
                assert parts_of(partition, int(payoffs.entry_sequence[entry])) == block
    assert len(payoffs.entry_utility) == len(game.payoff_arrays.entry_utility)
    assert (partition.work[:, 1:] > 0).all()


def test_subtrees_after_one_sequence_of_bids_are_in_one_part():
    game = compile_game(pyspiel.load_game(LIARS_DICE))
    partition = partition_game(game, 3)
    assert len(partition.payoff_arrays.opponent_sequences) == len(game.payoff_arrays.opponent_sequences)
    np.testing.assert_allclose(
        partition.work[:, 1:], partition.work[:, 1:].mean(axis=1, keepdims=True).repeat(3, axis=1), rtol=0.05
    )
    assert partition.work[:, 0].sum() < 0.15 * partition.work.sum()


def test_a_chain_is_not_divided():
    # Each player's infostates come one after another; the last one alone is below the cut.
    partition = partition_game(compile_game(games.chain(40)), 2)
    # Two sequences each, and what is paid there: to player 0 2 for its last stop, 38 % 3, and 1 if player 1 then goes on; from
    # player 1 0 for its last stop, 39 % 3, and 1 for going on.
    assert partition.work[:, 1:].tolist() == [[22, 0], [21, 0]]


# What callers may rely on.


@pytest.mark.parametrize("threads", [0, -1, 1.5, 2.0, "2", None, True])
def test_invalid_threads_are_refused_before_the_walk(threads):
    with pytest.raises(ValueError, match="the number of threads must be an integer of 1 or more, got"):
        CFRSolver(games.interrupting_game(), threads=threads)


def test_one_thread_uses_no_partition():
    game = compile_game(GAMES["leduc_poker"]())
    assert CFRSolver(game).partition is CFRSolver(game, threads=np.int64(1)).partition is None
    assert CFRSolver(game, threads=2).partition.num_parts == 2


@pytest.mark.parametrize("algorithm", ["cfr+", "pdcfr+"])
@pytest.mark.parametrize("reduce", [True, False])
def test_a_checkpoint_does_not_depend_on_the_number_of_threads(algorithm, reduce, tmp_path):
    game = compile_game(GAMES["leduc_poker"]())
    one, two = (make_solver(algorithm, game, reduce=reduce, threads=threads) for threads in (1, 2))
    for solver, path in ((one, tmp_path / "one"), (two, tmp_path / "two")):
        solver.run(20)
        solver.save(path)
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    three = Solver.load(tmp_path / "one", game, threads=3)
    single = Solver.load(tmp_path / "two", game)
    assert (three.partition.num_parts, single.partition) == (3, None)
    for solver in (one, two, three, single):
        solver.run(20)
    for solver in (two, three, single):
        assert_same(one, solver)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda solver: pickle.loads(pickle.dumps(solver))])
def test_copies_have_as_many_threads(again):
    solver = CFRPlusSolver(GAMES["leduc_poker"](), threads=2)
    solver.run(10)
    other = again(solver)
    assert other.partition.num_parts == 2
    for each in (solver, other):
        each.run(10)
    assert_same(solver, other)


def test_an_invalid_state_is_not_restored():
    game = compile_game(GAMES["kuhn_poker"]())
    solver = CFRSolver(game, threads=2)
    solver.run(3)
    before = copy.deepcopy(solver)
    for wrong in ({}, {**solver.self_play.state_dict(), "iteration": np.zeros(6, np.int64)}):
        with pytest.raises(ValueError, match="expected"):
            solver.self_play.load_state_dict(wrong)
    assert_same(before, solver)


def test_an_interrupt_falls_between_two_iterations(monkeypatch):
    game = compile_game(GAMES["leduc_poker"]())
    solver, undisturbed = CFRPlusSolver(game, threads=2), CFRPlusSolver(game)
    monkeypatch.setattr(compiled_self_play, "_WORK_PER_CALL", 20 * compiled_self_play.work_of_iteration(solver.reduction))
    solver.run(1)  # compiles
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.run(10**9)
    undisturbed.run(solver.iteration)
    assert solver.iteration > 1
    for each in (solver, undisturbed):
        each.run(12)
    assert_same(undisturbed, solver)


def test_no_thread_remains_and_numbas_threads_are_not_used():
    before = threading.active_count()
    solver = CFRSolver(GAMES["leduc_poker"](), threads=2)
    solver.run(5)
    assert threading.active_count() == before
    with pytest.raises(ValueError, match="not initialized"):
        numba.threading_layer()


def test_several_solvers_iterate_concurrently():
    game = compile_game(GAMES["leduc_poker"]())
    one, *others = (CFRPlusSolver(game, threads=threads) for threads in (1, 2, 2, 3))
    workers = [threading.Thread(target=solver.run, args=(200,)) for solver in others]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    one.run(200)
    for solver in others:
        assert_same(one, solver)


def regrets_after_ten_more(solver: CFRPlusSolver) -> bytes:
    solver.run(10)
    return solver.self_play.cumulative_regrets().tobytes()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
def test_a_forked_process_can_use_threads():
    game = compile_game(GAMES["kuhn_poker"]())
    solver, undisturbed = CFRPlusSolver(game, threads=2), CFRPlusSolver(game)
    solver.run(20)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        regrets = pool.map(regrets_after_ten_more, [solver, solver])
    undisturbed.run(30)
    assert regrets == [undisturbed.self_play.cumulative_regrets().tobytes()] * 2


def test_a_failure_to_start_threads_does_not_change_the_solver(monkeypatch):
    game = compile_game(GAMES["leduc_poker"]())
    solver = CFRSolver(game, threads=3)
    solver.run(3)
    before, start = copy.deepcopy(solver), threading.Thread.start
    started = []

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        solver.run(3)
    monkeypatch.undo()
    started[0].join(30)
    assert not started[0].is_alive()
    assert_same(before, solver)


def test_little_work_is_done_by_one_thread(monkeypatch):
    monkeypatch.undo()  # of `teams_for_any_work`
    monkeypatch.setattr(compiled_self_play, "run_together", None)
    game = compile_game(GAMES["kuhn_poker"]())
    one, two = CFRSolver(game), CFRSolver(game, threads=2)
    for solver in (one, two):
        solver.run(100)
    assert_same(one, two)
    with pytest.raises(TypeError):
        two.run(100_000)


# The command line.


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPTS / "run.py"
    return subprocess.run([sys.executable, str(script), *flags], capture_output=True, text=True, timeout=300, check=False)


def results(output: str) -> list[list[str]]:
    """The table without its column of seconds."""
    lines = [line.split() for line in output.splitlines() if line.lstrip()[:1].isdigit()]
    return [[cells[0], *cells[2:]] for cells in lines]


def test_the_command_line_prints_the_same_rows(tmp_path):
    common = ("--game=leduc_poker", "--noverify", "--reduce=off")
    one, two = (run(*common, "--iterations=50", f"--threads={threads}") for threads in (1, 2))
    assert (one.returncode, two.returncode) == (0, 0), two.stderr
    assert results(two.stdout) == results(one.stdout) != []
    assert "partition: 2 parts, the largest with 48.3 % of the work; 3.5 % in common\n" in two.stdout
    assert "partition: " not in one.stdout
    for threads, iterations in ((1, 20), (2, 50)):
        resumed = run(*common, f"--iterations={iterations}", f"--threads={threads}", f"--checkpoint={tmp_path / 'saved'}")
    assert "resumed" in resumed.stdout
    assert "partition: 2 parts" in resumed.stdout
    assert results(resumed.stdout)[-1] == results(one.stdout)[-1]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--threads=2", "--algorithm=cfr+,cfr-br"), "--threads is for cfr, cfr+, lcfr,"),
        (("--threads=2", "--algorithm=cfr+,gradient_ascent"), "--threads is for cfr, cfr+, lcfr,"),
        (("--threads=2", "--cce", "--simultaneous"), "not for cfr+ with --cce"),
        (("--threads=2", "--crosscheck"), "--threads has no effect with --crosscheck"),
        (("--threads=0",), "--threads=0: 0 is not a positive integer"),
        (("--threads=two",), "--threads=two"),
    ],
)
def test_invalid_flags(flags, reason):
    result = run(*flags)
    assert result.returncode == 2
    assert reason in result.stderr
    assert result.stdout == ""
