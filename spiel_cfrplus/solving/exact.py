"""Exact equilibria of two-player constant-sum games, by linear programming on the sequence form.

Let x be a sequence-form strategy of player 0, E x = e its constraints (the empty sequence has reach 1, the sequences of an
infostate sum to their parent), F the matrix of the constraints of player 1, and A the payoffs of player 0. Against x, the
value of player 1's infostates to player 0 is the largest v that satisfies the constraints below, so an equilibrium strategy of
player 0 solves

    maximize v[root]   subject to   E x = e,   F' v - A' x + s = 0,   x >= 0,   s >= 0.

The dual variables of the second group of rows are an equilibrium strategy y of player 1. (Von Stengel 1996, "Efficient
computation of behavior strategies"; Koller, Megiddo, von Stengel 1996, "Efficient computation of equilibria for extensive
two-person games".)

The program is that of the reduced game (`symmetry`): there the sequences of a color have equal reach, and a strategy of the
reduced game is optimal if and only if the strategy of the whole game that corresponds to it is. HiGHS (in SciPy) solves the
program. NashConv is then computed on the whole game. If it exceeds rounding, the solution is improved by iterative refinement
(Gleixner, Steffy, Wolter 2016, "Iterative refinement for linear programming"): the errors of the solution define a program with
the same matrix, whose solution is the correction. Unlike the solution of one system of equations, this needs no basis, which
degenerate games do not determine.

*Trembles.* An equilibrium may play badly at infostates that are not reached. With `tremble` > 0 both players must play every
action of every infostate with at least this probability. In the sequence form these are linear constraints, x[ja] >= tremble *
x[p_j], or R x >= 0. Likewise Q y >= 0 for player 1, and Q' s replaces s:

    maximize v[root]   subject to   E x = e,   F' v - A' x + Q' s = 0,   R x - u = 0,   s >= 0,   u >= 0.

(Farina, Kroer, Sandholm 2017, "Regret Minimization in Behaviorally-Constrained Zero-Sum Games". The limits of its solutions as
the tremble tends to 0 are extensive-form perfect equilibria: Farina, Gatti 2017, "Extensive-Form Perfect Equilibrium
Computation in Two-Player Games".) Every infostate is reached, but some only with a power of the tremble, and errors there have
little effect on NashConv. Therefore the solution is refined at least `_TREMBLING_REFINEMENTS` times. In the reduced game an
action that represents c actions has the least probability c * tremble.

>>> import pyspiel
>>> print(solve_exactly(pyspiel.load_game("kuhn_poker")).fraction)
-1/18
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus._utils.warnings import warn
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk_limits import WalkLimits
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.policies.evaluation import Evaluation, checked_tremble, evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.solving.rational_value import verified_value
from spiel_cfrplus.solving.symmetry import Reduction, reduce_game

T = TypeVar("T")

# NashConv relative to the range of the payoffs: above the first the solution is refined, above the second there is a warning.
# Both exclude the rounding of the expected values themselves, relative to the largest payoff.
_REFINE, _ACCURATE = 1e-14, 1e-12
_UNIT_ROUNDING = 2.0**-50
_MAX_REFINEMENTS, _TREMBLING_REFINEMENTS = 5, 2
# Feasibility tolerances of HiGHS: its smallest one, and its default, in case that it finds no solution with the first.
_TOLERANCES = (1e-10, 1e-7)
_OUT_OF_TIME = 1  # the status of `linprog`
# Errors of the program are not scaled by more than the inverse of this number.
_SMALLEST_ERROR = 2.0**-40
_STEP = 0.1  # seconds between two chances for Ctrl-C


class ProgramSize(NamedTuple):
    """The size of a linear program, before HiGHS simplifies it."""

    rows: int
    columns: int
    nonzeros: int

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.columns} columns, {self.nonzeros} nonzeros"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ExactSolution(Immutable):
    """An equilibrium and its certificate; all values are those of player 0 on the whole game, in game units.

    Attributes:
      profile: the strategies of both players.
      tremble: the least probability of every action, in the strategies and in best responses; usually 0.
      lower_bound: the utility that player 0's strategy guarantees, against a best response: a lower bound on the value.
      upper_bound: the utility of a best response to player 1's strategy: an upper bound on the value.
      fraction: the value as a fraction, if one was found and verified in exact arithmetic; see `rational_value`. None with
        `tremble`.
      size: the size of the linear program.
      refinements: the number of refinements of the solution of HiGHS.
      seconds: wall time, without the walk.
    """

    profile: StrategyProfile
    tremble: float
    lower_bound: float
    upper_bound: float
    fraction: Fraction | None
    size: ProgramSize
    refinements: int
    seconds: float

    @property
    def value(self) -> float:
        """The value of the game: `fraction`, or the mean of the bounds."""
        return (self.lower_bound + self.upper_bound) / 2 if self.fraction is None else float(self.fraction)

    @property
    def nash_conv(self) -> float:
        """NashConv of the profile, the difference of the bounds; a negative rounding error is set to zero."""
        return max(0.0, self.upper_bound - self.lower_bound)

    def _summary(self) -> str:
        fraction = "" if self.fraction is None else f" = {self.fraction}"
        tremble = f", tremble={self.tremble}" if self.tremble else ""
        return (
            f"{self.profile.game.tree.game}{tremble}, value={self.value!r}{fraction}, nash_conv={self.nash_conv:.2g}, "
            f"{self.size}, {self.seconds:.2g} seconds"
        )


def solve_exactly(
    game: pyspiel.Game | SequenceFormGame,
    *,
    tremble: float = 0.0,
    max_nonzeros: int = 2_000_000,
    time_limit: float | None = None,
) -> ExactSolution:
    """Computes an equilibrium up to rounding: NashConv is at most 1e-12 times the range of the payoffs.

    Args:
      game: a two-player constant-sum game, or a compiled one, also a subgame or a game with locked infostates.
      tremble: the probability with which every action must at least be played; it is less than 1/k if an infostate has k
        actions. The result is then an equilibrium among such strategies.
      max_nonzeros: programs with more nonzeros are refused.
      time_limit: the most seconds of wall time for the linear programs; the walk and the reduction are not included.

    Raises:
      RuntimeError: HiGHS found no solution; the message contains its reason.
      TimeoutError: `time_limit` was reached.
      TypeError: an argument of another type.
      ValueError: a game with more players or another sum, a tremble that is too large, or a program that is too large; or as
        for `compile_game`.

    Warns:
      UserWarning: NashConv is larger.
    """
    game = compile_game(game)
    if not game.is_two_player_constant_sum:
        raise ValueError(f"solve_exactly is for two-player constant-sum games only, not for {game.tree.game}")
    tremble, max_nonzeros = checked_tremble(game, tremble), checked_count(max_nonzeros, "nonzeros")
    limits, start = WalkLimits.starting_now(time_limit=time_limit), time.perf_counter()
    reduction = reduce_game(game)
    size = program_size(reduction, trembles=tremble > 0)
    if size.nonzeros > max_nonzeros:
        raise ValueError(
            f"{game.tree.game}: the linear program has {size}, more than max_nonzeros={max_nonzeros}; pass a larger number, or "
            "use a solver of make_solver, which takes less time and memory for large games"
        )
    profile, best_responses, refinements = _accurate_profile(reduction, tremble, limits)
    payoff_sum = float(game.tree.returns[0].sum())
    return ExactSolution(
        profile=profile,
        tremble=tremble,
        lower_bound=float(payoff_sum - best_responses[1]),
        upper_bound=float(best_responses[0]),
        fraction=None if tremble else verified_value(profile),
        size=size,
        refinements=refinements,
        seconds=time.perf_counter() - start,
    )


def program_size(reduction: Reduction, *, trembles: bool = False) -> ProgramSize:
    """The size of the linear program of a reduced game, without or with trembles; nothing large is computed."""
    treeplexes, payoffs = reduction.treeplex_arrays, reduction.payoff_arrays
    infostates = np.diff(treeplexes.player_block.astype(np.int64)).tolist()
    sequences = np.diff(_first_sequences(treeplexes)).tolist()
    num_payoffs = int(payoffs.entry_start[payoffs.player_block[1]])
    return ProgramSize(
        rows=infostates[0] + sequences[1] + trembles * sequences[0],
        columns=sequences[0] + infostates[1] + sequences[1] + trembles * sequences[0],
        nonzeros=num_payoffs
        + sum(infostates)
        - 2
        + sequences[0]
        + 2 * sequences[1]
        + trembles * (3 * sequences[0] + sequences[1] - 2),
    )


def _accurate_profile(
    reduction: Reduction, tremble: float, limits: WalkLimits
) -> tuple[StrategyProfile, npt.NDArray[np.float64], int]:
    """The equilibrium with the smallest NashConv of all refinements, its best-response values, and their number.

    Of several with a NashConv that does not exceed rounding, it is the last one.
    """
    game, program = reduction.game, linear_program(reduction, tremble)
    returns = game.tree.returns[:, 0]
    payoff_range, rounding = float(np.ptp(returns)), _UNIT_ROUNDING * float(np.abs(returns).max())
    accurate = _REFINE * payoff_range + rounding

    def evaluated(solution: Solution) -> tuple[Evaluation, StrategyProfile]:
        profile = lifted_profile(reduction, solution, tremble)
        return evaluate(game, profile, tremble=tremble), profile

    solution = first_solution(program, game, limits)
    best, refinements, fewest = evaluated(solution), 0, _TREMBLING_REFINEMENTS if tremble else 0
    while refinements < fewest or (best[0].nash_conv > accurate and refinements < _MAX_REFINEMENTS):
        solution = refined(program, solution, game, limits)
        refinements += 1
        best = min(evaluated(solution), best, key=lambda pair: max(pair[0].nash_conv, accurate))
    evaluation, profile = best
    if evaluation.nash_conv > _ACCURATE * payoff_range + rounding:
        warn(f"{game.tree.game}: NashConv is {evaluation.nash_conv:.2g}, because the linear program is ill-conditioned")
    return profile, evaluation.best_response_values, refinements


class Program(NamedTuple):
    """The linear program: minimize cost . z subject to matrix z = right, z >= lower.

    z consists of x, v and s divided by the largest payoff, and u if there are trembles.

    Attributes:
      matrix: sparse (rows, columns).
      cost: float64 (columns,).
      right: float64 (rows,).
      lower: float64 (columns,): 0, or minus infinity for v, and for x if there are trembles.
      num_slack: the number of slack variables, s or u. They are the last columns, with an identity matrix in the last rows.
    """

    matrix: Any
    cost: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    num_slack: int


class Solution(NamedTuple):
    """A solution of a `Program`: z, float64 (columns,), and the dual variables, float64 (rows,)."""

    primal: npt.NDArray[np.float64]
    dual: npt.NDArray[np.float64]


def _first_sequences(treeplexes: layouts.TreeplexArrays) -> npt.NDArray[np.int64]:
    """int64 (3,), the empty sequence of each player, and the number of all sequences."""
    return np.asarray(treeplexes.sequence_start[treeplexes.player_block], np.int64)


def linear_program(reduction: Reduction, tremble: float = 0.0) -> Program:
    """The linear program of a reduced game."""
    from scipy import sparse  # takes a tenth of a second

    own, other = (_constraints(reduction.treeplex_arrays, player) for player in range(2))
    payoffs = _payoff_matrix(reduction)
    payoffs = payoffs / max(abs(payoffs).max(), np.finfo(float).tiny)
    own_excess, other_excess = (_excess(reduction, player, tremble) for player in range(2))
    blocks = [[own, None, None], [-payoffs.T, other.T, other_excess.T]]
    if tremble:
        blocks = [[*row, None] for row in blocks] + [[-own_excess, None, None, sparse.identity(own.shape[1])]]
    matrix = sparse.bmat(blocks, format="csc")
    cost, right, lower = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[0]), np.zeros(matrix.shape[1])
    cost[own.shape[1]] = -1
    right[0] = 1
    lower[0 if tremble else own.shape[1] : own.shape[1] + other.shape[0]] = -np.inf
    return Program(matrix, cost, right, lower, num_slack=blocks[-1][0].shape[0])


def _excess(reduction: Reduction, player: int, tremble: float) -> Any:
    """R, sparse (S_p, S_p): R x is x minus the least reach of each sequence, which is tremble times that of its parent."""
    from scipy import sparse

    treeplexes = reduction.treeplex_arrays
    first, last = (int(block) for block in treeplexes.player_block[player : player + 2])
    sequence_start = treeplexes.sequence_start[first : last + 1].astype(np.int64)
    start, stop = int(sequence_start[0]), int(sequence_start[-1])
    excess = sparse.identity(stop - start, format="csr")
    if not tremble:
        return excess
    parents = np.repeat(treeplexes.parent_sequence[first + 1 : last].astype(np.int64) - start, np.diff(sequence_start)[1:])
    rows = np.arange(1, stop - start)
    return excess - sparse.csr_matrix((tremble * reduction.copies[start + 1 : stop], (rows, parents)), excess.shape)


def _constraints(treeplexes: layouts.TreeplexArrays, player: int) -> Any:
    """E, sparse (J_p, S_p): the empty sequence has reach 1, and the sequences of an infostate sum to the parent sequence."""
    from scipy import sparse

    first, last = (int(block) for block in treeplexes.player_block[player : player + 2])
    sequence_start = treeplexes.sequence_start[first : last + 1].astype(np.int64)
    num_rows, num_sequences = last - first, int(sequence_start[-1] - sequence_start[0])
    rows = np.concatenate([np.repeat(np.arange(num_rows), np.diff(sequence_start)), np.arange(1, num_rows)])
    parents = treeplexes.parent_sequence[first + 1 : last].astype(np.int64) - sequence_start[0]
    values = np.repeat([1.0, -1.0], [num_sequences, num_rows - 1])
    return sparse.csr_matrix((values, (rows, np.concatenate([np.arange(num_sequences), parents]))), (num_rows, num_sequences))


def _payoff_matrix(reduction: Reduction) -> Any:
    """A, sparse (S_0, S_1)."""
    from scipy import sparse

    payoffs, (start, middle, stop) = reduction.payoff_arrays, _first_sequences(reduction.treeplex_arrays)
    num_rows = int(payoffs.player_block[1])
    entry_start = payoffs.entry_start[: num_rows + 1].astype(np.int64)
    columns = np.repeat(payoffs.opponent_sequences[:num_rows, 0].astype(np.int64) - middle, np.diff(entry_start))
    rows = payoffs.entry_sequence[: entry_start[-1]].astype(np.int64)
    return sparse.csr_matrix((payoffs.entry_utility[: entry_start[-1]], (rows, columns)), (middle - start, stop - middle))


def lifted_profile(reduction: Reduction, solution: Solution, tremble: float = 0.0) -> StrategyProfile:
    """The profile of the whole game: x is the first part of z, y minus the dual variables of the rows of v.

    What exceeds the least reach is normalized at every infostate.
    """
    treeplexes = reduction.treeplex_arrays
    (_, middle, stop), first_row = _first_sequences(treeplexes), int(treeplexes.player_block[1])
    strategies = (solution.primal[:middle], -solution.dual[first_row : first_row + stop - middle])
    excess = np.concatenate([_excess(reduction, player, tremble) @ reach for player, reach in enumerate(strategies)])
    policy = np.ones(stop)
    for player in range(2):
        passes.match_all_regrets(treeplexes, player, excess, policy)
    if tremble:
        least = tremble * reduction.copies
        starts = treeplexes.sequence_start.astype(np.int64)
        policy = least + policy * (1 - np.add.reduceat(least, starts[:-1]).repeat(starts[1:] - starts[:-1]))
        policy[[0, middle]] = 1
    return StrategyProfile(reduction.game, reduction.policy(policy))


def first_solution(program: Program, game: SequenceFormGame, limits: WalkLimits) -> Solution:
    """The solution by HiGHS.

    Raises:
      RuntimeError: there is none.
      TimeoutError: the time limit was reached.
    """
    for tolerance in _TOLERANCES:
        result = _run_highs(program, tolerance, game, limits, slack=False)
        if result.x is not None and result.eqlin.marginals is not None:
            primal, dual = np.append(result.x, result.slack), np.append(result.eqlin.marginals, result.ineqlin.marginals)
            return Solution(primal, dual)
    raise RuntimeError(f"{game.tree.game}: HiGHS found no solution of the linear program: {result.message}")


def refined(program: Program, solution: Solution, game: SequenceFormGame, limits: WalkLimits) -> Solution:
    """One step of iterative refinement, Gleixner, Steffy, Wolter 2016, Algorithm 1.

    The program of the correction has the errors of the solution as data, each divided by the largest one. If HiGHS does not
    find the correction, the solution is unchanged.
    """
    residual = program.right - program.matrix @ solution.primal
    reduced_cost = program.cost - program.matrix.T @ solution.dual
    bounded = program.lower == 0
    primal_error = max(np.abs(residual).max(), -solution.primal[bounded].min(), _SMALLEST_ERROR)
    dual_error = max(-reduced_cost[bounded].min(), np.abs(reduced_cost[~bounded]).max(), _SMALLEST_ERROR)
    correction = program._replace(
        cost=reduced_cost / dual_error,
        right=residual / primal_error,
        lower=(program.lower - solution.primal) / primal_error,
    )
    result = _run_highs(correction, _TOLERANCES[-1], game, limits)
    if result.x is None or result.eqlin.marginals is None:
        return solution
    return Solution(solution.primal + primal_error * result.x, solution.dual + dual_error * result.eqlin.marginals)


def _run_highs(program: Program, tolerance: float, game: SequenceFormGame, limits: WalkLimits, *, slack: bool = True) -> Any:
    """The result of `linprog`; without `slack`, slack variables are omitted, and their rows are inequalities.

    HiGHS solves this form faster.

    Raises:
      TimeoutError: the time limit was reached.
    """
    from scipy import optimize

    options = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
    if np.isfinite(limits.seconds_left):
        options["time_limit"] = limits.seconds_left
    matrix, right, (num_rows, num_columns) = program.matrix, program.right, program.matrix.shape
    num_slack = 0 if slack else program.num_slack
    rows, columns = num_rows - num_slack, num_columns - num_slack
    bounds = np.column_stack([program.lower, np.full(num_columns, np.inf)])[:columns]
    result = interruptible(
        lambda: optimize.linprog(
            program.cost[:columns],
            A_ub=matrix[rows:, :columns],
            b_ub=right[rows:],
            A_eq=matrix[:rows, :columns],
            b_eq=right[:rows],
            bounds=bounds,
            method="highs-ds",
            options=options,
        )
    )
    if result.status == _OUT_OF_TIME:
        raise TimeoutError(f"{game.tree.game}: the linear program reached the time limit; raise the limit or use make_solver")
    return result


def interruptible(call: Callable[[], T]) -> T:
    """The result of a call that releases Python's global lock.

    Ctrl-C raises an exception here, and the call continues in the background until it ends.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not future.done():
        wait([future], _STEP)
    return future.result()
