"""The passes of CFR over flat arrays, compiled.

Layout. All players share one numbering. Player p's sequences are contiguous and begin with p's empty sequence; p's infostates
are contiguous and begin with p's *root*, the infostate with one action that the CFR+ paper assumes at the start of the game
(section 2, "I^empty"), whose one sequence is the empty sequence. So `sequence_start` is one array of offsets for everybody,
and a kernel for player p skips p's root. Parents come before children, hence an ascending loop over infostates is top-down
and a descending one bottom-up. A single treeplex is the same layout with one player.

Indices are uint32, not int32: for a signed index the compiler must handle negative, from-the-end values at every access, which
costs up to half the speed of these loops. Numbers are float64. No kernel allocates, and none is compiled before its first call.
Sums run in index order without fastmath, so results do not depend on the machine.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfrplus._compilation import jit

INDEX = np.uint32

# A sum of at most this times the magnitude of what was summed counts as zero: 512 roundings. For what was measured on both
# sides of it see docs/architecture.md, Numerics.
ROUNDING = 2.0**-44


class TreeplexArrays(NamedTuple):
    """Decision problems of n players: J infostates (roots included), S sequences.

    Attributes:
      player_block: uint32 (n + 1,), player p's infostates are `player_block[p] : player_block[p + 1]`, the first is p's root.
      sequence_start: uint32 (J + 1,), infostate j's sequences are `sequence_start[j] : sequence_start[j + 1]`.
      parent_sequence: uint32 (J,), the last sequence of the same player before j; for a root, its own sequence (never read).
      shares: float64 (S,), the uniform policy where some sequences stand for several actions of an infostate, one of which is
        played at random (see `reduction`); None where there are no such. None is a type, for which kernels are compiled apart.
    """

    player_block: np.ndarray
    sequence_start: np.ndarray
    parent_sequence: np.ndarray
    shares: np.ndarray | None = None


class PayoffArrays(NamedTuple):
    """Who earns what, once per player: R rows, E non-zero payoffs.

    A row of player p is a tuple of sequences, one of each other player; its entries are p's sequences that meet this tuple at
    the end of some play, with p's utility summed over these ends, each times its chance probability.

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


class LearnerArrays(NamedTuple):
    """What CFR works with, float64 (S,) each but for the last.

    Attributes:
      cumulative_regrets: the tables r or q of regret matching or regret matching+.
      policy: the behavioural strategy to play next; 1 at empty sequences.
      reach: the current strategy in sequence form.
      cumulative_policy: weighted sum of sequence-form strategies.
      utility: scratch; after a player's update, its counterfactual values, or the predicted tables if it is predictive.
      rounding: the regret that rounding may leave of none; None, another type, if it is to be taken as it is.
      iteration: int64 (n,), updates of each player; kept here so that no interrupt can part it from the tables.
    """

    cumulative_regrets: np.ndarray
    policy: np.ndarray
    reach: np.ndarray
    cumulative_policy: np.ndarray
    utility: np.ndarray
    rounding: np.ndarray | None
    iteration: np.ndarray


@jit
def player_sequences(treeplexes, player):
    """The half-open range of the player's sequences."""
    first, last = treeplexes.player_block[player], treeplexes.player_block[player + 1]
    return treeplexes.sequence_start[first], treeplexes.sequence_start[last]


@jit
def payoff_gradient(treeplexes, payoffs, player, reach, gradient):
    """The gradient of the player's expected utility in its own sequence form (g = A x for two players).

    Reads the other players' `reach`; writes the player's part of `gradient`. Rows that the others never reach together are
    skipped: they would add zeros.
    """
    start, stop = player_sequences(treeplexes, player)
    gradient[start:stop] = 0.0
    num_opponents = payoffs.opponent_sequences.shape[1]
    for row in range(payoffs.player_block[player], payoffs.player_block[player + 1]):
        opponent_reach = reach[payoffs.opponent_sequences[row, 0]] if num_opponents > 0 else 1.0
        for k in range(1, num_opponents):
            opponent_reach *= reach[payoffs.opponent_sequences[row, k]]
        if opponent_reach != 0.0:
            for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
                gradient[payoffs.entry_sequence[entry]] += opponent_reach * payoffs.entry_utility[entry]


