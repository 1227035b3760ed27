"""OpenSpiel's `open_spiel.python.algorithms.cfr_br`, compiled.

CFR against best responses (Johanson, Bard, Burch, Bowling 2012): in each iteration both players' best responses to the current
strategies are computed, then each player updates its tables against the other's best response.

>>> import pyspiel
>>> solver = CFRBRSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(2)
>>> f"{pyspiel.nash_conv(pyspiel.load_game('kuhn_poker'), solver.tabular_average_policy()):.6f}"
'0.333333'
"""

from __future__ import annotations

import numpy as np
import pyspiel

from spiel_cfrplus.evaluation import evaluate
from spiel_cfrplus.openspiel import _kernels, cfr
from spiel_cfrplus.policies import StrategyProfile
from spiel_cfrplus.sequence_form import SequenceFormGame


class CFRBRSolver(cfr._CFRSolver):
    """CFR-BR for two players."""

    def __init__(self, game: pyspiel.Game, linear_averaging: bool = False, regret_matching_plus: bool = False):
        """As `cfr._CFRSolver`, but for the order of updates, which is the algorithm's own.

        Raises:
          ValueError: the game does not have two players; or a player has imperfect recall or shares a string with the other,
            where OpenSpiel's best responses are not exact.
        """
        if game.num_players() != 2:
            raise ValueError(f"Game {game} does not have 2 players.")
        super().__init__(
            game, alternating_updates=True, linear_averaging=linear_averaging, regret_matching_plus=regret_matching_plus
        )
        self._sequence_form = SequenceFormGame.from_tree(self._histories.tree)
        tree = self._histories.tree
        if len(self._histories.representative) < tree.num_infostates:
            raise ValueError(f"{game}: the players share information-state strings; CFR-BR needs to tell them apart")
        starts = self._histories.arrays.slot_start[self._histories.pooled].astype(np.int64)
        self._slots = [
            np.concatenate(
                [
                    np.arange(start, start + count)
                    for start, count in zip(starts[own], self._histories.num_actions[own], strict=True)
                ]
            )
            for own in (tree.infostate_player == player for player in range(2))
        ]

    def _run(self, num_iterations: int) -> None:
        for iteration in range(self.iteration + 1, self.iteration + num_iterations + 1):
            self._iterate(np.array([iteration]))

    def _iterate(self, iteration: np.ndarray) -> None:
        current = self._learner.probabilities
        profile = [np.concatenate([[1.0], current[slots]]) for slots in self._slots]
        responses = evaluate(self._sequence_form, StrategyProfile(self._sequence_form, np.concatenate(profile))).best_responses
        strategies = np.tile(current, (2, 1))
        for player in range(2):
            strategies[1 - player, self._slots[player]] = responses.of_player(player)[1:]
        _kernels.iterate_against(
            self._histories.arrays,
            self._learner,
            strategies,
            self._discounted(),
            self._local_rule().discounts(iteration)[0],
            self._weights(iteration)[0],
        )
