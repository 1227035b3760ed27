"""Regret minimizers: `next_strategy()` returns a strategy, `observe_utility(utility)` receives the gradient of its utility."""

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
    ScheduledRegretMatching,
)
from spiel_cfrplus.regret_minimizers.simplex import Hedge, ProjectedGradientAscent, SimplexMinimizer, SimplexRegretMatching
from spiel_cfrplus.regret_minimizers.step_rules import (
    dilated_entropy,
    dilated_euclidean,
    gradient_ascent,
    hedge,
    multiplicative_weights,
    treeplex_gradient_ascent,
)
from spiel_cfrplus.regret_minimizers.treeplex_minimizers import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    TreeplexGradientAscent,
    TreeplexMinimizer,
)
from spiel_cfrplus.regret_minimizers.treeplex_rules import TreeplexRule

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
    "ScheduledRegretMatching",
    "SimplexMinimizer",
    "SimplexRegretMatching",
    "StaticStrategy",
    "TreeplexGradientAscent",
    "TreeplexMinimizer",
    "TreeplexRule",
    "dilated_entropy",
    "dilated_euclidean",
    "gradient_ascent",
    "hedge",
    "jit",
    "local_rule",
    "multiplicative_weights",
    "project_onto_simplex",
    "project_onto_treeplex",
    "treeplex_gradient_ascent",
]