@jit
def normalise(table, total, start, stop, policy, shares):
    """The positive part of `table` divided by its `total`; uniform, or as `shares` has it, if that is zero."""
    if shares is not None:  # without a branch, which takes twice as long where it must fetch shares
        uniform = 0.0 if total > 0.0 else 1.0
        for s in range(start, stop):
            policy[s] = (max(table[s], 0.0) + uniform * shares[s]) / (total + uniform)
    elif total > 0.0:
        for s in range(start, stop):
            policy[s] = max(table[s], 0.0) / total
    else:
        for s in range(start, stop):
            policy[s] = 1.0 / (stop - start)


@jit
def match_regrets(table, start, stop, policy, shares=None):
    """Regret matching at one infostate (CFR+ paper, Eq. 2): the positive part of `table`, normalised; uniform if it is zero."""
    total = 0.0
    for s in range(start, stop):
        total += max(table[s], 0.0)
    normalise(table, total, start, stop, policy, shares)


@jit
def match_all_regrets(treeplexes, player, table, policy):
    """`match_regrets` at every infostate of the player. On a `cumulative_policy` this gives the average policy."""
    for j in range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1]):
        match_regrets(table, treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], policy, treeplexes.shares)


@jit
def sequence_form(treeplexes, player, policy, reach):
    """Top-down: `reach[ja] = reach[p_j] * policy[ja]`. Reads `reach` of the empty sequence, which must be 1."""
    for j in range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1]):
        parent_reach = reach[treeplexes.parent_sequence[j]]
        for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
            reach[s] = parent_reach * policy[s]


@jit
def mean_utility(policy, utility, start, stop):
    """What the policy earns at one infostate."""
    value = 0.0
    for s in range(start, stop):
        value += policy[s] * utility[s]
    return value


@jit
def counterfactual_values(treeplexes, player, policy, utility):
    """Bottom-up: turns the gradient g in `utility` into counterfactual values g[ja] + V[rho(j, a)].

    The value of the whole strategy is added to the empty sequence.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        utility[treeplexes.parent_sequence[j]] += mean_utility(policy, utility, start, stop)


@jit
def weight_of_regret(shares, s):
    """How much the regret of one action counts: as `shares` have it where actions are merged, otherwise all alike."""
    return 1.0 if shares is None else shares[s]


@jit
def allowance(rounding, s, change):
    """How large a regret may be and still count as zero: rounding, if it is to be read so.

    But what discounting has worn down to that, and the latest change adds less to, counts.
    """
    return 0.0 if rounding is None else min(rounding[s], abs(change))


@jit
def are_zero(values, start, stop):
    """Whether all values at one infostate are zero."""
    while start < stop and values[start] == 0.0:
        start += 1
    return start == stop


@jit
def learn(treeplexes, player, learner, predictive, positive_factor, negative_factor, lasting):
    """Lecture 8, Algorithm 1, ObserveUtility, and what NextStrategy asks of the decision points, in one pass bottom-up.

    Turns the gradient in `learner.utility` into counterfactual values. The table of each decision point takes in its regrets;
    then what is positive and what is negative in it is multiplied by the respective factor. `learner.policy` becomes the
    strategy to play next, while `learner.reach` stays what it is until `sequence_form`.

    Unless `predictive` is None, that is the strategy as if these regrets, times `predictive`, came once more (Farina, Kroer,
    Sandholm 2021, Algorithm 2); the tables that they would make are left in `learner.utility`. None is a type, so that each
    case is compiled on its own: a test inside the loops would cost a third of a small game's speed.

    With `lasting`, see `is_lasting`, decision points where all utilities are zero, since nobody comes there, are passed over.
    """
    policy, utility, regrets, rounding = learner.policy, learner.utility, learner.cumulative_regrets, learner.rounding
    shares = treeplexes.shares
    table = regrets if predictive is None else utility
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        value = mean_utility(policy, utility, start, stop)
        if lasting and value == 0.0 and are_zero(utility, start, stop):
            continue
        utility[treeplexes.parent_sequence[j]] += value
        total = 0.0
        for s in range(start, stop):
            change = weight_of_regret(shares, s) * (utility[s] - value)
            regret, tie = regrets[s] + change, allowance(rounding, s, change)
            positive = regret * positive_factor if regret > tie else 0.0
            negative = regret * negative_factor if regret < -tie else 0.0
            regrets[s] = positive + negative
            if predictive is None:
                total += positive
            else:
                expected = predictive * change
                regret, tie = regrets[s] + expected, allowance(rounding, s, expected)
                utility[s] = regret if abs(regret) > tie else 0.0
                total += max(utility[s], 0.0)
        normalise(table, total, start, stop, policy, shares)
    learner.iteration[player] += 1


@jit
def is_lasting(predictive, discounts, t):
    """Whether in iteration t tables that do not change, and the policies that follow from them, stay as they are.

    So it is if nothing is predicted, positive regrets are not discounted, negative ones either not or to zero, and that has
    happened to all of them before. The first iteration of a run does not count on it.
    """
    if predictive is not None or t == 0 or discounts[t, 0] != 1.0 or discounts[t - 1, 1] != discounts[t, 1]:
        return False
    return discounts[t, 1] == 0.0 or discounts[t, 1] == 1.0


@jit
def recall_strategies(treeplexes, learner, predictive):
    """The strategies of all players from the tables in memory, as `learn` and `sequence_form` left them."""
    for player in range(treeplexes.player_block.size - 1):
        table = learner.cumulative_regrets if predictive is None else learner.utility
        match_all_regrets(treeplexes, player, table, learner.policy)
        start, _ = player_sequences(treeplexes, player)
        learner.policy[start] = learner.reach[start] = 1.0
        sequence_form(treeplexes, player, learner.policy, learner.reach)


@jit
def best_response(treeplexes, player, utility, policy):
    """Bottom-up: the player's best pure policy against the gradient in `utility`, the first best action at ties.

    `utility` is updated as by `learn`, for the best response; so its empty sequence gains the best-response value.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        best = start
        for s in range(start, stop):
            policy[s] = 0.0
            if utility[s] > utility[best]:
                best = s
        policy[best] = 1.0
        utility[treeplexes.parent_sequence[j]] += utility[best]


