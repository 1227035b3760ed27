"""Solvers: an algorithm that runs on a game and returns policies.

>>> import pyspiel
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(1000)
>>> solver.nash_conv() < 2e-4
True
>>> policy = solver.average_policy()  # an open_spiel.python.policy.TabularPolicy
>>> policy.action_probability_array.shape
(12, 2)
>>> make_solver("pcfr+", solver.game, prediction_weight=1 / 3)
PredictiveCFRPlusSolver: pcfr+ for kuhn_poker(), 0 iterations
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyspiel

from spiel_cfrplus._utils.calls import name_constructor_after
from spiel_cfrplus._utils.validation import at_most_cores, checked_count
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.game.walk_limits import memory_errors_name
from spiel_cfrplus.policies.evaluation import Evaluation, evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountSchedule
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.algorithms import ALGORITHMS, PYTHON, Algorithm, Play, algorithm_of
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.compiled_self_play import work_of_iteration
from spiel_cfrplus.solving.curve import NO_ROWS, Curve
from spiel_cfrplus.solving.partition import Partition
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import STATEMENTS, Feature, Session
from spiel_cfrplus.solving.symmetry import Reduction, reduce_game
from spiel_cfrplus.solving.warm_start import warm_started

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

# Below this work per iteration (see `work_of_iteration`) the removal of forced moves does not save a relevant amount of time.
_LEAST_WORK = 5_000
# The averaging weights of a warm start are summed one by one, which takes about ten seconds for this number.
_MOST_ITERATIONS_OF_WARM_START = 10**9
# The arguments that `load` passes to a solver besides the game.
_OPTIONS_OF_LOAD = ("alternating", "averaging", "rule", "reduce", "exact_ties", "threads")


class Solver:
    """An algorithm that runs on a game: CFR+, unless a subclass or `make_solver` specifies another one.

    In two-player constant-sum games the average policy converges to a Nash equilibrium. With more players or general sums the
    iterations and NashConv are computed in the same way, but NashConv need not converge to zero. The average regret of each
    player does, so the distribution of play (not the average policy) converges to a coarse correlated equilibrium.

    Policies that a solver returns are snapshots: later iterations do not change them. They cover every infostate from the
    start; at infostates that were never reached the average policy is uniform.

    A solver must be used by one thread at a time. Solvers in several threads may share a compiled game and run concurrently.

    >>> import pyspiel
    >>> class MySolver(Solver):
    ...     algorithm = ALGORITHMS["dcfr"]
    >>> MySolver(pyspiel.load_game("kuhn_poker"))
    MySolver: dcfr for kuhn_poker(), 0 iterations

    Attributes:
      algorithm: a row of `ALGORITHMS`, or an `Algorithm` of the user, with the given rule and parameters.
      game: the compiled game; pass it to other solvers to avoid another walk.
      self_play: the session that iterates, with the players' regret minimizers and their memory.
    """

    algorithm: Algorithm = ALGORITHMS["cfr+"]
    game: SequenceFormGame
    self_play: Session

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name_constructor_after(cls)

    def __init__(
        self,
        game: pyspiel.Game | SequenceFormGame,
        *,
        alternating: bool = True,
        averaging: str | Averaging = "paper",
        rule: CompiledRule | DiscountSchedule | None = None,
        prediction_weight: float | None = None,
        step_size: float | None = None,
        reduce: bool | str = "auto",
        exact_ties: bool = True,
        threads: int = 1,
        record_regrets: bool = False,
    ):
        """Compiles the game if it is not yet compiled; does not iterate.

        Args:
          game: a game, or the result of `compile_game`, which has limits of time and size.
          alternating: players update in turn, player 0 first, each against the newest strategies of the others; otherwise all
            update at once.
          averaging: a convention, "paper" or "openspiel", with the weights of the algorithm; or an `Averaging`.
          rule: replaces the algorithm's rule: discounts with other exponents, such as `DiscountedRegretMatching(1.2, 0.5)`,
            with the algorithm's prediction weight, or a rule made by `local_rule`.
          prediction_weight: replaces the weight, from 0 to 1, of the prediction, which is that the last values are repeated.
          step_size: the step size of algorithms that have one; adaptive by default.
          reduce: whether to iterate on the game without its symmetries and forced moves, with the same results; see
            docs/reduction.md. "auto" does so in every game with symmetric infostates, or symmetric actions of an infostate,
            independent of its size, because rounding errors break such symmetries on the whole game; and in a game with forced
            moves only, if an iteration has 5,000 steps or more and the removal saves a tenth of them.
          exact_ties: whether regrets within rounding of zero are set to zero, as in exact arithmetic; see docs/architecture.md,
            Numerics. It takes a few percent of the time.
          threads: the number of threads that iterate on the game, see `partition`; at most the number of cores. Results are the
            same doubles. Threads save time if an iteration takes at least a tenth of a millisecond. A call with less than about
            two milliseconds of work, such as a single step of a small game, uses one thread. A forked process may use threads
            even if its parent did.
          record_regrets: whether utilities are summed, so that the session has `regrets()` and, if updates are simultaneous,
            `cce_gap()`; iterations are then by one thread.

        Raises:
          TypeError: an option of another type, or one that this algorithm does not take.
          ValueError: `reduce` is neither True, False nor "auto"; `threads` is not an integer from 1 to the number of cores; a
            parameter is out of its range; an unknown convention; or a game that cannot be compiled, see `compile_game`.
          MemoryError: memory ran out.
        """
        algorithm = self.algorithm
        averaging = checked_averaging(averaging, algorithm.default_averaging)
        alternating = _checked_bool(alternating, "alternating")
        exact_ties = _checked_bool(exact_ties, "exact_ties")
        record_regrets = _checked_bool(record_regrets, "record_regrets")
        algorithm = algorithm if rule is None else algorithm.with_rule(rule)
        parameters = {"prediction_weight": prediction_weight, "step_size": step_size}
        algorithm = algorithm.with_parameters(**{name: value for name, value in parameters.items() if value is not None})
        threads = at_most_cores(threads, "threads")
        reduce = _checked_reduce(reduce)
        asked = {
            "alternating": not alternating,
            "reduce": reduce is True,
            "exact_ties": not exact_ties,
            "threads": threads > 1,
            "record_regrets": record_regrets,
        }
        algorithm.check_options(*(name for name, is_asked in asked.items() if is_asked))
        if record_regrets and threads > 1:
            raise ValueError("record_regrets is for one thread, not for several threads")
        game = compile_game(game)
        with memory_errors_name(
            lambda: f"{game.tree.game}, a solver of {game.num_sequences} sequences and {len(game.payoffs)} payoffs"
        ):
            reduction = _reduction(game, algorithm, reduce)
            session = algorithm.start(
                game, Play(averaging, alternating, reduction, exact_ties, threads, records_utilities=record_regrets)
            )
        self.algorithm, self.game, self.self_play = algorithm, game, session

    @classmethod
    def of_minimizers(
        cls,
        game: pyspiel.Game | SequenceFormGame,
        minimizer: Callable[[Treeplex], RegretMinimizer],
        *,
        alternating: bool = True,
        averaging: str | Averaging = "paper",
    ) -> Self:
        """Makes a solver of Python objects with two methods, see `RegretMinimizer`; iterations run in Python.

        >>> import pyspiel
        >>> from spiel_cfrplus.regret_minimizers import CFR
        >>> Solver.of_minimizers(pyspiel.load_game("kuhn_poker"), CFR)
        Solver: CFR for kuhn_poker(), 0 iterations

        Args:
          game: a game, or the result of `compile_game`.
          minimizer: a class or function that makes a minimizer for a player's treeplex.
          alternating: as for other solvers.
          averaging: a convention, "paper" or "openspiel", with uniform weights; or an `Averaging`.

        Raises:
          TypeError: `minimizer` is not callable, or an option has another type.
          ValueError: unknown convention, a game that cannot be compiled, or a first strategy that is not one of its player.
        """
        if not callable(minimizer):
            raise TypeError(f"expected a function that makes a minimizer for a treeplex, such as CFR, got {minimizer!r}")
        averaging = checked_averaging(averaging, Averaging())
        alternating = _checked_bool(alternating, "alternating")
        game = compile_game(game)
        session = SelfPlay(game, [minimizer(treeplex) for treeplex in game.treeplexes], averaging, alternating)
        return cls.of_session(session, getattr(minimizer, "__name__", str(minimizer)))

    @classmethod
    def of_session(cls, session: Session, name: str) -> Self:
        """Makes a solver of any session, at its present iteration."""
        solver = cls.__new__(cls)
        solver.algorithm = Algorithm(name, None, 0.0, engine=PYTHON)
        solver.game, solver.self_play = session.game, session
        return solver

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.algorithm} for {self.game.tree.game}, {self.iteration} iterations"

    @property
    def reduction(self) -> Reduction | None:
        """The reduced game that is iterated on, or None."""
        return self.self_play.reduction

    @property
    def partition(self) -> Partition | None:
        """The division of the work among threads, or None."""
        return self.self_play.partition

    def refusal(self, feature: Feature) -> str:
        """Why the solver, in its present state, lacks the feature; empty if it has it. See `Session.refusal`."""
        if feature in (Feature.THEORY, *STATEMENTS) and type(self).run is not Solver.run:
            return f"{type(self).__name__} overrides run, so its iterations are unknown"
        return self.self_play.refusal(feature)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    @property
    def iteration(self) -> int:
        """Iterations done, including the weight of a warm start."""
        return self.self_play.iteration

    @property
    def alternating(self) -> bool:
        return self.self_play.alternating

    @property
    def averaging(self) -> Averaging:
        return self.self_play.averaging

    def evaluate_and_update_policy(self) -> None:
        """Does one iteration; OpenSpiel's solvers have a method of this name."""
        self.run(1)

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more. The doubles do not depend on how iterations are divided among calls.

        Raises:
          TypeError, ValueError: not an integer, or negative.
        """
        self.self_play.run(checked_count(num_iterations))

    def current_profile(self) -> StrategyProfile:
        """The current strategies sigma^t."""
        return StrategyProfile(self.game, self.self_play.current_policy())

    def average_profile(self) -> StrategyProfile:
        """The average strategies, the output of the algorithm."""
        return StrategyProfile(self.game, self.self_play.average_policy())

    def current_policy(self) -> openspiel_policy.TabularPolicy:
        """The current strategies for OpenSpiel; see `StrategyProfile.to_tabular_policy`."""
        return self.current_profile().to_tabular_policy()

    def average_policy(self) -> openspiel_policy.TabularPolicy:
        """The average strategies for OpenSpiel; see `StrategyProfile.to_tabular_policy`."""
        return self.average_profile().to_tabular_policy()

    def evaluate(self) -> Evaluation:
        """Values, gains and NashConv of the average strategies."""
        return evaluate(self.game, self.average_profile())

    def nash_conv(self) -> float:
        """NashConv of the average strategies, in game units."""
        return self.evaluate().nash_conv

    def warm_start(self, policy: Any, weight: int) -> None:
        """Starts from `policy` as if all players had played it for `weight` iterations; call it before the first iteration.

        Afterwards `iteration` is `weight`, and the current strategies equal `policy` at all infostates, up to rounding; the
        averages do so at all infostates that their player reaches. The module `warm_start` defines the size of the regrets.
        A weight of 0 has no effect. All later iterations are on the whole game, because `policy` may not respect the symmetries
        of the game.

        Args:
          policy: any policy that `read_policy` accepts.
          weight: a number of iterations, at most 10**9.

        Raises:
          TypeError: `weight` is not an integer, `policy` is not a policy, or the session refuses, see `Feature.WARM_START`.
          ValueError: `weight` is negative or too large, iterations have been done, or see `read_policy` and
            `warm_start.warm_start_state`; nothing is changed.
        """
        weight = checked_count(weight, "iterations of a warm start", most=_MOST_ITERATIONS_OF_WARM_START)
        profile = read_policy(self.game, policy)
        if reason := self.refusal(Feature.WARM_START):
            raise TypeError(f"cannot warm-start {self.algorithm}: {reason}")
        if self.iteration > 0:
            raise ValueError(f"{self.iteration} iterations have been done; a warm start is for a new solver")
        if weight > 0:
            self.self_play = warm_started(self.self_play, profile, weight)

    def save(self, path: str | os.PathLike[str], curve: Curve = NO_ROWS) -> None:
        """Saves the session for `load`; see `checkpoint`. A solver can also be pickled, if its game can.

        Args:
          path: the file; after an error it contains either its previous content or the whole new checkpoint.
          curve: the rows of the run, see `CheckpointedRun`; none by default.

        Raises:
          OSError: the file cannot be written.
          TypeError: `path` is not a path, or see `check_can_save`.
        """
        self.check_can_save()
        checkpoint.save(self.self_play, path, algorithm=self.algorithm.name, solver=type(self).__name__, curve=curve)

    def check_can_save(self) -> None:
        """Refuses solvers that `load` could not restore.

        Raises:
          TypeError: see `checkpoint.check_can_save`; or `load` could not call the constructor.
        """
        try:
            checkpoint.check_can_save(self.self_play)
        except TypeError as error:
            remedy = "pickle this one instead" if self.game.tree.can_be_pickled else "nor can its game be pickled"
            raise TypeError(f"cannot save {self.algorithm}: {error}; {remedy}") from error
        check_constructor(type(self))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        game: pyspiel.Game | SequenceFormGame | None = None,
        *,
        rule: CompiledRule | DiscountSchedule | Algorithm | None = None,
        threads: int = 1,
        max_histories: int | None = None,
    ) -> Self:
        """Loads a saved solver, which continues with the same doubles. `Solver` accepts any algorithm, a named class its own.

        Args:
          path: a file written by `save`.
          game, max_histories: see `SavedGame.compiled_game`.
          rule: the rule of the saved solver, if it is not of this package; or its `Algorithm`.
          threads: as for a new solver; checkpoints do not store it.

        Raises:
          OSError: the file cannot be read.
          TypeError: `path` is not a path, or `save` does not save solvers of this class.
          ValueError: it is not a checkpoint, or of another algorithm, rule or game, see `SavedGame.compiled_game`; or `threads`
            is not an integer from 1 to the number of cores.
        """
        if reason := cls.algorithm.refusal(Feature.CHECKPOINT):
            raise TypeError(f"cannot load a {cls.__name__}: {reason}; unpickle it instead")
        threads = at_most_cores(threads, "threads")
        saved = checkpoint.read(path)
        algorithm = _algorithm_of_checkpoint(saved, rule)
        solver_type = cls._type_of_checkpoint(saved)
        check_constructor(solver_type)
        compiled = saved.compiled_game(game, max_histories)
        options = {
            "alternating": saved.alternating,
            "averaging": saved.averaging,
            "rule": algorithm.rule,
            "reduce": saved.reduced,
            "exact_ties": saved.exact_ties,
            "threads": threads,
        }
        taken = {name: value for name, value in options.items() if not algorithm.option_refusal(name)}
        if saved.records_utilities:
            taken["record_regrets"] = True
        solver = solver_type.__new__(solver_type)
        solver.algorithm = algorithm
        solver_type.__init__(solver, compiled, **taken)
        checkpoint.load_state(saved, solver.self_play)
        return solver

    @classmethod
    def _type_of_checkpoint(cls, saved: checkpoint.Checkpoint) -> type[Self]:
        """The class of a saved solver: `cls` or, if that is `Solver`, the class of the saved algorithm.

        Raises:
          ValueError: it was another class.
        """
        expected: Any = _NAMED.get(saved.algorithm, Solver) if cls is Solver else cls
        own = expected is Solver or expected.algorithm.name == saved.algorithm
        if saved.solver == expected.__name__ and own:
            found: type[Self] = expected
            return found
        if saved.solver in {expected.__name__, *(solver.__name__ for solver in _NAMED.values())} and (
            cls is Solver or saved.solver == expected.__name__
        ):
            raise checkpoint.damaged(saved.path, f"a {saved.solver} of the algorithm {saved.algorithm!r}")
        raise ValueError(f"{saved.path} was saved by a {saved.solver}, expected a {expected.__name__}")


class CFRSolver(Solver):
    """Counterfactual regret minimization: regret matching, uniform average.

    Zinkevich, Johanson, Bowling, Piccione 2007; as stated in Burch, Moravcik, Schmid 2019, section 2, with alternating updates.
    """

    algorithm = ALGORITHMS["cfr"]


class CFRPlusSolver(Solver):
    """CFR+: regret matching+, average with weight i on the i-th strategy.

    Tammelin 2014; as stated in Burch, Moravcik, Schmid 2019, section 2, with alternating updates.
    """

    algorithm = ALGORITHMS["cfr+"]


class LinearCFRSolver(Solver):
    """Linear CFR: iteration t has weight t, in the regrets and in the average.

    Brown, Sandholm 2019 ("Solving imperfect-information games via discounted regret minimization"), section 4: discounted CFR
    with alpha = beta = gamma = 1.
    """

    algorithm = ALGORITHMS["lcfr"]


class DiscountedCFRSolver(Solver):
    """Discounted CFR: after iteration t positive regrets are multiplied by t^alpha / (t^alpha + 1), negative ones with beta.

    Brown, Sandholm 2019, section 4, with their recommendation alpha = 3/2, beta = 0 (which halves negative regrets), gamma = 2;
    for other values pass `rule=DiscountedRegretMatching(alpha, beta), averaging=Averaging(gamma)`. The paper multiplies the
    average by (t / (t + 1))^gamma at every iteration, which is equivalent to weighting iteration t with t^gamma.
    """

    algorithm = ALGORITHMS["dcfr"]


class DiscountedCFRPlusSolver(Solver):
    """DCFR+: discounted regrets that do not become negative.

    Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024 ("Minimizing weighted counterfactual regret with optimistic online mirror descent"):
    alpha = 3/2, gamma = 4.
    """

    algorithm = ALGORITHMS["dcfr+"]


class PredictiveCFRSolver(Solver):
    """Predictive CFR: regret matching with the prediction that the last counterfactual values are repeated; quadratic average.

    Farina, Kroer, Sandholm 2021 ("Faster game solving via predictive Blackwell approachability"), Algorithm 1. The weights of
    the average are those of PCFR+.
    """

    algorithm = ALGORITHMS["pcfr"]


class PredictiveCFRPlusSolver(Solver):
    """PCFR+: regret matching+ with the prediction that the last counterfactual values are repeated; quadratic average.

    Farina, Kroer, Sandholm 2021, Algorithm 2 and section 6, with alternating updates. With `prediction_weight=1 / 3` it is
    SAPCFR+ (Meng, Zhang, Ge, Yang, Gao 2025), "sapcfr+" in `make_solver`.
    """

    algorithm = ALGORITHMS["pcfr+"]


class PDCFRPlusSolver(Solver):
    """PDCFR+: PCFR+ with discounted regrets.

    Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024: alpha = 2.3, gamma = 5. With `prediction_weight=1 / 3` it is "sapdcfr+" in
    `make_solver`.
    """

    algorithm = ALGORITHMS["pdcfr+"]


class CFRBRSolver(Solver):
    """CFR-BR: each player learns by CFR against best responses to its own strategies; uniform average.

    Johanson, Bard, Burch, Bowling 2012 ("Finding optimal abstract strategies in extensive-form games"); see
    `best_response_play`. For two-player constant-sum games. The order of updates makes no difference, nor does the convention
    of the average.
    """

    algorithm = ALGORITHMS["cfr-br"]


_NAMED: dict[str, type[Solver]] = {
    solver.algorithm.name: solver
    for solver in (
        CFRSolver,
        CFRPlusSolver,
        LinearCFRSolver,
        DiscountedCFRSolver,
        DiscountedCFRPlusSolver,
        PredictiveCFRSolver,
        PredictiveCFRPlusSolver,
        PDCFRPlusSolver,
        CFRBRSolver,
    )
}


def make_solver(
    algorithm: str | Algorithm | CompiledRule | DiscountSchedule, game: pyspiel.Game | SequenceFormGame, **options: Any
) -> Solver:
    """Makes a solver of an algorithm or a rule.

    >>> import pyspiel
    >>> make_solver("pdcfr+", pyspiel.load_game("kuhn_poker"), prediction_weight=1 / 3)
    PDCFRPlusSolver: pdcfr+ for kuhn_poker(), 0 iterations

    Args:
      algorithm: a name in `ALGORITHMS`, of which "auto" is recommended; a rule, as made by `local_rule`; "module:name" of a
        rule or of an `Algorithm`, whose module is imported; or an `Algorithm`. For minimizers that are Python objects see
        `Solver.of_minimizers`.
      game: a game, or the result of `compile_game`.
      **options: see `Solver`. For a rule, the weights of the average are uniform by default.

    Returns:
      A solver of the named class of the algorithm if there is one, such as `CFRPlusSolver`, otherwise a `Solver`.

    Raises:
      TypeError: `algorithm` is none of these, or see `Solver`.
      ValueError: an unknown name, or see `Solver`.
    """
    row = algorithm_of(algorithm)
    named = _NAMED.get(row.name, Solver)
    solver_type = named if named.algorithm is row else Solver
    solver = solver_type.__new__(solver_type)
    solver.algorithm = row
    solver_type.__init__(solver, game, **options)
    return solver


def _algorithm_of_checkpoint(saved: checkpoint.Checkpoint, given: Any) -> Algorithm:
    """The algorithm of a saved solver, with its rule."""
    if isinstance(given, Algorithm):
        return given.with_rule(saved.rule(given.rule))
    row = ALGORITHMS.get(saved.algorithm)
    if given is not None:
        given = algorithm_of(given).rule
    rule = saved.rule(given, default=None if row is None else row.rule)
    return Algorithm(saved.algorithm, rule) if row is None else row.with_rule(rule)


def check_constructor(solver_type: type[Solver]) -> None:
    """Refuses solvers whose constructor does not take the arguments that `load` passes.

    Raises:
      TypeError: the constructor does not take them.
    """
    try:
        inspect.signature(solver_type).bind(None, **dict.fromkeys(_OPTIONS_OF_LOAD))
    except TypeError as error:
        raise TypeError(
            f"a {solver_type.__name__} can be neither saved nor loaded: its __init__ does not take the arguments of "
            f"Solver ({error}); pickle it instead, or write an __init__ that takes game and **options and passes them on"
        ) from error


def _reduction(game: SequenceFormGame, algorithm: Algorithm, reduce: bool | str) -> Reduction | None:
    """The reduced game to iterate on, or None."""
    if reduce is False or algorithm.option_refusal("reduce"):
        return None
    reduction = reduce_game(game, algorithm.rule.merges_actions)
    if reduce is True:
        return reduction
    whole = work_of_iteration(game)
    saves_time = whole >= _LEAST_WORK and work_of_iteration(reduction) <= 0.9 * whole
    return reduction if reduction.has_symmetry or saves_time else None


def _checked_reduce(reduce: bool | str) -> bool | str:
    if isinstance(reduce, bool | np.bool_):
        return bool(reduce)
    if not isinstance(reduce, str) or reduce != "auto":
        raise ValueError(f'reduce must be True, False or "auto", got {reduce!r}')
    return reduce


def _checked_bool(value: bool, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def checked_averaging(averaging: str | Averaging, default: Averaging) -> Averaging:
    """`averaging` itself, or the convention of this name with the weights of `default`.

    Raises:
      TypeError, ValueError: it is neither an `Averaging` nor the name of a convention.
    """
    if isinstance(averaging, str):
        averaging = dataclasses.replace(default, convention=averaging)
    if not isinstance(averaging, Averaging):
        raise TypeError(f"averaging must be the name of a convention or an Averaging, got {averaging!r}")
    return averaging
