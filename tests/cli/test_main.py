"""scripts/run.py as a user runs it: a process, its output and its exit code."""

import fcntl
import json
import math
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import time

import pyspiel
import pytest
from command_line import command, hear_signals, run, start
from open_spiel.python.algorithms import cfr_br, exploitability
from repository import ROOT, SCRIPTS

from spiel_cfrplus import CFRPlusSolver, Solver, load_policy, solve_exactly
from spiel_cfrplus._utils.files import reserved
from spiel_cfrplus.cli import main
from spiel_cfrplus.solving.checkpoint import read_curve
from spiel_cfrplus.solving.curve import Curve


def rows(result):
    """The numbers of the table, row by row; None where a cell is a dash."""
    table = [line.split() for line in result.stdout.splitlines() if re.fullmatch(r"[-\d.e+ ]+", line)]
    return [[None if cell == "-" else float(cell) for cell in row] for row in table]


def verified(result):
    """The two NashConvs printed at the end: ours, and OpenSpiel's of the exported policy."""
    return [float(number) for number in re.findall(r"^(?:NashConv of|by OpenSpiel).*?: (\S+)", result.stdout, re.MULTILINE)]


def test_main_job_solves_kuhn_poker():
    result = subprocess.run(command("--game=kuhn_poker"), capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    iteration, _, nash_conv, exploitability, value = rows(result)[-1]
    assert iteration == 10_000
    assert nash_conv < 1e-4
    assert exploitability == pytest.approx(nash_conv / 2, rel=1e-6)
    assert value == pytest.approx(-1 / 18, abs=nash_conv)
    ours, theirs = verified(result)
    assert ours == pytest.approx(nash_conv, rel=1e-6)
    assert abs(ours - theirs) < 1e-12
    assert "\r" not in result.stdout + result.stderr  # no progress bar in a pipe


def test_flags_reach_the_solver():
    # NashConv of Kuhn at 2 iterations in OpenSpiel's convention, exact, by an independent implementation.
    for algorithm, order, expected in [
        ("cfr", "--alternating", 13 / 24),
        ("cfr+", "--nosimultaneous", 19 / 36),
        ("cfr", "--simultaneous", 5 / 8),
        ("cfr+", "--noalternating", 23 / 36),
    ]:
        result = run(f"--algorithm={algorithm}", order, "--iterations=2", "--averaging=openspiel", "--noverify")
        assert rows(result)[-1][2] == pytest.approx(expected, rel=1e-6)


def test_print_freq_and_players():
    result = run("--game=kuhn_poker", "--players=3", "--iterations=25", "--print_freq=10")
    assert [row[0] for row in rows(result)] == [10, 20, 25]
    assert [row[3] for row in rows(result)] == [None] * 3
    ours, theirs = verified(result)
    assert abs(ours - theirs) < 1e-12


def test_auto_prints_what_it_is():
    result = run("--algorithm=auto", "--iterations=2", "--noverify")
    note = "auto is sapdcfr+ with weights t^5, chosen by measurements after 1,000 iterations (docs/choosing.md)"
    assert note in result.stdout.splitlines()


def test_target_nash_conv_stops_the_run():
    *_, before, last = rows(run("--target_nash_conv=1e-2"))
    assert last[2] <= 1e-2 < before[2]


def test_time_limit_stops_the_run():
    result = run("--iterations=1000000000", "--time_limit=1", "--noverify")
    assert result.returncode == 0
    assert rows(result)[-1][0] < 1_000_000_000


def test_simultaneous_games_are_converted_and_it_says_so():
    result = run("--game=matrix_brps", "--iterations=1000")
    assert result.returncode == 0
    assert "matrix_brps() has simultaneous moves; solving its turn-based form" in result.stdout


def test_games_that_cannot_be_exported_are_still_solved():
    # A repeated prisoner's dilemma: 42 infostates, but OpenSpiel's table for it would have fewer rows. A chat game: actions
    # beyond the columns that OpenSpiel's table has.
    repeated = "turn_based_simultaneous_game(game=repeated_game(stage_game=matrix_pd(),num_repetitions=3))"
    for game, reason in ((repeated, "10 rows for 42 infostates"), ("chat_game", "fix num_distinct_actions")):
        result = run(f"--game={game}", "--iterations=10")
        assert result.returncode == 0
        (line,) = [line for line in result.stdout.splitlines() if line.startswith("not verified with OpenSpiel: ")]
        assert reason in line


def test_tables_keyed_by_observations_are_verified_too():
    game = "turn_based_simultaneous_game(game=repeated_game(stage_game=matrix_rps(),num_repetitions=2))"
    result = run(f"--game={game}", "--iterations=10")
    assert (result.returncode, result.stderr) == (0, "")
    ours, theirs = verified(result)
    assert abs(ours - theirs) < 1e-12


@pytest.mark.parametrize(
    "flags",
    [
        ["--game=kuhn_poker"],
        ["--game=python_kuhn_poker", "--algorithm=cfr", "--simultaneous", "--iterations=10"],
        ["--game=liars_dice(dice_sides=3)", "--iterations=20"],
    ],
    ids=" ".join,
)
def test_crosscheck_agrees(flags):
    result = run("--crosscheck", *flags)
    assert result.returncode == 0, result.stderr
    assert "agreement within 1e-08" in result.stdout
    assert all(max(row[1:4]) < 1e-8 for row in rows(result))


def test_crosscheck_disagreement_is_an_exit_code():
    # At the first iteration this game has exact ties, which rounding breaks in OpenSpiel.
    game = "turn_based_simultaneous_game(game=oshi_zumo(coins=3,horizon=3,size=1))"
    result = run("--crosscheck", f"--game={game}", "--iterations=2")
    assert result.returncode == 1
    assert "disagreement by more than 1e-08 at iteration 1" in result.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--game=kuhn"], ["unknown game 'kuhn'", "kuhn_poker"]),
        (["--game=zzzz"], ["unknown game 'zzzz'; no name is similar; pyspiel.registered_names() lists all"]),
        (["--game="], ["unknown game ''; no name is similar"]),
        (["--game=e"], ["did you mean add_noise, antichess, battleship, breakthrough, bridge? pyspiel.registered_names()"]),
        (["--game=go(board_size=-1)"], ["go(board_size=-1) has no initial state", "choose other game parameters"]),
        (["--game=start_at(game=kuhn_poker(),history=0;0)"], ["start_at(game=kuhn_poker(),history=0;0) cannot be walked"]),
        (["--game=connect_four(rows=-3)"], ["connect_four(rows=-3)", "choose other game parameters"]),
        (["--game=connect_four(rows=0)"], ["cannot load 'connect_four(rows=0)': OpenSpiel ends the process with SIGSEGV"]),
        (["--game=hex(board_size=100000)"], ["cannot load 'hex(board_size=100000)'", "more than 2 GB", "choose other game"]),
        (["--players=99999999999999999999"], ["--players=99999999999999999999", "range [1, 2147483647]"]),
        (["--noverify=3"], ["--noverify=3 does not take an argument"]),
        (["--iterations=9999999999999999999999"], ["--iterations=9999999999999999999999", "range [1, 4611686018427387904]"]),
        (["--print_freq=9999999999999999999999"], ["--print_freq=9999999999999999999999", "range [1, 4611686018427387904]"]),
        (["--threads=100000"], ["the number of threads must be at most ", "of this machine, got 100000"]),
        (["--processes=9223372036854775807"], ["the number of processes must be at most ", "got 9223372036854775807"]),
        (["--game=kuhn_poker(plyers=3)"], ["cannot load 'kuhn_poker(plyers=3)'", "plyers"]),
        (["--game=kuhn_poker", "--players=11"], ["cannot load 'kuhn_poker'"]),
        (["--game=tic_tac_toe", "--players=2"], ["cannot load 'tic_tac_toe'", "players"]),
        (["--game=kuhn_poker("], ["cannot load 'kuhn_poker('"]),
        (["--algorithm=cfr-plus"], ["--algorithm=cfr-plus", "cfr|cfr+"]),
        (["--averaging=linear"], ["--averaging=linear", "paper|openspiel"]),
        (["--iterations=0"], ["--iterations=0"]),
        (["--iterations=many"], ["--iterations=many"]),
        (["--iteration=10"], ["iteration", "Did you mean", "iterations"]),
        (["--alternating", "--simultaneous"], ["--alternating", "--simultaneous"]),
        (["--target_nash_conv=-1"], ["--target_nash_conv=-1"]),
        (["--crosscheck", "--averaging=paper"], ["--averaging has no effect with --crosscheck"]),
        (["--crosscheck", "--time_limit=5"], ["--time_limit has no effect with --crosscheck"]),
        (["--crosscheck", "--noverify"], ["--verify has no effect with --crosscheck"]),
        (["--crosscheck", "--plot=x.png"], ["--plot has no effect with --crosscheck"]),
        (["--crosscheck", "--check_theory"], ["--check_theory has no effect with --crosscheck"]),
        (["--crosscheck", "--algorithm=cfr,cfr+"], ["--crosscheck is for one algorithm at a time, not for cfr, cfr+"]),
        (["--checkpoint=x.npz", "--algorithm=cfr,cfr+"], ["--checkpoint is for one algorithm at a time, not for cfr, cfr+"]),
        (["--algorithm=cfr,cfr-plus"], ["--algorithm=cfr-plus", "cfr|cfr+"]),
        (["--algorithm=cfr+,cfr,cfr+"], ["--algorithm names cfr+ more than once"]),
        (["--algorithm="], ["--algorithm needs the name of an algorithm"]),
        (["--algorithm=cfr_hedge,cfr", "--step_size=1"], ["cfr takes no step size"]),
        (["--plot=x.jpg"], ["--plot=x.jpg: ", "must end in one of .png, .pdf, .svg"]),
        (["--plot=no_such_folder/x.png"], ["--plot=no_such_folder/x.png", "no such directory", "no_such_folder"]),
        (["--plot=tests/../x.png", "--checkpoint=x.png"], ["--plot and --checkpoint are both to be written to tests/../x.png"]),
        (["--tolerance=1e-3"], ["--tolerance has no effect without --crosscheck"]),
        (["--tremble=0.1"], ["--tremble has no effect without --algorithm=lp"]),
        (["--target_nash_conv=nan"], ["--target_nash_conv=nan is not a number"]),
        (["--time_limit=nan"], ["--time_limit=nan is not a number"]),
        (["--game=kuhn_poker(players=3)", "--players=2"], ["--players=2 contradicts --game=kuhn_poker(players=3)"]),
        (["--game=KUHN_POKER"], ["unknown game 'KUHN_POKER'; did you mean kuhn_poker"]),
        (["kuhn_poker"], ["unexpected argument 'kuhn_poker'"]),
        (["--game=catch"], ["catch()", "information_state_string"]),
        (["--game=mfg_crowd_modelling"], ["mfg_crowd_modelling", "MEAN_FIELD"]),
        (["--game=leduc_poker", "--max_histories=1000"], ["leduc_poker", "max_histories=1000"]),
        (["--checkpoint="], ["--checkpoint needs the name of a file"]),
        (
            ["--checkpoint=no_such_folder/solver.npz"],
            ["--checkpoint=no_such_folder/solver.npz", "no such directory", "no_such_folder"],
        ),
        (["--checkpoint=/proc/solver.npz"], ["--checkpoint=/proc/solver.npz"]),
        (["--checkpoint=" + 300 * "x"], ["File name too long"]),
        (["--checkpoint=tests"], ["not a regular file"]),
        (["--checkpoint=README.md"], ["README.md is not a checkpoint"]),
        (["--checkpoint=/dev/null"], ["--checkpoint=/dev/null", "not a regular file"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_bad_input_is_one_line_and_exit_code_2(flags, words):
    result = run(*flags)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in words)


def test_checkpoint_resumes_to_the_same_numbers(tmp_path):
    checkpoint = f"--checkpoint={tmp_path / 'solver.npz'}"
    run(checkpoint, "--iterations=70")
    resumed = run(checkpoint, "--iterations=200")
    assert "at iteration 70" in resumed.stdout
    straight = run("--iterations=200")
    assert [row[0] for row in rows(resumed)] == [1, 2, 5, 10, 20, 50, 70, 100, 200]
    assert [row[2:] for row in rows(resumed) if row[0] != 70] == [row[2:] for row in rows(straight)]
    seconds = [row[1] for row in rows(resumed)]
    assert seconds == sorted(seconds)
    again = run(checkpoint, "--iterations=200")
    assert rows(again) == rows(resumed)
    other = run(checkpoint, "--algorithm=cfr")
    assert other.returncode == 2
    assert "pass the same flags" in other.stderr


@pytest.mark.parametrize(("flag", "name"), [("checkpoint", "a.npz"), ("save_policy", "a.csv"), ("plot", "a.png")])
def test_a_file_that_another_process_writes_is_one_line_and_exit_code_2(flag, name, tmp_path):
    with reserved(tmp_path / name):
        result = run(f"--{flag}={tmp_path / name}", "--iterations=5")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: --{flag}={tmp_path / name}: ")
    assert "another process is writing to it" in line
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_a_loop_of_links_or_a_pipe_is_one_line_and_exit_code_2(tmp_path):
    loop, pipe = tmp_path / "loop", tmp_path / "pipe"
    loop.symlink_to("loop")
    os.mkfifo(pipe)
    for path, words in ((loop, "Too many levels of symbolic links"), (pipe, "not a regular file")):
        result = run(f"--checkpoint={path}", "--iterations=5")
        assert result.returncode == 2
        assert re.fullmatch(rf"error: --checkpoint={path}: .*{words}.*\n", result.stderr)


def test_a_reader_who_leaves_ends_the_run_quietly():
    shell = f"{shlex.join(command('--iterations=100000', '--print_freq=100'))} | head -3"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=300, check=False)
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("redirection", "exit_code", "num_errors"), [(">&-", 0, 0), ("2>&-", 0, 0), (">&- 2>&-", 0, 0), (">/dev/full", 74, 1)]
)
def test_streams_that_take_nothing_end_in_no_traceback(redirection, exit_code, num_errors):
    shell = f"{shlex.join(command('--iterations=5'))} {redirection}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == exit_code
    assert len(result.stderr.splitlines()) == num_errors
    assert ("by OpenSpiel" in result.stdout) == (redirection == "2>&-")