@jit
def average_strategy(treeplexes, player, learner, weight):
    """Adds the player's current strategy, times `weight`, to its average."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        learner.cumulative_policy[s] += weight * learner.reach[s]


@jit
def average_strategies(treeplexes, learner, first_averaged, which, weight):
    """Adds the current strategies, times `weight`, to the averages of the players whose `first_averaged` is `which`."""
    for player in range(first_averaged.size):
        if first_averaged[player] == which:
            average_strategy(treeplexes, player, learner, weight)


@jit
def self_play(treeplexes, payoffs, learner, alternating, predictive, first_averaged, discounts, weights):
    """CFR iterations of all players against each other (CFR+ paper, section 2), one per row of `discounts` and `weights`.

    With `alternating`, player p's update meets the new strategies of the players before p; without, everybody's old ones.

    Args:
      treeplexes, payoffs: the game.
      learner: `LearnerArrays`, updated in place; `policy` and `reach` hold the current strategies on entry and return.
      alternating: bool.
      predictive: a weight or None, see `learn`.
      first_averaged: uint32 (n,), 0 if player p's average takes in the strategy from before each update, 1 if from after it.
      discounts: float64 (T, 2), factors for positive and for negative regrets after each update.
      weights: float64 (T,), weight in the average.
    """
    num_players = treeplexes.player_block.size - 1
    for t in range(weights.size):
        lasting = is_lasting(predictive, discounts, t)
        average_strategies(treeplexes, learner, first_averaged, 0, weights[t])
        for player in range(num_players):
            payoff_gradient(treeplexes, payoffs, player, learner.reach, learner.utility)
            positive, negative = discounts[t]
            learn(treeplexes, player, learner, predictive, positive, negative, lasting)
            if alternating:
                sequence_form(treeplexes, player, learner.policy, learner.reach)
        if not alternating:
            for player in range(num_players):
                sequence_form(treeplexes, player, learner.policy, learner.reach)
        average_strategies(treeplexes, learner, first_averaged, 1, weights[t])


@jit
def evaluate(treeplexes, payoffs, policy, reach, utility, response, values, best_response_values):
    """Expected utilities of all players under `policy`, and what each would earn by a best response to the others.

    Reads `policy` (S,); fills `reach` (S,), `utility` (S,), `response` (S,), the best responses, and the two (n,) results.
    """
    num_players = values.size
    for player in range(num_players):
        start, stop = player_sequences(treeplexes, player)
        reach[start] = response[start] = 1.0
        sequence_form(treeplexes, player, policy, reach)
    for player in range(num_players):
        payoff_gradient(treeplexes, payoffs, player, reach, utility)
        start, stop = player_sequences(treeplexes, player)
        values[player] = 0.0
        for s in range(start, stop):
            values[player] += reach[s] * utility[s]
        best_response(treeplexes, player, utility, response)
        best_response_values[player] = utility[start]
