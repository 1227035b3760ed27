"""The arrays that kernels read and write.

Layout. All players share one numbering. Player p's sequences are contiguous and begin with p's empty sequence. Its infostates
are contiguous and begin with p's *root*, the infostate with one action that the CFR+ paper assumes at the start of the game
(section 2, "I^empty"); its only sequence is the empty sequence. So `sequence_start` is one array of offsets for all players,
and a kernel for player p skips p's root. Parents come before children, hence an ascending loop over infostates is top-down
and a descending one bottom-up. A single treeplex has the same layout with one player.

Indices are uint32, not int32: for a signed index the compiler must handle negative, from-the-end values at every access, which
costs up to half the speed of these loops. Numbers are float64. No kernel allocates, and none is compiled before its first call.
Sums run in index order without fastmath, so results do not depend on the machine.
"""

from typing import NamedTuple

import numpy as np

INDEX = np.uint32

# A sum of at most this times the magnitude of its terms is set to zero: 512 rounding errors. For measured values below and
# above it see docs/architecture.md, Numerics.
RELATIVE_TIE_TOLERANCE = 2.0**-44


class TreeplexArrays(NamedTuple):
    """Decision problems of n players: J infostates (roots included), S sequences.

    Attributes:
      player_block: uint32 (n + 1,), player p's infostates are `player_block[p] : player_block[p + 1]`, the first is p's root.
      sequence_start: uint32 (J + 1,), infostate j's sequences are `sequence_start[j] : sequence_start[j + 1]`.
      parent_sequence: uint32 (J,), the last sequence of the same player before j; for a root, its own sequence (never read).
      uniform_policy: float64 (S,), the uniform policy if some sequences represent several merged actions of an infostate, one
        of which is played at random (see `solving.symmetry`); otherwise None. Kernels are compiled separately for None.
      copies: float64 (J,), how many merged infostates each infostate represents, for rules that are not scale-free; or None.
    """

    player_block: np.ndarray
    sequence_start: np.ndarray
    parent_sequence: np.ndarray
    uniform_policy: np.ndarray | None = None
    copies: np.ndarray | None = None


class PayoffArrays(NamedTuple):
    """The payoffs of all players: R rows, E non-zero entries.

    A row of player p is a tuple of sequences, one of each other player. Its entries are the sequences of p that end in a common
    terminal history with this tuple, with p's utility summed over these histories, each times its chance probability.

    Attributes:
      player_block: uint32 (n + 1,), player p's rows are `player_block[p] : player_block[p + 1]`.
      opponent_sequences: uint32 (R, n - 1).
      entry_start: uint32 (R + 1,), row r's entries are `entry_start[r] : entry_start[r + 1]`.
      entry_sequence: uint32 (E,), a sequence of the row's player.
      entry_utility: float64 (E,), in game units.
    """

    player_block: np.ndarray
    opponent_sequences: np.ndarray
    entry_start: np.ndarray
    entry_sequence: np.ndarray
    entry_utility: np.ndarray


class PlayState(NamedTuple):
    """The arrays of self-play that do not depend on the rule: float64 (S,), except `cumulative_value` and `iteration`.

    Attributes:
      policy: the behavioral strategy to play next; 1 at empty sequences.
      reach: the current strategy in sequence form; 1 at empty sequences.
      cumulative_policy: weighted sum of sequence-form strategies.
      values: scratch; first the payoff gradient, which the player's update turns into the counterfactual values.
      cumulative_utility: sum of the observed payoff gradients; None if not recorded. Kernels are compiled separately for None.
      cumulative_value: float64 (n,), sums over iterations of strategy . gradient; None if `cumulative_utility` is.
      iteration: int64 (n,), updates of each player; stored here so that an interrupt cannot separate it from the other arrays.
    """

    policy: np.ndarray
    reach: np.ndarray
    cumulative_policy: np.ndarray
    values: np.ndarray
    cumulative_utility: np.ndarray | None
    cumulative_value: np.ndarray | None
    iteration: np.ndarray


class DecisionPoint(NamedTuple):
    """The decision point at which a local rule is called.

    Attributes:
      infostate: its position in arrays (J,).
      actions: a `range`, the positions of the infostate's actions in arrays (S,).
      value: the expected value of the current policy here, policy . values, in game units.
    """

    infostate: int
    actions: range
    value: float