def test_checkpoints_keep_links_and_permissions(tmp_path):
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    link.symlink_to(target)
    assert run(f"--checkpoint={link}", "--iterations=5", "--noverify").returncode == 0
    assert link.is_symlink()
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask
    assert "at iteration 5" in run(f"--checkpoint={link}", "--iterations=6", "--noverify").stdout


def wait_for(path, process):
    """Waits until there is a checkpoint; before, an empty file shows for a moment that one can be written."""
    while not any(file.stat().st_size for file in path.parent.glob(path.name)):
        assert process.poll() is None
        time.sleep(0.05)


def run_script(before, *flags):
    """scripts/run.py in a process that has run `before`."""
    script = str(SCRIPTS / "run.py")
    program = f"import runpy, signal, sys\n{before}\nsys.argv[0] = {script!r}\nrunpy.run_path({script!r}, run_name='__main__')"
    arguments = [sys.executable, "-c", program, *flags]
    return subprocess.run(
        arguments, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False, preexec_fn=hear_signals
    )


STOPS = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM", signal.SIGHUP: "stopped by SIGHUP"}


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_saves_the_last_iteration_draws_and_leaves_cleanly(number, tmp_path):
    checkpoint, picture = tmp_path / "solver.npz", tmp_path / "picture.png"
    process = start("--iterations=1000000000", f"--checkpoint={checkpoint}", f"--plot={picture}", "--algorithm=cfr")
    wait_for(checkpoint, process)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    heard = re.fullmatch(STOPS[number] + r" at iteration (\d+)\n", errors)
    assert heard, errors
    assert Solver.load(checkpoint).iteration == int(heard.group(1))
    assert [row.iteration for row in read_curve(checkpoint).rows] == [
        int(line.split()[0]) for line in output.splitlines() if re.fullmatch(r"[-\d.e+ ]+", line)
    ]
    assert picture.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_during_the_imports_is_one_line_and_its_exit_code(number):
    result = run_script(
        f"""
class StopsAtTheCommandLine:
    def find_spec(self, name, path=None, target=None):
        if name == "spiel_cfrplus.cli.main":
            signal.raise_signal({int(number)})

sys.meta_path.insert(0, StopsAtTheCommandLine())
"""
    )
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, "", STOPS[number] + "\n")


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_before_the_flags_are_read_is_one_line_and_its_exit_code(number):
    result = run_script(
        "from spiel_cfrplus.cli import main as command_line\n"
        f"command_line._parse_flags = lambda _: signal.raise_signal({int(number)})"
    )
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, "", STOPS[number] + "\n")


