"""Passes over treeplexes, compared with plain implementations of their formulas on random treeplexes."""

import numpy as np
import pytest
from random_arrays import (
    SEEDS,
    call,
    close,
    infostates,
    num_sequences,
    own_sequences,
    plain_gradient,
    plain_match,
    plain_sequence_form,
    plain_values,
    random_behavior,
    random_payoffs,
    random_reach,
    random_state,
    random_treeplexes,
)

from spiel_cfrplus.kernels import passes
from spiel_cfrplus.kernels.layouts import INDEX


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_players", [1, 2, 3, 4])
def test_payoff_gradient(seed, num_players):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, num_players)
    payoffs = random_payoffs(rng, treeplexes, num_players)
    reach = random_reach(rng, num_sequences(treeplexes))
    for player in range(num_players):
        unset = np.full(num_sequences(treeplexes), np.nan)
        *_, gradient = call(passes.payoff_gradient, treeplexes, payoffs, player, reach, unset, writes=[4])
        assert close(gradient, plain_gradient(treeplexes, payoffs, player, reach))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([3.0, -1.0, 1.0], [0.75, 0.0, 0.25]),
        ([-1.0, -2.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        ([0.0, 0.0], [0.5, 0.5]),
        ([-5.0], [1.0]),
        ([1e-300, -1e300, 3e-300], [0.25, 0.0, 0.75]),  # no regret is too small to count
        ([1e300, 3e300, -1e300], [0.25, 0.75, 0.0]),
        ([5e-324, 0.0], [1.0, 0.0]),
        ([-0.0, 0.0, -0.0], [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_match_regrets_at_one_infostate(table, expected):
    padded = np.array([7.0, *table, 7.0])
    stop = len(table) + 1
    *_, policy = call(passes.match_regrets, padded, INDEX(1), INDEX(stop), np.full(stop + 1, 9.0), writes=[3])
    assert policy.tolist() == [9.0, *expected, 9.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_strategies_follow_from_regrets(seed):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    table = rng.normal(size=num_sequences(treeplexes))
    for player in range(2):
        root = own_sequences(treeplexes, player).start
        expected = np.full(len(table), np.nan)
        for _, own in infostates(treeplexes, player):
            expected[own] = plain_match(table[own])
        unset = np.full(len(table), np.nan)
        *_, policy = call(passes.match_all_regrets, treeplexes, player, table, unset, writes=[3])
        assert close(policy, expected)
        reach = unset.copy()
        reach[root] = 1
        *_, combined = call(passes.sequence_form, treeplexes, player, policy, reach, writes=[3])
        assert close(combined, plain_sequence_form(treeplexes, player, expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_best_response(seed):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    size = num_sequences(treeplexes)
    gradient = rng.integers(-2, 3, size=size).astype(float)  # few distinct numbers: many ties
    for player in range(2):
        own_part = own_sequences(treeplexes, player)
        unset = np.full(size, np.nan)
        *_, values, response = call(passes.best_response, treeplexes, player, gradient, unset, writes=[2, 3])
        for _, own in infostates(treeplexes, player):
            assert response[own].tolist() == np.eye(own.stop - own.start)[np.argmax(values[own])].tolist()
        unset[own_part] = response[own_part]
        assert np.array_equal(response[own_part.start + 1 : own_part.stop], unset[own_part.start + 1 : own_part.stop])
        assert np.isnan(np.delete(response, range(own_part.start, own_part.stop))).all()
        # Its own value is that of playing it, and playing anything else earns no more.
        assert close(values[own_part], plain_values(treeplexes, player, response, gradient))
        for _ in range(20):
            other = plain_values(treeplexes, player, random_behavior(rng, treeplexes), gradient)
            assert other[0] <= values[own_part.start] + 1e-12


@pytest.mark.parametrize("which", [0, 1])
def test_average_strategies_adds_for_the_chosen_players_only(which):
    rng = np.random.default_rng(which)
    treeplexes = random_treeplexes(rng, 3)
    state = random_state(rng, treeplexes)
    first_iterate = np.array([1, 0, 1], INDEX)
    arguments = (treeplexes, state, first_iterate, which, 2.5)
    after = call(passes.average_strategies, *arguments, writes=[1])[1]
    for player in range(3):
        own = own_sequences(treeplexes, player)
        added = 2.5 * state.reach[own] if first_iterate[player] == which else 0
        assert close(after.cumulative_policy[own], state.cumulative_policy[own] + added)
    np.testing.assert_equal(after._replace(cumulative_policy=state.cumulative_policy), state)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_evaluate(seed, num_players):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, num_players)
    payoffs = random_payoffs(rng, treeplexes, num_players)
    policy = random_behavior(rng, treeplexes)
    scratch, results = np.full((3, len(policy)), np.nan), np.full((2, num_players), np.nan)
    arguments = (treeplexes, payoffs, policy, *scratch, *results)
    *_, reach, _, response, values, best = call(passes.evaluate, *arguments, writes=range(3, 8))
    owns = [own_sequences(treeplexes, player) for player in range(num_players)]
    expected_reach = np.concatenate([plain_sequence_form(treeplexes, player, policy)[own] for player, own in enumerate(owns)])
    assert close(reach, expected_reach)
    for player, own in enumerate(owns):
        gradient = plain_gradient(treeplexes, payoffs, player, expected_reach)
        assert close(values[player], plain_values(treeplexes, player, policy, gradient)[0])
        assert close(best[player], plain_values(treeplexes, player, response, gradient)[0])
        assert response[own.start] == 1
        for _ in range(10):
            other = plain_values(treeplexes, player, random_behavior(rng, treeplexes), gradient)
            assert other[0] <= best[player] + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_evaluate_with_least_probabilities(seed):
    """The response has at least these probabilities, and no other policy that has earns more."""
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    payoffs, policy, least = (
        random_payoffs(rng, treeplexes, 2),
        random_behavior(rng, treeplexes),
        random_behavior(rng, treeplexes),
    )
    least *= 0.5
    scratch, results = np.full((3, len(policy)), np.nan), np.full((2, 2), np.nan)
    arguments = (treeplexes, payoffs, policy, *scratch, *results, least)
    *_, reach, _, response, _, best, _ = call(passes.evaluate, *arguments, writes=range(3, 8))
    for player in range(2):
        own = own_sequences(treeplexes, player)
        assert (response[own] >= least[own]).all()
        gradient = plain_gradient(treeplexes, payoffs, player, reach)
        assert close(best[player], plain_values(treeplexes, player, response, gradient)[0])
        for _ in range(10):
            other = plain_values(treeplexes, player, least + random_behavior(rng, treeplexes) / 2, gradient)
            assert other[0] <= best[player] + 1e-12
