"""The iterations of self-play: payoff gradients, the players' updates, averages. The loop receives the update as a function."""

from typing import NamedTuple

import numpy as np

from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.passes import (
    average_strategies,
    average_strategy,
    best_response,
    payoff_gradient,
    player_sequences,
    sequence_form,
)
from spiel_cfrplus.kernels.records import replaced


class RuleFunctions(NamedTuple):
    """The compiled functions of a rule. Each function has its own Numba type, and the loop is compiled for these types.

    Attributes:
      update: updates a player, see `update_player`: `cfr.update_by_local_rule`, or `update_by_treeplex_rule`.
      rule: the argument `rule` of `update`: a local rule or the rule of a whole treeplex.
      schedule: computes the parameters of a player's update, see `current_parameters`; or None.
    """

    update: object
    rule: object
    schedule: object


class Steps(NamedTuple):
    """T iterations.

    Attributes:
      parameters: float64 (T, K), the parameters of the rule.
      skip_unreached: bool (T,), see `cfr.update_by_local_rule`.
      weights: float64 (T,), of the strategies in the average.
    """

    parameters: np.ndarray
    skip_unreached: np.ndarray
    weights: np.ndarray


@jit
def row_of_parameters(parameters, table, step):
    """A row of float64 (T, K) as a NamedTuple of K numbers, of the class of `parameters`."""
    for k in range(len(parameters)):
        parameters = replaced(parameters, k, table[step, k])
    return parameters


@jit
def current_parameters(schedule, treeplexes, player, state, memory, parameters, t):
    """The parameters of a player's update: `parameters`, or K numbers that `schedule` computes from them and from the
    memory."""
    if schedule is None:
        return parameters
    start, stop = player_sequences(treeplexes, player)
    numbers = schedule(range(start, stop), state.values, memory, parameters, t)
    for k in range(len(parameters)):
        parameters = replaced(parameters, k, numbers[k])
    return parameters


@jit
def record_utility(treeplexes, player, state, cumulative_utility, cumulative_value):
    """Adds the payoff gradient in `state.values` to the sums from which regrets are computed, if they are recorded."""
    if cumulative_utility is not None:
        start, stop = player_sequences(treeplexes, player)
        # Two loops: the first one is vectorized, and the sum of the second one is in a register.
        for s in range(start, stop):
            cumulative_utility[s] += state.values[s]
        value = 0.0
        for s in range(start, stop):
            value += state.reach[s] * state.values[s]
        cumulative_value[player] += value


@jit
def update_by_treeplex_rule(treeplexes, player, values, policy, rule, memory, parameters, t, skip_unreached):
    """The update by a rule for a whole treeplex, which reads the gradient in `values` and writes the next `policy`."""
    rule(treeplexes, player, values, policy, memory, parameters, t)


@jit
def update_player(treeplexes, player, state, functions, memory, parameters, skip_unreached):
    """Updates a player with the payoff gradient in `state.values`; writes the next strategy into `state.policy`.

    `state.reach` does not change until `sequence_form`.
    """
    t = state.iteration[player] + 1
    parameters = current_parameters(functions.schedule, treeplexes, player, state, memory, parameters, t)
    functions.update(treeplexes, player, state.values, state.policy, functions.rule, memory, parameters, t, skip_unreached)
    state.iteration[player] = t


@jit
def observe_utility(treeplexes, state, update, rule, schedule, memory, parameters, table):
    """One update of a player alone, with the gradient in `state.values` and the parameters in the one row of `table`."""
    functions = RuleFunctions(update, rule, schedule)
    update_player(treeplexes, 0, state, functions, memory, row_of_parameters(parameters, table, 0), False)


@jit
def self_play(treeplexes, payoffs, state, update, rule, schedule, memory, parameters, steps, alternating, first_iterate):
    """Iterations of all players against each other (CFR+ paper, section 2), one per row of `steps`.

    With `alternating`, player p's update uses the new strategies of the players before p; otherwise all updates use the old
    strategies.

    Args:
      treeplexes, payoffs: the game.
      state: `PlayState`, updated in place; `policy` and `reach` hold the current strategies on entry and return.
      update, rule, schedule: see `RuleFunctions`. They are separate arguments, because Numba takes 20 microseconds to determine
        the type of functions in a tuple.
      memory: the arrays that the rule declares, updated in place.
      parameters: a NamedTuple of the rule's parameters, whose values are not read.
      steps: `Steps`.
      alternating: bool.
      first_iterate: uint32 (n,), 0 if player p's average contains the strategies before each update, 1 if those after it.
    """
    functions, num_players = RuleFunctions(update, rule, schedule), treeplexes.player_block.size - 1
    for step in range(steps.weights.size):
        current = row_of_parameters(parameters, steps.parameters, step)
        average_strategies(treeplexes, state, first_iterate, 0, steps.weights[step])
        for player in range(num_players):
            payoff_gradient(treeplexes, payoffs, player, state.reach, state.values)
            record_utility(treeplexes, player, state, state.cumulative_utility, state.cumulative_value)
            update_player(treeplexes, player, state, functions, memory, current, steps.skip_unreached[step])
            if alternating:
                sequence_form(treeplexes, player, state.policy, state.reach)
        if not alternating:
            for player in range(num_players):
                sequence_form(treeplexes, player, state.policy, state.reach)
        average_strategies(treeplexes, state, first_iterate, 1, steps.weights[step])


@jit
def play_against_best_responses(
    treeplexes, payoffs, state, response, response_reach, update, rule, schedule, memory, parameters, steps
):
    """Iterations of CFR-BR: both players update against a best response to their own strategy.

    The averages begin with the first strategies.

    Args:
      treeplexes, payoffs: a game of two players.
      state, update, rule, schedule, memory, parameters, steps: see `self_play`.
      response, response_reach: float64 (S,), scratch, 1 at empty sequences: best responses as policies and in sequence form.
    """
    functions = RuleFunctions(update, rule, schedule)
    for step in range(steps.weights.size):
        current = row_of_parameters(parameters, steps.parameters, step)
        for player in range(2):
            average_strategy(treeplexes, player, state, steps.weights[step])
        for player in range(2):
            opponent = 1 - player
            payoff_gradient(treeplexes, payoffs, opponent, state.reach, state.values)
            best_response(treeplexes, opponent, state.values, response)
            sequence_form(treeplexes, opponent, response, response_reach)
            payoff_gradient(treeplexes, payoffs, player, response_reach, state.values)
            update_player(treeplexes, player, state, functions, memory, current, False)
        for player in range(2):
            sequence_form(treeplexes, player, state.policy, state.reach)