@pytest.mark.parametrize(
    ("flags", "exit_code"), [(["--iterations=1", "--noverify"], 0), (["--game=unknown"], 2), (["--nosuch"], 2)]
)
def test_signals_during_the_exit_leave_the_exit_code(flags, exit_code):
    result = run_script(
        f"import atexit\nfor number in {[*map(int, STOPS)]}: atexit.register(signal.raise_signal, number)", *flags
    )
    assert (result.returncode, len(result.stderr.splitlines())) == (exit_code, exit_code // 2)


def test_a_signal_in_a_callback_is_not_lost(tmp_path):
    result = run_script(
        """
import time
from spiel_cfrplus.cli import main as command_line

class Callback:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def make_solver(*arguments):
    Callback()
    time.sleep(20)
    sys.exit(3)

command_line._make_solver = make_solver
"""
    )
    assert (result.returncode, result.stderr) == (128 + signal.SIGTERM, "stopped by SIGTERM\n")


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_in_the_walk_is_one_line_and_its_exit_code(number):
    process = start("--game=hearts")
    assert process.stdout.readline().startswith("hearts(): ")
    time.sleep(0.2)  # the walk takes hours
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1]) == (128 + number, STOPS[number])
    assert "Traceback" not in errors


def test_a_second_signal_does_not_disturb_the_save(tmp_path):
    checkpoint = tmp_path / "solver.npz"
    process = start("--iterations=1000000000", f"--checkpoint={checkpoint}", "--game=leduc_poker")
    wait_for(checkpoint, process)
    for _ in range(200):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.001)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    (iteration,) = re.search(r"^stopped by SIG\S+ at iteration (\d+)\n", errors, re.MULTILINE).groups()
    assert Solver.load(checkpoint).iteration == int(iteration)
    assert os.listdir(tmp_path) == ["solver.npz"]


def test_a_terminal_that_hangs_up_loses_nothing(tmp_path):
    checkpoint = tmp_path / "solver.npz"
    terminal, end = pty.openpty()

    def take_terminal():
        hear_signals()
        os.setsid()
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command("--iterations=1000000000", f"--checkpoint={checkpoint}", "--checkpoint_every=1000", "--print_freq=1000000000"),
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=ROOT,
        preexec_fn=take_terminal,
    )
    os.close(end)
    wait_for(checkpoint, process)
    time.sleep(0.5)
    os.close(terminal)
    assert process.wait(timeout=60) == 128 + signal.SIGHUP
    assert Solver.load(checkpoint).iteration > 1


def test_signals_that_are_ignored_stay_ignored():
    process = start("--iterations=300000", "--noverify", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)


