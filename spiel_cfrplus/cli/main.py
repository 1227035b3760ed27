"""The command line: solve a game and print how it goes.

    python scripts/run.py --game=leduc_poker --algorithm=cfr+ --iterations=1000
    python scripts/run.py --game=leduc_poker --algorithm=cfr,cfr+ --plot=leduc.png

Everything here is reading flags and printing; what is done is in the solvers, `convergence`, `crosscheck`, `plotting` and
`theory`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import gc
import importlib
import logging
import math
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TextIO

import numpy as np
import pyspiel
from absl import app, flags
from absl import logging as absl_logging
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

from spiel_cfrplus._utils.files import check_writable
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus._utils.progress import write_line
from spiel_cfrplus._utils.validation import MOST_ITERATIONS, at_most_cores
from spiel_cfrplus.analysis import convergence, crosscheck, plotting
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.theory import TheoryChecks, TheoryViolationError
from spiel_cfrplus.cli import stop_signals
from spiel_cfrplus.cli.stop_signals import Stopped, StopSignals
from spiel_cfrplus.game import size_estimate, trial, walk_cache
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk_limits import WalkLimits
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.solving import averaging, checkpoint, learners, solvers
from spiel_cfrplus.solving.best_response_play import check_players
from spiel_cfrplus.solving.curve import Curve, Row

FLAGS = flags.FLAGS

importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games

_CFR_BR = solvers.CFRBRSolver.algorithm
_ALGORITHMS = {**learners.LEARNERS, _CFR_BR: dataclasses.replace(learners.LEARNERS["cfr"], name=_CFR_BR)}
_REDUCE: dict[str, bool | str] = {"auto": "auto", "on": True, "off": False}

flags.DEFINE_string("game", "kuhn_poker", "The game, as pyspiel.load_game takes it; parameters in parentheses.")
flags.DEFINE_integer("players", None, "Number of players, if the game lets one choose.", 1, 2**31 - 1)
flags.DEFINE_list("algorithm", "cfr+", f"<{'|'.join(_ALGORITHMS)}>: What to run; several, with commas, run one after another.")
flags.DEFINE_float("step_size", None, "Of algorithms that take steps; by default tuned to the game as it is played.")
flags.DEFINE_integer("iterations", None, "Iterations in all; by default 10000, and 50 with --crosscheck.", 1, MOST_ITERATIONS)
flags.DEFINE_integer(
    "print_freq", None, "Print a row every so many iterations instead of at 1, 2, 5, 10, 20, ...", 1, MOST_ITERATIONS
)
flags.DEFINE_enum("averaging", "paper", list(averaging.CONVENTIONS), "Which strategies the average policy is made of.")
flags.DEFINE_float("averaging_power", None, "Weights t ** power in the average; by default what suits the algorithm.")
flags.DEFINE_integer(
    "averaging_delay", 0, "Leave the first so many iterations out of the average.", lower_bound=0, upper_bound=MOST_ITERATIONS
)
flags.DEFINE_enum("reduce", "auto", list(_REDUCE), "Iterate on the game without its symmetries and forced moves.")
flags.DEFINE_boolean("exact_ties", True, "Regrets within rounding of zero are zero, as in exact arithmetic.")
flags.DEFINE_integer("threads", 1, "How many threads iterate on a large game side by side.", lower_bound=1)
flags.DEFINE_boolean("last_iterate", False, "Rows and the check at the end are about the current policy, not the average.")
flags.DEFINE_boolean("cce", False, "Print the distance of play from a coarse correlated equilibrium; with --simultaneous.")
flags.DEFINE_boolean("alternating", None, "Players update in turn, player 0 first (the default).")
flags.DEFINE_boolean("simultaneous", None, "All players update at once.")
flags.DEFINE_float("target_nash_conv", None, "Stop at the first row with at most this NashConv.", lower_bound=0)
flags.DEFINE_float(
    "time_limit", None, "Stop about so many seconds after the start of the walk through the game.", lower_bound=0
)
flags.DEFINE_integer("max_histories", None, "Refuse games with more histories than this.", lower_bound=1)
flags.DEFINE_string("cache", None, "Keep the walk through the game in this directory, and read it from there the next time.")
flags.DEFINE_integer("processes", 1, "Walk through the game in so many processes.", lower_bound=1)
flags.DEFINE_string("checkpoint", None, "Resume from this file if it exists, and save to it with the rows and at the end.")
flags.DEFINE_float("checkpoint_every", 60.0, "Save also when so many seconds have passed since the last save.", lower_bound=0)
flags.DEFINE_string("plot", None, "At the end, draw the rows of all runs to this .png, .pdf or .svg file.")
flags.DEFINE_boolean("check_theory", False, "Measure the papers' statements at every iteration, and print them with every row.")
flags.DEFINE_boolean("verify", True, "At the end, evaluate the exported policy with OpenSpiel's own NashConv.")
flags.DEFINE_boolean("crosscheck", False, "Run OpenSpiel's solver beside this one, compare, and solve nothing.")
flags.DEFINE_float("tolerance", 1e-8, "With --crosscheck: the largest difference that counts as agreement.", lower_bound=0)

_NOT_WITH_CROSSCHECK = (
    "averaging",
    "averaging_delay",
    "averaging_power",
    "cce",
    "check_theory",
    "checkpoint",
    "checkpoint_every",
    "exact_ties",
    "last_iterate",
    "plot",
    "print_freq",
    "reduce",
    "step_size",
    "target_nash_conv",
    "threads",
    "time_limit",
    "verify",
)
_ABOUT_PLAYERS_WHO_MEET = ("alternating", "cce", "check_theory", "simultaneous")
_DEFAULT_ITERATIONS = 10_000
_DEFAULT_CROSSCHECK_ITERATIONS = 50
# Two evaluators sum the same products in different orders; relative to the largest return, as the game may be in any unit.
_VERIFY_TOLERANCE = 1e-9
_TITLE_WIDTH = 100
# Names of games that are offered instead of an unknown one.
_MOST_NAMES = 5

_EXIT_DISAGREEMENT = 1
_EXIT_VIOLATION = 1
_EXIT_USAGE = 2
_EXIT_OUTPUT = 74
_EXIT_TIME_LIMIT = 124  # as of timeout(1)
_EXIT_BROKEN_PIPE = 141


_STOP_SIGNALS = StopSignals()


class UsageError(Exception):
    """Something the user typed; printed as one line."""


def main() -> None:
    """Runs the command, of which `_entry_point` is the start; the process ends."""
    gc.freeze()  # What was imported stays; collections, those at exit too, need not look at all of Numba again.
    _replace_closed_streams()
    for flag in FLAGS.get_key_flags_for_module(__name__):
        FLAGS.register_key_flag_for_module(sys.argv[0], flag)  # so that --help lists them
    absl_logging.get_absl_handler().setFormatter(logging.Formatter("note: %(message)s"))  # for what is logged, like other notes
    try:
        app.run(_run, flags_parser=_parse_flags)
    finally:
        stop_signals.ignore()  # the exit code is settled


def _replace_closed_streams() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w"))


def _parse_flags(arguments: list[str]) -> list[str]:
    try:
        return FLAGS(arguments)
    except (flags.Error, ValueError) as error:  # absl lets a ValueError pass for --noverify=3
        _exit_with_usage_error(error)


def _run(arguments: list[str]) -> None:
    try:
        with _STOP_SIGNALS.heard():
            sys.exit(_job(arguments))
    except (UsageError, MemoryError) as error:
        _exit_with_usage_error(error)
    except TimeoutError as error:
        print(f"error: --time_limit={FLAGS.time_limit:g}: {error}", file=sys.stderr)
        sys.exit(_EXIT_TIME_LIMIT)
    except KeyboardInterrupt as interrupt:
        _exit_when_stopped(interrupt)
    except OSError as error:
        _drop_output(sys.stdout)
        if isinstance(error, BrokenPipeError):  # whoever read the rows has had enough
            sys.exit(_EXIT_BROKEN_PIPE)
        print(f"error: {error}", file=sys.stderr)
        sys.exit(_EXIT_OUTPUT)


def _exit_when_stopped(interrupt: KeyboardInterrupt) -> NoReturn:
    stopped = interrupt if isinstance(interrupt, Stopped) else Stopped.at("", interrupt)
    try:
        print(stopped, file=sys.stderr)
        sys.stdout.flush()
    except OSError:  # the terminal has hung up
        _drop_output(sys.stdout)
        _drop_output(sys.stderr)
    sys.exit(stopped.exit_code)


def _drop_output(stream: TextIO) -> None:
    """What is still buffered, and all that follows, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _job(arguments: list[str]) -> int:
    if len(arguments) > 1:
        raise UsageError(f"unexpected argument {arguments[1]!r}; flags look like --game=kuhn_poker")
    alternating = _alternating()
    _check_flags(alternating)
    chosen = {learner: _averaging(learner) for learner in _learners()}
    _check_plot()
    game = _load_game(FLAGS.game.strip(), FLAGS.players)
    for learner, average in chosen.items():
        _check_checkpoint(learner, alternating, average)
    limits = WalkLimits.starting_now(FLAGS.max_histories, FLAGS.time_limit)
    compiled = _compile(game, limits)
    _check_players(compiled)
    time_limit = None if FLAGS.time_limit is None else limits.seconds_left
    if FLAGS.crosscheck:
        exit_code = _crosscheck(compiled, alternating)
    else:
        exit_code = _solve_all(compiled, chosen, alternating, time_limit)
    sys.stdout.flush()
    return exit_code


