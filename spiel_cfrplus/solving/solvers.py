"""The named solvers. Each is a declaration: a local rule, an average, and who they are due to.

>>> import pyspiel
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(1000)
>>> solver.nash_conv() < 2e-4
True
>>> policy = solver.average_policy()  # an open_spiel.python.policy.TabularPolicy
>>> policy.action_probability_array.shape
(12, 2)
"""

from __future__ import annotations

import copy
import math
import os
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyspiel

from spiel_cfrplus._utils.calls import name_constructor_after
from spiel_cfrplus._utils.validation import at_most_cores, checked_count
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk_limits import memory_errors_name
from spiel_cfrplus.policies.evaluation import Evaluation, evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy
from spiel_cfrplus.regret_minimizers.cfr import CFR
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    DiscountSchedule,
    RegretMatching,
    RegretMatchingPlus,
    as_local_rule,
)
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.best_response_play import BestResponsePlay
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay, work_of_iteration
from spiel_cfrplus.solving.partition import Partition
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.symmetry import Reduction, reduce_game
from spiel_cfrplus.solving.warm_start import warm_start_state

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

# With fewer steps in an iteration (see `work_of_iteration`) the removal of forced moves saves no time that matters.
_LEAST_WORK = 5_000
# Their averaging weights are summed one by one, which takes some ten seconds for so many.
_MOST_ITERATIONS_OF_WARM_START = 10**9


