"""Smooth and stable predictive regret matching+, for CFR; `variants.py --rows=stabilized` measures them.

Farina, Grand-Clément, Kroer, Lee, Luo 2023 ("Regret Matching+: (In)Stability and Fast Convergence in Games"). A table near zero
makes predictive regret matching+ jump from one action to another. Both of these keep it away from there, by a `floor` that the
paper calls R_0. With regrets r of the last strategy and m of the prediction against it:

    smooth   z <- P(z + r), strategy ~ P(z + m), P the projection onto {z >= 0, sum of z >= floor};
    stable   z <- max(z + r, 0), or where none of it is above the floor z <- (floor, ..., floor), m = 0;
             strategy ~ max(z + m, 0).

The paper has R_0 = 1 and a step size that multiplies r and m; only their ratio matters. Deviations: alternating updates, and
CFR, where the paper's bounds are for games in normal form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spiel_cfrplus import SequenceFormGame
from spiel_cfrplus._utils.arrays import saturated
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.kernels.layouts import RELATIVE_TIE_TOLERANCE
from spiel_cfrplus.kernels.simplex import project_onto_simplices
from spiel_cfrplus.regret_minimizers import ComposedCFR
from spiel_cfrplus.regret_minimizers.simplex import SimplexProduct


class Smooth:
    """Smooth predictive regret matching+, on simplices side by side.

    Attributes:
      floor: float64 (S,), positive, the same on each simplex, in the unit of utilities.
      table: z, float64 (S,).
      iteration: utilities observed.
    """

    def __init__(self, num_actions: np.ndarray, floor: np.ndarray):
        """Starts uniform, as near to zero as may be."""
        self._simplices = SimplexProduct(num_actions)
        self.floor = floor
        self.table = self._lifted(np.zeros(self._simplices.dimension))
        self.iteration = 0
        self._prediction = np.zeros(self._simplices.dimension)
        self._strategy = self._choose()

    def next_strategy(self) -> np.ndarray:
        """The strategy to play now, float64 (S,)."""
        return self._strategy.copy()

    def observe_utility(self, utility: np.ndarray) -> None:
        """Takes the utility of each action, float64 (S,), and predicts that it comes again."""
        checked = saturated(self._simplices.checked_utility(utility))
        self._learn(checked)
        self.iteration += 1
        self._prediction = checked
        self._strategy = self._choose()

    def _learn(self, utility: np.ndarray) -> None:
        self.table = self._lifted(self.table + self._regrets(utility))

    def _choose(self) -> np.ndarray:
        return self._normalized(self._lifted(self.table + self._predicted_regrets()))

    def _predicted_regrets(self) -> np.ndarray:
        return self._regrets(self._prediction) if self.iteration else np.zeros_like(self.table)

    def _regrets(self, utility: np.ndarray) -> np.ndarray:
        return utility - self._simplices.spread(self._simplices.sum(self._strategy * utility))

    def _normalized(self, table: np.ndarray) -> np.ndarray:
        positive = np.maximum(table, 0.0)
        total = self._simplices.spread(self._simplices.sum(positive))
        uniform = 1.0 / self._simplices.spread(self._simplices.num_actions)
        return np.divide(positive, total, out=uniform, where=total > 0)

    def _lifted(self, table: np.ndarray) -> np.ndarray:
        """P: the positive part, unless that sums to less than the floor; then the nearest point at which it is the sum."""
        positive, nearest = np.maximum(table, 0.0), np.empty_like(table)
        project_onto_simplices(self._simplices.starts, table / self.floor, nearest)
        high = self._simplices.spread(self._simplices.sum(positive)) >= self.floor
        return np.where(high, positive, self.floor * nearest)


class Stable(Smooth):
    """Stable predictive regret matching+, likewise; the table begins at the floor."""

    def __init__(self, num_actions: np.ndarray, floor: np.ndarray):
        super().__init__(num_actions, floor)
        self.table, self._restarted = floor.copy(), np.ones(len(floor), bool)

    def _learn(self, utility: np.ndarray) -> None:
        table = np.maximum(self.table + self._regrets(utility), 0.0)
        self._restarted = self._simplices.spread(self._simplices.max(table - self.floor)) <= 0
        self.table = np.where(self._restarted, self.floor, table)

    def _choose(self) -> np.ndarray:
        predicted = self._predicted_regrets()
        if self.iteration:
            predicted[self._restarted] = 0.0
        return self._normalized(self.table + predicted)


def cfr_with(minimizer: type[Smooth], game: SequenceFormGame, floor: float) -> Callable[[Treeplex], ComposedCFR]:
    """Makes CFR for the treeplexes of `game`.

    Floors are `floor` times what the player can win or lose from a decision point, times the others' reach in uniform play.
    """

    def make(treeplex: Treeplex) -> ComposedCFR:
        magnitudes = game.tie_tolerance[game.player_slices[treeplex.player]][1:] / RELATIVE_TIE_TOLERANCE
        return ComposedCFR(treeplex, minimizer(treeplex.num_actions, floor * np.where(magnitudes > 0, magnitudes, 1.0)))

    return make
