"""The update of a player by a local rule: regret matching and its relatives on random treeplexes."""

import numpy as np
import pytest
from random_arrays import (
    SEEDS,
    call,
    close,
    infostates,
    num_sequences,
    own_sequences,
    plain_match,
    plain_match_shared,
    plain_values,
    random_behavior,
    random_shares,
    random_treeplexes,
)

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.kernels import cfr
from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import INDEX, TreeplexArrays
from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching, local_rule
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule

DISCOUNTS = DiscountedRegretMatching(1, 1)


def filled(rng, memory):
    """A random memory of the rule."""
    for table in memory[:-2]:
        table[:] = rng.normal(size=len(table))
    return memory


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factors", [(1.0, 1.0), (1.0, 0.0), (0.5, 0.25)])
@pytest.mark.parametrize("weight", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("merged", [True, False])
def test_regret_matching(seed, factors, weight, merged):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    uniform_policy = random_shares(rng, treeplexes)
    if merged:
        treeplexes = treeplexes._replace(uniform_policy=uniform_policy)
    size = num_sequences(treeplexes)
    rule = RegretMatchingRule.of(DISCOUNTS, weight)
    memory = filled(rng, rule.memory(treeplexes, frozen(np.abs(rng.normal(size=size)) * 0.3, np.float64)))
    parameters = type(rule.empty_parameters())(*factors, *([weight] if weight else []))
    gradient, policy = rng.normal(size=size), random_behavior(rng, treeplexes)
    for player in range(2):
        arguments = (treeplexes, player, gradient, policy, rule.function, memory, parameters, 7, False)
        *_, after_values, after_policy, _, after, _, _, _ = call(cfr.update_by_local_rule, *arguments, writes=[2, 3, 5])
        values, regrets, next_policy = gradient.copy(), memory.regrets.copy(), policy.copy()
        values[own_sequences(treeplexes, player)] = plain_values(treeplexes, player, policy, gradient)
        for _, own in infostates(treeplexes, player):
            change = (values[own] - policy[own] @ values[own]) * (uniform_policy[own] if merged else 1)

            def read(table, change=change, own=own):
                return np.where(np.abs(table) <= np.minimum(memory.tie_tolerance[own], np.abs(change)), 0, table)

            updated = read(regrets[own] + change)
            regrets[own] = np.where(updated > 0, factors[0], factors[1]) * updated
            table = read(regrets[own] + weight * change, weight * change) if weight else regrets[own]
            next_policy[own] = plain_match_shared(table, uniform_policy[own]) if merged else plain_match(table)
            if weight:
                values[own] = table
        assert close(after_values, values)
        assert close(after.regrets, regrets)
        assert close(after_policy, next_policy)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("negative", [0.0, 1.0])
@pytest.mark.parametrize("merged", [True, False])
def test_infostates_that_are_skipped_would_not_have_changed(seed, negative, merged):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 1)
    uniform_policy = random_shares(rng, treeplexes)
    if merged:
        treeplexes = treeplexes._replace(uniform_policy=uniform_policy)
    size = num_sequences(treeplexes)
    rule = RegretMatchingRule.of(DISCOUNTS)
    memory = filled(rng, rule.memory(treeplexes, frozen(np.zeros(size), np.float64)))
    if negative == 0:
        np.maximum(memory.regrets, 0, out=memory.regrets)
    policy = np.ones(size)
    for _, own in infostates(treeplexes, 0):
        policy[own] = (
            plain_match_shared(memory.regrets[own], uniform_policy[own]) if merged else plain_match(memory.regrets[own])
        )
    gradient = rng.normal(size=size)
    gradient[rng.random(size) < 2 / 3] = 0
    parameters = type(rule.empty_parameters())(1.0, negative)
    everywhere, where_reached = (
        call(
            cfr.update_by_local_rule,
            *(treeplexes, 0, gradient, policy, rule.function, memory, parameters, 7, skip_unreached),
            writes=[2, 3, 5],
        )[2:6]
        for skip_unreached in (False, True)
    )
    np.testing.assert_allclose(where_reached[1], everywhere[1], rtol=1e-15)
    np.testing.assert_equal(where_reached[3], everywhere[3])


def test_when_unreached_infostates_are_skipped():
    # Not in the first iteration; nor with predictions, discounts, or just after the factors have changed.
    discounts = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [1, 0], [0.9, 0], [1, 0.5], [1, 0.5], [1, 0], [1, 0]])
    skips = RegretMatchingRule.of(DISCOUNTS).skips_unreached(discounts)
    assert skips.tolist() == [False, True, False, True, False, False, False, False, False, True]
    predictive = RegretMatchingRule.of(DISCOUNTS, 1.0)
    assert not predictive.skips_unreached(np.column_stack([discounts, np.ones(len(discounts))])).any()


@jit
def record(point, values, policy, memory, parameters, t):
    """Writes the arguments of the calls of the rule into the policy, in the order of the calls."""
    for a in point.actions:
        policy[a] = 1000 * t + 100 * point.infostate + point.value + values[a] / 10 + parameters.constant


@pytest.mark.parametrize("copies", [None, np.array([1.0, 2.0, 4.0])])
def test_a_rule_is_called_bottom_up_with_values_of_one_copy(copies):
    # One player: infostate 1 has the actions 1 and 2, infostate 2 follows action 1 and has the actions 3 and 4.
    treeplexes = TreeplexArrays(
        player_block=frozen([0, 3], INDEX),
        sequence_start=frozen([0, 1, 3, 5], INDEX),
        parent_sequence=frozen([0, 0, 1], INDEX),
        copies=copies,
    )
    gradient, policy = np.array([0, 1, 2, 4, 8], float), np.array([1, 0.5, 0.5, 0.25, 0.75])
    rule = local_rule(record.py_func, parameters={"constant": 0.5})
    parameters = type(rule.empty_parameters())(0.5)
    arguments = (treeplexes, 0, gradient, policy, rule.function, rule.memory(treeplexes), parameters, 3, False)
    _, _, values, after, *_ = call(cfr.update_by_local_rule, *arguments, writes=[2, 3, 5])
    # At infostate 2: .25 * 4 + .75 * 8 = 7, which is added to the 1 of action 1; at infostate 1: .5 * 8 + .5 * 2 = 5.
    one, two = (1, 1) if copies is None else (2, 4)
    value_one, value_two = 5 / one, 7 / two
    expected = [
        1,
        3100.5 + value_one + 0.8 / one,
        3100.5 + value_one + 0.2 / one,
        3200.5 + value_two + 0.4 / two,
        3200.5 + value_two + 0.8 / two,
    ]
    assert after == pytest.approx(expected, rel=1e-15)
    assert values[0] == 5
