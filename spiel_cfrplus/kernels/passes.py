"""Passes over treeplexes and payoffs: gradients, reach, counterfactual values, best responses, regret matching."""

from spiel_cfrplus.kernels.compilation import jit


@jit
def player_sequences(treeplexes, player):
    """The half-open range of the player's sequences."""
    first, last = treeplexes.player_block[player], treeplexes.player_block[player + 1]
    return treeplexes.sequence_start[first], treeplexes.sequence_start[last]


@jit
def payoff_gradient(treeplexes, payoffs, player, reach, gradient):
    """The gradient of the player's expected utility in its own sequence form (g = A x for two players).

    Reads the other players' `reach`; writes the player's part of `gradient`. Rows with reach 0 are skipped, because they would
    add zeros.
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
def normalize(table, total, start, stop, policy, uniform_policy):
    """The positive part of `table` divided by its `total`; if that is zero, `uniform_policy`, or uniform if that is None."""
    if uniform_policy is not None:  # without a branch, which takes up to twice as long if it must load uniform_policy
        uniform = 0.0 if total > 0.0 else 1.0
        for s in range(start, stop):
            policy[s] = (max(table[s], 0.0) + uniform * uniform_policy[s]) / (total + uniform)
    elif total > 0.0:
        for s in range(start, stop):
            policy[s] = max(table[s], 0.0) / total
    else:
        for s in range(start, stop):
            policy[s] = 1.0 / (stop - start)


@jit
def match_regrets(table, start, stop, policy, uniform_policy=None):
    """Regret matching at one infostate (CFR+ paper, Eq. 2): the positive part of `table`, normalized; uniform if it is zero."""
    total = 0.0
    for s in range(start, stop):
        total += max(table[s], 0.0)
    normalize(table, total, start, stop, policy, uniform_policy)


@jit
def match_all_regrets(treeplexes, player, table, policy):
    """`match_regrets` at every infostate of the player. Applied to `cumulative_policy`, the result is the average policy."""
    for j in range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1]):
        match_regrets(table, treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1], policy, treeplexes.uniform_policy)


@jit
def sequence_form(treeplexes, player, policy, reach):
    """Top-down: `reach[ja] = reach[p_j] * policy[ja]`. Reads `reach` of the empty sequence, which must be 1."""
    for j in range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1]):
        parent_reach = reach[treeplexes.parent_sequence[j]]
        for s in range(treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]):
            reach[s] = parent_reach * policy[s]


@jit
def strategies_of_policy(treeplexes, policy, reach):
    """Computes the sequence-form strategies `reach` of all players from `policy`; sets both to 1 at empty sequences."""
    for player in range(treeplexes.player_block.size - 1):
        start, _ = player_sequences(treeplexes, player)
        policy[start] = reach[start] = 1.0
        sequence_form(treeplexes, player, policy, reach)


@jit
def mean_utility(policy, utility, start, stop):
    """The value of the policy at one infostate, policy . utility."""
    value = 0.0
    for s in range(start, stop):
        value += policy[s] * utility[s]
    return value


@jit
def counterfactual_values(treeplexes, player, policy, utility):
    """Bottom-up: turns the gradient g in `utility` into counterfactual values g[ja] + V[rho(j, a)].

    Adds the value of the whole strategy to the empty sequence.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        utility[treeplexes.parent_sequence[j]] += mean_utility(policy, utility, start, stop)


@jit
def best_response(treeplexes, player, utility, policy, least_policy=None):
    """Bottom-up: the player's best pure policy against the gradient in `utility`; ties are broken by the first action.

    With `least_policy`, float64 (S,), it is the best policy that plays every action with at least this probability.
    Updates `utility` like `counterfactual_values`, for the best response; adds the best-response value to the empty sequence.
    """
    for j in range(treeplexes.player_block[player + 1] - 1, treeplexes.player_block[player], -1):
        start, stop = treeplexes.sequence_start[j], treeplexes.sequence_start[j + 1]
        best, free = start, 1.0
        for s in range(start, stop):
            policy[s] = 0.0 if least_policy is None else least_policy[s]
            free -= policy[s]
            if utility[s] > utility[best]:
                best = s
        policy[best] += free
        value = utility[best] if least_policy is None else mean_utility(policy, utility, start, stop)
        utility[treeplexes.parent_sequence[j]] += value


@jit
def average_strategy(treeplexes, player, state, weight):
    """Adds the player's current strategy, times `weight`, to its average."""
    start, stop = player_sequences(treeplexes, player)
    for s in range(start, stop):
        state.cumulative_policy[s] += weight * state.reach[s]


@jit
def average_strategies(treeplexes, state, first_iterate, which, weight):
    """Adds the current strategies, times `weight`, to the averages of the players whose `first_iterate` is `which`."""
    for player in range(first_iterate.size):
        if first_iterate[player] == which:
            average_strategy(treeplexes, player, state, weight)


@jit
def evaluate(treeplexes, payoffs, policy, reach, utility, response, values, best_response_values, least_policy=None):
    """Expected utilities of all players under `policy`, and each player's value of a best response to the others.

    With `least_policy`, float64 (S,), best responses play every action with at least this probability. Reads `policy` (S,);
    writes `reach` (S,), `utility` (S,), the best responses `response` (S,), and the two (n,) results.
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
        best_response(treeplexes, player, utility, response, least_policy)
        best_response_values[player] = utility[start]
