"""Rules for a whole treeplex: compiled functions that compute a player's next strategy from its payoff gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from spiel_cfrplus.kernels.layouts import TreeplexArrays
from spiel_cfrplus.kernels.self_play import RuleFunctions, update_by_treeplex_rule
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule


@dataclasses.dataclass(frozen=True, repr=False)
class TreeplexRule(CompiledRule):
    """A rule whose function is called once for every update of a player.

        function(treeplexes, player, values, policy, memory, parameters, t)

    `values`, float64 (S,), contains the gradient of the player's sequences, and may be overwritten. The function writes the
    next behavioral policy of the player, also at infostates that are not reached, into `policy`, float64 (S,).

    Attributes:
      prepare: returns the arrays that do not start at zero, and "policy", the first policy, if that is not the uniform one.
    """

    prepare: Callable[[TreeplexArrays], dict[str, np.ndarray]] | None = None

    @property
    def functions(self) -> RuleFunctions:
        return RuleFunctions(update_by_treeplex_rule, self.function, self.schedule)

    def initial_arrays(self, treeplexes: TreeplexArrays) -> dict[str, np.ndarray]:
        return {} if self.prepare is None else self.prepare(treeplexes)
