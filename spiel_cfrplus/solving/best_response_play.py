"""Learning against best responses: CFR-BR.

In a two-player game, each player learns separately against an opponent who plays a best response to its current strategy:

    for each player p:
        y   <- a best response of the opponent to x_p
        g   <- gradient of p's expected utility against y
        R_p.observe_utility(g)
        x_p <- R_p.next_strategy()

The opponent has no regret, so the average of x_p is within p's average regret of an equilibrium (Johanson, Bard, Burch,
Bowling 2012, "Finding optimal abstract strategies in extensive-form games").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.self_play import next_strategy
from spiel_cfrplus.solving.session import ALONE, IN_PYTHON, NOT_ABOUT_CFR_BR, STATEMENTS, Feature, OptionalFeatures, Tables


def check_players(game: SequenceFormGame) -> None:
    """Checks that CFR-BR is defined for the game.

    Raises:
      ValueError: not a two-player constant-sum game.
    """
    if not game.is_two_player_constant_sum:
        raise ValueError(f"CFR-BR is for two-player constant-sum games only, not for {game.tree.game}")


class BestResponsePlay(OptionalFeatures):
    """The loop above, for any minimizers; iterations run in Python.

    Attributes:
      game: the compiled game.
      minimizers: one for each player.
      averaging: the weights of the averages, which start with the first strategies for every convention.
      alternating: False; the players do not play against each other.
      iteration: iterations done.
      strategies: the current strategies in sequence form.
      cumulative_strategies: their weighted sums.
    """

    alternating = False
    refusals: ClassVar[Mapping[Feature, str]] = {
        **dict.fromkeys(
            (Feature.CHECKPOINT, Feature.WARM_START, Feature.EXACT_TIES, Feature.REDUCTION, Feature.THREADS), IN_PYTHON
        ),
        **dict.fromkeys((Feature.REGRETS, Feature.CCE, Feature.JOINT_PLAY), ALONE),
        Feature.CUMULATIVE_REGRETS: IN_PYTHON,
        **dict.fromkeys((Feature.THEORY, *STATEMENTS), NOT_ABOUT_CFR_BR),
    }

    def __init__(self, game: SequenceFormGame, minimizers: Sequence[RegretMinimizer], averaging: Averaging | None = None):
        """Gets the first strategy of every minimizer.

        Raises:
          ValueError: not a two-player constant-sum game, not one minimizer for each player, or a strategy that is not one of
            its player.
        """
        check_players(game)
        if len(set(map(id, minimizers))) != 2:
            raise ValueError(f"expected two minimizers, got {minimizers!r}")
        self.game = game
        self.minimizers = tuple(minimizers)
        self.averaging = Averaging() if averaging is None else averaging
        self.iteration = 0
        self.strategies = [next_strategy(game, player, minimizer) for player, minimizer in enumerate(self.minimizers)]
        self.cumulative_strategies = [np.zeros(treeplex.num_sequences) for treeplex in game.treeplexes]

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more; for errors and interrupts see `SelfPlay.run`."""
        for _ in range(checked_count(num_iterations)):
            self._iterate()

    def _iterate(self) -> None:
        (weight,) = self.averaging.weights(np.array([self.iteration + 1]))
        strategies = []
        for player, minimizer in enumerate(self.minimizers):
            minimizer.observe_utility(self.game.payoff_gradient(player, self._answered(player)))
            strategies.append(next_strategy(self.game, player, minimizer))
        pairs = zip(self.cumulative_strategies, self.strategies, strict=True)
        sums = [self.averaging.kept * total + weight * strategy for total, strategy in pairs]
        vars(self).update(cumulative_strategies=sums, strategies=strategies, iteration=self.iteration + 1)

    def _answered(self, player: int) -> list[np.ndarray]:
        """The player's strategy and a best response of the other player."""
        met = list(self.strategies)
        other = self.game.treeplexes[1 - player]
        met[1 - player] = other.sequence_form(other.best_response(self.game.payoff_gradient(1 - player, met)))
        return met

    def refusal(self, feature: Feature) -> str:
        """See `Session.refusal`."""
        return self.refusals.get(feature, "")

    def tables(self) -> Tables:
        """See `Session.tables`; there are no regret tables."""
        policy = self.current_policy()
        return Tables(policy, np.zeros_like(policy), np.zeros_like(policy))

    def current_policy(self) -> npt.NDArray[np.float64]:
        """The current behavioral policies of both players, float64 (S,); uniform at infostates that are not reached."""
        return self.game.behavioral_policies(self.strategies)

    def average_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policies of the averaged strategies, float64 (S,); uniform at infostates that were never reached."""
        return self.game.behavioral_policies(self.cumulative_strategies)
