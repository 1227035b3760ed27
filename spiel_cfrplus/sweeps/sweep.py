"""Sweeps: the runs of a plan, in parallel, in a folder from which a sweep that was stopped continues.

    table = run_sweep("sweep.toml", "results")

The folder contains

* `runs.csv` and `runs.parquet`: a row for each finished run, with the command that repeats it,
* `curves.csv` and `curves.parquet`: the convergence rows of all runs,
* `runs/ID/`: the state, the rows and the outcome of each run, see the module `runs`,
* `walks/`: the cached walks through the games,
* `lock`: held by the process of the sweep.

Parquet needs pyarrow. With several machines the folder must be on a file system that all of them see.

>>> import tempfile
>>> from spiel_cfrplus.sweeps.plans import plan_sweep
>>> plans = plan_sweep(["kuhn_poker", "catch"], ["cfr+"], iterations=100)
>>> with tempfile.TemporaryDirectory() as folder:
...     table = run_sweep(plans, folder, engine="serial")
>>> [(row["game"], row["status"], row["num_infostates"]) for row in table]
[('kuhn_poker', 'done', 12), ('catch', 'refused', None)]
>>> round(table[0]["nash_conv"], 6)
0.001915
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence

from spiel_cfrplus._utils.files import checked_path, locked
from spiel_cfrplus._utils.progress import progress_bar
from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.game import trial, walk_cache
from spiel_cfrplus.game.checks import why_string_is_not_enough
from spiel_cfrplus.game.named_games import import_modules
from spiel_cfrplus.sweeps.engines import Distribute, check_engine, start_engine
from spiel_cfrplus.sweeps.plans import RunPlan, read_plans
from spiel_cfrplus.sweeps.runs import (
    FAILED,
    REFUSED,
    Outcome,
    Task,
    WalkTask,
    load_game,
    modules_of,
    perform,
    read_outcome,
    walk,
    write_outcome,
)
from spiel_cfrplus.sweeps.tables import Table, table_of_rows, table_of_runs, write_table


def run_sweep(
    plans: Sequence[RunPlan] | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    engine: str = "joblib",
    address: str | None = None,
    jobs: int | None = None,
    retry: bool = False,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> Table:
    """Does the runs that are not finished, and writes the tables.

    Runs that are finished, refused or failed have an outcome in the folder and are not repeated. A run that was stopped
    continues from its last checkpoint. Only its seconds and its memory depend on that, and on the engine.

    Args:
      plans: the runs, see `plan_sweep`; or the path of a TOML file, see `read_plans`.
      folder: the folder of the sweep, which may contain the runs of other sweeps; created if it does not exist.
      engine: "joblib" (processes of this machine), "dask", "ray" or "serial" (no processes).
      address: the cluster of Dask or Ray; by default a local one is started.
      jobs: the number of local processes; that of the cores by default.
      retry: whether runs that failed are done again.
      checkpoint_every: seconds between saves of a run between its rows.
      progress: show a progress bar on standard error, if that is a terminal.

    Returns:
      A row for each run, in the order of the plans: `run` (its name), the attributes of `RunPlan` and `Outcome`, and `command`.

    Raises:
      BlockingIOError: another process runs a sweep in the folder.
      ImportError: the library of the engine is not installed, or a module of the plans cannot be imported.
      OSError: a file cannot be read or written.
      TypeError, ValueError: invalid arguments, or see `read_plans`.
    """
    if isinstance(plans, str | os.PathLike):
        plans = read_plans(plans)
    _import_modules(plans)
    check_engine(engine, address, jobs)
    if not checked_number(checkpoint_every, "checkpoint_every") >= 0:
        raise ValueError(f"checkpoint_every must be a number of seconds of 0 or more, got {checkpoint_every}")
    sweep = _Sweep(tuple(dict.fromkeys(plans)), pathlib.Path(checked_path(folder, "folder")).resolve(), checkpoint_every)
    with _folder_of_one_sweep(sweep.folder), progress_bar(progress, unit="runs", total=len(sweep.plans)) as advance:
        sweep.read_outcomes(retry)
        advance(len(sweep.outcomes))
        try:
            for _ in sweep.run(engine, address, jobs):
                advance(1)
        finally:
            table = sweep.write_tables()
    return table


def _import_modules(plans: Sequence[RunPlan]) -> None:
    """Imports the modules of the plans, because games are loaded here to see whether they can be."""
    try:
        import_modules(dict.fromkeys(name for plan in plans for name in modules_of(plan)))
    except ImportError as error:
        raise ImportError(f"cannot import {error.name}: {error}", name=error.name) from error


@contextlib.contextmanager
def _folder_of_one_sweep(folder: pathlib.Path) -> Iterator[None]:
    """Creates the folder, and refuses it if another process runs a sweep in it."""
    folder.joinpath("walks").mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / "lock", wait=False):
            yield
    except BlockingIOError as error:
        raise BlockingIOError(error.errno, "another process runs a sweep in this folder", str(folder)) from error


class _Sweep:
    """The state of a sweep.

    Attributes:
      plans: the runs.
      folder: the folder of the sweep.
      outcomes: the outcomes of the finished runs.
    """

    def __init__(self, plans: tuple[RunPlan, ...], folder: pathlib.Path, checkpoint_every: float):
        self.plans = plans
        self.folder = folder
        self.outcomes: dict[RunPlan, Outcome] = {}
        self._checkpoint_every = checkpoint_every
        self._folders = {plan: str(folder / "runs" / plan.id) for plan in plans}

    def read_outcomes(self, retry: bool) -> None:
        """Reads the outcomes of runs that are finished."""
        for plan in self.plans:
            outcome = read_outcome(self._folders[plan])
            if retry and outcome is not None and outcome.status == FAILED:
                os.unlink(pathlib.Path(self._folders[plan], "outcome.json"))
            elif outcome is not None:
                self.outcomes[plan] = outcome

    def write_tables(self) -> Table:
        """Writes the tables of the finished runs, and returns that of the runs."""
        finished = {plan: self.outcomes[plan] for plan in self.plans if plan in self.outcomes}
        table = table_of_runs(finished)
        write_table(table, self.folder / "runs")
        write_table(table_of_rows(list(finished), self._folders), self.folder / "curves")
        return table

    def run(self, engine: str, address: str | None, jobs: int | None) -> Iterator[RunPlan]:
        """Does the runs that are not finished, and yields each when it is finished."""
        if not self._missing():
            return
        yield from self._refuse_crashing_games()
        with start_engine(engine, address=address, jobs=jobs) as distribute:
            yield from self._walk(distribute)
            parent = os.getpid() if engine == "joblib" else None
            search_path = tuple(map(os.path.abspath, sys.path))
            tasks = [
                Task(plan, self._folders[plan], str(self.folder / "walks"), self._checkpoint_every, parent, search_path)
                for plan in self._missing()
            ]
            for task, result in distribute(perform, tasks):
                failed = isinstance(result, BaseException)
                yield from self._finish(
                    task.plan, Outcome(FAILED, f"{type(result).__name__}: {result}") if failed else result, failed
                )

    def _missing(self) -> list[RunPlan]:
        return [plan for plan in self.plans if plan not in self.outcomes]

    def _finish(self, plan: RunPlan, outcome: Outcome, write: bool) -> Iterator[RunPlan]:
        if write:
            os.makedirs(self._folders[plan], exist_ok=True)
            write_outcome(self._folders[plan], plan, outcome)
        self.outcomes[plan] = outcome
        yield plan

    def _refuse(self, game: str, reason: str) -> Iterator[RunPlan]:
        for plan in self._missing():
            if plan.game == game:
                yield from self._finish(plan, Outcome(REFUSED, reason), True)

    def _refuse_crashing_games(self) -> Iterator[RunPlan]:
        """Refuses games that would end a worker, and games that do not exist."""
        for game in dict.fromkeys(plan.game for plan in self._missing()):
            if reason := _fault_of(game):
                yield from self._refuse(game, reason)

    def _walk(self, distribute: Distribute) -> Iterator[RunPlan]:
        """Walks through the games that are not yet cached, each once, and refuses those that cannot be compiled."""
        limits: dict[str, int | None] = {}
        for plan in self._missing():
            known = limits.get(plan.game, 0)
            limits[plan.game] = None if known is None or plan.max_histories is None else max(known, plan.max_histories)
        walks = str(self.folder / "walks")
        tasks = [WalkTask(game, walks, limit) for game, limit in limits.items() if _is_to_walk(game, walks)]
        for task, result in distribute(walk, tasks):
            if result:
                yield from self._refuse(task.game, str(result))


def _fault_of(game: str) -> str | None:
    """Why a game cannot be loaded."""
    if fault := trial.fault_of(lambda: load_game(game)):
        return f"cannot load {game!r}: {fault}"
    try:
        load_game(game)
    except ValueError as error:
        return str(error)
    return None


def _is_to_walk(name: str, walks: str) -> bool:
    game = load_game(name)
    return why_string_is_not_enough(game) is None and not walk_cache.is_cached(game, walks)
