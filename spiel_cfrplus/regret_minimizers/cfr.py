"""Counterfactual regret minimization for one player: Lecture 8, Algorithm 1.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> from spiel_cfrplus.regret_minimizers import CFR, RegretMatchingPlus
>>> game = compile_game(pyspiel.load_game("kuhn_poker"))
>>> players = [CFR(treeplex, RegretMatchingPlus()) for treeplex in game.treeplexes]
>>> for _ in range(100):  # simultaneous self-play, without averages
...     strategies = [player.next_strategy() for player in players]
...     for number, player in enumerate(players):
...         player.observe_utility(game.payoff_gradient(number, strategies))
>>> players[0].iteration
100
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import saturated
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.kernels import passes, self_play
from spiel_cfrplus.regret_minimizers.compiled_rules import compile_errors_name, start_state
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, regret_bound
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountSchedule, RegretMatchingPlus, as_local_rule
from spiel_cfrplus.regret_minimizers.rule_trial import try_rule
from spiel_cfrplus.regret_minimizers.simplex import checked_tie_tolerance


class CFR:
    """A regret minimizer on the sequence-form polytope of a treeplex, with the same local rule at every decision point.

    Its regret is at most the sum over decision points of the positive part of the local regret (Theorem L8.2).

    Attributes:
      treeplex: the decision problem.
      rule: the local rule.
    """

    def __init__(
        self,
        treeplex: Treeplex,
        local_rule: LocalRule | DiscountSchedule | None = None,
        *,
        prediction_weight: float | None = None,
        tie_tolerance: npt.ArrayLike = 0.0,
    ):
        """Starts from the uniform strategy.

        Args:
          treeplex: the decision problem.
          local_rule: regret matching+ by default; a `LocalRule`, or discounts of regret matching.
          prediction_weight: the weight of the prediction that the last utility is repeated, see `SimplexRegretMatching`; by
            default that of the rule.
          tie_tolerance: regrets of at most this absolute value are set to zero, float64 (S,), the same for all sequences of a
            decision point, or one number; see `SequenceFormGame.tie_tolerance`.

        Raises:
          TypeError: it is not a local rule, or has no parameter `prediction_weight`.
          ValueError: `tie_tolerance` has another shape, or numbers that are negative or not finite; or `prediction_weight` is
            not between 0 and 1.
        """
        self.treeplex = treeplex
        self.rule = as_local_rule(RegretMatchingPlus() if local_rule is None else local_rule, prediction_weight)
        self._tie_tolerance = checked_tie_tolerance(tie_tolerance, treeplex.num_sequences)
        self._functions = self.rule.functions
        self._memory = self.rule.memory(treeplex.arrays, self._tie_tolerance)
        self._state = start_state(treeplex.arrays)

    @property
    def iteration(self) -> int:
        """Utilities observed."""
        return int(self._state.iteration[0])

    def cumulative_regrets(self) -> npt.NDArray[np.float64]:
        """A copy of the regret tables, float64 (S,); zeros if the rule has no array `regrets`."""
        return self._memory.regrets.copy() if "regrets" in self.rule.per_action else np.zeros(self.treeplex.num_sequences)

    @property
    def tie_tolerance(self) -> npt.NDArray[np.float64]:
        """A copy of the tie tolerance, float64 (S,)."""
        return self._tie_tolerance.copy()

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current strategy as a behavioral policy, float64 (S,), also at decision points that it does not reach."""
        return self._state.policy.copy()

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The current strategy in sequence form, float64 (S,), the same until the next utility is observed."""
        passes.sequence_form(self.treeplex.arrays, 0, self._state.policy, self._state.reach)
        return self._state.reach.copy()

    def observe_utility(self, utility: np.ndarray) -> None:
        """Observes the gradient of the utility in the current strategy, float64 (S,).

        Magnitudes above 1e300 are replaced by 1e300.

        Raises:
          ValueError: wrong shape, numbers that are not finite, or invalid parameters of the rule; nothing is changed.
        """
        if not self.rule.is_built_in:
            try_rule(self.rule)
        checked = saturated(self.treeplex.checked_utility(utility))
        table = self.rule.parameter_table(np.array([self.iteration + 1]))
        self._state.values[:] = checked
        arguments = (self._state, *self._functions, self._memory, self.rule.empty_parameters(), table)
        with compile_errors_name(self.rule):
            self_play.observe_utility(self.treeplex.arrays, *arguments)


class ComposedCFR:
    """Algorithm 1: CFR composed of any local minimizers, one for each decision point.

    Its regret is at most the sum over decision points of the positive part of the local regret (Theorem L8.2). `CFR` is the
    compiled version, with the same local rule at all decision points.

    Attributes:
      treeplex: the decision problem.
      local_minimizers: R_j for each decision point j, as a tuple; or one minimizer on the product of all simplices.
    """

    def __init__(
        self,
        treeplex: Treeplex,
        local_minimizers: Callable[[int], RegretMinimizer] | Sequence[RegretMinimizer] | RegretMinimizer,
    ):
        """Stores or makes the local minimizers.

        Args:
          treeplex: the decision problem.
          local_minimizers: a function, such as a class, that makes a minimizer for a number of actions; or one minimizer for
            each decision point, on the simplex over its actions; or one on the product of these simplices, such as
            `Hedge(treeplex.num_actions)`, which needs one call instead of thousands. Any objects with the two methods.

        Raises:
          ValueError: not one minimizer for each decision point.
        """
        self.treeplex = treeplex
        self._policy = treeplex.uniform_policy()
        self._current = False  # whether the policy is the current one of the local minimizers
        if isinstance(local_minimizers, RegretMinimizer) and not isinstance(local_minimizers, type):
            self.local_minimizers: tuple[RegretMinimizer, ...] | RegretMinimizer = local_minimizers
            self._side_by_side: RegretMinimizer = local_minimizers
            return
        if callable(local_minimizers):
            local_minimizers = [local_minimizers(num_actions) for num_actions in treeplex.num_actions.tolist()]
        self.local_minimizers = tuple(local_minimizers)
        if len(set(map(id, self.local_minimizers))) != treeplex.num_decision_points:
            raise ValueError(
                f"{treeplex.num_decision_points} decision points need as many different minimizers, got "
                f"{len(self.local_minimizers)}: {self.local_minimizers[:3]!r}..."
            )
        self._side_by_side = LocalMinimizers(self.local_minimizers, treeplex)

    @property
    def regret_bound(self) -> float:
        """The sum of the bounds on the local regrets.

        Raises:
          TypeError: a local minimizer has none.
        """
        return regret_bound(self._side_by_side)

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The current strategy in sequence form, float64 (S,).

        Raises:
          ValueError: a local minimizer's strategy is not a distribution over the actions of its decision point.
        """
        # Step 1: each R_j returns the strategy b_j of its decision point.
        local_strategies = np.asarray(self._side_by_side.next_strategy(), np.float64)
        _check_distributions(self.treeplex, local_strategies)
        self._policy[1:] = local_strategies
        self._current = True
        # Step 2: top-down, x[ja] = x[p_j] b_j[a].
        return self.treeplex.sequence_form(self._policy)

    def observe_utility(self, utility: np.ndarray) -> None:
        """Observes the gradient of the utility in the current strategy, float64 (S,).

        Magnitudes above 1e300 are replaced by 1e300.

        Raises:
          ValueError: wrong shape or numbers that are not finite; nothing is changed.
        """
        if not self._current:
            self.next_strategy()
        # Step 1: bottom-up, V[j] is the sum of b_j[a] (g[ja] + V[rho(j, a)]); these brackets are the counterfactual utilities.
        checked = saturated(self.treeplex.checked_utility(utility))
        values = self.treeplex.counterfactual_values(self._policy, checked)
        self._current = False
        # Step 2: each R_j observes the counterfactual utilities of its decision point.
        self._side_by_side.observe_utility(values[1:])


