"""The loop of self-play compared with a plain implementation."""

import copy

import numpy as np
import pytest
from random_arrays import (
    call,
    close,
    infostates,
    own_sequences,
    plain_gradient,
    plain_match,
    plain_sequence_form,
    plain_values,
    random_payoffs,
    random_state,
    random_treeplexes,
)

from spiel_cfrplus.kernels import self_play
from spiel_cfrplus.kernels.layouts import INDEX
from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_players", [1, 2, 3])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("weight", [1.0, 0.0])
@pytest.mark.parametrize("recorded", [True, False])
def test_self_play_is_the_loop_of_the_paper(seed, num_players, alternating, weight, recorded):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, num_players)
    payoffs = random_payoffs(rng, treeplexes, num_players)
    state = random_state(rng, treeplexes)
    if recorded:
        state = state._replace(cumulative_utility=np.zeros_like(state.reach), cumulative_value=np.zeros(num_players))
    rule = RegretMatchingRule.of(DiscountedRegretMatching(1, 1), weight)
    memory = rule.memory(treeplexes)
    memory.regrets[:] = rng.normal(size=len(memory.regrets))
    first_iterate = rng.integers(2, size=num_players).astype(INDEX)
    discounts, weights = rng.random((3, 2)), rng.random(3)
    table = np.column_stack([discounts, np.full(3, weight)]) if weight else discounts
    steps = self_play.Steps(table, np.zeros(3, bool), weights)
    arguments = (
        treeplexes,
        payoffs,
        state,
        *rule.functions,
        memory,
        rule.empty_parameters(),
        steps,
        alternating,
        first_iterate,
    )
    after, memory_after = call(self_play.self_play, *arguments, writes=[2, 6])[2:7:4]

    regrets, (policy, reach, average, *_) = memory.regrets.copy(), copy.deepcopy(state)
    utility, value = np.zeros_like(reach), np.zeros(num_players)
    owns = [own_sequences(treeplexes, player) for player in range(num_players)]
    for (positive, negative), share in zip(discounts, weights, strict=True):
        old_policy, old_reach = policy.copy(), reach.copy()
        for player, own in enumerate(owns):
            gradient = plain_gradient(treeplexes, payoffs, player, reach if alternating else old_reach)
            utility[own] += gradient[own]
            value[player] += gradient[own] @ old_reach[own]
            values = gradient.copy()
            values[own] = plain_values(treeplexes, player, old_policy, gradient)
            for _, actions in infostates(treeplexes, player):
                updated = regrets[actions] + values[actions] - old_policy[actions] @ values[actions]
                expected = updated - regrets[actions] if weight else 0
                regrets[actions] = np.where(updated > 0, positive, negative) * updated
                policy[actions] = plain_match(regrets[actions] + expected)
            reach[own] = plain_sequence_form(treeplexes, player, policy)[own]
            average[own] += share * (reach if first_iterate[player] else old_reach)[own]
    assert close(memory_after.regrets, regrets)
    assert close(after.policy, policy)
    assert close(after.reach, reach)
    assert close(after.cumulative_policy, average)
    assert after.iteration.tolist() == [5 + 3] * num_players
    if recorded:
        assert close(after.cumulative_utility, utility)
        assert close(after.cumulative_value, value)
