"""Regret matching among strategies that play every action with at least a given probability, the tremble.

Farina, Kroer, Sandholm 2017, "Regret Minimization in Behaviorally-Constrained Zero-Sum Games": CFR whose local minimizers
choose from the part of the simplex in which every probability is at least the tremble. The average tends to an equilibrium
among such strategies, which `solve_exactly(game, tremble=...)` computes by linear programming; `evaluate(game, policy,
tremble=...)` measures the distance from it.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver, evaluate
>>> rule = trembling_regret_matching_plus.with_parameters(tremble=0.05)
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"), rule=rule)
>>> solver.run(1000)
>>> average = solver.average_profile()
>>> evaluate(solver.game, average, tremble=0.05).nash_conv < 1e-3, bool(average.probabilities.min() >= 0.05 - 1e-12)
(True, True)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.kernels import regret_matching
from spiel_cfrplus.kernels.layouts import TreeplexArrays
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule


class TremblingRule(LocalRule):
    """A local rule with a parameter `tremble`. Symmetric actions of an infostate are not merged, because each has it."""

    def memory(self, treeplexes: TreeplexArrays, tie_tolerance: np.ndarray | None = None) -> Any:
        """See `CompiledRule.memory`.

        Raises:
          TypeError: `tremble` is not a number.
          ValueError: it is negative, or the actions of some infostate would have probabilities of 1 or more in total.
        """
        tremble = checked_number(dict(self.parameters)["tremble"], "tremble")
        most_actions = int(np.diff(treeplexes.sequence_start).max())
        if not 0 <= tremble * most_actions < 1:
            raise ValueError(
                f"{self.name}: tremble={tremble} must be at least 0 and less than 1/{most_actions}, because an infostate has "
                f"{most_actions} actions"
            )
        return super().memory(treeplexes, tie_tolerance)


trembling_regret_matching_plus = TremblingRule(
    name="trembling_regret_matching_plus",
    function=regret_matching.trembling_regret_matching,
    parameters=(("tremble", 0.001), ("positive_factor", 1.0), ("negative_factor", 0.0), ("prediction_weight", 0.0)),
    per_action=("regrets",),
    scale_free=True,
)
"""RM+ with trembles; with `prediction_weight=1.0` PRM+. The factors are those of `kernels.regret_matching`."""
