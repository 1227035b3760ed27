"""A run of a sweep: it saves its state to its own folder, so that it can be stopped at any time and continued.

A folder contains `outcome.json` when the run is finished, `rows.csv` and `run.npz` from its first row on, and `lock`, which the
process that works on the run holds.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyspiel

from spiel_cfrplus._utils.files import atomic_write, locked
from spiel_cfrplus._utils.memory import peak_bytes
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.row_files import RowFile
from spiel_cfrplus.game.checks import why_string_is_not_enough
from spiel_cfrplus.game.named_games import game_parameters, import_modules, load_parameters
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.turn_based import turn_based_form
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.algorithms import ALGORITHMS, PARAMETERS, algorithm_of
from spiel_cfrplus.solving.curve import Curve, Row
from spiel_cfrplus.solving.solvers import Solver, make_solver
from spiel_cfrplus.sweeps.plans import REDUCE, RunPlan

DONE, REFUSED, FAILED = "done", "refused", "failed"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
      status: `DONE`; `REFUSED` if the game, the algorithm or an option was refused; or `FAILED` by any other error.
      message: the error; empty if there is none.
      num_histories, num_infostates, num_sequences: the size of the game.
      iteration, seconds, nash_conv, exploitability, value, peak_bytes: the last row, see `Row`.
    """

    status: str
    message: str = ""
    num_histories: int | None = None
    num_infostates: int | None = None
    num_sequences: int | None = None
    iteration: int | None = None
    seconds: float | None = None
    nash_conv: float | None = None
    exploitability: float | None = None
    value: float | None = None
    peak_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Task:
    """What a worker needs to know about a run.

    Attributes:
      plan: the run.
      folder: the folder of the run; created if it does not exist.
      walks: the folder with the cached walks of all runs.
      checkpoint_every: seconds between saves between rows.
      parent: the process that distributes the runs, if the worker is to end with it.
      search_path: folders in which the worker finds modules of rules and games, besides its own.
    """

    plan: RunPlan
    folder: str
    walks: str
    checkpoint_every: float = 60.0
    parent: int | None = None
    search_path: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class WalkTask:
    """A game to walk through.

    Attributes:
      game: its string.
      walks: the folder with the cached walks.
      max_histories: refuse it if it has more histories.
    """

    game: str
    walks: str
    max_histories: int | None


def modules_of(plan: RunPlan) -> list[str]:
    """The modules that register the games of a run."""
    return plan.modules.split(",") if plan.modules else []


def load_game(name: str) -> pyspiel.Game:
    """Loads a game in its turn-based form.

    Raises:
      ValueError: there is no such game, or it cannot be loaded.
    """
    importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games
    try:
        with silent_stderr():
            return turn_based_form(load_parameters(game_parameters(name)))
    except (Exception, SystemExit) as error:  # a game may be a Python program, which can raise anything
        raise ValueError(f"cannot load {name!r}: {_first_line(error)}") from error


def walk(task: WalkTask) -> str:
    """Walks through a game and caches the walk; returns the reason if it is refused, otherwise an empty text."""
    try:
        _compiled(task.game, task.walks, task.max_histories)
    except (Exception, SystemExit) as error:  # a game may be a Python program, which can raise anything
        return _first_line(error)
    return ""


def perform(task: Task) -> Outcome:
    """Does a run, or what is missing of it, and returns its outcome; all errors are outcomes."""
    sys.path += [folder for folder in task.search_path if folder not in sys.path]
    try:
        os.makedirs(task.folder, exist_ok=True)
        with locked(f"{task.folder}/lock"):  # a process of a sweep that was killed may still work on the run
            known = read_outcome(task.folder)
            return _finish(task) if known is None else known
    except OSError as error:
        return Outcome(FAILED, _first_line(error))