class LocalMinimizers:
    """One minimizer for each decision point of a treeplex, combined to one minimizer on the product of the simplices.

    Attributes:
      minimizers: a tuple of J minimizers.
    """

    def __init__(self, minimizers: Sequence[RegretMinimizer], treeplex: Treeplex):
        self.minimizers = tuple(minimizers)
        self._treeplex = treeplex

    @property
    def regret_bound(self) -> float:
        """The sum of the bounds."""
        return sum(map(regret_bound, self.minimizers))

    def next_strategy(self) -> npt.NDArray[np.float64]:
        """The local strategies, float64 (S - 1,).

        Raises:
          ValueError: a strategy does not have one number for each action.
        """
        strategies = np.empty(self._treeplex.num_sequences - 1)
        for point, minimizer in enumerate(self.minimizers):
            sequences = self._treeplex.sequences(point)
            with self._telling(point):
                strategy = np.asarray(minimizer.next_strategy(), np.float64)
                if strategy.shape != (len(sequences),):
                    raise ValueError(f"{minimizer!r} gave {strategy} for {len(sequences)} actions")
            strategies[sequences.start - 1 : sequences.stop - 1] = strategy
        return strategies

    def observe_utility(self, utility: np.ndarray) -> None:
        """Passes each minimizer its part of the utility, float64 (S - 1,)."""
        for point, minimizer in enumerate(self.minimizers):
            sequences = self._treeplex.sequences(point)
            with self._telling(point):
                minimizer.observe_utility(utility[sequences.start - 1 : sequences.stop - 1].copy())

    @contextlib.contextmanager
    def _telling(self, point: int) -> Iterator[None]:
        """Adds the infostate to errors."""
        try:
            yield
        except Exception as error:
            error.add_note(f"by the local minimizer at infostate {self._treeplex.infostate_keys[point]!r}")
            raise


def _check_distributions(treeplex: Treeplex, strategies: np.ndarray) -> None:
    """Checks that `strategies`, (S - 1,), contains a distribution over the actions of each decision point."""
    if strategies.shape != (treeplex.num_sequences - 1,):
        raise ValueError(
            f"expected local strategies of {treeplex.num_sequences - 1} actions in all, got shape {strategies.shape}"
        )
    starts = treeplex.sequence_start[:-1] - 1
    least, total = np.minimum.reduceat(strategies, starts), np.add.reduceat(strategies, starts)
    wrong = ~((least >= 0) & (np.abs(total - 1) <= 1e-9))
    if wrong.any():
        point = int(np.argmax(wrong))
        sequences = treeplex.sequences(point)
        raise ValueError(
            f"the local minimizer at infostate {treeplex.infostate_keys[point]!r} gave "
            f"{strategies[sequences.start - 1 : sequences.stop - 1]}, no distribution over {len(sequences)} actions"
        )