class Solver:
    """Self-play of regret minimizers on a compiled game, and the policies that come of it.

    In two-player constant-sum games the average policy approaches a Nash equilibrium. With more players or general sums the
    same iterations run and NashConv is reported, but it need not go to zero: what is promised there is that each player's
    average regret does, so that the distribution of play (not the average policy) approaches a coarse correlated equilibrium.

    Policies that a solver returns are snapshots: later iterations do not change them. Every infostate is covered from the
    start; where a player has never come, its average policy is uniform.

    One solver is for one thread; solvers in several threads may share a compiled game, and iterate at the same time.

    Attributes:
      game: the compiled game; give it to another solver to save the walk.
      self_play: the session that iterates: the players' regret minimizers and their memory.
      algorithm: the name of the algorithm, as in `ALGORITHMS` or `LEARNERS`, or "cfr-br".
    """

    self_play: SelfPlay | CompiledSelfPlay | BestResponsePlay
    algorithm: str

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        name_constructor_after(cls)

    def __init__(self, self_play: SelfPlay | CompiledSelfPlay | BestResponsePlay):
        """Takes a session as it stands."""
        self.game = self_play.game
        self.self_play = self_play

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    @property
    def iteration(self) -> int:
        """Iterations done; those that a warm start stands for count."""
        return self.self_play.iteration

    @property
    def alternating(self) -> bool:
        return self.self_play.alternating

    @property
    def averaging(self) -> Averaging:
        return self.self_play.averaging

    def evaluate_and_update_policy(self) -> None:
        """One iteration, under the name that OpenSpiel's solvers give it."""
        self.run(1)

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more. The result is the same doubles however they are divided among calls.

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
        """Goes on from `policy` as if everybody had played it for `weight` iterations; before the first iteration.

        Afterwards `iteration` is `weight`, and the current strategies are those of `policy`, everywhere, to rounding; the
        averages are too, where their player comes. What it takes to learn something else is told in the module `warm_start`.
        A weight of 0 changes nothing. Iterations are on the whole game from now on, for nobody knows that `policy` respects
        its symmetries.

        Args:
          policy: anything that `policy_reading.read_policy` understands.
          weight: a number of iterations, at most 10**9.

        Raises:
          TypeError: `weight` is not an integer, or `policy` is no policy; or the minimizers are Python objects, of which nobody
            knows what they would have learned.
          ValueError: `weight` is negative or too large, iterations have been done, or see `read_policy` and
            `warm_start.warm_start_state`; nothing is changed.
        """
        weight = checked_count(weight, "iterations of a warm start", most=_MOST_ITERATIONS_OF_WARM_START)
        profile = read_policy(self.game, policy)
        if not isinstance(self.self_play, CompiledSelfPlay):
            raise TypeError(f"cannot warm-start {self.algorithm}, only solvers that are compiled as a whole")
        if self.iteration > 0:
            raise ValueError(f"{self.iteration} iterations have been done; a warm start is for a new solver")
        if weight > 0:
            session = self.self_play.on_the_whole_game()
            session.load_state_dict(warm_start_state(session, profile, weight))
            self.self_play = session

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves tables and options for `load`; see `checkpoint.save`. Pickling works too, where the game can be pickled."""
        checkpoint.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        game: pyspiel.Game | SequenceFormGame | None = None,
        *,
        threads: int = 1,
        max_histories: int | None = None,
    ) -> Self:
        """What `save` saved; it goes on to the same doubles. `Solver.load` accepts any algorithm, a named solver its own.

        Args, errors: see `checkpoint.load`.

        Raises:
          TypeError: `save` does not save solvers of this class.
        """
        mine = {name: solver_type for name, solver_type in ALGORITHMS.items() if issubclass(solver_type, cls)}
        if issubclass(cls, CompiledSolver):
            mine = mine or {cls.algorithm: cls}  # a user's own
        elif not mine:
            raise TypeError(f"cannot load a {cls.__name__}, only solvers that are compiled as a whole; unpickle it instead")
        solver = checkpoint.load(path, mine, game, at_most_cores(threads, "threads"), max_histories)
        assert isinstance(solver, cls)
        return solver


class CompiledSolver(Solver):
    """CFR with one local rule of the regret-matching family everywhere; all iterations of a `run` happen in compiled code.

    A named solver is a declaration:

    Attributes:
      algorithm: its name.
      local_rule: what happens to regrets.
      averaging_power: the average has weights t ** power.
      prediction_weight: True if the last counterfactual values are predicted to come again, or a weight of that prediction.
    """

    self_play: CompiledSelfPlay
    local_rule: ClassVar[DiscountSchedule]
    averaging_power: ClassVar[float]
    prediction_weight: ClassVar[float] = False

    def __init__(
        self,
        game: pyspiel.Game | SequenceFormGame,
        *,
        alternating: bool = True,
        averaging: str | Averaging = "paper",
        local_rule: LocalRule | DiscountSchedule | None = None,
        reduce: bool | str = "auto",
        exact_ties: bool = True,
        threads: int = 1,
    ):
        """Compiles the game if it is not yet compiled; nothing is played.

        Args:
          game: a game, or what `compile_game` made of one, which takes limits of time and size.
          alternating: players update in turn, player 0 first, each against the newest strategies of the others; otherwise all
            update at once.
          averaging: a convention, "paper" or "openspiel", which leaves the weights to the algorithm; or an `Averaging`.
          local_rule: another one than the algorithm's, such as discounts with other exponents.
          reduce: whether to iterate on the game without its symmetries and forced moves, which plays the same; see
            `reduction`. "auto" does so in every game with symmetric infostates, or symmetric actions of an infostate, whatever
            its size, because rounding errors break such symmetries on the whole game; and in a game that has forced moves
            only, if an iteration has 5,000 steps or more and the removal saves a tenth of them.
          exact_ties: whether regrets within rounding of zero are zero, as in exact arithmetic; see docs/architecture.md,
            Numerics. It takes a few hundredths of the time.
          threads: how many threads iterate on the game together, see `partition`; at most the number of cores. Results are the
            same doubles. They pay where an iteration takes a tenth of a millisecond or more. A call that has less than some two
            milliseconds of work, such as a single step of a small game, is done by one thread. A forked process may use
            threads whatever its parent did.

        Raises:
          TypeError: `averaging` is neither, `alternating` or `exact_ties` is no bool, or `local_rule` is none.
          ValueError: `reduce` is neither True, False nor "auto"; `threads` is not an integer from 1 to the number of cores.
          ValueError: unknown convention, or a game that cannot be compiled; see `compile_game`.
          MemoryError: memory ran out.
        """
        averaging, alternating = checked_options(averaging, self.averaging_power, alternating)
        if not isinstance(exact_ties, bool | np.bool_):
            raise TypeError(f"exact_ties must be True or False, got {exact_ties!r}")
        rule = self.local_rule if local_rule is None else local_rule
        rule = as_local_rule(rule, None if isinstance(rule, LocalRule) else self.prediction_weight)
        threads = at_most_cores(threads, "threads")
        game = compile_game(game)
        with memory_errors_name(
            lambda: f"{game.tree.game}, a solver of {game.num_sequences} sequences and {len(game.payoffs)} payoffs"
        ):
            session = CompiledSelfPlay(
                game, rule, averaging, alternating, bool(exact_ties), checked_reduction(game, rule, reduce), threads
            )
        super().__init__(session)

    @property
    def reduction(self) -> Reduction | None:
        """What is iterated on instead of the whole game, if anything is."""
        return self.self_play.reduction

    @property
    def partition(self) -> Partition | None:
        """How the work is divided among threads, if there are several."""
        return self.self_play.partition


class CFRSolver(CompiledSolver):
    """Counterfactual regret minimization: regret matching, uniform average.

    Zinkevich, Johanson, Bowling, Piccione 2007; as stated in Burch, Moravcik, Schmid 2019, section 2, with alternating updates.
    """

    algorithm = "cfr"
    local_rule = RegretMatching()
    averaging_power = 0.0


class CFRPlusSolver(CompiledSolver):
    """CFR+: regret matching+, average with weight i on the i-th strategy.

    Tammelin 2014; as stated in Burch, Moravcik, Schmid 2019, section 2, with alternating updates.
    """

    algorithm = "cfr+"
    local_rule = RegretMatchingPlus()
    averaging_power = 1.0


class LinearCFRSolver(CompiledSolver):
    """Linear CFR: iteration t weighs t, in the regrets and in the average.

    Brown, Sandholm 2019 ("Solving imperfect-information games via discounted regret minimization"), section 4: discounted CFR
    with alpha = beta = gamma = 1.
    """

    algorithm = "lcfr"
    local_rule = DiscountedRegretMatching(1.0, 1.0)
    averaging_power = 1.0


class DiscountedCFRSolver(CompiledSolver):
    """Discounted CFR: after iteration t positive regrets are multiplied by t^alpha / (t^alpha + 1), negative ones with beta.

    Brown, Sandholm 2019, section 4, with their recommendation alpha = 3/2, beta = 0, gamma = 2 (which halves negative regrets);
    for others pass `local_rule=DiscountedRegretMatching(alpha, beta), averaging=Averaging(gamma)`. Multiplying the average by
    (t / (t + 1))^gamma at every iteration, as they do, is the same as weighting iteration t with t^gamma.
    """

    algorithm = "dcfr"
    local_rule = DiscountedRegretMatching(1.5, 0.0)
    averaging_power = 2.0


class DiscountedCFRPlusSolver(CompiledSolver):
    """DCFR+: discounted regrets that do not become negative.

    Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024 ("Minimizing weighted counterfactual regret with optimistic online mirror descent"):
    alpha = 3/2, gamma = 4.
    """

    algorithm = "dcfr+"
    local_rule = DiscountedRegretMatching(1.5, -math.inf)
    averaging_power = 4.0


class PredictiveCFRSolver(CompiledSolver):
    """Predictive CFR: regret matching as if the last counterfactual values came again; quadratic average.

    Farina, Kroer, Sandholm 2021 ("Faster game solving via predictive Blackwell approachability"), Algorithm 1. The weights of
    the average are those of PCFR+.
    """

    algorithm = "pcfr"
    local_rule = RegretMatching()
    averaging_power = 2.0
    prediction_weight = 1.0


class PredictiveCFRPlusSolver(CompiledSolver):
    """PCFR+: regret matching+ as if the last counterfactual values came again; quadratic average.

    Farina, Kroer, Sandholm 2021, Algorithm 2 and section 6, with alternating updates.
    """

    algorithm = "pcfr+"
    local_rule = RegretMatchingPlus()
    averaging_power = 2.0
    prediction_weight = 1.0


class PredictiveDiscountedCFRPlusSolver(CompiledSolver):
    """PDCFR+: PCFR+ with discounted regrets.

    Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024: alpha = 2.3, gamma = 5.
    """

    algorithm = "pdcfr+"
    local_rule = DiscountedRegretMatching(2.3, -math.inf)
    averaging_power = 5.0
    prediction_weight = 1.0


class SimpleAsymmetricPredictiveCFRPlusSolver(CompiledSolver):
    """SAPCFR+: PCFR+ with a third of the predicted regrets.

    Meng, Zhang, Ge, Yang, Gao 2025 ("Faster game solving via asymmetry of step sizes"), of whose two algorithms this is the one
    without adaptation: the prediction has weight 1 / (1 + alpha), alpha = 2. The average is that of PCFR+.
    """

    algorithm = "sapcfr+"
    local_rule = RegretMatchingPlus()
    averaging_power = 2.0
    prediction_weight = 1 / 3


class SimpleAsymmetricPredictiveDiscountedCFRPlusSolver(CompiledSolver):
    """SAPDCFR+: PDCFR+ with a third of the predicted regrets.

    The weight of Meng et al. 2025, where it is put to PCFR+, in the algorithm of Xu et al. 2024; measured in docs/variants.md.
    """

    algorithm = "sapdcfr+"
    local_rule = DiscountedRegretMatching(2.3, -math.inf)
    averaging_power = 5.0
    prediction_weight = 1 / 3


class CFRBRSolver(Solver):
    """CFR-BR: each player learns by CFR against best responses to its own strategies; uniform average. Iterates in Python.

    Johanson, Bard, Burch, Bowling 2012 ("Finding optimal abstract strategies in extensive-form games"); see
    `best_response_play`. For two-player constant-sum games.
    """

    algorithm = "cfr-br"
    self_play: BestResponsePlay

    def __init__(
        self,
        game: pyspiel.Game | SequenceFormGame,
        *,
        averaging: str | Averaging = "paper",
        local_rule: LocalRule | DiscountSchedule | None = None,
    ):
        """Compiles the game if it is not yet compiled; nothing is played.

        Args:
          game: a game, or what `compile_game` made of one.
          averaging: a convention, of which it makes no difference, for the uniform average; or an `Averaging`.
          local_rule: regret matching by default.

        Raises:
          TypeError, ValueError: as for `CompiledSolver`, or not a two-player constant-sum game.
        """
        averaging, _ = checked_options(averaging, 0.0, False)
        game = compile_game(game)
        rule = RegretMatching() if local_rule is None else local_rule
        pairs = zip(game.treeplexes, game.player_slices, strict=True)
        minimizers = [CFR(treeplex, rule, tie_tolerance=game.tie_tolerance[own]) for treeplex, own in pairs]
        super().__init__(BestResponsePlay(game, minimizers, averaging))


def checked_reduction(game: SequenceFormGame, rule: CompiledRule, reduce: bool | str) -> Reduction | None:
    """What to iterate on instead of the whole game, if anything.

    Raises:
      ValueError: `reduce` is neither True, False nor "auto".
    """
    if isinstance(reduce, bool | np.bool_):
        if reduce and not rule.merges_infostates:
            raise ValueError(f"reduce=True is not for {rule}, which does not say what merged infostates mean to it")
        return reduce_game(game, rule.merges_actions) if reduce else None
    if reduce != "auto":
        raise ValueError(f'reduce must be True, False or "auto", got {reduce!r}')
    if not rule.merges_infostates:
        return None
    whole, reduction = work_of_iteration(game), reduce_game(game, rule.merges_actions)
    saves_time = whole >= _LEAST_WORK and work_of_iteration(reduction) <= 0.9 * whole
    return reduction if reduction.has_symmetry or saves_time else None


def checked_options(averaging: str | Averaging, power: float, alternating: bool) -> tuple[Averaging, bool]:
    """The options of a solver as it takes them: `averaging`, with weights t ** power if it is a convention; `alternating`.

    Raises:
      TypeError, ValueError: as for `CompiledSolver`.
    """
    if isinstance(averaging, str):
        averaging = Averaging(power, averaging)
    if not isinstance(averaging, Averaging):
        raise TypeError(f"averaging must be the name of a convention or an Averaging, got {averaging!r}")
    if not isinstance(alternating, bool | np.bool_):
        raise TypeError(f"alternating must be True or False, got {alternating!r}")
    return averaging, bool(alternating)


ALGORITHMS: dict[str, type[CompiledSolver]] = {
    solver.algorithm: solver
    for solver in (
        CFRSolver,
        CFRPlusSolver,
        LinearCFRSolver,
        DiscountedCFRSolver,
        DiscountedCFRPlusSolver,
        PredictiveCFRSolver,
        PredictiveCFRPlusSolver,
        PredictiveDiscountedCFRPlusSolver,
        SimpleAsymmetricPredictiveCFRPlusSolver,
        SimpleAsymmetricPredictiveDiscountedCFRPlusSolver,
    )
}
