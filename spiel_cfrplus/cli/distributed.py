"""`spiel-cfrplus solve --distributed`: one game in all processes that `mpiexec` has started. Process 0 prints."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cfrplus.analysis.convergence import report_iterations
from spiel_cfrplus.cli import program
from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.cli.games import load_game
from spiel_cfrplus.cli.json_lines import PrintRow
from spiel_cfrplus.cli.options import Options
from spiel_cfrplus.cli.report import print_header, print_row, updates_in_words
from spiel_cfrplus.distributed import (
    DistributedGame,
    DistributedSelfPlay,
    MPICommunicator,
    PartError,
    checkpoints,
    compile_in_parts,
)
from spiel_cfrplus.distributed.communicator import Communicator
from spiel_cfrplus.distributed.compilation import parts_of
from spiel_cfrplus.distributed.cut import Cut
from spiel_cfrplus.distributed.results import save_policy
from spiel_cfrplus.distributed.run import DistributedRun
from spiel_cfrplus.game.walk_limits import WalkLimits
from spiel_cfrplus.regret_minimizers.compiled_rules import RuleCompilationError

# In bytes.
_LONGEST_PLACE = 128
# An error that all processes have is printed by process 0, which ends the others before they print it again.
_SECONDS_FOR_PROCESS_0 = 1.0


def solve(options: Options, print_json: PrintRow | None) -> int:
    """Solves the game in parts; returns the exit code.

    An error in one process ends all of them, with a message that names the process.

    Raises:
      UsageError: the same error in all processes, raised in the first of them only.
    """
    loaded = _loaded(options)  # before MPI starts, because the trial of a game forks
    try:
        communicator = MPICommunicator()
    except ImportError as error:
        raise UsageError(f"--distributed: {error}") from error
    with _ending_all(communicator), _printing_once(communicator):
        game = _agreed(loaded, communicator)
        return _solve(game, communicator, options, _of_process_0(print_json, communicator))


@contextlib.contextmanager
def _ending_all(communicator: MPICommunicator) -> Iterator[None]:
    """Ends all processes if an exception ends this one, because the others would wait for its messages forever."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        if communicator.rank > 0:
            time.sleep(_SECONDS_FOR_PROCESS_0)
        known = isinstance(
            error, UsageError | PartError | MemoryError | OSError | ValueError | KeyboardInterrupt | TimeoutError
        )
        text = first_line(error) or type(error).__name__
        where = "" if isinstance(error, PartError) else f"process {communicator.rank}: "
        print(f"error: {where}{text if known else repr(error)}", file=sys.stderr, flush=True)
        if not known:
            sys.excepthook(type(error), error, error.__traceback__)
        late = isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError)
        communicator.end_all(program.EXIT_TIME_LIMIT if late else program.EXIT_USAGE)


@contextlib.contextmanager
def _printing_once(communicator: Communicator) -> Iterator[None]:
    """Discards what processes other than 0 print on standard output."""
    with contextlib.ExitStack() as stack:
        if communicator.rank > 0:
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))
        yield


def _of_process_0(print_json: PrintRow | None, communicator: Communicator) -> PrintRow | None:
    return print_json if print_json is None or communicator.rank == 0 else lambda row: None


class _Loaded(NamedTuple):
    """A game, or the reason why it cannot be loaded; and what was printed."""

    game: pyspiel.Game | None
    problem: str
    printed: str


def _loaded(options: Options) -> _Loaded:
    game, problem = None, ""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            game = load_game(options.game, options.players, options.modules)
        except UsageError as error:
            problem = first_line(error)
    return _Loaded(game, problem, printed.getvalue())


def _agreed(loaded: _Loaded, communicator: Communicator) -> pyspiel.Game:
    """The game, if all processes have loaded it; otherwise the first one that has not prints its error, and all end."""
    rows = communicator.gather_rows(np.array([[loaded.game is None]], np.int64))
    failed = [rank for rank, row in enumerate(rows) if row[0, 0]]
    if loaded.game is None or failed:
        if communicator.rank == failed[0]:
            print(f"error: {loaded.problem}", file=sys.stderr, flush=True)
        sys.exit(program.EXIT_USAGE)
    print(loaded.printed, end="")
    return loaded.game


