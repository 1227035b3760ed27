"""A smaller game on which CFR plays the same: symmetry and forced moves removed without loss.

CFR starts from uniform strategies, and gives equal values to all that a game does not tell apart: the suits of a deck, the
corners of a board, the order of moves that come to the same. What is equal once stays equal, so that one of each kind is
enough to iterate on. Two steps:

* *Forced moves.* The only action of an infostate is played whenever its player comes there. Its sequence has the reach of the
  sequence before and becomes one with it.
* *Color refinement.* The coarsest partition of sequences and infostates into colors such that infostates of one color follow
  sequences of one color and have equally many sequences of each color; sequences of one color are followed by equally many
  infostates of each color; and for sequences of one color the payoffs, summed over the opponents' sequences of each color,
  are equal. Grohe, Kersting, Mladenov and Selman (2014, "Dimension reduction via colour refinement") do this for linear
  programs. It finds the symmetries that somebody who knows the game would name, and others. In games of more than 1,000
  sequences in which it would merge less than a hundredth of them, all are left as they are.

A color is one sequence of the reduced game. Where several actions of an infostate have one color it means to play one of them
at random. Such a sequence is as likely as they are together; so for regret matching its regret must weigh as much as theirs
together, and the uniform policy is not the same for all: see `TreeplexArrays.uniform_policy`. Payoffs, counterfactual values
and regrets are sums over all infostates merged into one, which regret matching, being scale-free, does not notice.

How colors are found. Were all sequences of a color played equally often, those of one color would have equal gradients. So
a round gives every color a random reach, computes the gradients by the kernel that CFR uses, and splits what differs by more
than rounding; then hashes of the whole tree above and below every infostate split what the players' trees tell apart. The
partition is reached when a round, with numbers of its own, splits nothing: had it merged two sequences wrongly, their gradients
would agree by a chance of some 2^-40. Two to four rounds have done wherever it was tried; each goes through the payoffs twice
and sorts the sequences twice.

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
from spiel_cfrplus.game.payoffs import group_payoffs, sum_by_rows
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.kernels import symmetry as symmetry_kernels

# Gradients that differ by less, relative to the magnitudes summed in them, are equal.
_ROUNDING = 2.0**-40
# In games of more sequences than this, merging is given up if the colors are more than this share of them: `uniform_policy`
# make an iteration a tenth slower.
_MANY_SEQUENCES = 1_000
_MOST_COLORS = 0.99


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Reduction(Immutable):
    """What kernels iterate on instead of a game; read-only. S and J are the game's numbers, S' and J' those of the reduction.

    Attributes:
      game: the whole game.
      treeplex_arrays, payoff_arrays: the reduced game.
      sequence_class: int32 (S,), the sequence of the reduced game that each sequence is part of.
      copies: float64 (S',), how many actions of an infostate a reduced sequence stands for.
      choices: float64 (S',), the product of `copies` on the path to and with each reduced sequence.
      regret_scale: float64 (S',), how many times the regret of each member the regret of a reduced sequence is.
      forced: bool (S,), the sequences that are the only ones of their infostates.
      num_payoffs: payoffs of the reduced game, counted as in `SequenceFormGame.payoffs`.
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
        """Whether actions of one infostate, or infostates, were merged, rather than forced moves removed only."""
        return bool(self.num_sequences < np.count_nonzero(~self.forced))

    @functools.cached_property
    def tie_tolerance(self) -> np.ndarray:
        """The regret that rounding may leave, float64 (S',), see `SequenceFormGame.tie_tolerance`."""
        of_members = self.game.tie_tolerance[~self.forced]
        sums = np.bincount(self.sequence_class[~self.forced], of_members, self.num_sequences)
        members = np.bincount(self.sequence_class[~self.forced], minlength=self.num_sequences)
        return frozen(self.regret_scale * sums / members, np.float64)

    @property
    def infostate_copies(self) -> np.ndarray:
        """How many infostates each reduced one stands for, float64 (J',), if no actions were merged."""
        return self.regret_scale[self.treeplex_arrays.sequence_start[:-1]]

    def merged_infostates(self, player: int) -> list[tuple[str, ...]]:
        """The player's infostates that have become one, by their information-state strings; not those that stand alone."""
        treeplex, own = self.game.treeplexes[player], self.game.player_slices[player]
        first = treeplex.sequence_start[:-1]
        reduced = np.searchsorted(self.treeplex_arrays.sequence_start, self.sequence_class[own][first], side="right")
        members: dict[int, list[str]] = {}
        for key, infostate, forced in zip(treeplex.infostate_keys, reduced.tolist(), self.forced[own][first], strict=True):
            if not forced:
                members.setdefault(infostate, []).append(key)
        return [tuple(keys) for keys in members.values() if len(keys) > 1]

    def policy(self, policy: np.ndarray) -> np.ndarray:
        """A behavioral policy of the game, float64 (S,), from one of the reduced game."""
        return np.where(self.forced, 1.0, (policy / self.copies)[self.sequence_class])

    def sequence_form(self, reach: np.ndarray) -> np.ndarray:
        """A sequence-form strategy of the game, or a sum of several, float64 (S,), from one of the reduced game."""
        return (reach / self.choices)[self.sequence_class]

    def regrets(self, regrets: np.ndarray) -> np.ndarray:
        """Regrets in the game, float64 (S,), in game units, from those in the reduced game."""
        return np.where(self.forced, 0.0, (regrets / self.regret_scale)[self.sequence_class])


class _Form(NamedTuple):
    """A game or what has become of it: treeplexes, and payoffs as in `SequenceFormGame`, of commonly numbered sequences."""

    treeplexes: layouts.TreeplexArrays
    payoff_sequences: np.ndarray
    payoffs: np.ndarray

    def payoff_arrays(self) -> layouts.PayoffArrays:
        return group_payoffs(self.payoff_sequences, self.payoffs, [0] * self.payoffs.shape[1])


def reduce_game(game: SequenceFormGame, merge_actions: bool = True) -> Reduction:
    """The game without forced moves and symmetry, computed once and kept with the game.

    Args:
      game: the game.
      merge_actions: whether equal actions of one infostate may become one.
    """
    return game.derived(_reduce if merge_actions else _reduce_infostates)


def _reduce_infostates(game: SequenceFormGame) -> Reduction:
    return _reduce(game, merge_actions=False)


def _reduce(game: SequenceFormGame, merge_actions: bool = True) -> Reduction:
    offsets = np.array([own.start for own in game.player_slices], np.int32)
    whole = _Form(game.treeplex_arrays, game.payoff_sequences + offsets, game.payoffs)
    free, to_free, _ = _merge(whole, *_without_forced_moves(whole.treeplexes))
    payoff_arrays = free.payoff_arrays()
    reduced, to_reduced, copies = _merge(free, *_refine(free.treeplexes, payoff_arrays, merge_actions))
    treeplexes = reduced.treeplexes
    choices = np.ones(len(copies))
    for player in range(game.num_players):
        passes.sequence_form(treeplexes, player, copies, choices)
    if reduced is not free:
        # A sequence that means to pick one of several is that many times as likely as each: payoffs are per choice.
        reduced = reduced._replace(payoffs=reduced.payoffs / choices[reduced.payoff_sequences].prod(axis=1, keepdims=True))
        payoff_arrays = reduced.payoff_arrays()
    regret_scale = np.bincount(to_reduced) / choices * (1.0 if treeplexes.uniform_policy is None else treeplexes.uniform_policy)
    num_actions = np.diff(whole.treeplexes.sequence_start)
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
    """The infostates with a choice, and the roots; and for each sequence one of theirs that has the same reach, int64 (S,)."""
    kept = np.diff(treeplexes.sequence_start) > 1
    kept[treeplexes.player_block[:-1]] = True
    representative = np.empty(treeplexes.sequence_start[-1], np.int64)
    symmetry_kernels.collapse_forced_moves(treeplexes, representative)
    return np.flatnonzero(kept), representative


def _refine(
    treeplexes: layouts.TreeplexArrays, payoffs: layouts.PayoffArrays, merge_actions: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The first infostate of each color, ascending; and the colors of sequences, int64 (S,).

    Without `merge_actions` the refinement starts from the positions of actions at their infostates, so that no two actions of
    one infostate have one color.
    """
    magnitudes = payoffs._replace(entry_utility=frozen(np.abs(payoffs.entry_utility), np.float64))
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
            passes.payoff_gradient(treeplexes, magnitudes, player, reach, magnitude)
        labels = _label_runs(color, gradient, _ROUNDING * magnitude)
        with np.errstate(over="ignore"):  # hashes wrap around, which NumPy reports where Numba is turned off
            symmetry_kernels.hash_places(treeplexes, labels, below, infostates, sequences)
        hashes, color = np.unique(sequences, return_inverse=True)
        if num_sequences > _MANY_SEQUENCES and len(hashes) > _MOST_COLORS * num_sequences:
            return np.arange(num_infostates), np.arange(num_sequences)
        if len(hashes) in (num_colors, num_sequences):
            return np.sort(np.unique(infostates, return_index=True)[1]), color
        num_colors = len(hashes)


def _positions(treeplexes: layouts.TreeplexArrays) -> np.ndarray:
    """The position of each sequence among those of its infostate, int64 (S,)."""
    counts = np.diff(treeplexes.sequence_start)
    return np.arange(treeplexes.sequence_start[-1]) - np.repeat(treeplexes.sequence_start[:-1], counts).astype(np.int64)


def _label_runs(color: np.ndarray, values: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Numbers that are equal where colors are, and values within their tolerance, uint64 (S,)."""
    order = np.lexsort((values, color))
    apart = np.diff(values[order]) > np.maximum(tolerance[order[1:]], tolerance[order[:-1]])
    labels = np.zeros(len(order), np.uint64)
    labels[order[1:]] = np.cumsum(apart | (np.diff(color[order]) != 0))
    return labels


def _merge(form: _Form, infostates: np.ndarray, color: np.ndarray) -> tuple[_Form, np.ndarray, np.ndarray]:
    """The form that has `infostates` only, one of each kind, ascending, and one sequence for each color.

    Returns:
      The form; the new number of each sequence, int64 (S,); how many of its infostate each new one is, float64 (S',).
    """
    treeplexes = form.treeplexes
    if len(np.unique(color)) == len(color):
        return form, np.arange(len(color)), np.ones(len(color))
    counts = np.diff(treeplexes.sequence_start)
    kept = np.zeros(len(counts), bool)
    kept[infostates] = True
    infostate_of = np.repeat(np.arange(len(infostates)), counts[infostates])
    colors, first, copies = np.unique(color[np.repeat(kept, counts)], return_index=True, return_counts=True)
    order = np.argsort(first)
    infostate_of, copies = infostate_of[first[order]], copies[order].astype(np.float64)
    number = np.empty(color.max() + 1, np.int64)
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
