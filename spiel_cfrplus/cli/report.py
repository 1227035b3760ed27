"""Prints a run: its rows, the results of the theory checks, and the verification of its policy by OpenSpiel."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyspiel

from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus._utils.progress import write_line
from spiel_cfrplus.analysis.crosscheck import Comparison
from spiel_cfrplus.analysis.theory import TheoryChecks
from spiel_cfrplus.cli.json_lines import PrintRow
from spiel_cfrplus.cli.options import Options
from spiel_cfrplus.game import size_estimate
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.solving.algorithms import Algorithm
from spiel_cfrplus.solving.curve import Row
from spiel_cfrplus.solving.exact import ExactSolution
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import Solver

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

# Relative to the largest return. The two evaluators sum the same products in different orders.
_VERIFY_TOLERANCE = 1e-9


def updates_in_words(algorithm: Algorithm, alternating: bool) -> str:
    """Describes the order of updates."""
    if algorithm.option_refusal("alternating"):
        return "updates against best responses"
    return f"{'alternating' if alternating else 'simultaneous'} updates"


def _policy_in_words(solver: Solver, options: Options) -> str:
    if options.last_iterate:
        return "last iterates"
    average = solver.averaging
    base = f"(t - {average.delay})" if average.delay else "t"
    convention = "" if solver.refusal(Feature.THEORY) else f" by the {average.convention} convention"
    return f"averages{convention} with weights {base}^{average.power:g}"


def print_solver(solver: Solver, options: Options) -> None:
    """Prints the algorithm and its options."""
    updates = updates_in_words(solver.algorithm, solver.alternating)
    print(f"{solver.algorithm}, {updates}, {_policy_in_words(solver, options)}")
    if solver.algorithm.notes:
        print(solver.algorithm.notes)
    if solver.reduction is not None:
        print(f"symmetry reduction: {solver.reduction}")
    if solver.partition is not None:
        print(f"partition: {solver.partition}")


def print_header(options: Options) -> None:
    """Prints the column titles of the rows, unless these are JSON lines."""
    if options.json:
        return
    titles = f"{'iteration':>10} {'seconds':>9} {'NashConv':>13} {'exploitability':>14} {'value of player 0':>18}"
    titles = f"{titles} {'CCE gap':>13}" if options.cce else titles
    print(f"{titles} {'value error':>13}" if options.exact else titles)


def print_row(options: Options, print_json: PrintRow | None, exact_value: float | None, name: str, row: Row) -> None:
    """Prints a row of the run `name`, by `print_json` if it is not None, and the distance from `exact_value` if given."""
    value_error = None if exact_value is None else abs(row.value - exact_value)
    if print_json is not None:
        error = {} if value_error is None else {"value_error": value_error}
        print_json({"algorithm": name, **dataclasses.asdict(row), **error})
        return
    exploitable = "-" if row.exploitability is None else f"{row.exploitability:.6e}"
    numbers = f"{row.iteration:>10} {row.seconds:>9.2f} {row.nash_conv:>13.6e} {exploitable:>14} {row.value:>18.9f}"
    if options.cce:
        gap = "-" if row.cce_gap is None else f"{row.cce_gap:.6e}"
        numbers = f"{numbers} {gap:>13}"
    if value_error is not None:
        numbers = f"{numbers} {value_error:>13.6e}"
    write_line(numbers)
    sys.stdout.flush()


def print_statements(checks: TheoryChecks) -> None:
    """Prints the statements that `--check_theory` measures."""
    for finding in checks.report():
        print(f"{finding.statement.name}: {finding.statement.claim} ({finding.statement.source})")


def print_verdicts(checks: TheoryChecks) -> None:
    """Prints the results of the theory checks so far."""
    for finding in checks.report():
        write_line(f"{finding.statement.name:>25}: {finding.verdict}")
    sys.stdout.flush()


def print_exact_value(solution: ExactSolution) -> None:
    """Prints the value from which the rows show the distance."""
    fraction = "" if solution.fraction is None else f" = {solution.fraction}"
    print(f"exact value: {solution.value!r}{fraction} (linear program: {solution.size}, {solution.seconds:.2f} seconds)")


def print_exact_solution(solution: ExactSolution, print_json: PrintRow | None) -> None:
    """Prints the row of the linear program, by `print_json` if it is not None."""
    fraction = None if solution.fraction is None else str(solution.fraction)
    among = f", among policies that play every action with probability {solution.tremble:g} or more" if solution.tremble else ""
    print(f"linear program: {solution.size}{among}")
    if print_json is not None:
        names = ("seconds", "nash_conv", "value", "lower_bound", "upper_bound")
        print_json({"algorithm": "lp", **{name: getattr(solution, name) for name in names}, "fraction": fraction})
        return
    print(f"{'seconds':>9} {'NashConv':>13} {'value of player 0':>24} {'as a fraction':>16}")
    print(f"{solution.seconds:>9.2f} {solution.nash_conv:>13.6e} {solution.value:>24.16g} {fraction or '-':>16}")
    sys.stdout.flush()


def print_verification(words: str, profile: StrategyProfile, options: Options) -> bool:
    """Evaluates the policy that `words` describe with OpenSpiel; returns False if the results disagree."""
    game = profile.game
    if game.tree.num_histories >= size_estimate.LARGE_GAME and not options.verify_large:
        print("not verified with OpenSpiel, which takes long for a game of this size; pass --verify to do so")
        return True
    ours = evaluate(game, profile).nash_conv
    try:
        theirs = _openspiel_nash_conv(game.tree.game, profile.to_tabular_policy())
    except Exception as error:  # games and OpenSpiel's evaluators may raise anything
        reason = str(error) if isinstance(error, ValueError | pyspiel.SpielError) else repr(error)
        print(f"not verified with OpenSpiel: {' '.join(reason.split())}")
        return True
    print(f"NashConv of the {words}: {ours!r}")
    print(f"by OpenSpiel, of the exported TabularPolicy: {theirs!r} (difference {abs(ours - theirs):.1e})")
    agrees = abs(ours - theirs) <= _VERIFY_TOLERANCE * float(np.abs(game.tree.returns).max())
    if not agrees:
        print("error: OpenSpiel disagrees", file=sys.stderr)
    return agrees


def _openspiel_nash_conv(game: pyspiel.Game, table: openspiel_policy.TabularPolicy) -> float:
    """Evaluates with OpenSpiel's C++ code, or with its slower Python code if the keys of the table differ from those of C++."""
    from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

    try:
        with silent_stderr():
            return float(pyspiel.nash_conv(game, openspiel_policy.python_policy_to_pyspiel_policy(table)))
    except pyspiel.SpielError:
        from open_spiel.python.algorithms import exploitability

        return float(exploitability.nash_conv(game, table))


def print_crosscheck_header() -> None:
    """Prints the column titles of the comparisons."""
    print("largest differences from OpenSpiel's solver, both with OpenSpiel's averaging:")
    print(f"{'iteration':>10} {'current policy':>15} {'average policy':>15} {'NashConv':>15} {'value error':>15}")


def print_crosscheck(comparisons: Sequence[Comparison], options: Options) -> bool:
    """Prints the comparisons with OpenSpiel's solver; returns whether all agree."""
    for row in comparisons:
        numbers = (row.current_policy, row.average_policy, row.nash_conv)
        value_error = "-" if row.value_error is None else f"{row.value_error:.1e}"
        print(f"{row.iteration:>10}", *(f"{number:>15.1e}" for number in numbers), f"{value_error:>15}")
    apart = [row.iteration for row in comparisons if not row.difference <= options.tolerance]
    if not apart:
        print(f"agreement within {options.tolerance:g} after {options.num_iterations} iterations")
        return True
    print(
        f"disagreement by more than {options.tolerance:g} at iteration {apart[0]}; if regrets tie exactly, or after many "
        "iterations of a chaotic game, rounding errors suffice for this (docs/architecture.md)",
        file=sys.stderr,
    )
    return False