def _solve(game: pyspiel.Game, communicator: Communicator, options: Options, print_json: PrintRow | None) -> int:
    (run,) = options.runs
    limits = WalkLimits.starting_now(options.max_histories, options.time_limit)
    compiled = _compiled(game, communicator, options, limits)
    session = DistributedSelfPlay(
        compiled, run.algorithm, averaging=run.averaging, alternating=options.alternating, exact_ties=options.exact_ties
    )
    print(f"{run.algorithm}, {updates_in_words(run.algorithm, options.alternating)}, {session.num_boundary} boundary sequences")
    try:
        play = DistributedRun(session, options.checkpoint, every=options.checkpoint_every, last_iterate=options.last_iterate)
    except (OSError, ValueError) as error:
        raise UsageError(f"--checkpoint={options.checkpoint}: {error}") from error
    if session.iteration > 0:
        print(f"resumed from {options.checkpoint} at iteration {session.iteration}")
    _iterate(play, options, print_json, None if options.time_limit is None else limits.seconds_left)
    if options.save_policy is not None:
        save_policy(session, options.save_policy, options.last_iterate)
        print(f"{'current' if options.last_iterate else 'average'} policy saved to {options.save_policy}")
    return 0


def _compiled(game: pyspiel.Game, communicator: Communicator, options: Options, limits: WalkLimits) -> DistributedGame:
    started = time.perf_counter()
    folder = options.checkpoint
    cut: dict[str, Any] = {"num_parts": options.parts, "ply": options.cut}
    if folder is not None and checkpoints.exists(folder):
        try:
            cut = {"cut": _same_cut(checkpoints.read_cut(folder, game), options)}
        except (OSError, ValueError) as error:
            raise UsageError(f"--checkpoint={folder}: {error}") from error
    compiled = compile_in_parts(game, communicator, **cut, limits=limits, walk=options.walk)
    print(f"{compiled}; {compiled.num_histories} histories, compiled in {time.perf_counter() - started:.2f} s")
    # With these lines a process that mpiexec reports as killed can be found.
    for rank, place in enumerate(_places(communicator)):
        print(f"process {rank}, {place}: parts {', '.join(map(str, parts_of(compiled.rank_of, rank))) or 'none'}")
    sys.stdout.flush()
    return compiled


def _same_cut(saved: Cut, options: Options) -> Cut:
    """Checks that the cut of a checkpoint is the one that the flags ask for.

    Raises:
      ValueError: it is not.
    """
    if options.parts not in (None, saved.most_parts):
        raise ValueError(f"it was saved with --parts={saved.most_parts}; pass the same flag")
    plies = {len(history) for history in saved.histories}
    if options.cut is not None and plies != {options.cut}:
        raise ValueError(f"its cut is at the plies {sorted(plies)}, not at --cut={options.cut}; pass the same flag")
    return saved


def _places(communicator: Communicator) -> list[str]:
    """The process id and the machine of each process."""
    name = f"pid {os.getpid()} on {socket.gethostname()}".encode()[:_LONGEST_PLACE].ljust(_LONGEST_PLACE)
    rows = communicator.gather_rows(np.frombuffer(name, np.int64).reshape(1, -1))
    return [row.tobytes().decode(errors="replace").strip() for row in rows]


def _print_exchanges(play: DistributedRun) -> None:
    """Prints the least and the largest share of exchanges, so that a slow process is visible; nothing for one process."""
    shares = 100 * play.processes().exchanging
    if len(shares) > 1 and play.session.game.communicator.rank == 0:
        least, most = int(shares.argmin()), int(shares.argmax())
        text = (
            f"exchanges took {shares[least]:.0f} % (process {least}) to {shares[most]:.0f} % (process {most}) of the iterations"
        )
        print(f"note: {text}", file=sys.stderr, flush=True)


def _iterate(play: DistributedRun, options: Options, print_json: PrintRow | None, time_limit: float | None) -> None:
    session = play.session
    reports = report_iterations(session.iteration, options.num_iterations, options.report_every, options.rows_per_decade)
    print_header(options)
    if session.iteration < options.num_iterations:
        try:
            for row in play.rows(reports, target_nash_conv=options.target_nash_conv, time_limit=time_limit):
                print_row(options, print_json, None, session.algorithm.name, row)
                _print_exchanges(play)
        except (RuleCompilationError, ValueError) as error:  # such as numbers outside the range of a float64
            raise UsageError(f"{session.algorithm} cannot continue: {first_line(error)}") from error
    else:
        print(f"note: the checkpoint is at iteration {session.iteration} already", file=sys.stderr)
    processes = play.processes()
    for rank, (share, peak) in enumerate(zip(processes.exchanging.tolist(), processes.peak_bytes.tolist(), strict=True)):
        print(f"process {rank}: exchanges took {100 * share:.0f} % of the iterations, peak memory {peak / 1e9:.2f} GB")