def test_what_a_reader_left_behind_is_saved(tmp_path):
    checkpoint = tmp_path / "solver.npz"
    shell = f"{shlex.join(command('--iterations=100000000', '--print_freq=1000', f'--checkpoint={checkpoint}'))} | head -3"
    subprocess.run(["bash", "-c", shell], capture_output=True, timeout=300, check=False, cwd=ROOT)
    assert [row.iteration for row in read_curve(checkpoint).rows] == list(
        range(1000, Solver.load(checkpoint).iteration + 1, 1000)
    )


def test_checkpoints_are_saved_between_rows(tmp_path):
    checkpoint = tmp_path / "solver.npz"
    flags = ("--iterations=1000000000", "--print_freq=1000000000", f"--checkpoint={checkpoint}", "--checkpoint_every=0.1")
    process = start(*flags)
    wait_for(checkpoint, process)
    first = later = Solver.load(checkpoint).iteration
    while later == first:
        time.sleep(0.05)
        later = Solver.load(checkpoint).iteration
    process.kill()
    process.communicate()
    assert 0 < first < later
    assert read_curve(checkpoint).rows == ()
    assert read_curve(checkpoint).seconds >= 0.1


@pytest.mark.parametrize("num_iterations", [500_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
def test_the_seconds_of_a_resumed_run_go_on(tmp_path, num_iterations):
    checkpoint = f"--checkpoint={tmp_path / 'solver.npz'}"
    first = run(checkpoint, f"--iterations={num_iterations}", "--noverify")
    assert first.returncode == 0
    resumed = run(checkpoint, f"--iterations={2 * num_iterations}", "--noverify")
    assert rows(resumed)[: len(rows(first))] == rows(first)
    at_least = num_iterations * 0.04e-6  # seconds of the second half: 0.04 microseconds for each iteration
    assert rows(resumed)[-1][1] >= rows(first)[-1][1] + at_least


def test_a_checkpoint_past_the_iterations_goes_on_from_its_seconds_and_a_note_says_so(tmp_path):
    solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
    solver.run(30)
    solver.save(tmp_path / "solver.npz", Curve(seconds=7.25))
    flags = f"--checkpoint={tmp_path / 'solver.npz'}", "--noverify"
    result = run(*flags, "--iterations=20")
    assert result.stderr == f"note: {tmp_path / 'solver.npz'} is already at iteration 30, past --iterations=20\n"
    assert [row[:2] for row in rows(result)] == [[30, pytest.approx(7.25, abs=0.5)]]
    assert run(*flags, "--iterations=30").stderr == ""


def test_a_resumed_run_is_drawn_from_its_beginning(tmp_path):
    flags = (f"--checkpoint={tmp_path / 'solver.npz'}", f"--plot={tmp_path / 'runs.png'}", "--noverify")
    run(*flags, "--iterations=10")
    result = run(*flags, "--iterations=50", before=TELL)
    assert re.search(r"^drawn: \{'cfr\+': \[\(1, .*\(10, .*\(50, ", result.stdout, re.MULTILINE)


def test_rows_about_other_policies_are_not_mixed(tmp_path):
    checkpoint = f"--checkpoint={tmp_path / 'solver.npz'}"
    run(checkpoint, "--iterations=10", "--last_iterate", "--noverify")
    result = run(checkpoint, "--iterations=20")
    assert result.returncode == 2
    assert "was saved with --last_iterate; pass the same flag" in result.stderr
    assert run(checkpoint, "--iterations=20", "--last_iterate", "--noverify").returncode == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--checkpoint_every=5"], "--checkpoint_every has no effect without --checkpoint"),
        (["--checkpoint_every=-1", "--checkpoint=x.npz"], "-1"),
        (["--checkpoint_every=nan", "--checkpoint=x.npz"], "--checkpoint_every=nan is not a number"),
    ],
)
def test_intervals_that_make_no_sense_are_a_usage_error(flags, words):
    result = run(*flags)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_every_learner_is_an_algorithm():
    # NashConv of a Nash equilibrium of Kuhn poker is 0; the last of these has a row about its last policy.
    for flags in (
        ["--algorithm=predictive_dilated_euclidean", "--iterations=100"],
        ["--algorithm=multiplicative_weights", "--iterations=500", "--step_size=2"],
        ["--algorithm=pcfr+", "--iterations=50"],
        ["--algorithm=predictive_gradient_ascent", "--iterations=100", "--last_iterate"],
    ):
        result = run(*flags)
        assert result.returncode == 0, result.stderr
        ours, theirs = verified(result)
        assert abs(ours - theirs) < 1e-12
        assert ours == pytest.approx(rows(result)[-1][2], rel=1e-6, abs=1e-15)
        assert ours < 0.02
    assert ours < 1e-9


@pytest.mark.parametrize("algorithm", ["cfr", "cfr-br"])
def test_averaging_power_reaches_the_average(algorithm):
    # After two iterations the algorithm's own average has weights 1 and 1; with 1 and 2 it is not the same.
    flags = [f"--algorithm={algorithm}", "--iterations=2", "--noverify"]
    uniform, linear = (rows(run(*flags, f"--averaging_power={power}"))[-1][2] for power in (0, 1))
    assert rows(run(*flags))[-1][2] == uniform != linear


def test_learning_against_best_responses_is_an_algorithm():
    game = pyspiel.load_game("kuhn_poker")
    openspiel, expected = cfr_br.CFRBRSolver(game), []
    for _ in range(4):
        openspiel.evaluate_and_update_policy()
        expected.append(exploitability.nash_conv(game, openspiel.average_policy()))
    result = run("--algorithm=cfr-br", "--iterations=4", "--print_freq=1", "--averaging=openspiel")
    assert (result.returncode, result.stderr) == (0, "")
    assert [row[2] for row in rows(result)] == pytest.approx(expected, rel=1e-6)
    assert "cfr-br, updates against best responses, averages with weights t^0\n" in result.stdout
    ours, theirs = verified(result)
    assert abs(ours - theirs) < 1e-12


def test_learning_against_best_responses_beside_others():
    result = run("--algorithm=cfr,cfr-br", "--iterations=2", "--plot=x.png", "--last_iterate", before=TELL)
    assert (result.returncode, result.stderr) == (0, "")
    title = "kuhn_poker()\nalternating updates, updates against best responses, last iterates"
    assert str([title]) in result.stdout
    alone = run("--algorithm=cfr-br", "--iterations=2", "--last_iterate")
    assert [row[2] for row in rows(result)[2:]] == [row[2] for row in rows(alone)]


