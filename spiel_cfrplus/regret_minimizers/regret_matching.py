"""The local regret minimisers of CFR, each reduced to what distinguishes it: two factors per iteration.

All of them keep a table of regrets per infostate, play its positive part normalised (uniform if nothing is positive), and after
iteration t with counterfactual values v and strategy sigma replace the table x by

    x <- x + v - sigma . v,   then   x_a <- x_a * (positive factor if x_a > 0 else negative factor).

Factors 1 and 1 are regret matching, 1 and 0 are regret matching+.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np


class LocalRule(Protocol):
    """A member of the family above."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        """Positive and negative factor of each of `iterations` (1, 2, ...), float64 (T, 2)."""


@dataclasses.dataclass(frozen=True)
class RegretMatching:
    """Regret matching (Hart and Mas-Colell 2000; CFR+ paper, Eq. 1 and 4): tables are plain sums of regrets."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 1.0], (len(iterations), 1))


@dataclasses.dataclass(frozen=True)
class RegretMatchingPlus:
    """Regret matching+ (Tammelin 2014; CFR+ paper, Eq. 5 and 6): what would be negative after an update is 0."""

    def discounts(self, iterations: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 0.0], (len(iterations), 1))
