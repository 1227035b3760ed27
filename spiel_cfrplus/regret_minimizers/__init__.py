"""Regret minimisers: `next_strategy()` gives a strategy, `observe_utility(utility)` takes the gradient it earned."""

from spiel_cfrplus.regret_minimizers.cfr import CFR
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    LocalRule,
    RegretMatching,
    RegretMatchingPlus,
)

__all__ = ["CFR", "DiscountedRegretMatching", "LocalRule", "RegretMatching", "RegretMatchingPlus"]