@pytest.mark.parametrize("game", ["kuhn_poker(players=3)", "matrix_pd"])
def test_learning_against_best_responses_needs_two_opponents(game):
    result = run("--algorithm=cfr,cfr-br", f"--game={game}")
    assert result.returncode == 2
    assert rows(result) == []  # before the other one has begun
    assert re.fullmatch(r"error: CFR-BR is for two-player constant-sum games only, not for .*\n", result.stderr)


def test_distance_from_coarse_correlated_equilibria():
    result = run("--game=kuhn_poker", "--players=3", "--algorithm=cfr", "--simultaneous", "--cce", "--iterations=1000")
    assert result.returncode == 0, result.stderr
    table = rows(result)
    assert [len(row) for row in table] == [6] * len(table)
    assert table[-1][5] < table[0][5] / 10


def test_distances_are_continued_from_a_checkpoint(tmp_path):
    flags = ["--players=3", "--algorithm=cfr", "--simultaneous", "--cce", "--noverify"]
    checkpoint = f"--checkpoint={tmp_path / 'solver.npz'}"
    run(*flags, checkpoint, "--iterations=50")
    resumed = run(*flags, checkpoint, "--iterations=100")
    assert [row[2:] for row in rows(resumed)] == [row[2:] for row in rows(run(*flags, "--iterations=100"))]
    other = run(*flags[:3], checkpoint)
    assert (other.returncode, "was saved with --cce; pass the same flag" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--algorithm=cfr", "--step_size=1"], "cfr takes no step size"),
        (["--algorithm=cfr_hedge", "--step_size=0"], "step_size must be positive and finite, got 0"),
        (["--iterations=1.5e0"], "flag --iterations=1.5e0: invalid literal"),
        (["--iterations=0e1"], "flag --iterations=0e1: 0 is not an integer"),
        (["--averaging_delay=10", "--iterations=1e1"], "averaging_delay=10 omits all iterations from the average"),
        (["--averaging_power=-1"], "averaging power must be finite and at least 0"),
        (["--cce"], "--cce needs --simultaneous"),
        (["--algorithm=gradient_ascent", "--crosscheck"], "--crosscheck is for cfr, cfr+, lcfr, dcfr, not for gradient_ascent"),
        (["--crosscheck", "--last_iterate"], "--last_iterate has no effect with --crosscheck"),
        (["--algorithm=cfr-br", "--crosscheck"], "--crosscheck is for cfr, cfr+, lcfr, dcfr, not for cfr-br"),
        (["--algorithm=cfr-br", "--step_size=1"], "cfr-br takes no step size"),
        (["--algorithm=cfr,cfr-br", "--simultaneous"], "--simultaneous is not for cfr-br, in which each player learns alone"),
        (["--algorithm=cfr-br", "--noalternating"], "--alternating is not for cfr-br"),
        (["--algorithm=cfr-br", "--cce"], "--cce is not for cfr-br"),
        (["--algorithm=cfr-br", "--check_theory"], "--check_theory is not for cfr-br"),
    ],
)
def test_flags_that_do_not_go_together(flags, words):
    result = run(*flags)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_a_distance_that_is_not_yet_known_is_a_dash():
    result = run("--algorithm=cfr", "--cce", "--simultaneous", "--time_limit=0", "--noverify")
    assert result.returncode == 0, result.stderr
    assert rows(result)[0][5] is None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--averaging_power=2000"], "averaging weights are too large"),
        (["--averaging_power=100", "--algorithm=cfr_hedge"], "averaging weights are too large"),
    ],
)
def test_numbers_out_of_range_are_one_line(flags, words):
    result = run(*flags)
    assert result.returncode == 2
    assert words in result.stderr.splitlines()[-1]


def test_the_largest_step_size_gives_finite_rows():
    result = run("--algorithm=multiplicative_weights", "--step_size=1e308", "--iterations=5")
    assert result.returncode == 0, result.stderr
    assert all(math.isfinite(row[2]) for row in rows(result))


def test_rows_without_number_take_no_memory():
    result = run("--print_freq=1", "--iterations=1000000000000", "--time_limit=0.2", "--noverify")
    assert result.returncode == 0, result.stderr


def test_averaging_reaches_learners_too():
    # As for the compiled solver of the same name.
    for flags in (["--averaging=openspiel"], ["--averaging_power=3", "--averaging_delay=2"]):
        numbers = [
            rows(run("--algorithm=cfr", "--simultaneous", "--iterations=5", "--noverify", *flags, *cce))[-1][2]
            for cce in ([], ["--cce"], ["--cce", "--reduce=on"])
        ]
        assert numbers[0] == numbers[1] == numbers[2]


# Prints what would be drawn.
TELL = """
from spiel_cfrplus.analysis import plotting

def tell(runs, path, *, title):
    drawn = {name: [(row.iteration, f"{row.nash_conv:.6e}") for row in rows] for name, rows in runs.items()}
    print("drawn:", drawn, path, [title])

plotting.plot_convergence = tell
"""
# All is forgotten after iteration 3, against Lemma 2.
FORGET = """
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay

play = CompiledSelfPlay.run

def run(self, num_iterations):
    play(self, num_iterations)
    if self.iteration == 3:
        self.memory.regrets[:] = 0

CompiledSelfPlay.run = run
"""


def test_several_algorithms_run_one_after_another():
    # NashConv of Kuhn at 2 iterations in OpenSpiel's convention, exact, by an independent implementation.
    result = run("--algorithm=cfr, cfr+", "--iterations=2", "--averaging=openspiel")
    assert (result.returncode, result.stderr) == (0, "")
    assert [row[0] for row in rows(result)] == [1, 2, 1, 2]
    assert [row[2] for row in rows(result)[1::2]] == pytest.approx([13 / 24, 19 / 36], rel=1e-6)
    assert re.findall(r"^(\S+), alternating updates, averages .* weights (\S+)$", result.stdout, re.MULTILINE) == [
        ("cfr", "t^0"),
        ("cfr+", "t^1"),
    ]
    assert len(verified(result)) == 4


