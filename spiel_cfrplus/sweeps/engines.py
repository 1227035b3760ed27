"""Engines: how the runs of a sweep are distributed.

An engine is a context manager that starts workers, and yields a function that calls a function for many tasks and yields
each task with its result, or with the exception, in the order in which they end.

| name | workers |
|---|---|
| `serial` | this process |
| `joblib` | processes of this machine |
| `dask` | those of a Dask cluster, or processes of this machine |
| `ray` | those of a Ray cluster, or processes of this machine |
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from spiel_cfrplus._utils.validation import checked_positive, num_cores

Task = TypeVar("Task")
Results = Iterator[tuple[Task, Any]]
# Calls a function for each task; the exception is the result of a task whose worker failed.
Distribute = Callable[[Callable[[Any], Any], Sequence[Any]], Results[Any]]


class WorkerError(RuntimeError):
    """The process of a run ended, for example because memory ran out."""


@contextlib.contextmanager
def start_engine(name: str, *, address: str | None = None, jobs: int | None = None) -> Iterator[Distribute]:
    """Starts the workers of an engine; they end with the context.

    Args:
      name: a key of `ENGINES`.
      address: the cluster of Dask or Ray, as their clients take it; by default a local one is started.
      jobs: the number of local processes; that of the cores by default.

    Raises:
      ImportError: the library is not installed.
      ValueError: unknown engine, or options that it does not take.
    """
    check_engine(name, address, jobs)
    with ENGINES[name](address, jobs or num_cores() or 1) as distribute:
        yield distribute


def check_engine(name: str, address: str | None = None, jobs: int | None = None) -> None:
    """Checks the arguments of `start_engine`, and that its library is installed."""
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; choose one of {', '.join(ENGINES)}")
    if jobs is not None:
        checked_positive(jobs, "jobs")
    if address is not None and name not in _CLUSTERS:
        raise ValueError(f"an address is for the engines {' and '.join(_CLUSTERS)}, not for {name}")
    if jobs is not None and (address is not None or name == "serial"):
        raise ValueError(f"a number of jobs is for processes of this machine, not for {address or name}")
    if name in _LIBRARIES:
        _imported(name)


def _imported(name: str) -> Any:
    library, extra = _LIBRARIES[name]
    try:
        return importlib.import_module(library)
    except ImportError as error:
        message = f"the engine {name} requires {library}, which is not installed; pip install 'spiel_cfrplus[{extra}]'"
        raise ImportError(message) from error


@contextlib.contextmanager
def _serial(address: str | None, jobs: int) -> Iterator[Distribute]:
    yield lambda function, tasks: ((task, function(task)) for task in tasks)


@contextlib.contextmanager
def _joblib(address: str | None, jobs: int) -> Iterator[Distribute]:
    joblib = _imported("joblib")

    def distribute(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Results[Any]:
        # In the order of the tasks' ends, and one task at a time, because they take different times.
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        missing = set(tasks)
        try:
            for task, result in parallel(joblib.delayed(_with_task)(function, task) for task in tasks):
                missing.remove(task)
                yield task, result
        except importlib.import_module("joblib.externals.loky").process_executor.BrokenProcessPool:
            for task in tasks:
                if task in missing:
                    yield task, _in_own_process(function, task)

    yield distribute


def _with_task(function: Callable[[Any], Any], task: Any) -> tuple[Any, Any]:
    return task, function(task)


def _in_own_process(function: Callable[[Any], Any], task: Any) -> Any:
    """The result of a task after a process of the pool has ended, and it is unknown which task is the reason."""
    loky = importlib.import_module("joblib.externals.loky")
    try:
        with loky.ProcessPoolExecutor(max_workers=1) as executor:
            return executor.submit(function, task).result()
    except loky.process_executor.BrokenProcessPool as error:
        return WorkerError(f"its process ended: {' '.join(str(error).split())}")


@contextlib.contextmanager
def _dask(address: str | None, jobs: int) -> Iterator[Distribute]:
    distributed = _imported("dask")
    local = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
    with distributed.Client(**local) if address is None else distributed.Client(address) as client:

        def distribute(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Results[Any]:
            task_of = {client.submit(function, task, pure=False): task for task in tasks}
            for future in distributed.as_completed(task_of):
                yield task_of[future], future.exception() or future.result()

        yield distribute


@contextlib.contextmanager
def _ray(address: str | None, jobs: int) -> Iterator[Distribute]:
    ray = _imported("ray")
    local = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    options = local if address is None else {"address": address}
    started = not ray.is_initialized()  # in a notebook, another cell may have connected
    if started:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)

    def distribute(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Results[Any]:
        call = ray.remote(max_retries=0)(_with_task)
        task_of = {call.remote(function, task): task for task in tasks}
        while task_of:
            (done, *_), _ = ray.wait(list(task_of))
            task = task_of.pop(done)
            try:
                _, result = ray.get(done)
            except ray.exceptions.RayError as error:
                result = error
            yield task, result

    try:
        yield distribute
    finally:
        if started:
            ray.shutdown()


ENGINES: dict[str, Callable[[str | None, int], contextlib.AbstractContextManager[Distribute]]] = {
    "serial": _serial,
    "joblib": _joblib,
    "dask": _dask,
    "ray": _ray,
}
_CLUSTERS = ("dask", "ray")
# The module that an engine imports, and the extra that installs it.
_LIBRARIES = {"joblib": ("joblib", "sweep"), "dask": ("dask.distributed", "dask"), "ray": ("ray", "ray")}
