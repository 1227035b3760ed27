"""Random treeplexes, payoffs and states of self-play, and plain statements of what kernels compute from them."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.kernels.layouts import INDEX, PayoffArrays, PlayState, TreeplexArrays

SEEDS = range(6)


def copied(value: Any) -> Any:
    """A deep copy in which read-only arrays remain read-only, because kernels distinguish these types."""
    if isinstance(value, np.ndarray):
        result = value.copy()
        result.flags.writeable = value.flags.writeable
        return result
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
    return copy.deepcopy(value) if isinstance(value, tuple | list) else value


def call(kernel: Any, *arguments: Any, writes: Sequence[int] = ()) -> tuple[Any, ...]:
    """Calls the kernel on copies; returns them. Checks that arguments that are not in `writes` are unchanged."""
    used = tuple(map(copied, arguments))
    kernel(*used)
    for position, (before, after) in enumerate(zip(arguments, used, strict=True)):
        if position not in writes:
            np.testing.assert_equal(after, before)
    return used


def random_treeplexes(rng: np.random.Generator, num_players: int) -> TreeplexArrays:
    """Up to 8 infostates for each player, under random parents, with 1 to 4 actions each."""
    blocks, starts, parents, next_sequence = [0], [], [], 0
    for _ in range(num_players):
        first = next_sequence
        starts.append(first)
        parents.append(first)
        next_sequence += 1
        for _ in range(rng.integers(9)):
            starts.append(next_sequence)
            parents.append(rng.integers(first, next_sequence))
            next_sequence += rng.integers(1, 5)
        blocks.append(len(starts))
    return TreeplexArrays(frozen(blocks, INDEX), frozen([*starts, next_sequence], INDEX), frozen(parents, INDEX))


def infostates(treeplexes: TreeplexArrays, player: int) -> list[tuple[int, slice]]:
    """(parent sequence, own sequences) of each of the player's infostates but the root, top-down."""
    inner = range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1])
    return [(int(treeplexes.parent_sequence[j]), slice(*treeplexes.sequence_start[j : j + 2])) for j in inner]


def own_sequences(treeplexes: TreeplexArrays, player: int) -> slice:
    first, last = treeplexes.player_block[player : player + 2]
    return slice(treeplexes.sequence_start[first], treeplexes.sequence_start[last])


def num_sequences(treeplexes: TreeplexArrays) -> int:
    return int(treeplexes.sequence_start[-1])


def random_payoffs(rng: np.random.Generator, treeplexes: TreeplexArrays, num_players: int) -> PayoffArrays:
    """Up to 12 rows per player of up to 5 entries, also empty ones."""
    owns = [own_sequences(treeplexes, player) for player in range(num_players)]
    opponents, counts, sequences, blocks = [], [], [], [0]
    for player in range(num_players):
        for _ in range(rng.integers(13)):
            others = [own for other, own in enumerate(owns) if other != player]
            opponents.append([rng.integers(own.start, own.stop) for own in others])
            counts.append(rng.integers(6))
            sequences.extend(rng.integers(owns[player].start, owns[player].stop, size=counts[-1]))
        blocks.append(len(opponents))
    return PayoffArrays(
        player_block=frozen(blocks, INDEX),
        opponent_sequences=frozen(np.array(opponents).reshape(len(opponents), num_players - 1), INDEX),
        entry_start=frozen(np.cumsum([0, *counts]), INDEX),
        entry_sequence=frozen(sequences, INDEX),
        entry_utility=frozen(rng.normal(size=len(sequences)), np.float64),
    )


def random_reach(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers in [0, 1], a third of them zero."""
    return rng.random(size) * (rng.random(size) < 2 / 3)


def random_behavior(rng: np.random.Generator, treeplexes: TreeplexArrays) -> np.ndarray:
    policy = np.ones(num_sequences(treeplexes))
    for player in range(len(treeplexes.player_block) - 1):
        for _, own in infostates(treeplexes, player):
            policy[own] = rng.dirichlet(np.ones(own.stop - own.start))
    return policy


# Plain statements of the formulas.


def plain_gradient(treeplexes: TreeplexArrays, payoffs: PayoffArrays, player: int, reach: np.ndarray) -> np.ndarray:
    """g[s] = sum over entries of s of utility times the product of the others' reach; NaN outside the player's part."""
    gradient = np.full(num_sequences(treeplexes), np.nan)
    gradient[own_sequences(treeplexes, player)] = 0
    for row in range(payoffs.player_block[player], payoffs.player_block[player + 1]):
        for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
            others = math.prod(reach[sequence] for sequence in payoffs.opponent_sequences[row])
            gradient[payoffs.entry_sequence[entry]] += others * payoffs.entry_utility[entry]
    return gradient


def plain_match(table: np.ndarray) -> np.ndarray:
    positive = np.maximum(table, 0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(table), 1 / len(table))


def plain_sequence_form(treeplexes: TreeplexArrays, player: int, policy: np.ndarray) -> np.ndarray:
    reach = np.full(num_sequences(treeplexes), np.nan)
    reach[own_sequences(treeplexes, player).start] = 1
    for parent, own in infostates(treeplexes, player):
        reach[own] = reach[parent] * policy[own]
    return reach


def plain_values(treeplexes: TreeplexArrays, player: int, policy: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """v[ja] = g[ja] + sum over the infostates j' below ja of policy(j') . v(j')."""

    def value(sequence: int) -> float:
        below = [own for parent, own in infostates(treeplexes, player) if parent == sequence]
        return gradient[sequence] + sum(policy[s] * value(s) for own in below for s in range(own.start, own.stop))

    own = own_sequences(treeplexes, player)
    return np.array([value(sequence) for sequence in range(own.start, own.stop)])


def close(result: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(result, expected, rtol=1e-12, atol=1e-13, equal_nan=True)


def random_shares(rng: np.random.Generator, treeplexes: TreeplexArrays) -> np.ndarray:
    """Uniform policies in which each sequence represents one to three actions."""
    uniform_policy = rng.integers(1, 4, size=num_sequences(treeplexes)).astype(float)
    for player in range(len(treeplexes.player_block) - 1):
        for _, own in infostates(treeplexes, player):
            uniform_policy[own] /= uniform_policy[own].sum()
    return frozen(uniform_policy, np.float64)


def plain_match_shared(table: np.ndarray, uniform_policy: np.ndarray) -> np.ndarray:
    return plain_match(table) if (table > 0).any() else uniform_policy


def random_state(rng: np.random.Generator, treeplexes: TreeplexArrays) -> PlayState:
    """A random state of self-play: random policy and averages, and the strategies of the policy."""
    average, scratch = rng.normal(size=(2, num_sequences(treeplexes)))
    policy, reach = random_behavior(rng, treeplexes), np.ones_like(average)
    for player in range(len(treeplexes.player_block) - 1):
        own = own_sequences(treeplexes, player)
        reach[own] = plain_sequence_form(treeplexes, player, policy)[own]
    return PlayState(policy, reach, np.abs(average), scratch, None, None, np.full(len(treeplexes.player_block) - 1, 5))
