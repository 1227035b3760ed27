"""Symmetry reduction: a smaller game with the same CFR iterates, without forced moves and symmetric copies.

CFR starts from uniform strategies, and computes equal values for objects that a symmetry of the game maps to each other: the
suits of a deck, the corners of a board, transposed orders of moves. Symmetric strategies stay symmetric, so it suffices to
iterate on one representative of each class. There are two steps:

* *Forced moves.* The only action of an infostate has probability 1. Its sequence has the reach of its parent sequence and is
  merged with it.
* *Color refinement.* This computes the coarsest partition of sequences and infostates into colors such that infostates of one
  color follow sequences of one color and have the same number of sequences of each color; sequences of one color are followed
  by the same number of infostates of each color; and for sequences of one color the payoffs, summed over the opponents'
  sequences of each color, are equal. Grohe, Kersting, Mladenov and Selman (2014, "Dimension reduction via colour refinement")
  apply it to linear programs. It finds the symmetries known from the rules of a game, and others. If a game has more than
  1,000 sequences and color refinement would remove less than 1 % of them, it is not applied.

A color is one sequence of the reduced game. If several actions of an infostate have one color, the reduced sequence represents
playing one of them uniformly at random. Its probability is the sum of theirs, so in regret matching its regret must have the
weight of all of them together, and the uniform policy is not uniform over reduced actions: see
`TreeplexArrays.uniform_policy`. Payoffs, counterfactual values and regrets are sums over all infostates merged into one, which
has no effect on regret matching, because it is scale-free.

Colors are computed as follows. If all sequences of a color have equal reach, all sequences of a correct color have equal
gradients. So a round assigns a random reach to every color, computes the gradients by the kernel that CFR uses, and splits
colors whose gradients differ by more than rounding. Then hashes of the tree above and below every infostate split colors that
differ in the treeplexes. The refinement ends when a round, with new random numbers, splits no color. If two sequences were
merged incorrectly, their gradients would agree with a probability of about 2^-40. Two to four rounds were sufficient in all
games tested; a round makes two passes over the payoffs and sorts the sequences twice.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> reduction = reduce_game(compile_game(pyspiel.load_game("leduc_poker")))
>>> print(reduction)
936 infostates to 288, 2186 sequences to 674, 4920 payoffs to 966
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus.game.payoffs import group_payoffs, magnitudes, sum_by_rows
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.kernels import symmetry as symmetry_kernels

# Gradients are equal if they differ by less, relative to the sum of the magnitudes of their terms.
_ROUNDING = 2.0**-40
# In games with more sequences than this, nothing is merged if the number of colors exceeds this fraction of the sequences:
# `uniform_policy` makes an iteration a tenth slower, which a small reduction does not compensate.
_MANY_SEQUENCES = 1_000
_MAX_COLORS = 0.99


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Reduction(Immutable):
    """A reduced game, on which kernels iterate instead of the game; read-only.

    S and J are the numbers of sequences and infostates of the game, S' and J' those of the reduced game.

    Attributes:
      game: the original game.
      treeplex_arrays, payoff_arrays: the reduced game.
      sequence_class: int32 (S,), the reduced sequence that represents each sequence.
      copies: float64 (S',), the number of actions of an infostate that a reduced sequence represents.
      choices: float64 (S',), the product of `copies` over the reduced sequences on the path to each one, itself included.
      regret_scale: float64 (S',), the ratio of the regret of a reduced sequence to the regret of each of its members.
      forced: bool (S,), whether each sequence is the only one of its infostate.
      num_payoffs: the number of payoffs of the reduced game, counted as in `SequenceFormGame.payoffs`.
    """

    game: SequenceFormGame
    treeplex_arrays: layouts.TreeplexArrays
    payoff_arrays: layouts.PayoffArrays
    sequence_class: np.ndarray
    copies: np.ndarray
    choices: np.ndarray
    regret_scale: np.ndarray
    forced: np.ndarray
    num_payoffs: int

    def __str__(self) -> str:
        game = self.game
        return (
            f"{game.num_infostates} infostates to {self.num_infostates}, {game.num_sequences} sequences to "
            f"{self.num_sequences}, {len(game.payoffs)} payoffs to {self.num_payoffs}"
        )

    def _summary(self) -> str:
        return f"{self.game.tree.game}: {self}"

    @property
    def num_infostates(self) -> int:
        return len(self.treeplex_arrays.parent_sequence) - self.game.num_players

    @property
    def num_sequences(self) -> int:
        return len(self.copies)

    @property
    def has_symmetry(self) -> bool:
        """Whether actions or infostates were merged; false if only forced moves were removed."""
        return bool(self.num_sequences < np.count_nonzero(~self.forced))

    @functools.cached_property
    def tie_tolerance(self) -> np.ndarray:
        """float64 (S',), bound below which a regret is treated as rounding error, see `SequenceFormGame.tie_tolerance`."""
        of_members = self.game.tie_tolerance[~self.forced]
        sums = np.bincount(self.sequence_class[~self.forced], of_members, self.num_sequences)
        return frozen(self.regret_scale * sums / self._num_members, np.float64)

    @functools.cached_property
    def _num_members(self) -> np.ndarray:
        """int64 (S',), the number of sequences that each reduced one represents, forced ones not counted."""
        return np.bincount(self.sequence_class[~self.forced], minlength=self.num_sequences)

    @property
    def infostate_copies(self) -> np.ndarray:
        """float64 (J',), the number of infostates that each reduced one represents; valid if no actions were merged."""
        return np.asarray(self.regret_scale[self.treeplex_arrays.sequence_start[:-1]])

    def merged_infostates(self, player: int) -> list[tuple[str, ...]]:
        """The information-state strings of the player's merged infostates, one tuple per class of two or more."""
        treeplex, own = self.game.treeplexes[player], self.game.player_slices[player]
        first = treeplex.sequence_start[:-1]
        reduced = np.searchsorted(self.treeplex_arrays.sequence_start, self.sequence_class[own][first], side="right")
        members: dict[int, list[str]] = {}
        for key, infostate, forced in zip(treeplex.infostate_keys, reduced.tolist(), self.forced[own][first], strict=True):
            if not forced:
                members.setdefault(infostate, []).append(key)
        return [tuple(keys) for keys in members.values() if len(keys) > 1]

    def policy(self, policy: np.ndarray) -> np.ndarray:
        """float64 (S,), the behavioral policy of the game that corresponds to one of the reduced game."""
        return np.where(self.forced, 1.0, (policy / self.copies)[self.sequence_class])

    def sequence_form(self, reach: np.ndarray) -> np.ndarray:
        """float64 (S,), the sequence-form strategy of the game that corresponds to one of the reduced game; sums likewise."""
        return np.asarray((reach / self.choices)[self.sequence_class])

    def regrets(self, regrets: np.ndarray) -> np.ndarray:
        """float64 (S,), the regrets in the game, in game units, that correspond to those in the reduced game."""
        return np.where(self.forced, 0.0, (regrets / self.regret_scale)[self.sequence_class])

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """float64 (S,), the payoff gradient in the game that corresponds to one of the reduced game; sums likewise.

        The gradient of a forced move is added to that of the sequence that it is merged with, which has the same reach. The
        product with any strategy is therefore that with the gradient of the game.
        """
        return np.where(self.forced, 0.0, (gradient * self.choices / self._num_members)[self.sequence_class])


class _Form(NamedTuple):
    """A game at some step of the reduction: treeplexes, and payoffs as in `SequenceFormGame`, with common sequence numbers."""

    treeplexes: layouts.TreeplexArrays
    payoff_sequences: np.ndarray
    payoffs: np.ndarray

    def payoff_arrays(self) -> layouts.PayoffArrays:
        return group_payoffs(self.payoff_sequences, self.payoffs, [0] * self.payoffs.shape[1])


def reduce_game(game: SequenceFormGame, merge_actions: bool = True) -> Reduction:
    """The reduction of a game, computed once and stored with the game.

    Args:
      game: the game.
      merge_actions: whether equivalent actions of one infostate may be merged.
    """
    return game.derived(_reduce if merge_actions else _reduce_infostates)


def _reduce_infostates(game: SequenceFormGame) -> Reduction:
    return _reduce(game, merge_actions=False)


def _reduce(game: SequenceFormGame, merge_actions: bool = True) -> Reduction:
    offsets = np.array([own.start for own in game.player_slices], np.int32)
    whole = _Form(game.treeplex_arrays, game.payoff_sequences + offsets, game.payoffs)
    free, to_free, _ = _merge(whole, *_without_forced_moves(whole.treeplexes))
    del whole  # arrays over payoffs are large
    payoff_arrays = free.payoff_arrays()
    reduced, to_reduced, copies = _merge(free, *_refine(free.treeplexes, payoff_arrays, merge_actions))
    is_free = reduced is free
    del free
    treeplexes = reduced.treeplexes
    choices = np.ones(len(copies))
    for player in range(game.num_players):
        passes.sequence_form(treeplexes, player, copies, choices)
    if not is_free:
        del payoff_arrays
        # The reach of a reduced sequence is the sum of those of its `choices` members, so its payoff is their mean.
        reduced = reduced._replace(payoffs=reduced.payoffs / choices[reduced.payoff_sequences].prod(axis=1, keepdims=True))
        payoff_arrays = reduced.payoff_arrays()
    regret_scale = np.bincount(to_reduced) / choices * (1.0 if treeplexes.uniform_policy is None else treeplexes.uniform_policy)
    num_actions = np.diff(game.treeplex_arrays.sequence_start)
    forced = np.repeat(num_actions == 1, num_actions)
    forced[offsets] = False
    return Reduction(
        game=game,
        treeplex_arrays=treeplexes,
        payoff_arrays=payoff_arrays,
        sequence_class=frozen(to_reduced[to_free], np.int32),
        copies=frozen(copies, np.float64),
        choices=frozen(choices, np.float64),
        regret_scale=frozen(regret_scale, np.float64),
        forced=frozen(forced, bool),
        num_payoffs=len(reduced.payoffs),
    )


def _without_forced_moves(treeplexes: layouts.TreeplexArrays) -> tuple[np.ndarray, np.ndarray]:
    """Removes forced moves.

    Returns:
      The roots and the infostates with several actions; int64 (S,), a sequence of one of these with the same reach as each
      sequence.
    """
    retained = np.diff(treeplexes.sequence_start) > 1
    retained[treeplexes.player_block[:-1]] = True
    representative = np.empty(treeplexes.sequence_start[-1], np.int64)
    symmetry_kernels.collapse_forced_moves(treeplexes, representative)
    return np.flatnonzero(retained), representative


def _refine(
    treeplexes: layouts.TreeplexArrays, payoffs: layouts.PayoffArrays, merge_actions: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Color refinement.

    Without `merge_actions`, the initial colors are the positions of the actions at their infostates, so that no two actions of
    one infostate have the same color.

    Returns:
      The first infostate of each color, ascending; int64 (S,), the colors of the sequences.
    """
    num_sequences, num_infostates = int(treeplexes.sequence_start[-1]), len(treeplexes.parent_sequence)
    below, sequences = np.empty((2, num_sequences), np.uint64)
    infostates = np.empty(num_infostates, np.uint64)
    gradient, magnitude = np.empty((2, num_sequences))
    random = np.random.default_rng(0)
    color = np.zeros(num_sequences, np.int64) if merge_actions else _positions(treeplexes)
    num_colors = int(color.max()) + 1
    while True:
        reach = (1 + random.random(num_colors))[color]
        for player in range(len(treeplexes.player_block) - 1):
            passes.payoff_gradient(treeplexes, payoffs, player, reach, gradient)
            passes.payoff_gradient(treeplexes, magnitudes(payoffs, player), player, reach, magnitude)
        labels = _label_runs(color, gradient, _ROUNDING * magnitude)
        with np.errstate(over="ignore"):  # hashes overflow by design; NumPy warns about it if Numba is disabled
            symmetry_kernels.hash_places(treeplexes, labels, below, infostates, sequences)
        hashes, color = np.unique(sequences, return_inverse=True)
        if num_sequences > _MANY_SEQUENCES and len(hashes) > _MAX_COLORS * num_sequences:
            return np.arange(num_infostates), np.arange(num_sequences)
        if len(hashes) in (num_colors, num_sequences):
            return np.sort(np.unique(infostates, return_index=True)[1]), color
        num_colors = len(hashes)


def _positions(treeplexes: layouts.TreeplexArrays) -> np.ndarray:
    """int64 (S,), the position of each sequence among those of its infostate."""
    counts = np.diff(treeplexes.sequence_start)
    return np.arange(treeplexes.sequence_start[-1]) - np.repeat(treeplexes.sequence_start[:-1], counts).astype(np.int64)


def _label_runs(color: np.ndarray, values: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """uint64 (S,), labels that are equal if the colors are equal and the values are equal up to the tolerance."""
    order = np.lexsort((values, color))
    differs = np.diff(values[order]) > np.maximum(tolerance[order[1:]], tolerance[order[:-1]])
    labels = np.zeros(len(order), np.uint64)
    labels[order[1:]] = np.cumsum(differs | (np.diff(color[order]) != 0))
    return labels


def _merge(form: _Form, infostates: np.ndarray, color: np.ndarray) -> tuple[_Form, np.ndarray, np.ndarray]:
    """Restricts a form to `infostates`, one per color and ascending, and to one sequence per color.

    Returns:
      The form; int32 (S,), the new number of each sequence; float64 (S',), the number of sequences of an infostate that each
      new one represents.
    """
    treeplexes = form.treeplexes
    if np.count_nonzero(np.bincount(color)) == len(color):
        return form, np.arange(len(color), dtype=np.int32), np.ones(len(color))
    counts = np.diff(treeplexes.sequence_start)
    retained = np.zeros(len(counts), bool)
    retained[infostates] = True
    infostate_of = np.repeat(np.arange(len(infostates)), counts[infostates])
    colors, first, copies = np.unique(color[np.repeat(retained, counts)], return_index=True, return_counts=True)
    order = np.argsort(first)
    infostate_of, copies = infostate_of[first[order]], copies[order].astype(np.float64)
    number = np.empty(color.max() + 1, np.int32)
    number[colors[order]] = np.arange(len(order))
    merged = layouts.TreeplexArrays(
        player_block=frozen(np.searchsorted(infostates, treeplexes.player_block), layouts.INDEX),
        sequence_start=frozen(np.searchsorted(infostate_of, np.arange(len(infostates) + 1)), layouts.INDEX),
        parent_sequence=frozen(number[color[treeplexes.parent_sequence[infostates]]], layouts.INDEX),
        uniform_policy=frozen(copies / counts[infostates][infostate_of], np.float64) if copies.max() > 1 else None,
    )
    number = number[color]
    payoffs = sum_by_rows(number[form.payoff_sequences], np.ones(len(form.payoffs)), form.payoffs)
    return _Form(merged, *payoffs), number, copies
