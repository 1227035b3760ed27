"""The iterations of CFR."""

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import (
    average_strategies,
    match_all_regrets,
    mean_utility,
    normalize,
    payoff_gradient,
    player_sequences,
    sequence_form,
)


@jit
def weight_of_regret(uniform_policy, s):
    """How much the regret of one action counts: as `uniform_policy` have it where actions are merged, otherwise all alike."""
    return 1.0 if uniform_policy is None else uniform_policy[s]


@jit
def tie_of_change(tie_tolerance, s, change):
    """How large a regret may be and still count as zero: tie_tolerance, if it is to be read so.

    But what discounting has worn down to that, and the latest change adds less to, counts.
    """
    return 0.0 if tie_tolerance is None else min(tie_tolerance[s], abs(change))


@jit
def are_zero(values, start, stop):
    """Whether all values at one infostate are zero."""
    while start < stop and values[start] == 0.0:
        start += 1
    return start == stop


@jit
def update_regrets(treeplexes, player, state, predictive, positive_factor, negative_factor, skip_unreached):
    """Lecture 8, Algorithm 1, ObserveUtility, and what NextStrategy asks of the decision points, in one pass bottom-up.

    Turns the gradient in `state.utility` into counterfactual values. The table of each decision point takes in its regrets;
    then what is positive and what is negative in it is multiplied by the respective factor. `state.policy` becomes the
    strategy to play next, while `state.reach` stays what it is until `sequence_form`.

    Unless `predictive` is None, that is the strategy as if these regrets, times `predictive`, came once more (Farina, Kroer,
    Sandholm 2021, Algorithm 2); the tables that they would make are left in `state.utility`. None is a type, so that each
    case is compiled on its own: a test inside the loops would cost a third of a small game's speed.

    With `skip_unreached`, see `may_skip_unreached`, decision points where all utilities are zero, since nobody comes there,
    are passed over.
    """
    policy, utility, regrets, tie_tolerance = state.policy, state.utility, state.cumulative_regrets, state.tie_tolerance
    uniform_policy = treeplexes.uniform_policy
    table = regrets if predictive is None else utility
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        value = mean_utility(policy, utility, start, stop)
        if skip_unreached and value == 0.0 and are_zero(utility, start, stop):
            continue
        utility[treeplexes.parent_sequence[j]] += value
        total = 0.0
        for s in range(start, stop):
            change = weight_of_regret(uniform_policy, s) * (utility[s] - value)
            regret, tie = regrets[s] + change, tie_of_change(tie_tolerance, s, change)
            positive = regret * positive_factor if regret > tie else 0.0
            negative = regret * negative_factor if regret < -tie else 0.0
            regrets[s] = positive + negative
            if predictive is None:
                total += positive
            else:
                expected = predictive * change
                regret, tie = regrets[s] + expected, tie_of_change(tie_tolerance, s, expected)
                utility[s] = regret if abs(regret) > tie else 0.0
                total += max(utility[s], 0.0)
        normalize(table, total, start, stop, policy, uniform_policy)
    state.iteration[player] += 1


@jit
def may_skip_unreached(predictive, discounts, t):
    """Whether in iteration t tables that do not change, and the policies that follow from them, stay as they are.

    So it is if nothing is predicted, positive regrets are not discounted, negative ones either not or to zero, and that has
    happened to all of them before. The first iteration of a run does not count on it.
    """
    if predictive is not None or t == 0 or discounts[t, 0] != 1.0 or discounts[t - 1, 1] != discounts[t, 1]:
        return False
    return discounts[t, 1] == 0.0 or discounts[t, 1] == 1.0


@jit
def strategies_from_regrets(treeplexes, state, predictive):
    """The strategies of all players from the tables in memory, as `update_regrets` and `sequence_form` left them."""
    for player in range(treeplexes.player_block.size - 1):
        table = state.cumulative_regrets if predictive is None else state.utility
        match_all_regrets(treeplexes, player, table, state.policy)
        start, _ = player_sequences(treeplexes, player)
        state.policy[start] = state.reach[start] = 1.0
        sequence_form(treeplexes, player, state.policy, state.reach)


@jit
def self_play(treeplexes, payoffs, state, alternating, predictive, first_iterate, discounts, weights):
    """CFR iterations of all players against each other (CFR+ paper, section 2), one per row of `discounts` and `weights`.

    With `alternating`, player p's update meets the new strategies of the players before p; without, everybody's old ones.

    Args:
      treeplexes, payoffs: the game.
      state: `CFRState`, updated in place; `policy` and `reach` hold the current strategies on entry and return.
      alternating: bool.
      predictive: a weight or None, see `update_regrets`.
      first_iterate: uint32 (n,), 0 if player p's average takes in the strategy from before each update, 1 if from after it.
      discounts: float64 (T, 2), factors for positive and for negative regrets after each update.
      weights: float64 (T,), weight in the average.
    """
    num_players = treeplexes.player_block.size - 1
    for t in range(weights.size):
        skip_unreached = may_skip_unreached(predictive, discounts, t)
        average_strategies(treeplexes, state, first_iterate, 0, weights[t])
        for player in range(num_players):
            payoff_gradient(treeplexes, payoffs, player, state.reach, state.utility)
            positive, negative = discounts[t]
            update_regrets(treeplexes, player, state, predictive, positive, negative, skip_unreached)
            if alternating:
                sequence_form(treeplexes, player, state.policy, state.reach)
        if not alternating:
            for player in range(num_players):
                sequence_form(treeplexes, player, state.policy, state.reach)
        average_strategies(treeplexes, state, first_iterate, 1, weights[t])
