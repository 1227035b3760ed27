"""The flags of the command line, and the object that holds their values."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from absl import flags

from spiel_cfrplus._utils.validation import MOST_ITERATIONS, at_most_cores
from spiel_cfrplus.analysis import crosscheck
from spiel_cfrplus.cli import games, json_lines
from spiel_cfrplus.cli.errors import UsageError, first_line
from spiel_cfrplus.cli.numbers import WholeNumbers
from spiel_cfrplus.game.named_games import find_modules_in_current_folder
from spiel_cfrplus.game.walk_choice import WALKS
from spiel_cfrplus.solving import averaging
from spiel_cfrplus.solving.algorithms import ALGORITHMS, PARAMETERS, Algorithm, algorithm_of
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.session import Feature

FLAGS = flags.FLAGS

_REDUCE: dict[str, bool | str] = {"auto": "auto", "on": True, "off": False}

games.define(FLAGS, default="kuhn_poker")
flags.DEFINE_list(
    "algorithm",
    "cfr+",
    f"<{'|'.join(ALGORITHMS)}|lp>: The algorithm, or module:name of an update rule. Several, with commas, run one after "
    "another; lp: an exact equilibrium by linear programming.",
)
flags.DEFINE_float("prediction_weight", None, "Weight from 0 to 1 of the prediction, of algorithms that have one.")
flags.DEFINE_float("step_size", None, "Step size of algorithms that have one; adaptive by default.")
_ITERATIONS = WholeNumbers(1, MOST_ITERATIONS)
flags.DEFINE(_ITERATIONS, "iterations", None, "Total number of iterations; 10000 by default, 50 with --crosscheck.")
flags.DEFINE(_ITERATIONS, "print_freq", None, "Iterations between rows; rows at 1, 2, 5, 10, 20, ... by default.")
flags.DEFINE_integer(
    "rows_per_decade",
    None,
    "Rows evenly in log t, this many from each power of ten to the next.",
    lower_bound=1,
    upper_bound=10_000,
)
flags.DEFINE_enum("averaging", "paper", list(averaging.CONVENTIONS), "The strategies in the average policy, see the docs.")
flags.DEFINE_float("averaging_power", None, "Weights t ** power in the average; the default depends on the algorithm.")
flags.DEFINE_integer(
    "averaging_delay", 0, "Number of first iterations that the average omits.", lower_bound=0, upper_bound=MOST_ITERATIONS
)
flags.DEFINE_enum("reduce", "auto", list(_REDUCE), "Iterate on the game without its symmetries and forced moves.")
flags.DEFINE_boolean("exact_ties", True, "Set regrets that differ from zero by rounding only to zero.")
flags.DEFINE_integer("threads", 1, "Number of threads that iterate on a large game.", lower_bound=1)
flags.DEFINE_boolean("last_iterate", False, "Evaluate the current policy instead of the average policy.")
flags.DEFINE_boolean("cce", False, "Print the distance of play from a coarse correlated equilibrium; with --simultaneous.")
flags.DEFINE_boolean("exact", False, "Solve the linear program first; rows have the distance of the value from the exact one.")
flags.DEFINE_float("tremble", 0.0, "With --algorithm=lp: the least probability of every action at every infostate.", 0)
flags.DEFINE_boolean("alternating", None, "Players update in turn, player 0 first (the default).")
flags.DEFINE_boolean("simultaneous", None, "All players update at once.")
flags.DEFINE_float("target_nash_conv", None, "Stop at the first row with at most this NashConv.", lower_bound=0)
flags.DEFINE_float(
    "time_limit", None, "Seconds from the start of the walk through the game until the run stops.", lower_bound=0
)
flags.DEFINE_integer("max_histories", None, "Refuse games with more histories than this.", lower_bound=1)
flags.DEFINE_string("cache", None, "Directory in which the walk through the game is cached.")
flags.DEFINE_integer("processes", 1, "Number of processes that walk through the game.", lower_bound=1)
flags.DEFINE_enum("walk", "auto", WALKS, "Walk through the game in C++ (native) or in Python.")
flags.DEFINE_boolean("distributed", False, "Solve one game in all processes that mpiexec starts, see docs/cluster.md.")
flags.DEFINE_integer("parts", None, "With --distributed: the largest number of parts of the game.", lower_bound=1)
flags.DEFINE_integer("cut", None, "With --distributed: the ply at which the game is cut into parts.", lower_bound=1)
flags.DEFINE_string("checkpoint", None, "File to resume from if it exists, and to save to with the rows and at the end.")
flags.DEFINE_float("checkpoint_every", 60.0, "Seconds between saves to --checkpoint between rows.", lower_bound=0)
flags.DEFINE_string("output", None, "A .csv or .jsonl file to which the rows of all runs are written while they run.")
flags.DEFINE_string("save_policy", None, "A .npz, .json or .csv file to save the policy to at the end.")
flags.DEFINE_string("explore", None, "A .html file for a page to walk through the policy at the end.")
flags.DEFINE_string("plot", None, "A .png, .pdf or .svg file for a plot of the rows of all runs.")
json_lines.define(FLAGS)
flags.DEFINE_boolean("check_theory", False, "Measure the theorems at every iteration, and print the results with every row.")
flags.DEFINE_boolean("verify", True, "At the end, evaluate the exported policy with OpenSpiel's NashConv.")
flags.DEFINE_boolean("crosscheck", False, "Compare the first iterations with those of OpenSpiel's solver.")
flags.DEFINE_float("tolerance", 1e-8, "With --crosscheck: the largest difference that counts as agreement.", lower_bound=0)

_NOT_WITH_CROSSCHECK = (
    "averaging",
    "averaging_delay",
    "averaging_power",
    "cce",
    "check_theory",
    "checkpoint",
    "checkpoint_every",
    "exact",
    "exact_ties",
    "explore",
    "json",
    "last_iterate",
    "output",
    "plot",
    "prediction_weight",
    "print_freq",
    "reduce",
    "rows_per_decade",
    "save_policy",
    "step_size",
    "target_nash_conv",
    "threads",
    "time_limit",
    "verify",
)
# `--algorithm` of the linear program, and the other flags that apply to it.
LINEAR_PROGRAM = "lp"
_WITH_LINEAR_PROGRAM = frozenset(
    (
        "algorithm",
        "cache",
        "explore",
        "game",
        "import",
        "json",
        "max_histories",
        "players",
        "processes",
        "save_policy",
        "time_limit",
        "tremble",
        "verify",
        "walk",
    )
)
# The flags that apply to `--distributed`.
_DISTRIBUTED = frozenset(
    (
        "algorithm",
        "alternating",
        "averaging",
        "averaging_delay",
        "averaging_power",
        "checkpoint",
        "checkpoint_every",
        "cut",
        "distributed",
        "exact_ties",
        "game",
        "import",
        "iterations",
        "json",
        "last_iterate",
        "max_histories",
        "parts",
        "players",
        "prediction_weight",
        "print_freq",
        "rows_per_decade",
        "save_policy",
        "simultaneous",
        "target_nash_conv",
        "time_limit",
        "walk",
    )
)
# Flags for algorithms in which the players play against each other.
_SELF_PLAY_FLAGS = ("alternating", "cce", "check_theory", "simultaneous")
_DEFAULT_ITERATIONS = 10_000
_DEFAULT_CROSSCHECK_ITERATIONS = 50


@dataclasses.dataclass(frozen=True)
class Run:
    """An algorithm to run.

    Attributes:
      algorithm: the algorithm, with the parameters of its rule.
      averaging: the weights of its average.
    """

    algorithm: Algorithm
    averaging: Averaging


@dataclasses.dataclass(frozen=True)
class Options:
    """The values of the flags, after the checks that need neither the game nor a file.

    Attributes:
      game, players, modules: see `games.load_game`.
      runs: the algorithms to run, in this order; none for the linear program.
      alternating: the order of updates.
      num_iterations: the total number of iterations.
      report_every: iterations between rows, or None.
      rows_per_decade: rows per power of ten, evenly in log t, or None.
      reduce: True, False or "auto".
      verify: whether OpenSpiel evaluates the exported policy at the end; `verify_large`: whether in large games too.
      Others: the flags of the same name.
    """

    game: str
    players: int | None
    modules: tuple[str, ...]
    runs: tuple[Run, ...]
    alternating: bool
    num_iterations: int
    report_every: int | None
    rows_per_decade: int | None
    reduce: bool | str
    exact_ties: bool
    threads: int
    last_iterate: bool
    cce: bool
    exact: bool
    tremble: float
    target_nash_conv: float | None
    time_limit: float | None
    max_histories: int | None
    cache: str | None
    processes: int
    walk: str
    checkpoint: str | None
    checkpoint_every: float
    output: str | None
    save_policy: str | None
    explore: str | None
    plot: str | None
    json: bool
    check_theory: bool
    verify: bool
    verify_large: bool
    crosscheck: bool
    tolerance: float
    distributed: bool
    parts: int | None
    cut: int | None


def read_options() -> Options:
    """Returns the parsed flags as options.

    Raises:
      UsageError: a flag is invalid, or flags cannot be combined.
    """
    alternating = _alternating()
    _check_numbers()
    algorithms = _algorithms()
    _check_combinations(algorithms, alternating)
    _check_distributed(algorithms)
    num_iterations = FLAGS.iterations or (_DEFAULT_CROSSCHECK_ITERATIONS if FLAGS.crosscheck else _DEFAULT_ITERATIONS)
    return Options(
        game=FLAGS.game.strip(),
        players=FLAGS.players,
        modules=tuple(FLAGS["import"].value or ()),
        runs=tuple(_run(algorithm, num_iterations) for algorithm in algorithms),
        alternating=alternating,
        num_iterations=num_iterations,
        report_every=FLAGS.print_freq,
        rows_per_decade=FLAGS.rows_per_decade,
        reduce=_REDUCE[FLAGS.reduce],
        exact_ties=FLAGS.exact_ties,
        threads=FLAGS.threads,
        last_iterate=FLAGS.last_iterate,
        cce=FLAGS.cce,
        exact=FLAGS.exact,
        tremble=FLAGS.tremble,
        target_nash_conv=FLAGS.target_nash_conv,
        time_limit=FLAGS.time_limit,
        max_histories=FLAGS.max_histories,
        cache=FLAGS.cache,
        processes=FLAGS.processes,
        walk=FLAGS.walk,
        checkpoint=FLAGS.checkpoint,
        checkpoint_every=FLAGS.checkpoint_every,
        output=FLAGS.output,
        save_policy=FLAGS.save_policy,
        explore=FLAGS.explore,
        plot=FLAGS.plot,
        json=FLAGS.json,
        check_theory=FLAGS.check_theory,
        verify=FLAGS.verify,
        verify_large=FLAGS["verify"].present > 0,
        crosscheck=FLAGS.crosscheck,
        tolerance=FLAGS.tolerance,
        distributed=FLAGS.distributed,
        parts=FLAGS.parts,
        cut=FLAGS.cut,
    )


def _alternating() -> bool:
    if FLAGS.alternating is not None and FLAGS.simultaneous is not None and FLAGS.alternating == FLAGS.simultaneous:
        raise UsageError("--alternating and --simultaneous contradict each other")
    return FLAGS.alternating is not False and not FLAGS.simultaneous


def _check_numbers() -> None:
    for name in ("checkpoint_every", "target_nash_conv", "time_limit", "tolerance"):
        value = FLAGS[name].value
        if value is not None and math.isnan(value):
            raise UsageError(f"--{name}=nan is not a number")
    try:
        for name in ("threads", "processes"):
            at_most_cores(FLAGS[name].value, name)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _algorithms() -> list[Algorithm]:
    if not FLAGS.algorithm:
        raise UsageError("--algorithm needs the name of an algorithm")
    if LINEAR_PROGRAM in FLAGS.algorithm:
        _check_linear_program()
        return []
    algorithms = [_algorithm(name) for name in FLAGS.algorithm]
    names = [algorithm.name for algorithm in algorithms]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--algorithm names {name} more than once")
    return algorithms


def _check_linear_program() -> None:
    """Checks that the linear program is the only algorithm, and that all flags apply to it."""
    if len(FLAGS.algorithm) > 1:
        raise UsageError(f"--algorithm={LINEAR_PROGRAM} cannot be combined with other algorithms, whose rows are iterations")
    for module in (__name__, games.__name__, json_lines.__name__):
        for flag in FLAGS.get_key_flags_for_module(module):
            if flag.present and flag.name not in _WITH_LINEAR_PROGRAM:
                raise UsageError(f"--{flag.name} has no effect with --algorithm={LINEAR_PROGRAM}, which does not iterate")


def _algorithm(name: str) -> Algorithm:
    """A row of the table, or the rule "module:name"."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if ":" not in name:
        raise UsageError(f"--algorithm={name}: should be one of <{'|'.join(ALGORITHMS)}>, or several with commas")
    find_modules_in_current_folder()
    try:
        return algorithm_of(name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--algorithm={name}: {first_line(error)}") from error


def _check_combinations(algorithms: list[Algorithm], alternating: bool) -> None:
    if not algorithms:
        return
    if FLAGS["tremble"].present:
        raise UsageError(f"--tremble has no effect without --algorithm={LINEAR_PROGRAM}")
    _check_features(algorithms)
    for name in ("save_policy", "explore"):
        if FLAGS[name].value is not None and len(algorithms) > 1:
            names = ", ".join(algorithm.name for algorithm in algorithms)
            raise UsageError(f"--{name} is for one algorithm at a time, not for {names}")
    if FLAGS.crosscheck:
        for name in _NOT_WITH_CROSSCHECK:
            if FLAGS[name].present:
                raise UsageError(f"--{name} has no effect with --crosscheck")
    elif FLAGS["tolerance"].present:
        raise UsageError("--tolerance has no effect without --crosscheck")
    if FLAGS.print_freq is not None and FLAGS.rows_per_decade is not None:
        raise UsageError("--print_freq and --rows_per_decade cannot be combined")
    if FLAGS["checkpoint_every"].present and FLAGS.checkpoint is None:
        raise UsageError("--checkpoint_every has no effect without --checkpoint")
    if FLAGS.cce and alternating:
        raise UsageError("--cce needs --simultaneous: with alternating updates players do not play their strategies together")


def _check_distributed(algorithms: list[Algorithm]) -> None:
    """Checks that all flags apply to a game in parts, and that its algorithm can iterate on it."""
    if not FLAGS.distributed:
        for name in ("parts", "cut"):
            if FLAGS[name].present:
                raise UsageError(f"--{name} has no effect without --distributed")
        return
    for module in (__name__, games.__name__, json_lines.__name__):
        for flag in FLAGS.get_key_flags_for_module(module):
            if flag.present and flag.name not in _DISTRIBUTED:
                raise UsageError(f"--{flag.name} has no effect with --distributed")
    if len(algorithms) != 1:
        raise UsageError("--distributed is for one algorithm that iterates")
    for name in ("checkpoint", "save_policy"):
        if FLAGS[name].value == "":
            raise UsageError(f"--{name} needs the name of a folder")
    _check_option(algorithms, "distributed", "threads")


def _check_features(algorithms: list[Algorithm]) -> None:
    """Checks that the algorithms support the flags."""
    names = [algorithm.name for algorithm in algorithms]
    comparable = list(crosscheck.COMPARABLE)
    saved = [name for name, algorithm in ALGORITHMS.items() if not algorithm.refusal(Feature.CHECKPOINT)]
    can_save = not algorithms[0].refusal(Feature.CHECKPOINT)
    for flag, able, is_able in (("crosscheck", comparable, names[0] in comparable), ("checkpoint", saved, can_save)):
        if FLAGS[flag].value and len(names) > 1:
            raise UsageError(f"--{flag} is for one algorithm at a time, not for {', '.join(names)}")
        if FLAGS[flag].value and not is_able:
            raise UsageError(f"--{flag} is for {', '.join(able)}, not for {names[0]}")
    for flag, option, is_asked in (
        ("reduce=on", "reduce", FLAGS.reduce == "on"),
        ("noexact_ties", "exact_ties", not FLAGS.exact_ties),
        ("threads", "threads", FLAGS.threads > 1),
    ):
        if is_asked:
            _check_option(algorithms, flag, option)
    for flag in _SELF_PLAY_FLAGS:
        for algorithm in algorithms:
            if FLAGS[flag].present and algorithm.refusal(Feature.THEORY):
                raise UsageError(f"--{flag} is not for {algorithm}, in which each player learns alone, against best responses")


def _check_option(algorithms: list[Algorithm], flag: str, option: str) -> None:
    """Checks that the algorithms have an option of solvers that a flag sets."""
    able = ", ".join(name for name, algorithm in ALGORITHMS.items() if not algorithm.option_refusal(option))
    for algorithm in algorithms:
        if algorithm.option_refusal(option):
            raise UsageError(f"--{flag} is for {able}, not for {algorithm}")
        if FLAGS.cce and option == "threads":  # see the argument `record_regrets` of `Solver`
            raise UsageError(f"--{flag} is for {able}, not for {algorithm} with --cce")


def _run(algorithm: Algorithm, num_iterations: int) -> Run:
    try:
        given = {name: FLAGS[name].value for name in PARAMETERS}
        algorithm = algorithm.with_parameters(**{name: value for name, value in given.items() if value is not None})
        average = algorithm.averaging_with(FLAGS.averaging_power, FLAGS.averaging, FLAGS.averaging_delay)
        average.weights(np.array([num_iterations]))
        averaging.check_delay(FLAGS.averaging_delay, num_iterations)
    except (TypeError, ValueError) as error:
        raise UsageError(first_line(error)) from error
    return Run(algorithm, average)