def test_rows_of_all_runs_are_drawn(tmp_path):
    path = tmp_path / "runs.svg"
    result = run("--algorithm=cfr+,predictive_dilated_entropy", "--iterations=20", f"--plot={path}")
    assert (result.returncode, result.stderr) == (0, "")
    picture = path.read_text()
    assert picture.endswith("</svg>\n")
    # Text is drawn as curves, with comments that tell what they are.
    for text in ("cfr+", "predictive_dilated_entropy", "kuhn_poker()", "alternating updates, average policies", "seconds"):
        assert f"<!-- {text} -->" in picture
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_drawn_is_what_was_printed(tmp_path):
    path = str(tmp_path / "runs.png")
    result = run("--algorithm=cfr,pcfr+", "--iterations=10", f"--plot={path}", "--simultaneous", "--last_iterate", before=TELL)
    assert (result.returncode, result.stderr) == (0, "")
    printed = [(int(row[0]), f"{row[2]:.6e}") for row in rows(result)]
    title = "kuhn_poker()\nsimultaneous updates, last iterates"
    assert f"drawn: { {'cfr': printed[:4], 'pcfr+': printed[4:]} } {path} {[title]}" in result.stdout


def test_ctrl_c_draws_what_there_is(tmp_path):
    path = tmp_path / "interrupted.png"
    process = start("--algorithm=cfr+,cfr", "--iterations=1000000000", f"--plot={path}")
    while not process.stdout.readline().startswith("       100 "):
        assert process.poll() is None
    assert not path.exists()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(r"interrupted at iteration \d+\n", errors)
    assert "cfr, alternating" not in output  # the second was not begun
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")


def test_a_picture_needs_matplotlib_and_a_file(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    (tmp_path / "folder.png").mkdir()
    without = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "for name in [name for name in sys.modules if name.split('.')[0] == 'matplotlib']: del sys.modules[name]"
    )
    for name, before, words in (
        ("picture.png", without, "pip install matplotlib"),
        ("folder.png", "", "folder.png is a directory"),
    ):
        result = run(f"--plot={tmp_path / name}", before=before)
        assert (result.returncode, result.stdout) == (2, "")  # before any work
        assert result.stderr.count("\n") == 1
        assert words in result.stderr
    assert not (tmp_path / "picture.png").exists()


def statements(result):
    """For every row the lines below it: what the papers' statements came to, by name."""
    found = []
    for line in result.stdout.splitlines():
        if re.fullmatch(r"[-\d.e+ ]+", line):
            found.append({})
        elif match := re.fullmatch(r" +([a-z_\d]+): (.*)", line):
            found[-1][match[1]] = match[2]
    return found


STATEMENTS = ["lemma_2", "theorem_5", "theorem_6", "identity", "cfr_plus_bound", "theorem_l8_2"]


def test_every_row_is_followed_by_the_statements():
    result = run("--check_theory", "--iterations=20")
    assert (result.returncode, result.stderr) == (0, "")
    found = statements(result)
    assert [list(below) for below in found] == [STATEMENTS] * 5
    for row, below in zip(rows(result), found, strict=True):
        slack, nash_conv, bound = map(
            float, re.match(r"slack (\S+) in iteration \d+ \(nash conv (\S+), bound (\S+)\)", below["cfr_plus_bound"]).groups()
        )
        # 12 infostates of 2 actions; returns are from -2 to 2.
        assert bound == pytest.approx(2 * 12 * 4 * (2 / row[0]) ** 0.5, rel=1e-5)
        assert nash_conv == pytest.approx(row[2], rel=1e-5)
        assert slack == pytest.approx(bound - nash_conv, rel=1e-2)
    assert "positive stored values never vanish (CFR+ paper, Lemma 2 and corollary)" in result.stdout


def test_statements_that_do_not_apply_say_why():
    result = run("--check_theory", "--algorithm=pcfr+,gradient_ascent,cfr", "--iterations=1")
    assert (result.returncode, result.stderr) == (0, "")
    predictive, ascent, cfr = statements(result)
    assert list(predictive) == list(ascent) == list(cfr) == STATEMENTS
    assert predictive["theorem_5"] == "does not apply: predictive strategies are not matched to the stored values alone"
    assert ascent["theorem_6"] == "does not apply: not all players are CFR with regret matching"
    assert cfr["cfr_plus_bound"] == "does not apply: it is proved for regret matching+"
    for found in (predictive, ascent, cfr):
        assert found["identity"].startswith("slack ")
        assert found["theorem_l8_2"].startswith("slack ")


def test_statements_about_a_resumed_run(tmp_path):
    checkpoint = f"--checkpoint={tmp_path / 'solver.npz'}"
    run(checkpoint, "--iterations=7", "--noverify")
    result = run(checkpoint, "--check_theory", "--iterations=10")
    assert (result.returncode, result.stderr) == (0, "")
    *kept, found = statements(result)
    assert kept == [{}, {}, {}, {}]  # rows of the first run, which were not checked
    assert found["identity"] == found["cfr_plus_bound"] == "does not apply: the run began before the checks"
    assert found["theorem_5"].startswith("slack ")
    again = run(checkpoint, "--check_theory", "--iterations=10")  # nothing is left to do
    assert (again.returncode, again.stderr, statements(again)) == (0, "", [{}] * 5)


def test_a_violated_statement_ends_the_runs(tmp_path):
    path = tmp_path / "picture.png"
    result = run("--check_theory", "--algorithm=cfr+,cfr", "--iterations=10", f"--plot={path}", before=FORGET)
    assert result.returncode == 1
    claim = r"error: CFR\+ paper, Lemma 2 and corollary, positive stored values never vanish"
    assert re.fullmatch(claim + r": slack -\S+ at infostate '.*' of player 0 in iteration 3\n", result.stderr)
    assert [row[0] for row in rows(result)] == [1, 2]
    assert "cfr, alternating" not in result.stdout
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")


def test_a_cache_saves_the_second_walk_and_changes_nothing_else(tmp_path):
    flags = ("--game=leduc_poker", "--iterations=20", f"--cache={tmp_path / 'walks'}")
    first, second = run(*flags), run(*flags)
    (path,) = (tmp_path / "walks").iterdir()
    assert path.name.startswith("leduc_poker-")
    assert (first.returncode, second.returncode, first.stderr, second.stderr) == (0, 0, "", "")
    assert [row[2:] for row in rows(first)] == [row[2:] for row in rows(second)]
    path.write_bytes(b"damaged")
    third = run(*flags)
    assert third.returncode == 0
    assert re.fullmatch(rf"note: {path} is not a walk cached by .* the game is walked again\n", third.stderr)
    assert [row[2:] for row in rows(third)] == [row[2:] for row in rows(first)]


def test_games_that_are_not_cached_are_solved_and_it_is_said(tmp_path):
    result = run("--game=python_kuhn_poker", "--iterations=2", f"--cache={tmp_path}")
    assert result.returncode == 0
    assert re.fullmatch(
        r"note: python_kuhn_poker\(\) is not cached in .*: it is a Python game or a matrix game, .*\n", result.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("directory", ["", "/proc/nowhere", __file__])
def test_a_cache_that_cannot_be_written_is_a_usage_error(directory):
    result = run(f"--cache={directory}")
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"error: --cache.*\n", result.stderr)


