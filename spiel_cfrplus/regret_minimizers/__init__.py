"""Regret minimisers: `next_strategy()` gives a strategy, `observe_utility(utility)` takes the gradient it earned."""

from spiel_cfrplus.regret_minimizers.cfr import CFR, ComposedCFR
from spiel_cfrplus.regret_minimizers.monitor import RegretMonitor
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    LocalRule,
    RegretMatching,
    RegretMatchingPlus,
)
from spiel_cfrplus.regret_minimizers.simplex import (
    Hedge,
    ProjectedGradientAscent,
    RegretMinimizer,
    SimplexRegretMatching,
    project_onto_simplex,
)
from spiel_cfrplus.regret_minimizers.treeplex_level import (
    MultiplicativeWeights,
    TreeplexGradientAscent,
    project_onto_treeplex,
)

__all__ = [
    "CFR",
    "ComposedCFR",
    "DiscountedRegretMatching",
    "Hedge",
    "LocalRule",
    "MultiplicativeWeights",
    "ProjectedGradientAscent",
    "RegretMatching",
    "RegretMatchingPlus",
    "RegretMinimizer",
    "RegretMonitor",
    "SimplexRegretMatching",
    "TreeplexGradientAscent",
    "project_onto_simplex",
    "project_onto_treeplex",
]
