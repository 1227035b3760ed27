"""Self-play: every player runs a regret minimizer against the others' strategies.

One iteration with alternating updates, player 0 first (CFR+ paper, section 2):

    for each player p in turn:
        g    <- gradient of p's expected utility against the other players' current strategies
        R_p.observe_utility(g)
        x_p  <- R_p.next_strategy()

With simultaneous updates all players observe before any of them computes its next strategy. `SelfPlay` is this loop for any
minimizers; `compiled_self_play` is the compiled version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.regret_minimizers.cfr import CFR
from spiel_cfrplus.regret_minimizers.compiled_rules import NOT_REGRET_MATCHING
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.session import (
    IN_PYTHON,
    NO_ITERATIONS,
    NO_REGRET_TABLES,
    STATEMENTS,
    TOGETHER_ONLY,
    Feature,
    OptionalFeatures,
    Tables,
)


def next_strategy(game: SequenceFormGame, player: int, minimizer: RegretMinimizer) -> np.ndarray:
    """The player's next strategy: a copy, because a minimizer may return an array that it continues to use.

    Raises:
      ValueError: it is not a sequence-form strategy of the player.
    """
    strategy = np.array(minimizer.next_strategy(), np.float64)
    if problem := game.treeplexes[player].problem_with(strategy):
        raise ValueError(f"{minimizer!r}, player {player} of {game.tree.game}, gave no sequence-form strategy: {problem}")
    return strategy


def _has_regrets(minimizer: RegretMinimizer) -> bool:
    return isinstance(minimizer, CFR) and "regrets" in minimizer.rule.per_action


class SelfPlay(OptionalFeatures):
    """Self-play of any minimizers; iterations run in Python.

    Lemma 2 and Theorems 5 and 6 hold if every minimizer is a `CFR` but not a subclass, which may have another update.

    Attributes:
      game: the compiled game.
      minimizers: one for each player, each on the sequence-form polytope of the player's treeplex.
      averaging, alternating: see `Solver`.
      iteration: iterations done.
      strategies: the current strategies in sequence form.
      cumulative_strategies: their weighted sums.
      cumulative_utilities: for each player the sum of the utilities observed, in sequence form.
      cumulative_value: float64 (n,), the sum over iterations of strategy . utility.
    """

    refusals: ClassVar[Mapping[Feature, str]] = {
        Feature.CHECKPOINT: IN_PYTHON,
        Feature.WARM_START: IN_PYTHON,
        Feature.EXACT_TIES: IN_PYTHON,
        Feature.REDUCTION: IN_PYTHON,
        Feature.THREADS: IN_PYTHON,
    }

    def __init__(
        self,
        game: SequenceFormGame,
        minimizers: Sequence[RegretMinimizer],
        averaging: Averaging | None = None,
        alternating: bool = True,
    ):
        """Gets the first strategy of every minimizer.

        Args:
          game: the compiled game.
          minimizers: any objects with `next_strategy()` and `observe_utility(utility)`.
          averaging: by default the paper's convention with uniform weights.
          alternating: players update in turn, player 0 first; otherwise all at once.

        Raises:
          TypeError: the game is not compiled.
          ValueError: not one minimizer for each player, or a first strategy that is not one of its player.
        """
        if not isinstance(game, SequenceFormGame):
            raise TypeError(f"expected a compiled game, got {game!r}; see compile_game")
        if len(minimizers) != game.num_players or len(set(map(id, minimizers))) < len(minimizers):
            raise ValueError(f"{game.tree.game} needs {game.num_players} minimizers of their own, got {minimizers!r}")
        self.game = game
        self.minimizers = tuple(minimizers)
        self.averaging = Averaging() if averaging is None else averaging
        self.alternating = alternating
        self.iteration = 0
        self.strategies = self._next_strategies()
        self.cumulative_strategies = [np.zeros(treeplex.num_sequences) for treeplex in game.treeplexes]
        self.cumulative_utilities = [np.zeros(treeplex.num_sequences) for treeplex in game.treeplexes]
        self.cumulative_value = np.zeros(game.num_players)

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more.

        After an interrupt or an error of a minimizer, the attributes of the session are those after the last complete
        iteration. Observations of the minimizers in the incomplete iteration are not undone.

        Raises:
          TypeError, ValueError: not an integer, or negative.
          ValueError: a minimizer returns a strategy that is not one of its player.
        """
        for _ in range(checked_count(num_iterations)):
            self._iterate()

    def _iterate(self) -> None:
        (weight,) = self.averaging.weights(np.array([self.iteration + 1]))
        strategies = list(self.strategies)
        utilities, values = list(self.cumulative_utilities), self.cumulative_value.copy()
        for player, minimizer in enumerate(self.minimizers):
            utility = self.game.payoff_gradient(player, strategies)
            utilities[player] = utilities[player] + utility
            values[player] += strategies[player] @ utility
            minimizer.observe_utility(utility)
            if self.alternating:
                strategies[player] = next_strategy(self.game, player, minimizer)
        if not self.alternating:
            strategies = self._next_strategies()
        # One assignment, so that after an error or interrupt either all of the iteration is stored or nothing.
        vars(self).update(
            cumulative_strategies=self._averaged(weight, self.strategies, strategies),
            cumulative_utilities=utilities,
            cumulative_value=values,
            strategies=strategies,
            iteration=self.iteration + 1,
        )

    def _next_strategies(self) -> list[np.ndarray]:
        return [next_strategy(self.game, player, minimizer) for player, minimizer in enumerate(self.minimizers)]

    def _averaged(self, weight: float, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Adds the strategies of an iteration, before or after the update, to the sums; see `Averaging.first_iterate`."""
        first_iterate = self.averaging.first_iterate(self.game.num_players, self.alternating)
        averaged = [(before, after)[which][player] for player, which in enumerate(first_iterate)]
        pairs = zip(self.cumulative_strategies, averaged, strict=True)
        return [self.averaging.kept * total + weight * strategy for total, strategy in pairs]

    def regrets(self) -> npt.NDArray[np.float64]:
        """The external regret of each player, float64 (n,), in game units: the best fixed value minus the obtained value."""
        pairs = zip(self.game.treeplexes, self.cumulative_utilities, strict=True)
        return np.array([treeplex.best_value(utility) for treeplex, utility in pairs]) - self.cumulative_value

    def refusal(self, feature: Feature) -> str:
        """See `Session.refusal`."""
        if feature in (Feature.CCE, Feature.JOINT_PLAY) and self.alternating:
            return TOGETHER_ONLY
        if feature is Feature.CCE and self.iteration == 0:
            return NO_ITERATIONS
        if feature is Feature.CUMULATIVE_REGRETS and not all(map(_has_regrets, self.minimizers)):
            return NO_REGRET_TABLES
        if feature in STATEMENTS:
            return next(filter(None, (self._statement_refusal(feature, each) for each in self.minimizers)), "")
        return self.refusals.get(feature, "")

    def _statement_refusal(self, feature: Feature, minimizer: RegretMinimizer) -> str:
        """The statements apply to the update of `CFR` itself, not to that of a subclass."""
        if type(minimizer) is not CFR:
            return NOT_REGRET_MATCHING
        return minimizer.rule.statement_refusal(feature.value, self.iteration)

    def tables(self) -> Tables:
        """See `Session.tables`; the policies and regrets of a `CFR` are those that it stores."""
        policy = self.current_policy()
        tables = Tables(policy, np.zeros_like(policy), np.zeros_like(policy))
        for minimizer, own in zip(self.minimizers, self.game.player_slices, strict=True):
            if isinstance(minimizer, CFR):
                tables.policy[own] = minimizer.current_policy()
                tables.cumulative_regrets[own] = minimizer.cumulative_regrets()
                tables.tie_tolerance[own] = minimizer.tie_tolerance
        return tables

    def cce_gap(self) -> float:
        """The distance of the empirical distribution of play from a coarse correlated equilibrium, in game units.

        The distribution draws one of the iterations uniformly and plays its strategies. The gap is the largest gain of any
        player from committing to a fixed strategy before the draw, or 0 if no player gains. It is the largest average regret,
        for any number of players and any payoffs.

        Raises:
          ValueError: no iterations yet, or alternating updates, in which utilities are not those of strategies played together.
        """
        if reason := self.refusal(Feature.CCE):
            raise ValueError(reason)
        return max(0.0, float(self.regrets().max()) / self.iteration)

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current behavioral policies of all players, float64 (S,); uniform at infostates that are not reached."""
        return self.game.behavioral_policies(self.strategies)

    def average_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform at infostates that were never reached."""
        return self.game.behavioral_policies(self.cumulative_strategies)