def test_the_size_of_a_large_game_is_said_before_the_walk():
    limit_memory = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (8 * 10**9, 8 * 10**9))"
    result = run("--game=chess", "--max_histories=1000", before=limit_memory)
    assert result.returncode == 2
    size = re.fullmatch(r"chess\(\): more than (\S+) histories, which take (\S+) to (\S+) GB, .*\n", result.stdout)
    histories, least, most = map(float, size.groups())
    assert histories > 2e9
    assert 50 < least < most
    warning, error = result.stderr.splitlines()
    available = re.match(r"warning: (\S+) GB are available; choose smaller game parameters, or let --max_histories", warning)
    assert 0 < float(available.group(1)) <= 8
    assert "max_histories=1000" in error


def test_nothing_is_said_about_the_size_of_a_small_game():
    assert "GB" not in run("--game=leduc_poker", "--iterations=1").stdout


@pytest.mark.slow
def test_a_large_game_is_verified_on_demand_only():
    result = run("--game=liars_dice(dice_sides=7)", "--iterations=1")
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1].startswith("not verified with OpenSpiel")


def test_a_large_game_that_fits_is_no_reason_to_warn():
    result = run("--game=liars_dice(dice_sides=7)", "--max_histories=2000")
    assert "about 1.6e+06 histories" in result.stdout
    assert "warning" not in result.stderr


def test_processes_share_the_walk_and_change_nothing_else():
    alone, shared = (run("--game=leduc_poker", "--iterations=5", f"--processes={number}") for number in (1, 2))
    assert (shared.returncode, shared.stderr) == (0, "")
    assert [row[2:] for row in rows(shared)] == [row[2:] for row in rows(alone)]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--processes=-2"], "-2 is not a positive integer"),
        (["--processes=2", "--game=python_kuhn_poker"], "cannot be walked by several processes.*use processes=1"),
        (["--walk=c++"], "--walk=c\\+\\+: value should be one of <auto.native.python>"),
        (["--walk=native", "--game=python_kuhn_poker"], "cannot be walked natively: it is a Python game .*"),
    ],
)
def test_processes_that_cannot_be_are_a_usage_error(flags, words):
    result = run(*flags)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(rf"error: .*{words}\n", result.stderr)


def test_the_time_limit_stops_the_walk_with_one_line():
    result = run("--game=hearts", "--time_limit=1")
    assert result.returncode == 124
    assert re.match(r"hearts\(\): (about|more than) \S+ histories, which take", result.stdout)
    *warned, error = result.stderr.splitlines()
    assert re.fullmatch(r"error: --time_limit=1: hearts\(\): the walk reached the time limit after \d+ .*", error)
    assert all(line.startswith("warning: ") for line in warned)


def test_the_walk_counts_for_the_time_limit():
    # The walk takes seconds.
    result = run("--game=liars_dice(dice_sides=7)", "--time_limit=0.5")
    assert (result.returncode, rows(result)) == (124, [])


