"""A compiled replacement for `open_spiel.python.algorithms.cfr_br`.

CFR-BR, CFR against best responses (Johanson, Bard, Burch, Bowling 2012): each iteration computes both players' best responses
to the current strategies, then each player updates its tables against the other's best response.

>>> import pyspiel
>>> solver = CFRBRSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(2)
>>> f"{pyspiel.nash_conv(pyspiel.load_game('kuhn_poker'), solver.tabular_average_policy()):.6f}"
'0.333333'
"""

from __future__ import annotations

import numpy as np
import pyspiel

from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.kernels import histories as history_kernels
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.openspiel import cfr


class CFRBRSolver(cfr._CFRSolver):
    """CFR-BR for two players."""

    def __init__(self, game: pyspiel.Game, linear_averaging: bool = False, regret_matching_plus: bool = False):
        """As `cfr._CFRSolver`, except that the order of updates is fixed by the algorithm.

        Raises:
          ValueError: the game does not have two players (type and message as in OpenSpiel); or a player has imperfect recall,
            or the players share an information-state string. In these cases OpenSpiel's best responses are not exact.
        """
        if game.num_players() != 2:
            raise ValueError(f"Game {game} does not have 2 players.")
        super().__init__(
            game, alternating_updates=True, linear_averaging=linear_averaging, regret_matching_plus=regret_matching_plus
        )
        histories = self._histories
        if len(histories.representative) < histories.tree.num_infostates:
            raise ValueError(f"{game}: the players share information-state strings; CFR-BR requires distinct strings")
        num_histories = histories.tree.num_histories
        self._paths = history_kernels.PathArrays(
            parent=np.empty(num_histories, INDEX),
            edge_table_index=np.empty(num_histories, INDEX),
            own_depth=np.zeros((2, num_histories), np.int32),
        )
        history_kernels.trace_paths(histories.arrays, self._paths)

    def _run(self, num_iterations: int) -> None:
        for iteration in range(self.iteration + 1, self.iteration + num_iterations + 1):
            self._iterate(np.array([iteration]))

    def _iterate(self, iteration: np.ndarray) -> None:
        arrays, state = self._histories.arrays, self._learner
        # Row p: the strategies that player p updates against, its own and the other's best response to it.
        strategies = np.tile(state.probabilities, (2, 1))
        for player in range(2):
            action_value = np.zeros(len(self._rows))
            history_kernels.best_response(arrays, self._paths, player, strategies[1 - player], state.value, action_value)
        history_kernels.iterate_against(
            arrays,
            state,
            strategies,
            self._discounted(),
            self._local_rule().discounts(iteration)[0],
            self._weights(iteration)[0],
        )

    def _check_recall(self) -> None:
        trace_sequences(self._histories.tree)
