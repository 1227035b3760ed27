"""Regret minimizers: `next_strategy()` gives a strategy, `observe_utility(utility)` takes the gradient it earned."""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.regret_minimizers.cfr import CFR, ComposedCFR
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule, local_rule
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, StaticStrategy
from spiel_cfrplus.regret_minimizers.monitor import RegretMonitor
from spiel_cfrplus.regret_minimizers.projections import project_onto_simplex, project_onto_treeplex
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    DiscountSchedule,
    RegretMatching,
    RegretMatchingPlus,
)
from spiel_cfrplus.regret_minimizers.simplex import Hedge, ProjectedGradientAscent, SimplexMinimizer, SimplexRegretMatching
from spiel_cfrplus.regret_minimizers.treeplex_minimizers import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    TreeplexGradientAscent,
)

__all__ = [
    "CFR",
    "ComposedCFR",
    "DilatedEntropyAscent",
    "DilatedEuclideanAscent",
    "DiscountSchedule",
    "DiscountedRegretMatching",
    "Hedge",
    "LocalRule",
    "MultiplicativeWeights",
    "ProjectedGradientAscent",
    "RegretMatching",
    "RegretMatchingPlus",
    "RegretMinimizer",
    "RegretMonitor",
    "SimplexMinimizer",
    "SimplexRegretMatching",
    "StaticStrategy",
    "TreeplexGradientAscent",
    "jit",
    "local_rule",
    "project_onto_simplex",
    "project_onto_treeplex",
]