def read_outcome(folder: str) -> Outcome | None:
    """The outcome of the run in a folder; None if it is not finished."""
    try:
        return Outcome(**json.loads(pathlib.Path(folder, "outcome.json").read_text(encoding="utf-8"))["outcome"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def write_outcome(folder: str, plan: RunPlan, outcome: Outcome) -> None:
    """Finishes the run in a folder.

    Raises:
      OSError: the file cannot be written.
    """
    content = {"run": dataclasses.asdict(plan), "command": plan.command, "outcome": dataclasses.asdict(outcome)}
    with atomic_write(f"{folder}/outcome.json") as file:
        file.write(json.dumps(content, indent=1).encode())


def _finish(task: Task) -> Outcome:
    outcome = _outcome(task)
    write_outcome(task.folder, task.plan, outcome)
    return outcome


def _outcome(task: Task) -> Outcome:
    sizes: dict[str, Any] = {}
    try:
        import_modules(modules_of(task.plan))
        game = _compiled(task.plan.game, task.walks, task.plan.max_histories)
        sizes = {
            "num_histories": game.tree.num_histories,
            "num_infostates": game.num_infostates,
            "num_sequences": game.num_sequences,
        }
        run = _checkpointed_run(task, game)
        rows = _remaining_rows(task, run)
    except (TypeError, ValueError) as error:
        return Outcome(REFUSED, _first_line(error), **sizes)
    except (Exception, SystemExit) as error:
        return Outcome(FAILED, _in_words(error), **sizes)
    try:
        known = {run.solver.algorithm.name: run.curve.rows}
        with RowFile(f"{task.folder}/rows.csv", known) as file:
            for row in rows:
                file.write(run.solver.algorithm.name, row)
        return Outcome(DONE, **sizes, **_measured(run.curve.rows[-1]))
    except KeyboardInterrupt:
        run.save()
        raise
    except (Exception, SystemExit) as error:
        return Outcome(FAILED, _in_words(error), **sizes)


def _measured(row: Row) -> dict[str, Any]:
    names = ("iteration", "seconds", "nash_conv", "exploitability", "value")
    return {**{name: getattr(row, name) for name in names}, "peak_bytes": peak_bytes()}


@functools.lru_cache(maxsize=1)
def _compiled(name: str, walks: str, max_histories: int | None) -> SequenceFormGame:
    """The compiled game, which a process uses for several runs; other games are removed from memory.

    Games whose strings do not determine them are not cached on disk, so each process walks through them.
    """
    game = load_game(name)
    cache = walks if why_string_is_not_enough(game) is None else None
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return compile_game(game, max_histories=max_histories, cache=cache)


def _checkpointed_run(task: Task, game: SequenceFormGame) -> CheckpointedRun:
    """The run at the state of its checkpoint, or at its beginning."""
    plan, path = task.plan, f"{task.folder}/run.npz"
    algorithm, curve = algorithm_of(plan.algorithm), Curve(last_iterate=plan.last_iterate)
    given = {name: getattr(plan, name) for name in PARAMETERS}
    algorithm = algorithm.with_parameters(**{name: value for name, value in given.items() if value is not None})
    if os.path.exists(path):
        rule = None if algorithm.name in ALGORITHMS else algorithm
        solver = Solver.load(path, game, rule=rule, threads=plan.threads)
        curve = dataclasses.replace(checkpoint.read_curve(path), last_iterate=plan.last_iterate)
    else:
        solver = make_solver(
            algorithm,
            game,
            alternating=plan.alternating,
            averaging=plan.weights(),
            reduce=REDUCE[plan.reduce],
            exact_ties=plan.exact_ties,
            threads=plan.threads,
        )
    return CheckpointedRun(solver, path, every=task.checkpoint_every, curve=curve)


def _remaining_rows(task: Task, run: CheckpointedRun) -> Iterator[Row]:
    plan, curve = task.plan, run.curve
    reached = plan.target_nash_conv is not None and any(row.nash_conv <= plan.target_nash_conv for row in curve.rows)
    return run.convergence(
        0 if reached else max(0, plan.iterations - run.solver.iteration),
        report_every=plan.print_freq,
        rows_per_decade=plan.rows_per_decade,
        target_nash_conv=plan.target_nash_conv,
        time_limit=None if plan.time_limit is None else plan.time_limit - curve.seconds,
        run=_ending_with(task.parent, run.solver.run),
    )


def _ending_with(parent: int | None, run: Callable[[int], object]) -> Callable[[int], None]:
    """`run`, after which the process ends if its parent has ended, because nobody would receive its results."""

    def run_and_check(num_iterations: int) -> None:
        run(num_iterations)
        if parent is not None and parent not in (os.getppid(), os.getpid()):  # joblib runs a single job in the parent itself
            os._exit(1)

    return run_and_check


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