def _exit_with_usage_error(error: Exception) -> NoReturn:
    print(f"error: {_first_line(error)}", file=sys.stderr)
    sys.exit(_EXIT_USAGE)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _check_flags(alternating: bool) -> None:
    for name in ("checkpoint_every", "target_nash_conv", "time_limit", "tolerance"):
        value = FLAGS[name].value
        if value is not None and math.isnan(value):
            raise UsageError(f"--{name}=nan is not a number")
    try:
        for name in ("threads", "processes"):
            at_most_cores(FLAGS[name].value, name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    _check_algorithms()
    if FLAGS.crosscheck:
        for name in _NOT_WITH_CROSSCHECK:
            if FLAGS[name].present:
                raise UsageError(f"--{name} has no effect with --crosscheck")
    elif FLAGS["tolerance"].present:
        raise UsageError("--tolerance has no effect without --crosscheck")
    if FLAGS["checkpoint_every"].present and FLAGS.checkpoint is None:
        raise UsageError("--checkpoint_every has no effect without --checkpoint")
    if FLAGS.cce and alternating:
        raise UsageError("--cce needs --simultaneous: in alternating updates players do not play their strategies together")
    if FLAGS.cce and FLAGS.checkpoint:
        raise UsageError("--cce and --checkpoint do not go together: a checkpoint knows no regrets of the past")


def _check_algorithms() -> None:
    names = FLAGS.algorithm
    if not names:
        raise UsageError("--algorithm needs the name of an algorithm")
    for name in names:
        if name not in _ALGORITHMS:
            raise UsageError(f"--algorithm={name}: should be one of <{'|'.join(_ALGORITHMS)}>, or several with commas")
        if names.count(name) > 1:
            raise UsageError(f"--algorithm names {name} more than once")
    for flag, algorithms in (("crosscheck", crosscheck.COMPARABLE), ("checkpoint", tuple(solvers.ALGORITHMS))):
        if FLAGS[flag].value and len(names) > 1:
            raise UsageError(f"--{flag} is for one algorithm at a time, not for {', '.join(names)}")
        if FLAGS[flag].value and names[0] not in algorithms:
            raise UsageError(f"--{flag} is for {', '.join(algorithms)}, not for {names[0]}")
    in_python = [f"{name} with --cce" for name in names if FLAGS.cce] + [n for n in names if n not in solvers.ALGORITHMS]
    for flag, asked in (
        ("reduce=on", FLAGS.reduce == "on"),
        ("noexact_ties", not FLAGS.exact_ties),
        ("threads", FLAGS.threads > 1),
    ):
        if asked and in_python:
            raise UsageError(f"--{flag} is for {', '.join(solvers.ALGORITHMS)}, not for {in_python[0]}")
    for flag in _ABOUT_PLAYERS_WHO_MEET:
        if FLAGS[flag].present and _CFR_BR in names:
            raise UsageError(f"--{flag} is not for {_CFR_BR}, in which each player learns alone, against best responses")


def _learners() -> list[learners.Learner]:
    try:
        return [_ALGORITHMS[name].with_step_size(FLAGS.step_size) for name in FLAGS.algorithm]
    except ValueError as error:
        raise UsageError(str(error)) from error


def _averaging(learner: learners.Learner) -> averaging.Averaging:
    power = learner.averaging_power if FLAGS.averaging_power is None else FLAGS.averaging_power
    try:
        average = averaging.Averaging(power, FLAGS.averaging, FLAGS.averaging_delay)
        average.weights(np.array([_num_iterations()]))
        return average
    except ValueError as error:
        raise UsageError(str(error)) from error


def _num_iterations() -> int:
    """How many iterations a run has in all."""
    return FLAGS.iterations or _DEFAULT_ITERATIONS


def _alternating() -> bool:
    if FLAGS.alternating is not None and FLAGS.simultaneous is not None and FLAGS.alternating == FLAGS.simultaneous:
        raise UsageError("--alternating and --simultaneous contradict each other")
    return FLAGS.alternating is not False and not FLAGS.simultaneous


def _load_game(name: str, players: int | None) -> pyspiel.Game:
    """The named game, turn-based."""
    short_name = name.partition("(")[0].strip()
    known = pyspiel.registered_names()
    if short_name not in known:
        wanted = short_name.lower()
        near = difflib.get_close_matches(wanted, known, n=3) + [name for name in known if wanted and wanted in name]
        nearest = list(dict.fromkeys(near))[:_MOST_NAMES]
        hint = f"did you mean {', '.join(nearest)}?" if nearest else "no name is like it;"
        raise UsageError(f"unknown game {short_name!r}; {hint} pyspiel.registered_names() lists all")
    try:
        with silent_stderr():
            parameters = pyspiel.game_parameters_from_string(name)
        if players is not None and parameters.setdefault("players", players) != players:
            raise UsageError(f"--players={players} contradicts --game={name}")
        if fault := trial.fault_of(lambda: _turn_based(_load(parameters))):
            raise UsageError(f"cannot load {name!r}: {fault}; choose other game parameters")
        with silent_stderr():
            game = _load(parameters)
    except (pyspiel.SpielError, MemoryError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot load {name!r}: {_first_line(error)}") from error
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        print(f"{game} has simultaneous moves; solving its turn-based form.")
    return _turn_based(game)


def _load(parameters: Mapping[str, Any]) -> pyspiel.Game:
    return pyspiel.load_game(parameters["name"], {key: value for key, value in parameters.items() if key != "name"})


def _turn_based(game: pyspiel.Game) -> pyspiel.Game:
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        return pyspiel.convert_to_turn_based(game)
    return game


def _compile(game: pyspiel.Game, limits: WalkLimits) -> SequenceFormGame:
    if FLAGS.cache == "":
        raise UsageError("--cache needs the name of a directory")
    try:
        with silent_stderr():
            check_game(game)
        if FLAGS.cache is None or not walk_cache.is_cached(game, FLAGS.cache):
            _announce_size(game, limits)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
            warnings.simplefilter("ignore", size_estimate.LargeGameWarning)  # announced already
            compiled = compile_game(
                game,
                processes=FLAGS.processes,
                max_histories=FLAGS.max_histories,
                time_limit=limits.seconds_left,
                progress=True,
                cache=FLAGS.cache,
            )
    except TimeoutError:
        raise
    except OSError as error:
        raise UsageError(f"--cache={FLAGS.cache}: {error}") from error
    except Exception as error:  # of the game, which may be a Python program
        reason = _first_line(error)
        if str(game) not in reason:
            reason = f"{game} cannot be walked: {type(error).__name__}: {reason}"
        raise UsageError(reason) from error
    print(
        f"{game}: {compiled.tree.num_histories} histories, {compiled.num_infostates} infostates, {compiled.num_sequences} "
        f"sequences, {len(compiled.payoffs)} payoffs, compiled in {time.perf_counter() - started:.2f} s"
    )
    return compiled


def _announce_size(game: pyspiel.Game, limits: WalkLimits) -> None:
    """Says how large a game will be, if it is large, before memory is spent on it."""
    with silent_stderr():
        size = size_estimate.estimate_size(game, time_limit=limits.seconds_left)
    if size.num_histories < size_estimate.LARGE_GAME:
        return
    about = "about" if size.is_complete else "more than"
    print(f"{game}: {about} {size.num_histories:.2g} histories, which take {size.memory} (estimated)", flush=True)
    available = size_estimate.available_bytes()
    if size.least_bytes > available:
        print(
            f"warning: {available / 1e9:.1f} GB are available; choose smaller game parameters, or let --max_histories stop the "
            "walk before memory runs out",
            file=sys.stderr,
            flush=True,
        )


def _check_players(game: SequenceFormGame) -> None:
    """Finds out before any algorithm has run whether all of them can."""
    if _CFR_BR in FLAGS.algorithm:
        try:
            check_players(game)
        except ValueError as error:
            raise UsageError(str(error)) from error


def _check_plot() -> None:
    """Finds out before any work whether the picture can be drawn."""
    path = FLAGS.plot
    if path is None:
        return
    try:
        plotting.check_plot(path)
    except (ImportError, OSError, ValueError) as error:
        raise UsageError(f"--plot={path}: {error}") from error
    if FLAGS.checkpoint is not None and os.path.realpath(path) == os.path.realpath(FLAGS.checkpoint):
        raise UsageError(f"--plot and --checkpoint are both to be written to {path}")


def _check_checkpoint(learner: learners.Learner, alternating: bool, average: averaging.Averaging) -> None:
    """Finds out before any work whether the checkpoint can be resumed from, or written."""
    path = FLAGS.checkpoint
    if path is None:
        return
    if not path:
        raise UsageError("--checkpoint needs the name of a file")
    try:
        check_writable(path)
        if os.path.exists(path):
            options = checkpoint.read_options(path)
            saved = (options["algorithm"], options["alternating"], *options["averaging"].values())
            if saved != (learner.name, alternating, average.power, average.convention, average.delay):
                names = "algorithm, alternating, averaging_power, averaging, averaging_delay"
                raise UsageError(f"{path} was saved with ({names}) = {saved}; pass the same flags")
            if checkpoint.local_rule(options) != solvers.ALGORITHMS[learner.name].local_rule:
                raise UsageError(f"{path} was saved with a local rule of its own, {checkpoint.local_rule(options)}")
            if _REDUCE[FLAGS.reduce] not in ("auto", options["reduced"]):
                raise UsageError(f"{path} was saved with --reduce={'on' if options['reduced'] else 'off'}; pass the same flag")
            if checkpoint.read_curve(path).rows and FLAGS.last_iterate != options["last_iterate"]:
                raise UsageError(
                    f"{path} was saved with --{'' if options['last_iterate'] else 'no'}last_iterate; pass the same flag"
                )
            if FLAGS.exact_ties != options["exact_ties"]:
                raise UsageError(
                    f"{path} was saved with --{'' if options['exact_ties'] else 'no'}exact_ties; pass the same flag"
                )
    except (OSError, ValueError) as error:
        raise UsageError(f"--checkpoint={path}: {error}") from error


def _make_solver(
    game: SequenceFormGame, learner: learners.Learner, alternating: bool, average: averaging.Averaging
) -> solvers.Solver:
    if learner.name == _CFR_BR:
        return solvers.CFRBRSolver(game, averaging=average)
    if learner.name not in solvers.ALGORITHMS or FLAGS.cce:
        return learners.LearningSolver(game, learner, alternating=alternating, averaging=average)
    if FLAGS.checkpoint is None or not os.path.exists(FLAGS.checkpoint):
        return solvers.ALGORITHMS[learner.name](
            game,
            alternating=alternating,
            averaging=average,
            reduce=_REDUCE[FLAGS.reduce],
            exact_ties=FLAGS.exact_ties,
            threads=FLAGS.threads,
        )
    try:
        solver = solvers.Solver.load(FLAGS.checkpoint, game, threads=FLAGS.threads)
    except ValueError as error:
        raise UsageError(str(error)) from error
    print(f"resumed from {FLAGS.checkpoint} at iteration {solver.iteration}")
    if solver.iteration > _num_iterations():
        past = f"past --iterations={_num_iterations()}"
        print(f"note: {FLAGS.checkpoint} is already at iteration {solver.iteration}, {past}", file=sys.stderr)
    return solver


def _solve_all(
    game: SequenceFormGame,
    chosen: Mapping[learners.Learner, averaging.Averaging],
    alternating: bool,
    time_limit: float | None,
) -> int:
    """Runs the algorithms one after another, each for `time_limit` seconds, until one fails, and draws their rows.

    Returns:
      The exit code.
    """
    runs: dict[str, list[Row]] = {}
    exit_code = 0
    if FLAGS.plot is not None:
        _load_kernels(game)
    try:
        for learner, average in chosen.items():
            if runs:
                print()
            runs[learner.name] = []
            exit_code = _solve(_make_solver(game, learner, alternating, average), runs[learner.name], time_limit)
            if exit_code != 0:
                break
        return exit_code
    finally:
        if FLAGS.plot is not None:  # whatever there is, however it ended
            _plot(game, runs, alternating)


def _load_kernels(game: SequenceFormGame) -> None:
    """Has Numba load, or compile, what the runs share; otherwise the seconds of the first one would hold that."""
    with contextlib.suppress(ValueError):  # which the run itself will tell
        solver = solvers.CFRSolver(game)
        solver.run(1)
        convergence.measure(solver)


def _plot(game: SequenceFormGame, runs: Mapping[str, Sequence[Row]], alternating: bool) -> None:
    begun = {name: rows for name, rows in runs.items() if rows}
    if begun:
        policies = "last iterates" if FLAGS.last_iterate else "average policies"
        name = textwrap.fill(str(game.tree.game).replace(",", ", "), _TITLE_WIDTH)
        updates = ", ".join(dict.fromkeys(_updates(algorithm, alternating) for algorithm in begun))
        plotting.plot_convergence(begun, FLAGS.plot, title=f"{name}\n{updates}, {policies}")


def _updates(algorithm: str, alternating: bool) -> str:
    if algorithm == _CFR_BR:
        return "updates against best responses"
    return f"{'alternating' if alternating else 'simultaneous'} updates"


def _solve(solver: solvers.Solver, rows: list[Row], time_limit: float | None) -> int:
    """Runs the solver, prints its rows and appends them to `rows`, checks its policy; returns the exit code.

    Rows of an interrupted run that is resumed come first.
    """
    print(f"{solver.algorithm}, {_updates(solver.algorithm, solver.alternating)}, {_policy_in_words(solver)}")
    if isinstance(solver, solvers.CompiledSolver) and solver.reduction is not None:
        print(f"without symmetries and forced moves: {solver.reduction}")
    if isinstance(solver, solvers.CompiledSolver) and solver.partition is not None:
        print(f"side by side: {solver.partition}")
    kept = None if FLAGS.checkpoint is None else _checkpointed_run(solver)
    checks = TheoryChecks(solver) if FLAGS.check_theory else None
    if checks is not None:
        _print_statements(checks)
    print(f"{'iteration':>10} {'seconds':>9} {'NashConv':>13} {'exploitability':>14} {'value of player 0':>18}", end="")
    print(f" {'CCE gap':>13}" if FLAGS.cce else "")
    for row in kept.curve.rows if kept is not None else ():
        rows.append(row)
        _print_row(row)
    try:
        _run_and_print(solver, kept, checks, rows, time_limit)
        return _verify(solver) if FLAGS.verify else 0
    except TheoryViolationError as error:
        print(f"error: {error}", file=sys.stderr)
        return _EXIT_VIOLATION
    except ValueError as error:  # such as numbers that leave the range of a float64
        raise UsageError(f"{solver.algorithm} cannot go on: {_first_line(error)}") from error


def _run_and_print(
    solver: solvers.Solver,
    kept: CheckpointedRun | None,
    checks: TheoryChecks | None,
    rows: list[Row],
    time_limit: float | None,
) -> None:
    """Runs the solver, prints its new rows and appends them to `rows`; saves when it is stopped."""
    with _STOP_SIGNALS.deferred():
        try:
            for row in _rows(solver, kept, checks, time_limit):
                rows.append(row)
                _print_row(row)
                if checks is not None:
                    _print_verdicts(checks)
                _STOP_SIGNALS.check()
        except (KeyboardInterrupt, OSError) as error:
            if kept is not None:
                kept.save()
            if isinstance(error, OSError):
                _STOP_SIGNALS.check()  # a terminal that hangs up is also an error of output
                raise
            raise Stopped.at(f"at iteration {solver.iteration}", error) from error


def _policy_in_words(solver: solvers.Solver) -> str:
    if FLAGS.last_iterate:
        return "last iterates"
    average = solver.averaging
    base = f"(t - {average.delay})" if average.delay else "t"
    convention = "" if solver.algorithm == _CFR_BR else f" by the {average.convention} convention"
    return f"averages{convention} with weights {base}^{average.power:g}"


def _checkpointed_run(solver: solvers.Solver) -> CheckpointedRun:
    curve = Curve(last_iterate=FLAGS.last_iterate)
    if os.path.exists(FLAGS.checkpoint):
        curve = dataclasses.replace(checkpoint.read_curve(FLAGS.checkpoint), last_iterate=FLAGS.last_iterate)
    return CheckpointedRun(solver, FLAGS.checkpoint, every=FLAGS.checkpoint_every, curve=curve)


def _rows(
    solver: solvers.Solver, kept: CheckpointedRun | None, checks: TheoryChecks | None, time_limit: float | None
) -> Iterable[Row]:
    """The rows that are still to come."""
    num_iterations = max(0, _num_iterations() - solver.iteration)
    plain = functools.partial(convergence.convergence, solver, last_iterate=FLAGS.last_iterate)
    run: Callable[..., Iterator[Row]] = plain if kept is None else kept.convergence
    return run(
        num_iterations,
        report_every=FLAGS.print_freq,
        target_nash_conv=FLAGS.target_nash_conv,
        time_limit=time_limit,
        progress=True,
        run=_STOP_SIGNALS.checked(solver.run if checks is None else checks.run),
    )


def _print_row(row: Row) -> None:
    exploitability = "-" if row.exploitability is None else f"{row.exploitability:.6e}"
    gap = "-" if row.cce_gap is None else f"{row.cce_gap:.6e}"
    write_line(
        f"{row.iteration:>10} {row.seconds:>9.2f} {row.nash_conv:>13.6e} {exploitability:>14} {row.value:>18.9f}"
        + f" {gap:>13}" * FLAGS.cce
    )
    sys.stdout.flush()


def _print_statements(checks: TheoryChecks) -> None:
    for finding in checks.report():
        print(f"{finding.statement.name}: {finding.statement.claim} ({finding.statement.source})")


def _print_verdicts(checks: TheoryChecks) -> None:
    for finding in checks.report():
        write_line(f"{finding.statement.name:>25}: {finding.verdict}")
    sys.stdout.flush()


def _verify(solver: solvers.Solver) -> int:
    """Evaluates the exported policy with OpenSpiel; returns the exit code."""
    if solver.game.tree.num_histories >= size_estimate.LARGE_GAME and not FLAGS["verify"].present:
        print("not verified with OpenSpiel, which takes long for a game of this size; --verify has it done")
        return 0
    profile = solver.current_profile() if FLAGS.last_iterate else solver.average_profile()
    ours = evaluate(solver.game, profile).nash_conv
    try:
        theirs = _openspiel_nash_conv(solver.game.tree.game, profile.to_tabular_policy())
    except Exception as error:  # of games and evaluators that are not ours: anything may be raised
        reason = str(error) if isinstance(error, ValueError | pyspiel.SpielError) else repr(error)
        print(f"not verified with OpenSpiel: {' '.join(reason.split())}")
        return 0
    print(f"NashConv of the {'current' if FLAGS.last_iterate else 'average'} policy: {ours!r}")
    print(f"by OpenSpiel, of the exported TabularPolicy: {theirs!r} (difference {abs(ours - theirs):.1e})")
    if abs(ours - theirs) <= _VERIFY_TOLERANCE * float(np.abs(solver.game.tree.returns).max()):
        return 0
    print("error: OpenSpiel disagrees", file=sys.stderr)
    return _EXIT_DISAGREEMENT


def _openspiel_nash_conv(game: pyspiel.Game, table: openspiel_policy.TabularPolicy) -> float:
    """By OpenSpiel's C++ evaluator, or by its slower Python one where the table's keys are not those of C++."""
    try:
        with silent_stderr():
            return pyspiel.nash_conv(game, openspiel_policy.python_policy_to_pyspiel_policy(table))
    except pyspiel.SpielError:
        return float(exploitability.nash_conv(game, table))


def _crosscheck(game: SequenceFormGame, alternating: bool) -> int:
    """Prints the comparison with OpenSpiel's solver; returns the exit code."""
    num_iterations = FLAGS.iterations or _DEFAULT_CROSSCHECK_ITERATIONS
    print("largest differences from OpenSpiel's solver, both with OpenSpiel's averaging:")
    print(f"{'iteration':>10} {'current policy':>15} {'average policy':>15} {'NashConv':>15}")
    try:
        comparisons = crosscheck.crosscheck(game, FLAGS.algorithm[0], num_iterations=num_iterations, alternating=alternating)
    except ValueError as error:
        raise UsageError(str(error)) from error
    for row in comparisons:
        print(f"{row.iteration:>10} {row.current_policy:>15.1e} {row.average_policy:>15.1e} {row.nash_conv:>15.1e}")
    apart = [row.iteration for row in comparisons if not row.difference <= FLAGS.tolerance]
    if not apart:
        print(f"agreement within {FLAGS.tolerance:g} after {num_iterations} iterations")
        return 0
    print(
        f"disagreement by more than {FLAGS.tolerance:g} at iteration {apart[0]}; where regrets tie exactly, or after many "
        "iterations of a chaotic game, rounding alone does this (docs/architecture.md)",
        file=sys.stderr,
    )
    return _EXIT_DISAGREEMENT
