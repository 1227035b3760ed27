"""The command line: solves a game and prints the progress.

    python scripts/run.py --game=leduc_poker --algorithm=cfr+ --iterations=1000
    python scripts/run.py --game=leduc_poker --algorithm=cfr,cfr+ --plot=leduc.png
    python scripts/run.py --game=leduc_poker --algorithm=my_module:my_rule
    python scripts/run.py --game=leduc_poker --algorithm=lp

This module runs the job. `options` reads the flags, `games` loads and compiles the game, `report` prints. The solvers and the
modules `convergence`, `crosscheck`, `plotting` and `theory` do the work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from absl import app, flags
from absl import logging as absl_logging

from spiel_cfrplus._utils.files import check_writable, reserved
from spiel_cfrplus.analysis import convergence, crosscheck, plotting, row_files
from spiel_cfrplus.analysis.checkpointed_run import CheckpointedRun
from spiel_cfrplus.analysis.theory import TheoryChecks, TheoryViolationError
from spiel_cfrplus.cli import games, json_lines, program, report, stop_signals, subcommands
from spiel_cfrplus.cli import options as cli_options
from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.cli.games import compile_with_notes, load_game
from spiel_cfrplus.cli.options import Options, Run
from spiel_cfrplus.cli.stop_signals import Stopped
from spiel_cfrplus.display import explorer, pages
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.walk_limits import WalkLimits
from spiel_cfrplus.policies import files as policy_files
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.regret_minimizers.compiled_rules import RuleCompilationError
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.algorithms import ALGORITHMS, Algorithm
from spiel_cfrplus.solving.best_response_play import check_players
from spiel_cfrplus.solving.curve import Curve, Row
from spiel_cfrplus.solving.exact import ExactSolution, solve_exactly
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import Solver, make_solver

_TITLE_WIDTH = 100

_TakeRow = Callable[[str, Row], None]


class _Output(NamedTuple):
    """Where the rows of a run go; both functions take the name of the algorithm and a row.

    Attributes:
      show: prints the row.
      write: appends it to the file of `--output`, if there is one.
    """

    show: _TakeRow
    write: _TakeRow


def main() -> None:
    """Runs the command that `entry_point` starts, and ends the process."""
    program.prepare()
    for module in (cli_options, games, json_lines):
        for flag in cli_options.FLAGS.get_key_flags_for_module(module.__name__):
            cli_options.FLAGS.register_key_flag_for_module(sys.argv[0], flag)  # so that --help lists them
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # matplotlib writes PDF files with it
    absl_logging.get_absl_handler().setFormatter(logging.Formatter("note: %(message)s"))  # log messages look like other notes
    try:
        app.run(_run, flags_parser=_parse_flags)
    finally:
        stop_signals.ignore()  # the exit code is settled


def _parse_flags(arguments: list[str]) -> list[str]:
    try:
        return cli_options.FLAGS(arguments)
    except (flags.Error, ValueError) as error:  # absl raises a ValueError for --noverify=3
        program.exit_with_usage_error(error)


def _run(arguments: list[str]) -> None:
    program.run(lambda: _job(arguments))


def _job(arguments: list[str]) -> int:
    """Does the work of the command and returns the exit code."""
    if len(arguments) > 1:
        names = ", ".join(subcommands.NAMES)
        raise UsageError(f"unexpected argument {arguments[1]!r}; flags look like --game=kuhn_poker, subcommands are {names}")
    options = cli_options.read_options()
    with json_lines.printer(wanted=options.json) as print_json:
        if options.distributed:
            from spiel_cfrplus.cli import distributed  # MPI may not be installed

            return distributed.solve(options, print_json)
        _check_files(options)
        with _reserved_files(options):
            return _solve_game(options, print_json)


def _solve_game(options: Options, print_json: json_lines.PrintRow | None) -> int:
    """Does the work of the flags, prints rows by `print_json` if it is not None, and returns the exit code."""
    game = load_game(options.game, options.players, options.modules)
    for run in options.runs:
        _check_checkpoint(run, options)
    limits = WalkLimits.starting_now(options.max_histories, options.time_limit)
    try:
        compiled = compile_with_notes(game, limits, cache=options.cache, processes=options.processes, walk=options.walk)
    except TimeoutError as error:
        raise TimeoutError(f"--time_limit={options.time_limit:g}: {error}") from error
    _check_players(compiled, options)
    _check_size(compiled, options)
    if options.crosscheck:
        return _crosscheck(compiled, options)
    if not options.runs:
        solution = _exact_solution(compiled, options, limits)
        report.print_exact_solution(solution, print_json)
        _explore(cli_options.LINEAR_PROGRAM, solution.profile, options, {})
        if options.tremble and options.verify:
            print("the NashConv below is that against best responses without trembles")
        return _save_and_verify("exact policy", solution.profile, options)
    exact_value = _exact_value(compiled, options, limits) if options.exact else None
    time_limit = None if options.time_limit is None else limits.seconds_left
    return _solve_all(compiled, options, functools.partial(report.print_row, options, print_json, exact_value), time_limit)


# Checks before any algorithm runs.


def _check_files(options: Options) -> None:
    """Checks before any work that the files can be written, and that they are different ones."""
    checks = {
        "output": row_files.check_path,
        "save_policy": policy_files.check_path,
        "explore": pages.check_page,
        "plot": plotting.check_plot,
    }
    paths = {name: getattr(options, name) for name in (*checks, "checkpoint") if getattr(options, name) is not None}
    for name, check in checks.items():
        if name in paths:
            try:
                check(paths[name])
            except (ImportError, OSError, ValueError) as error:
                raise UsageError(f"--{name}={paths[name]}: {error}") from error
    for (name, path), (other, other_path) in itertools.combinations(paths.items(), 2):
        if os.path.realpath(path) == os.path.realpath(other_path):
            raise UsageError(f"--{name} and --{other} are both to be written to {path}")


@contextlib.contextmanager
def _reserved_files(options: Options) -> Iterator[None]:
    """Reserves the files that are written as a whole, so that no other command loads or replaces them meanwhile."""
    with contextlib.ExitStack() as stack:
        for name in ("checkpoint", "save_policy", "explore", "plot"):
            if path := getattr(options, name):
                try:
                    stack.enter_context(reserved(path))
                except OSError as error:
                    raise UsageError(f"--{name}={path}: {error}") from error
        yield


def _check_checkpoint(run: Run, options: Options) -> None:
    """Checks before any work that the checkpoint can be resumed, or written."""
    path = options.checkpoint
    if path is None:
        return
    if not path:
        raise UsageError("--checkpoint needs the name of a file")
    try:
        check_writable(path)
        if os.path.exists(path):
            _check_same_flags(checkpoint.read(path), run, options)
    except (OSError, ValueError) as error:
        raise UsageError(f"--checkpoint={path}: {error}") from error


def _check_same_flags(saved: checkpoint.Checkpoint, run: Run, options: Options) -> None:
    """Checks that a run with the same flags saved the checkpoint."""
    path, algorithm = options.checkpoint, run.algorithm
    alternating = options.alternating and not algorithm.option_refusal("alternating")
    own = (saved.algorithm, saved.alternating, *dataclasses.astuple(saved.averaging))
    if own != (algorithm.name, alternating, *dataclasses.astuple(run.averaging)):
        names = "algorithm, alternating, averaging_power, averaging, averaging_delay"
        raise UsageError(f"{path} was saved with ({names}) = {own}; pass the same flags")
    rule = saved.rule(default=algorithm.rule)
    if rule != algorithm.rule:
        raise UsageError(f"{path} was saved with another rule, {rule}")
    if options.reduce not in ("auto", saved.reduced):
        raise UsageError(f"{path} was saved with --reduce={'on' if saved.reduced else 'off'}; pass the same flag")
    if checkpoint.read_curve(path or "").rows and options.last_iterate != saved.last_iterate:
        raise UsageError(f"{path} was saved with {_boolean_flag('last_iterate', saved.last_iterate)}; pass the same flag")
    if options.cce != saved.records_utilities:
        raise UsageError(f"{path} was saved with {_boolean_flag('cce', saved.records_utilities)}; pass the same flag")
    if options.exact_ties != saved.exact_ties:
        raise UsageError(f"{path} was saved with {_boolean_flag('exact_ties', saved.exact_ties)}; pass the same flag")


def _boolean_flag(name: str, value: bool) -> str:
    return f"--{name}" if value else f"--no{name}"


def _check_players(game: SequenceFormGame, options: Options) -> None:
    """Checks before any algorithm runs that all of them can."""
    try:
        for run in options.runs:
            if run.algorithm.refusal(Feature.THEORY):
                check_players(game)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check_size(game: SequenceFormGame, options: Options) -> None:
    """Checks before any algorithm runs that the game is not too large for `--explore`."""
    if options.explore is not None:
        try:
            explorer.check_size(game)
        except ValueError as error:
            raise UsageError(f"--explore={options.explore}: {error}") from error


# Solving.


def _make_solver(game: SequenceFormGame, run: Run, options: Options) -> Solver:
    path = options.checkpoint
    if path is None or not os.path.exists(path):
        taken = {
            "alternating": options.alternating,
            "reduce": options.reduce,
            "exact_ties": options.exact_ties,
            "threads": options.threads,
            "record_regrets": options.cce,
        }
        return make_solver(run.algorithm, game, averaging=run.averaging, **taken)
    try:
        solver = Solver.load(path, game, rule=_users_rule(run.algorithm), threads=options.threads)
    except ValueError as error:
        raise UsageError(str(error).replace("as game=", "as --game=")) from error
    print(f"resumed from {path} at iteration {solver.iteration}")
    if solver.iteration > options.num_iterations:
        past = f"past --iterations={options.num_iterations}"
        print(f"note: {path} is already at iteration {solver.iteration}, {past}", file=sys.stderr)
    return solver


def _users_rule(algorithm: Algorithm) -> Algorithm | None:
    """The argument `rule` with which a checkpoint of the algorithm is loaded."""
    return None if algorithm.name in ALGORITHMS else algorithm


def _solve_all(game: SequenceFormGame, options: Options, show: _TakeRow, time_limit: float | None) -> int:
    """Runs the algorithms one after another, each for at most `time_limit` seconds, until one fails, and plots their rows.

    Returns:
      The exit code.
    """
    rows: dict[str, list[Row]] = {}
    exit_code = 0
    try:
        with _row_file(options) as write:
            output = _Output(show, write)
            for run in options.runs:
                if rows:
                    print()
                rows[run.algorithm.name] = []
                exit_code = _solve(_make_solver(game, run, options), options, rows[run.algorithm.name], output, time_limit)
                if exit_code != 0:
                    break
        return exit_code
    finally:
        if options.plot is not None:  # also after an error or a signal
            _plot(game, options, options.plot, rows)


@contextlib.contextmanager
def _row_file(options: Options) -> Iterator[_TakeRow]:
    """Opens the file of `--output`, with the rows of the checkpoint, and yields the function that appends a row."""
    if options.output is None:
        yield lambda name, row: None
        return
    known = {}
    if options.checkpoint is not None and os.path.exists(options.checkpoint):
        known = {options.runs[0].algorithm.name: checkpoint.read_curve(options.checkpoint).rows}
    with row_files.RowFile(options.output, known) as file:
        yield file.write


def _plot(game: SequenceFormGame, options: Options, path: str, rows: Mapping[str, Sequence[Row]]) -> None:
    begun = {name: own for name, own in rows.items() if own}
    if begun:
        policies = "last iterates" if options.last_iterate else "average policies"
        name = textwrap.fill(str(game.tree.game).replace(",", ", "), _TITLE_WIDTH)
        algorithms = [run.algorithm for run in options.runs if run.algorithm.name in begun]
        updates = dict.fromkeys(report.updates_in_words(algorithm, options.alternating) for algorithm in algorithms)
        plotting.plot_convergence(begun, path, title=f"{name}\n{', '.join(updates)}, {policies}")


def _solve(solver: Solver, options: Options, rows: list[Row], output: _Output, time_limit: float | None) -> int:
    """Runs the solver, prints its rows and appends them to `rows`, checks its policy; returns the exit code.

    If the run is resumed, the rows from before come first; only new rows are written to the file of `--output`.
    """
    report.print_solver(solver, options)
    checkpointed = None if options.checkpoint is None else _checkpointed_run(solver, options, options.checkpoint)
    checks = TheoryChecks(solver) if options.check_theory else None
    if checks is not None:
        report.print_statements(checks)
    report.print_header(options)
    for row in checkpointed.curve.rows if checkpointed is not None else ():
        rows.append(row)
        output.show(solver.algorithm.name, row)
    try:
        _run_and_print(solver, options, checkpointed, checks, rows, output, time_limit)
        words, profile = _resulting_policy(solver, options)
        _explore(solver.algorithm.name, profile, options, {solver.algorithm.name: rows})
        return _save_and_verify(words, profile, options)
    except TheoryViolationError as error:
        print(f"error: {error}", file=sys.stderr)
        return program.EXIT_VIOLATION
    except (RuleCompilationError, ValueError) as error:  # such as numbers outside the range of a float64
        raise UsageError(f"{solver.algorithm} cannot continue: {first_line(error)}") from error


def _resulting_policy(solver: Solver, options: Options) -> tuple[str, StrategyProfile]:
    """The policy of a run, and what kind of policy it is."""
    if options.last_iterate:
        return "current policy", solver.current_profile()
    return "average policy", solver.average_profile()


def _save_and_verify(words: str, profile: StrategyProfile, options: Options) -> int:
    """Saves the policy that `words` describe and evaluates it with OpenSpiel, as the flags request; returns the exit code."""
    if options.save_policy is not None:
        try:
            profile.save(options.save_policy)
        except (OSError, ValueError) as error:
            raise UsageError(f"--save_policy={options.save_policy}: {error}") from error
        print(f"{words} saved to {options.save_policy}")
    agrees = not options.verify or report.print_verification(words, profile, options)
    return 0 if agrees else program.EXIT_DISAGREEMENT


def _explore(name: str, profile: StrategyProfile, options: Options, rows: Mapping[str, Sequence[Row]]) -> None:
    """Writes the page of `--explore`."""
    if options.explore is not None:
        try:
            explorer.write_explorer(profile, options.explore, names=(name, ""), rows=rows)
        except (OSError, ValueError) as error:
            raise UsageError(f"--explore={options.explore}: {error}") from error
        print(f"explorer written to {options.explore}")


def _exact_solution(game: SequenceFormGame, options: Options, limits: WalkLimits) -> ExactSolution:
    """The solution of the linear program, within the time that is left."""
    try:
        time_limit = None if options.time_limit is None else limits.seconds_left
        return solve_exactly(game, tremble=options.tremble, time_limit=time_limit)
    except TimeoutError as error:
        raise TimeoutError(f"--time_limit={options.time_limit:g}: {error}") from error
    except (RuntimeError, ValueError) as error:
        flag = "exact" if options.exact else f"algorithm={cli_options.LINEAR_PROGRAM}"
        raise UsageError(f"--{flag}: {first_line(error)}") from error


def _exact_value(game: SequenceFormGame, options: Options, limits: WalkLimits) -> float:
    """The exact value, which is printed before the rows."""
    solution = _exact_solution(game, options, limits)
    report.print_exact_value(solution)
    return solution.value


def _run_and_print(
    solver: Solver,
    options: Options,
    checkpointed: CheckpointedRun | None,
    checks: TheoryChecks | None,
    rows: list[Row],
    output: _Output,
    time_limit: float | None,
) -> None:
    """Runs the solver, prints its new rows and appends them to `rows` and to the file of `--output`.

    When a signal stops the run, it is saved.
    """
    with program.STOP_SIGNALS.deferred():
        try:
            for row in _rows(solver, options, checkpointed, checks, time_limit):
                rows.append(row)
                output.write(solver.algorithm.name, row)
                output.show(solver.algorithm.name, row)
                if checks is not None:
                    report.print_verdicts(checks)
                program.STOP_SIGNALS.check()
        except (KeyboardInterrupt, OSError) as error:
            if checkpointed is not None:
                checkpointed.save()
            if isinstance(error, OSError):
                program.STOP_SIGNALS.check()  # a closed terminal is also an output error
                raise
            raise Stopped.at(f"at iteration {solver.iteration}", error) from error


def _checkpointed_run(solver: Solver, options: Options, path: str) -> CheckpointedRun:
    curve = Curve(last_iterate=options.last_iterate)
    if os.path.exists(path):
        curve = dataclasses.replace(checkpoint.read_curve(path), last_iterate=options.last_iterate)
    return CheckpointedRun(solver, path, every=options.checkpoint_every, curve=curve)


def _rows(
    solver: Solver,
    options: Options,
    checkpointed: CheckpointedRun | None,
    checks: TheoryChecks | None,
    time_limit: float | None,
) -> Iterable[Row]:
    """The remaining rows."""
    num_iterations = max(0, options.num_iterations - solver.iteration)
    plain = functools.partial(convergence.convergence, solver, last_iterate=options.last_iterate)
    run: Callable[..., Iterator[Row]] = plain if checkpointed is None else checkpointed.convergence
    return run(
        num_iterations,
        report_every=options.report_every,
        rows_per_decade=options.rows_per_decade,
        target_nash_conv=options.target_nash_conv,
        time_limit=time_limit,
        progress=True,
        run=program.STOP_SIGNALS.checked(solver.run if checks is None else checks.run),
    )


def _crosscheck(game: SequenceFormGame, options: Options) -> int:
    """Prints the comparison with OpenSpiel's solver; returns the exit code."""
    report.print_crosscheck_header()
    (run,) = options.runs
    try:
        comparisons = crosscheck.crosscheck(
            game, run.algorithm.name, num_iterations=options.num_iterations, alternating=options.alternating
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    except Exception as error:  # OpenSpiel's solver calls methods of the game that nothing else calls
        raise UsageError(f"OpenSpiel's solver does not support {game.tree.game}: {error!r}") from error
    return 0 if report.print_crosscheck(comparisons, options) else program.EXIT_DISAGREEMENT