@pytest.mark.parametrize(
    ("flag", "exit_code"),
    [
        ("--iterations=9223372036854775807", 2),
        ("--iterations=92233720368547758070", 2),
        (f"--iterations={2**62 - 1}", 0),
        ("--print_freq=92233720368547758070", 2),
        ("--max_histories=92233720368547758070", 0),
        ("--averaging_delay=9223372036854775807", 2),
        ("--time_limit=1e300", 0),
        ("--time_limit=inf", 0),
    ],
)
def test_very_large_numbers_work_or_are_one_line(flag, exit_code):
    result = run("--target_nash_conv=0.01", "--noverify", flag)
    assert (result.returncode, result.stderr.count("\n")) == (exit_code, exit_code // 2)


def test_a_policy_that_openspiel_cannot_evaluate_is_said_to_be_unverified():
    result = run("--game=misere(game=python_iterated_prisoners_dilemma(max_game_length=2))", "--iterations=5")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.search(r"^not verified with OpenSpiel: KeyError", result.stdout, re.MULTILINE)


def test_a_game_that_runs_out_of_memory_is_one_line_and_exit_code_2(monkeypatch, capsys):
    def job(arguments: list[str]) -> int:
        raise MemoryError("some_game() cannot be walked: MemoryError")

    monkeypatch.setattr(main, "_job", job)
    with pytest.raises(SystemExit) as stopped:
        main._run([])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "error: some_game() cannot be walked: MemoryError\n"


# Rules of the user.

RULES = """
from spiel_cfrplus import Algorithm
from spiel_cfrplus.regret_minimizers import local_rule

print("imported")

@local_rule(per_action=("regrets",), scale_free=True)
def plus(point, values, policy, memory, parameters, t):
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, 0.0)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)

linear = Algorithm("linear plus", plus, averaging_power=1.0)
number = 3
"""


def test_a_rule_in_a_module_of_the_current_folder_is_an_algorithm(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES)
    flags = ("--iterations=20", "--noexact_ties", "--reduce=off")
    result = run("--algorithm=my_rules:linear,cfr+,my_rules:plus", *flags, folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("imported\n") == 1
    mine, built_in, uniform = (rows(result)[first : first + 5] for first in (0, 5, 10))
    assert [row[2:] for row in mine] == [row[2:] for row in built_in]
    assert uniform[-1][2] != built_in[-1][2]
    assert "linear plus, alternating updates, averages by the paper convention with weights t^1\n" in result.stdout
    assert "plus, alternating updates, averages by the paper convention with weights t^0\n" in result.stdout
    assert len(verified(result)) == 6


def test_a_run_with_a_rule_of_the_user_is_resumed(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES)
    flags = ("--algorithm=my_rules:plus", "--checkpoint=saved.npz", "--noverify")
    assert run(*flags, "--iterations=10", folder=tmp_path).returncode == 0
    resumed = run(*flags, "--iterations=20", folder=tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert "resumed from saved.npz at iteration 10\n" in resumed.stdout
    (tmp_path / "my_rules.py").write_text(RULES.replace("def plus", "def plus_2").replace("plus, av", "plus_2, av"))
    other = run("--algorithm=my_rules:plus_2", *flags[1:], "--iterations=30", folder=tmp_path)
    assert other.returncode == 2
    assert re.fullmatch(r"error: .*saved\.npz was saved with .* = \('plus', .*; pass the same flags\n", other.stderr)


def test_a_rule_that_cannot_be_compiled_is_one_line(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES.replace("total = 0.0", "total = memory.nothing[0]"))
    result = run("--algorithm=my_rules:plus", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "plus cannot be compiled: `memory` contains no 'nothing'" in result.stderr


def test_a_picture_as_pdf_is_drawn_without_messages(tmp_path):
    result = run("--iterations=5", "--noverify", f"--plot={tmp_path / 'curve.pdf'}")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("my_rules:none", "'my_rules:none': my_rules has no none"),
        ("my_rules:number", "expected the name of an algorithm, an Algorithm or a rule, got 3"),
        (
            "no_such_module:rule",
            "cannot import 'no_such_module' for 'no_such_module:rule': ModuleNotFoundError: No module",
        ),
        ("broken_rules:rule", "cannot import 'broken_rules' for 'broken_rules:rule': SyntaxError: "),
        ("leaving_rules:rule", "cannot import 'leaving_rules' for 'leaving_rules:rule': SystemExit: 0"),
        ("my_rules:", "'my_rules:' is not of the form module:name"),
        ("my_rules.py:plus", "No module named 'my_rules.py'"),
    ],
)
def test_a_rule_that_cannot_be_had_is_one_line(place, words, tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES)
    (tmp_path / "broken_rules.py").write_text("def rule(:\n")
    (tmp_path / "leaving_rules.py").write_text("import sys\nsys.exit(0)\n")
    result = run(f"--algorithm={place}", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --algorithm={place}: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_flags_ask_of_a_rule_it_does_or_refuses(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES)
    for flags, words in (
        (["--step_size=1"], "plus takes no step size"),
        (["--crosscheck"], "--crosscheck is for cfr, cfr+, lcfr, dcfr, not for plus"),
        (["--algorithm=my_rules:plus,my_rules:plus"], "--algorithm names plus more than once"),
    ):
        result = run("--algorithm=my_rules:plus", *flags, folder=tmp_path)
        assert (result.returncode, result.stderr) == (2, f"error: {words}\n")
    checked = run("--algorithm=my_rules:plus", "--check_theory", "--iterations=2", "--noverify", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert statements(checked)[0]["theorem_5"] == "does not apply: the rule plus does not declare it"
    gap = run("--algorithm=my_rules:plus", "--simultaneous", "--cce", "--iterations=5", "--noverify", folder=tmp_path)
    assert rows(gap)[-1][5] > 0


def test_the_current_folder_is_not_searched_if_python_is_told_so(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULES)
    python, *rest = command("--algorithm=my_rules:plus", "--iterations=1")
    result = subprocess.run([python, "-P", *rest], capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert result.returncode == 2
    assert "No module named 'my_rules'" in result.stderr


# The linear program.


def test_the_linear_program_prints_one_row_and_saves_its_policy(tmp_path):
    path = tmp_path / "kuhn.npz"
    result = run("--algorithm=lp", f"--save_policy={path}", "--json")
    assert result.returncode == 0, result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["algorithm"], row["fraction"]) == ("lp", "-1/18")  # Kuhn 1950
    assert row["lower_bound"] - 1e-15 <= row["value"] <= row["upper_bound"] + 1e-15
    game = pyspiel.load_game("kuhn_poker")
    assert pyspiel.nash_conv(game, load_policy(path, game).to_pyspiel_policy()) < 1e-14


def test_the_linear_program_as_text():
    lines = run("--algorithm=lp").stdout.splitlines()
    assert lines[1:3] == [
        "linear program: 20 rows, 33 columns, 81 nonzeros",
        "  seconds      NashConv        value of player 0    as a fraction",
    ]
    assert lines[3].split()[2:] == ["-0.05555555555555555", "-1/18"]
    assert lines[4].startswith("NashConv of the exact policy: ")


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--crosscheck"], 2, "error: --crosscheck has no effect with --algorithm=lp, which does not iterate\n"),
        (["--iterations=3"], 2, "error: --iterations has no effect with --algorithm=lp, which does not iterate\n"),
        (["--checkpoint=a.npz"], 2, "error: --checkpoint has no effect with --algorithm=lp, which does not iterate\n"),
        (
            ["--algorithm=lp,cfr"],
            2,
            "error: --algorithm=lp cannot be combined with other algorithms, whose rows are iterations\n",
        ),
        (
            ["--players=3"],
            2,
            "error: --algorithm=lp: solve_exactly is for two-player constant-sum games only, not for kuhn_poker",
        ),
        (
            ["--tremble=0.5"],
            2,
            "error: --algorithm=lp: tremble=0.5 must be at least 0 and less than 1/2, because an infostate of",
        ),
    ],
)
def test_the_linear_program_refuses_other_flags_and_games(flags, code, message):
    result = run("--algorithm=lp", *flags)
    assert result.returncode == code
    assert message in result.stderr


@pytest.mark.slow
def test_the_linear_program_with_trembles():
    """Trembles of 0.01 cost player 1 more; `test_exact` compares such values with those of matrix games."""
    result = run("--algorithm=lp", "--tremble=0.01", "--json")
    assert result.returncode == 0, result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert -1 / 18 < row["value"] == pytest.approx(solve_exactly(pyspiel.load_game("kuhn_poker"), tremble=0.01).value)
    assert row["upper_bound"] - row["lower_bound"] < 1e-14


# The distance from the exact value.


def test_rows_show_the_distance_from_the_exact_value():
    """The value of Kuhn poker is -1/18 (Kuhn 1950)."""
    result = run("--exact", "--json", "--iterations=10", "--noverify")
    assert result.returncode == 0, result.stderr
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["iteration"] for row in printed] == [1, 2, 5, 10]
    assert [row["value_error"] for row in printed] == pytest.approx([abs(row["value"] + 1 / 18) for row in printed], abs=1e-15)
    assert "exact value: -0.05555555555555555 = -1/18 (linear program: 20 rows" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--crosscheck"], "error: --exact has no effect with --crosscheck\n"),
        (["--algorithm=lp"], "error: --exact has no effect with --algorithm=lp, which does not iterate\n"),
        (
            ["--players=3"],
            "error: --exact: solve_exactly is for two-player constant-sum games only, not for kuhn_poker(players=3)",
        ),
        (["--game=first_sealed_auction(max_value=2)"], "error: --exact: solve_exactly is for two-player constant-sum"),
    ],
)
def test_the_exact_value_is_refused_by_name(flags, message):
    result = run("--exact", *flags)
    assert (result.returncode, result.stdout.count("iteration")) == (2, 0)
    assert message in result.stderr
