"""Kernels of the symmetry reduction: hashes that are equal for equivalent infostates and sequences."""

import numba

from spiel_cfrplus.kernels.compilation import jit

_HASH = numba.uint64


@jit
def splitmix64(x):
    """A pseudorandom bijection of the 64-bit integers; 0 is not a fixed point (SplitMix64: Steele, Lea, Flood 2014)."""
    x += _HASH(0x9E3779B97F4A7C15)
    x = (x ^ (x >> _HASH(30))) * _HASH(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _HASH(27))) * _HASH(0x94D049BB133111EB)
    return x ^ (x >> _HASH(31))


@jit
def hash_places(treeplexes, labels, below, infostates, sequences):
    """Hashes the position of each infostate and sequence in its treeplex, given labels of the sequences.

    Bottom-up, the hash of an infostate is that of the multiset of its sequences, and the hash of a sequence is that of its
    label and of the multiset of the infostates that follow it. Top-down, the hashes of the player and of the path from the
    root are added. Multisets are hashed by sums, which do not depend on the order.

    Args:
      treeplexes: `TreeplexArrays`.
      labels: uint64 (S,).
      below: uint64 (S,), scratch.
      infostates: uint64 (J,), output.
      sequences: uint64 (S,), output.
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
    """Writes each sequence, or for the only sequence of an infostate the representative of its parent, to `representative`.

    `representative` is int64 (S,).
    """
    for player in range(treeplexes.player_block.size - 1):
        root = treeplexes.player_block[player]
        for j in range(root, treeplexes.player_block[player + 1]):
            start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
            for s in range(start, stop):
                representative[s] = s
            if j > root and stop - start == 1:
                representative[start] = representative[treeplexes.parent_sequence[j]]
