"""The compiled parts of `reduction`."""

import numba

from spiel_cfrplus.kernels.compilation import jit

_HASH = numba.uint64


@jit
def splitmix64(x):
    """A bijection of the 64-bit numbers that looks random, at 0 too (SplitMix64: Steele, Lea, Flood 2014)."""
    x += _HASH(0x9E3779B97F4A7C15)
    x = (x ^ (x >> _HASH(30))) * _HASH(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _HASH(27))) * _HASH(0x94D049BB133111EB)
    return x ^ (x >> _HASH(31))


@jit
def hash_places(treeplexes, labels, below, infostates, sequences):
    """Hashes what every infostate and sequence is, given labels of the sequences: equal ones have equal places in the tree.

    Bottom-up an infostate is the multiset of what its sequences are, and a sequence its label and the multiset of the
    infostates that follow it. Top-down what came before, and the player, is added.

    Args:
      treeplexes: `TreeplexArrays`.
      labels: uint64 (S,).
      below: uint64 (S,), scratch.
      infostates: uint64 (J,), filled.
      sequences: uint64 (S,), filled.
    """
    for s in range(labels.size):
        below[s] = splitmix64(labels[s])
    for player in range(treeplexes.player_block.size - 1):
        root = treeplexes.player_block[player]
        last = treeplexes.player_block[player + 1]
        for j in range(last - 1, root, -1):
            infostates[j] = 0
            for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
                infostates[j] += splitmix64(below[s])
            infostates[j] = splitmix64(infostates[j])
            below[treeplexes.parent_sequence[j]] += infostates[j]
        infostates[root] = sequences[treeplexes.sequence_start[root]] = _HASH(player)
        for j in range(root + 1, last):
            infostates[j] = splitmix64(infostates[j] + splitmix64(sequences[treeplexes.parent_sequence[j]]))
            for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
                sequences[s] = splitmix64(infostates[j] ^ splitmix64(below[s]))


@jit
def collapse_forced_moves(treeplexes, representative):
    """Writes to `representative`, int64 (S,), each sequence; for the only one of its infostate what the sequence before has."""
    for player in range(treeplexes.player_block.size - 1):
        root = treeplexes.player_block[player]
        for j in range(root, treeplexes.player_block[player + 1]):
            start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
            for s in range(start, stop):
                representative[s] = s
            if j > root and stop - start == 1:
                representative[start] = representative[treeplexes.parent_sequence[j]]
