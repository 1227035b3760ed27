"""The iterations of CFR."""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import (
    average_strategies,
    match_all_regrets,
    mean_utility,
    normalise,
    payoff_gradient,
    player_sequences,
    sequence_form,
)


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
