"""The value of a two-player zero-sum game as a fraction, verified in exact arithmetic.

Chance probabilities and returns are replaced by fractions with denominators of at most `MOST_DENOMINATOR`, from which they
differ by the rounding of a few operations, and the probabilities of a profile by fractions that agree with them to many digits.
If such fractions exist, the best-response values of both players are
computed in exact arithmetic. If what player 0's strategy guarantees equals what player 1's strategy concedes, it is the value
of the game with these fractions, by weak duality, however the profile was found.

>>> import pyspiel
>>> from spiel_cfrplus import StrategyProfile, compile_game
>>> matching_pennies = pyspiel.create_matrix_game([[1, -1], [-1, 2]], [[-1, 1], [1, -2]])
>>> game = compile_game(pyspiel.convert_to_turn_based(matching_pennies))
>>> str(verified_value(StrategyProfile(game, [1, 0.6, 0.4, 1, 0.6, 0.4])))
'1/5'
>>> verified_value(StrategyProfile.uniform(game)) is None
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import pyspiel

from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.policies.profile import StrategyProfile

# Arbitrary numbers are about 1e-8 from the nearest fraction with this denominator, which `_AGREES` tells from the errors of
# a profile. The numbers of the game itself may differ by `_ROUNDINGS` units in the last place.
MOST_DENOMINATOR = 10_000
_AGREES = 1e-11
_ROUNDINGS = 4
# Games with more histories are not tried, because exact arithmetic takes microseconds for each operation.
MOST_HISTORIES = 200_000
# The least common denominator of a player's probabilities may have this many bits, so that exact arithmetic stays cheap.
_MOST_BITS = 256

_Terms = list[tuple[int, int, Fraction]]  # last sequences of both players; chance probability times player 0's returns


def verified_value(profile: StrategyProfile) -> Fraction | None:
    """Player 0's value of a two-player zero-sum game, of which the profile is an equilibrium up to rounding.

    Returns:
      The value, or None: numbers of the game or the profile are no fractions with small denominators, the profile with these
      fractions is not an equilibrium, the sum of the returns is not 0, or the game has more than `MOST_HISTORIES`.
    """
    game = profile.game
    if game.tree.num_histories > MOST_HISTORIES or np.any(game.tree.returns.sum(axis=1)):
        return None
    reaches = [_rational_reach(treeplex, profile.of_player(treeplex.player)) for treeplex in game.treeplexes]
    terms = _rational_terms(game.tree)
    if terms is None or reaches[0] is None or reaches[1] is None:
        return None
    first, second = game.treeplexes
    most = _best_value(first, ((own, value * reaches[1][other]) for own, other, value in terms))
    least = -_best_value(second, ((own, -value * reaches[0][other]) for other, own, value in terms))
    return most if most == least else None


def _rational(number: float, tolerance: float) -> Fraction | None:
    """The fraction with a small denominator that agrees with a number; None if there is none."""
    fraction = Fraction(number).limit_denominator(MOST_DENOMINATOR)
    return fraction if abs(fraction - Fraction(number)) <= tolerance else None


def _rationals(numbers: np.ndarray) -> dict[float, Fraction | None]:
    """The fractions of the numbers of a game."""
    return {number: _rational(number, _ROUNDINGS * math.ulp(number)) for number in set(numbers.tolist())}


def _rational_reach(treeplex: Treeplex, policy: np.ndarray) -> list[Fraction] | None:
    """The sequence-form strategy of a policy; None if it has no fractions or a large common denominator."""
    reach = [Fraction(1)] * treeplex.num_sequences
    common = 1
    for point, parent in enumerate(treeplex.parent_sequence.tolist()):
        sequences = treeplex.sequences(point)
        if reach[parent] == 0:
            probabilities: Sequence[Fraction | None] = [Fraction(0)] * len(sequences)
        else:
            probabilities = _rational_distribution(policy[sequences.start : sequences.stop].tolist())
        for sequence, probability in zip(sequences, probabilities, strict=True):
            if probability is None:
                return None
            common = math.lcm(common, probability.denominator)
            reach[sequence] = reach[parent] * probability
        if common.bit_length() > _MOST_BITS:
            return None
    return reach


def _rational_distribution(probabilities: list[float]) -> list[Fraction | None]:
    """Fractions that agree with the probabilities, or None for each if these do not sum to 1."""
    fractions = [_rational(probability, _AGREES) for probability in probabilities]
    known = [fraction for fraction in fractions if fraction is not None and fraction >= 0]
    return list(fractions) if len(known) == len(fractions) and sum(known) == 1 else [None] * len(fractions)


def _rational_terms(tree: GameTree) -> _Terms | None:
    """The payoffs of player 0 at all terminal histories; None if probabilities or returns are no fractions."""
    reach = _rational_chance_reach(tree)
    returns = _rationals(tree.returns[:, 0])
    if reach is None or None in returns.values():
        return None
    last_sequences = trace_sequences(tree)[0][tree.terminal].tolist()
    terminals = zip(last_sequences, tree.terminal.tolist(), tree.returns[:, 0].tolist(), strict=True)
    return [(*last, reach[history] * value) for last, history, number in terminals if (value := returns[number])]


def _rational_chance_reach(tree: GameTree) -> list[Fraction] | None:
    """The product of the chance probabilities on the path to each history; None if they are no fractions or do not sum to 1."""
    fractions = _rationals(tree.chance_probability)
    reach, sums = [Fraction(1)], dict.fromkeys(np.flatnonzero(tree.actor == int(pyspiel.PlayerId.CHANCE)).tolist(), Fraction(0))
    for parent, number in zip(tree.parent[1:].tolist(), tree.chance_probability[1:].tolist(), strict=True):
        probability = fractions[number]
        if probability is None:
            return None
        if parent in sums:
            sums[parent] += probability
        reach.append(reach[parent] * probability if probability != 1 else reach[parent])
    return reach if all(total == 1 for total in sums.values()) else None


def _best_value(treeplex: Treeplex, terms: Iterable[tuple[int, Fraction]]) -> Fraction:
    """The value of a best response to a utility, which is given as pairs of a sequence and a summand."""
    values = [Fraction(0)] * treeplex.num_sequences
    for sequence, term in terms:
        values[sequence] += term
    for point in reversed(range(treeplex.num_decision_points)):
        sequences = treeplex.sequences(point)
        values[treeplex.parent_sequence[point]] += max(values[sequences.start : sequences.stop])
    return values[0]
