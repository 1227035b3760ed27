"""Games in several processes, which mpiexec starts: the plain solver's results, for any number of processes."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from command_line import run
from repository import ROOT, SCRIPTS

from spiel_cfrplus import CFRPlusSolver, load_policy

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]))
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec: pip install '.[cluster]'")


def mpi(num_processes: int, *flags: str) -> list[str]:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install '.[cluster]'")
    assert MPIEXEC is not None
    return [
        MPIEXEC,
        "-n",
        str(num_processes),
        sys.executable,
        str(SCRIPTS / "run.py"),
        "solve",
        "--distributed",
        "--json",
        *flags,
    ]


def solve(num_processes: int, *flags: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, float]]]:
    """Runs the command; returns the process and its rows."""
    done = subprocess.run(mpi(num_processes, *flags), capture_output=True, text=True, timeout=300, cwd=ROOT)
    return done, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@needs_mpi
def test_processes_resume_each_others_checkpoints_and_write_one_policy(leduc, tmp_path):
    flags = ("--game=leduc_poker", f"--checkpoint={tmp_path / 'run'}")
    first, rows = solve(2, *flags, "--iterations=5")
    assert (first.returncode, [row["iteration"] for row in rows]) == (0, [1, 2, 5]), first.stderr
    assert re.search(r"process 1, pid \d+ on .*: parts 1, ", first.stderr)
    second, rows = solve(3, *flags, "--iterations=10", f"--save_policy={tmp_path / 'policy'}")
    assert (second.returncode, [row["iteration"] for row in rows]) == (0, [10]), second.stderr
    assert "at iteration 5" in second.stderr
    solver = CFRPlusSolver(leduc, reduce=False)
    solver.run(10)
    assert rows[0]["nash_conv"] == pytest.approx(solver.nash_conv(), abs=1e-13)
    policy = load_policy(tmp_path / "policy", leduc)
    assert policy.probabilities == pytest.approx(solver.average_profile().probabilities, abs=1e-12)


@needs_mpi
@pytest.mark.slow
def test_errors_end_all_processes(tmp_path):
    for flags, words in (
        (["--game=no_such_game"], "unknown game"),
        (["--game=kuhn_poker", "--cut=9"], "ends before ply 9"),
        (["--game=kuhn_poker", "--parts=1"], "parts for 2 processes"),
        (["--game=kuhn_poker", f"--checkpoint={tmp_path / 'file' / 'x'}"], "process"),
    ):
        (tmp_path / "file").write_text("")
        done, _ = solve(2, *flags, "--iterations=1")
        assert done.returncode != 0
        assert words in done.stderr


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("killed", range(4))
def test_a_killed_process_ends_the_job_and_the_same_command_resumes(killed, tmp_path):
    """Processes are killed at different times; some runs continue with another number of processes."""
    flags = ("--game=leduc_poker", "--iterations=4000")  # seconds, so that the job does not end before it is killed
    _, expected = solve(2, *flags)
    flags = (*flags, f"--checkpoint={tmp_path}", "--checkpoint_every=0.1")
    job = subprocess.Popen(mpi(2, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    pids = {}
    assert job.stderr is not None
    while len(pids) < 2 and (line := job.stderr.readline()):
        if found := re.match(r"process (\d+), pid (\d+)", line):
            pids[int(found[1])] = int(found[2])
    while not (tmp_path / "checkpoint.json").exists():
        assert job.poll() is None
        time.sleep(0.01)
    time.sleep(0.3 * killed)
    os.kill(pids[killed % 2], signal.SIGKILL)
    job.communicate(timeout=60)
    assert job.returncode != 0
    done, rows = solve(2 + killed % 2, *flags)
    assert done.returncode == 0, done.stderr
    assert "resumed from" in done.stderr
    assert rows[-1]["nash_conv"] == expected[-1]["nash_conv"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--distributed", "--threads=2"], "--threads has no effect with --distributed"),
        (["--distributed", "--algorithm=cfr,cfr+"], "--distributed is for one algorithm"),
        (["--distributed", "--algorithm=dilated_entropy"], "--distributed is for cfr"),
        (["--distributed", "--checkpoint="], "--checkpoint needs the name of a folder"),
        (["--parts=3"], "--parts has no effect without --distributed"),
        (["--cut=3"], "--cut has no effect without --distributed"),
    ],
)
def test_flags_without_effect_are_refused(flags, words):
    done = run(*flags)
    assert done.returncode == 2
    assert words in done.stderr
