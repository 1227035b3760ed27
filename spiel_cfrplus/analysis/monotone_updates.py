"""Statements of the CFR+ paper about one update of regret matching or regret matching+.

An update turns a player's stored values s and strategy sigma into s' and sigma', given the counterfactual values v against
fixed opponents. For each statement (Burch, Moravcik and Schmid 2019, section 3) a function measures its *slack*: by how much it
holds, in game units; negative where it fails.

All three follow from two lines. Write r = v - sigma . v, and x+ for the positive part; then s' = s + r wherever s' > 0. Since
s+ is a multiple of sigma and sigma . r = 0, s+ . s'+ >= s+ . (s + r) = |s+|^2: the positive part never vanishes (Lemma 2).
And (s'_a+ - s_a+) r_a >= 0 for each action (Lemma 4); the sum is s'+ . r >= 0, that is sigma' . v >= sigma . v (Theorem 5).
Neither line depends on the negative part of s', and both remain valid if s' is multiplied by a positive factor: both hold for
discounted regret matching.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> from spiel_cfrplus.regret_minimizers import CFR
>>> game = compile_game(pyspiel.load_game("kuhn_poker"))
>>> player = CFR(game.treeplexes[0])
>>> old_policy, old_table = player.current_policy(), player.cumulative_regrets()
>>> opponents = [treeplex.sequence_form(treeplex.uniform_policy()) for treeplex in game.treeplexes]
>>> gradient = game.payoff_gradient(0, opponents)
>>> player.observe_utility(gradient)
>>> _ = player.next_strategy()
>>> update = Update(
...     game.treeplexes[0], old_policy, player.current_policy(), old_table, player.cumulative_regrets(), gradient,
...     abs(gradient), np.zeros(6), np.zeros(6))
>>> slack, rounding = theorem_5(update)
>>> dict(zip(game.treeplexes[0].infostate_keys, slack.round(6).tolist()))
{'0': 0.125, '0pb': 0.083333, '1': 0.125, '1pb': 0.083333, '2': 0.125, '2pb': 0.25}
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from spiel_cfrplus.game.treeplex import Treeplex

# Bound on the rounding error of one update, relative to the summed magnitudes: 450 units in the last place.
ROUNDING = 1e-13
# If rounding may change the value at an infostate by a tenth of its values, the strategy there is a result of rounding.
_LARGEST_RELATIVE_ERROR = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Update:
    """One update of a player with J infostates and S sequences.

    Attributes:
      treeplex: the player's treeplex.
      old_policy, new_policy: float64 (S,), sigma and sigma'.
      old_table, new_table: float64 (S,), s and s'.
      gradient: float64 (S,), of the expected utility against the opponents' strategies in the update.
      magnitude: float64 (S,), the same with the absolute values of the payoffs; rounding errors are relative to it.
      summed_before: float64 (J,), the sum of `largest_magnitudes` over all updates before this one.
      tie_tolerance: float64 (J,), stored values of smaller absolute value were set to 0.
    """

    treeplex: Treeplex
    old_policy: np.ndarray
    new_policy: np.ndarray
    old_table: np.ndarray
    new_table: np.ndarray
    gradient: np.ndarray
    magnitude: np.ndarray
    summed_before: np.ndarray
    tie_tolerance: np.ndarray

    @functools.cached_property
    def values(self) -> np.ndarray:
        """v, float64 (S,); at the empty sequence the player's expected utility."""
        return self.treeplex.counterfactual_values(self.old_policy, self.gradient)

    @functools.cached_property
    def new_values(self) -> np.ndarray:
        """The counterfactual values of sigma' against the same opponents, float64 (S,)."""
        return self.treeplex.counterfactual_values(self.new_policy, self.gradient)

    @functools.cached_property
    def expected_values(self) -> np.ndarray:
        """sigma . v, float64 (J,)."""
        return at_infostates(self.treeplex, np.add, self.old_policy * self.values)

    @functools.cached_property
    def improvements(self) -> np.ndarray:
        """sigma' . v - sigma . v, float64 (J,)."""
        return np.asarray(at_infostates(self.treeplex, np.add, self.new_policy * self.values) - self.expected_values)

    @functools.cached_property
    def positive(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums of the positive parts of s and s', float64 (J,) each."""
        old, new = (at_infostates(self.treeplex, np.add, np.maximum(table, 0.0)) for table in (self.old_table, self.new_table))
        return old, new

    @functools.cached_property
    def magnitudes(self) -> np.ndarray:
        """The sum of the absolute values of all terms of `values` and `new_values`, float64 (S,)."""
        old, new = (
            self.treeplex.counterfactual_values(policy, self.magnitude) for policy in (self.old_policy, self.new_policy)
        )
        return np.asarray(old + new)

    @functools.cached_property
    def largest_magnitudes(self) -> np.ndarray:
        """The largest of the magnitudes at each infostate, float64 (J,)."""
        return at_infostates(self.treeplex, np.maximum, self.magnitudes)

    @functools.cached_property
    def relative_error(self) -> np.ndarray:
        """A bound on the rounding error of `improvements`, relative to the values, at most 2, float64 (J,).

        The improvement is (s'+ - s+) . r / sum(s'+), so an error e in s' causes an error e . r / sum(s'+). The error e is
        relative to the sum of all terms of s', or is a value within the tie tolerance that was set to 0.
        """
        matched = np.maximum(*self.positive)
        error = ROUNDING * (self.summed_before + self.largest_magnitudes) + self.tie_tolerance * self.treeplex.num_actions
        with np.errstate(over="ignore"):
            ratio = np.divide(error, matched, out=np.zeros_like(error), where=matched > 0)
        return np.asarray(np.minimum(ROUNDING + ratio, 2.0))

    @property
    def is_reliable(self) -> np.ndarray:
        """Where the strategy is not a result of rounding, bool (J,); it is where ties leave +-1e-17 for a stored value of 0."""
        return self.relative_error < _LARGEST_RELATIVE_ERROR


def lemma_2(update: Update) -> tuple[np.ndarray, np.ndarray]:
    """An infostate with a positive stored value always keeps one, and never returns to the default (Lemma 2, corollary).

    Returns:
      Slack and the rounding allowed, float64 (J,) each. The slack is the positive part after the update or, if that is zero,
      minus the positive part before; infinite if that was zero, or a result of rounding.
    """
    old, new = update.positive
    slack = np.where(new > 0, new, -old)
    return np.where((old > 0) & update.is_reliable, slack, np.inf), np.zeros(len(slack))


def theorem_5(update: Update) -> tuple[np.ndarray, np.ndarray]:
    """At every infostate, sigma' . v >= sigma . v (Theorem 5).

    Returns:
      Slack and the rounding allowed, float64 (J,) each; infinite slack where the strategy is a result of rounding.
    """
    return np.where(update.is_reliable, update.improvements, np.inf), update.relative_error * update.largest_magnitudes


def theorem_6(update: Update) -> tuple[np.ndarray, np.ndarray]:
    """No counterfactual value of the player, nor its expected utility, decreases against the same opponents (Theorem 6).

    Returns:
      Slack and the rounding allowed, float64 (S,) each; the expected utility is at the empty sequence. Losses at infostates
      further down where the strategy is a result of rounding are excluded.
    """
    _, rounding = theorem_5(update)
    lost = np.where(update.is_reliable, 0.0, np.maximum(-update.improvements, 0.0))
    change = update.new_values - update.values + _sum_below(update, lost)
    return change, _sum_below(update, np.where(update.is_reliable, rounding, 0.0)) + ROUNDING * update.magnitudes


def at_infostates(treeplex: Treeplex, operation: np.ufunc, vector: np.ndarray) -> np.ndarray:
    """Reduces (S,) numbers by `operation` at each infostate, to (J,)."""
    return operation.reduceat(vector, treeplex.sequence_start[:-1])


def _sum_below(update: Update, amounts: np.ndarray) -> np.ndarray:
    """The contribution of (J,) amounts at infostates to the counterfactual values of sigma', float64 (S,)."""
    treeplex = update.treeplex
    after_sequences = np.bincount(treeplex.parent_sequence, amounts, treeplex.num_sequences)
    return treeplex.counterfactual_values(update.new_policy, after_sequences)
