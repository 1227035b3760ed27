"""Each compiled function against a plain statement of its formula, on random treeplexes and trees."""

import copy
import itertools
import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.kernels import cfr as cfr_kernels
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.kernels import tree as tree_kernels
from spiel_cfrplus.kernels.layouts import INDEX, CFRState, PayoffArrays, TreeplexArrays

SEEDS = range(6)


def call(kernel: Any, *arguments: Any, writes: Sequence[int] = ()) -> tuple[Any, ...]:
    """Calls the kernel on copies; returns them. Arguments that are not in `writes` must come back unchanged."""
    used = copy.deepcopy(arguments)
    kernel(*used)
    for position, (before, after) in enumerate(zip(arguments, used, strict=True)):
        if position not in writes:
            np.testing.assert_equal(after, before)
    return used


def random_treeplexes(rng: np.random.Generator, num_players: int) -> TreeplexArrays:
    """Up to 8 infostates for each player, under random parents, with 1 to 4 actions each."""
    blocks, starts, parents, next_sequence = [0], [], [], 0
    for _ in range(num_players):
        first = next_sequence
        starts.append(first)
        parents.append(first)
        next_sequence += 1
        for _ in range(rng.integers(9)):
            starts.append(next_sequence)
            parents.append(rng.integers(first, next_sequence))
            next_sequence += rng.integers(1, 5)
        blocks.append(len(starts))
    return TreeplexArrays(frozen(blocks, INDEX), frozen([*starts, next_sequence], INDEX), frozen(parents, INDEX))


def infostates(treeplexes: TreeplexArrays, player: int) -> list[tuple[int, slice]]:
    """(parent sequence, own sequences) of each of the player's infostates but the root, top-down."""
    inner = range(treeplexes.player_block[player] + 1, treeplexes.player_block[player + 1])
    return [(int(treeplexes.parent_sequence[j]), slice(*treeplexes.sequence_start[j : j + 2])) for j in inner]


def own_sequences(treeplexes: TreeplexArrays, player: int) -> slice:
    first, last = treeplexes.player_block[player : player + 2]
    return slice(treeplexes.sequence_start[first], treeplexes.sequence_start[last])


def num_sequences(treeplexes: TreeplexArrays) -> int:
    return int(treeplexes.sequence_start[-1])


def random_payoffs(rng: np.random.Generator, treeplexes: TreeplexArrays, num_players: int) -> PayoffArrays:
    """Up to 12 rows per player of up to 5 entries, also empty ones."""
    owns = [own_sequences(treeplexes, player) for player in range(num_players)]
    opponents, counts, sequences, blocks = [], [], [], [0]
    for player in range(num_players):
        for _ in range(rng.integers(13)):
            others = [own for other, own in enumerate(owns) if other != player]
            opponents.append([rng.integers(own.start, own.stop) for own in others])
            counts.append(rng.integers(6))
            sequences.extend(rng.integers(owns[player].start, owns[player].stop, size=counts[-1]))
        blocks.append(len(opponents))
    return PayoffArrays(
        player_block=frozen(blocks, INDEX),
        opponent_sequences=frozen(np.array(opponents).reshape(len(opponents), num_players - 1), INDEX),
        entry_start=frozen(np.cumsum([0, *counts]), INDEX),
        entry_sequence=frozen(sequences, INDEX),
        entry_utility=frozen(rng.normal(size=len(sequences)), np.float64),
    )


def random_reach(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers in [0, 1], a third of them zero."""
    return rng.random(size) * (rng.random(size) < 2 / 3)


def random_behavior(rng: np.random.Generator, treeplexes: TreeplexArrays) -> np.ndarray:
    policy = np.ones(num_sequences(treeplexes))
    for player in range(len(treeplexes.player_block) - 1):
        for _, own in infostates(treeplexes, player):
            policy[own] = rng.dirichlet(np.ones(own.stop - own.start))
    return policy


# Plain statements of the formulas.


def plain_gradient(treeplexes: TreeplexArrays, payoffs: PayoffArrays, player: int, reach: np.ndarray) -> np.ndarray:
    """g[s] = sum over entries of s of utility times the product of the others' reach; NaN outside the player's part."""
    gradient = np.full(num_sequences(treeplexes), np.nan)
    gradient[own_sequences(treeplexes, player)] = 0
    for row in range(payoffs.player_block[player], payoffs.player_block[player + 1]):
        for entry in range(payoffs.entry_start[row], payoffs.entry_start[row + 1]):
            others = math.prod(reach[sequence] for sequence in payoffs.opponent_sequences[row])
            gradient[payoffs.entry_sequence[entry]] += others * payoffs.entry_utility[entry]
    return gradient


def plain_match(table: np.ndarray) -> np.ndarray:
    positive = np.maximum(table, 0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(table), 1 / len(table))


def plain_sequence_form(treeplexes: TreeplexArrays, player: int, policy: np.ndarray) -> np.ndarray:
    reach = np.full(num_sequences(treeplexes), np.nan)
    reach[own_sequences(treeplexes, player).start] = 1
    for parent, own in infostates(treeplexes, player):
        reach[own] = reach[parent] * policy[own]
    return reach


def plain_values(treeplexes: TreeplexArrays, player: int, policy: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """v[ja] = g[ja] + sum over the infostates j' below ja of policy(j') . v(j')."""

    def value(sequence: int) -> float:
        below = [own for parent, own in infostates(treeplexes, player) if parent == sequence]
        return gradient[sequence] + sum(policy[s] * value(s) for own in below for s in range(own.start, own.stop))

    own = own_sequences(treeplexes, player)
    return np.array([value(sequence) for sequence in range(own.start, own.stop)])


def close(result: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(result, expected, rtol=1e-12, atol=1e-13, equal_nan=True)


# The passes of CFR.


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


def random_shares(rng: np.random.Generator, treeplexes: TreeplexArrays) -> np.ndarray:
    """Uniform policies where every sequence stands for one to three actions."""
    uniform_policy = rng.integers(1, 4, size=num_sequences(treeplexes)).astype(float)
    for player in range(len(treeplexes.player_block) - 1):
        for _, own in infostates(treeplexes, player):
            uniform_policy[own] /= uniform_policy[own].sum()
    return frozen(uniform_policy, np.float64)


def plain_match_shared(table: np.ndarray, uniform_policy: np.ndarray) -> np.ndarray:
    return plain_match(table) if (table > 0).any() else uniform_policy


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factors", [(1.0, 1.0), (1.0, 0.0), (0.5, 0.25)])
@pytest.mark.parametrize("predictive", [1.0, 0.3, None])
@pytest.mark.parametrize("merged", [True, False])
def test_learn(seed, factors, predictive, merged):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    uniform_policy = random_shares(rng, treeplexes)
    if merged:
        treeplexes = treeplexes._replace(uniform_policy=uniform_policy)
    size = num_sequences(treeplexes)
    state = random_state(rng, treeplexes)._replace(tie_tolerance=np.abs(rng.normal(size=size)) * 0.3)
    for player in range(2):
        after = call(cfr_kernels.update_regrets, treeplexes, player, state, predictive, *factors, False, writes=[2])[2]
        root = own_sequences(treeplexes, player).start
        values, regrets, policy = state.utility.copy(), state.cumulative_regrets.copy(), state.policy.copy()
        values[own_sequences(treeplexes, player)] = plain_values(treeplexes, player, policy, state.utility)
        for _, own in infostates(treeplexes, player):
            change = (values[own] - policy[own] @ values[own]) * (uniform_policy[own] if merged else 1)

            def read(table, change=change, own=own):
                return np.where(np.abs(table) <= np.minimum(state.tie_tolerance[own], np.abs(change)), 0, table)

            updated = read(regrets[own] + change)
            regrets[own] = np.where(updated > 0, factors[0], factors[1]) * updated
            expected = predictive * change if predictive else None
            table = read(regrets[own] + expected, expected) if predictive else regrets[own]
            policy[own] = plain_match_shared(table, uniform_policy[own]) if merged else plain_match(table)
            if predictive:
                assert close(after.utility[own], table)
        assert close(after.utility[root], values[root])
        assert close(after.cumulative_regrets, regrets)
        assert close(after.policy, policy)
        assert after.iteration.tolist() == [6 if other == player else 5 for other in range(2)]
        for untouched in ("reach", "cumulative_policy"):
            assert np.array_equal(getattr(after, untouched), getattr(state, untouched))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("negative", [0.0, 1.0])
@pytest.mark.parametrize("merged", [True, False])
def test_learning_where_nobody_comes_changes_nothing(seed, negative, merged):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 1)
    if merged:
        treeplexes = treeplexes._replace(uniform_policy=random_shares(rng, treeplexes))
    size = num_sequences(treeplexes)
    regrets = rng.normal(size=size)
    state = random_state(rng, treeplexes)._replace(
        cumulative_regrets=np.maximum(regrets, 0) if negative == 0 else regrets, utility=rng.normal(size=size)
    )
    cfr_kernels.strategies_from_regrets(treeplexes, state, None)
    state.utility[rng.random(size) < 2 / 3] = 0
    everywhere, where_somebody_comes = (
        call(cfr_kernels.update_regrets, treeplexes, 0, state, None, 1.0, negative, skip_unreached, writes=[2])[2]
        for skip_unreached in (False, True)
    )
    np.testing.assert_equal(where_somebody_comes, everywhere)


def test_when_what_does_not_change_may_be_passed_over():
    # Not in the first iteration; nor with predictions, discounts, or just after the factors have changed.
    discounts = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [1, 0], [0.9, 0], [1, 0.5], [1, 0.5], [1, 0], [1, 0]])
    skip_unreached = [cfr_kernels.may_skip_unreached(None, discounts, t) for t in range(len(discounts))]
    assert skip_unreached == [False, True, False, True, False, False, False, False, False, True]
    assert not any(cfr_kernels.may_skip_unreached(1.0, discounts, t) for t in range(len(discounts)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("predictive", [1.0, None])
def test_recall_strategies(seed, predictive):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, 2)
    uniform_policy = random_shares(rng, treeplexes)
    treeplexes = treeplexes._replace(uniform_policy=uniform_policy)
    state = random_state(rng, treeplexes)
    forgotten = state._replace(policy=np.full_like(state.policy, np.nan), reach=np.full_like(state.reach, np.nan))
    after = call(cfr_kernels.strategies_from_regrets, treeplexes, forgotten, predictive, writes=[1])[1]
    table = state.utility if predictive else state.cumulative_regrets
    for player in range(2):
        own = own_sequences(treeplexes, player)
        policy = np.ones_like(table)
        for _, actions in infostates(treeplexes, player):
            policy[actions] = plain_match_shared(table[actions], uniform_policy[actions])
        assert close(after.policy[own], policy[own])
        assert close(after.reach[own], plain_sequence_form(treeplexes, player, policy)[own])


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


def random_state(rng: np.random.Generator, treeplexes: TreeplexArrays) -> CFRState:
    """The memory of some moment: any regrets and averages, and the strategies that follow from the regrets."""
    regrets, average, scratch = rng.normal(size=(3, num_sequences(treeplexes)))
    policy, reach = np.ones_like(regrets), np.ones_like(regrets)
    for player in range(len(treeplexes.player_block) - 1):
        for _, own in infostates(treeplexes, player):
            policy[own] = plain_match(regrets[own])
        own = own_sequences(treeplexes, player)
        reach[own] = plain_sequence_form(treeplexes, player, policy)[own]
    iteration = np.full(len(treeplexes.player_block) - 1, 5)
    return CFRState(regrets, policy, reach, np.abs(average), scratch, np.zeros_like(regrets), iteration)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_players", [1, 2, 3])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("predictive", [1.0, None])
def test_self_play_is_the_loop_of_the_paper(seed, num_players, alternating, predictive):
    rng = np.random.default_rng(seed)
    treeplexes = random_treeplexes(rng, num_players)
    payoffs = random_payoffs(rng, treeplexes, num_players)
    state = random_state(rng, treeplexes)
    first_iterate = rng.integers(2, size=num_players).astype(INDEX)
    discounts, weights = rng.random((3, 2)), rng.random(3)
    arguments = (treeplexes, payoffs, state, alternating, predictive, first_iterate, discounts, weights)
    after = call(cfr_kernels.self_play, *arguments, writes=[2])[2]

    regrets, policy, reach, average, *_ = copy.deepcopy(state)
    owns = [own_sequences(treeplexes, player) for player in range(num_players)]
    for (positive, negative), weight in zip(discounts, weights, strict=True):
        old_policy, old_reach = policy.copy(), reach.copy()
        for player, own in enumerate(owns):
            gradient = plain_gradient(treeplexes, payoffs, player, reach if alternating else old_reach)
            values = gradient.copy()
            values[own] = plain_values(treeplexes, player, old_policy, gradient)
            for _, actions in infostates(treeplexes, player):
                updated = regrets[actions] + values[actions] - old_policy[actions] @ values[actions]
                expected = updated - regrets[actions] if predictive else 0
                regrets[actions] = np.where(updated > 0, positive, negative) * updated
                policy[actions] = plain_match(regrets[actions] + expected)
            reach[own] = plain_sequence_form(treeplexes, player, policy)[own]
            average[own] += weight * (reach if first_iterate[player] else old_reach)[own]
    assert close(after.cumulative_regrets, regrets)
    assert close(after.policy, policy)
    assert close(after.reach, reach)
    assert close(after.cumulative_policy, average)
    assert after.iteration.tolist() == [5 + 3] * num_players


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


# Trees.


def random_parents(rng: np.random.Generator, size: int) -> np.ndarray:
    """A tree in preorder: each node hangs below the one before it or one of that one's ancestors."""
    parent = [-1]
    for node in range(1, size):
        ancestors = [node - 1]
        while parent[ancestors[-1]] >= 0:
            ancestors.append(parent[ancestors[-1]])
        parent.append(int(rng.choice(ancestors)))
    return frozen(parent, np.int32)


def path(parent: np.ndarray, node: int) -> list[int]:
    """The nodes from the root to `node`."""
    return [*path(parent, parent[node]), node] if node else [0]


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_products_along_paths(seed):
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, 40)
    paths = [path(parent, node) for node in range(40)]
    probability = frozen(rng.random(40), np.float64)
    *_, reach = call(tree_kernels.chance_reach, parent, probability, np.full(40, np.nan), writes=[2])
    assert close(reach, [math.prod(probability[node] for node in nodes[1:]) for nodes in paths])
    numbers = rng.integers(1, 9, size=40)
    *_, below = call(tree_kernels.add_to_parents, parent, numbers, writes=[1])
    assert below.tolist() == [sum(numbers[n] for n in range(40) if node in paths[n]) for node in range(40)]
    *_, above = call(tree_kernels.add_parents, parent, numbers, writes=[1])
    assert above.tolist() == [sum(numbers[nodes]) for nodes in paths]


@pytest.mark.parametrize("seed", SEEDS)
def test_trace_sequences_finds_each_players_last_sequence(seed):
    """All decisions of a player that have the same own past share an infostate here, so recall is perfect."""
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, 60)
    counts = np.bincount(parent[1:], minlength=60)
    actor = frozen(np.where(counts > 0, rng.integers(-1, 2, size=60), -4), np.int8)
    steps = [list(itertools.pairwise(path(parent, node))) for node in range(60)]
    move = {node: int(np.sum(parent[:node] == parent[node])) for node in range(1, 60)}
    infostate, first_sequence = np.full(60, -1), []
    seen: dict[Any, int] = {}
    next_sequence = [1, 1]

    def own_past(node: int, player: int) -> tuple:
        return tuple((infostate[above], move[below]) for above, below in steps[node] if actor[above] == player)

    for node in range(60):
        if actor[node] >= 0:
            key = (actor[node], own_past(node, actor[node]), counts[node])
            if key not in seen:
                first_sequence.append(next_sequence[actor[node]])
                next_sequence[actor[node]] += counts[node]
            infostate[node] = seen.setdefault(key, len(seen))
    arguments = (parent, actor, frozen(infostate, np.int32), np.array(first_sequence))
    last, children = np.full((60, 2), 0, np.int32), np.zeros(60, np.int32)
    parents = np.full(len(seen), -1, np.int32)
    *_, last, children, parents = call(tree_kernels.trace_sequences, *arguments, last, children, parents, writes=[4, 5, 6])

    def sequence(past: tuple) -> int:
        return first_sequence[past[-1][0]] + past[-1][1] if past else 0

    assert children.tolist() == counts.tolist()
    for node in range(60):
        assert last[node].tolist() == [sequence(own_past(node, player)) for player in range(2)]
    assert parents.tolist() == [sequence(past) for _, past, _ in seen]


def test_trace_sequences_returns_where_recall_fails():
    # Player 0 moves at the root; its histories 1 and 2 are one infostate, but came about by different moves.
    parent, actor = frozen([-1, 0, 0, 1, 2], np.int32), frozen([0, 0, 0, -4, -4], np.int8)
    arguments = (parent, actor, frozen([0, 1, 1, -1, -1], np.int32), np.array([1, 3]))
    memory = (np.zeros((5, 1), np.int32), np.zeros(5, np.int32), np.full(2, -1, np.int32))
    assert tree_kernels.trace_sequences(*arguments, *memory) == 2


@pytest.mark.parametrize("seed", range(20))
def test_find_repeated_infostate_finds_the_first_history_below_its_like(seed):
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, 40)
    infostate = frozen(rng.integers(-1, 25, size=40), np.int32)
    paths = [path(parent, node) for node in range(40)]
    ends = np.array([1 + max(n for n in range(40) if node in paths[n]) for node in range(40)])
    repeated = [n for n in range(40) if infostate[n] >= 0 and infostate[n] in infostate[paths[n][:-1]]]
    found = tree_kernels.find_repeated_infostate(infostate, frozen(ends, np.int64), np.full(25, -1))
    assert found == (repeated[0] if repeated else -1)


# Compilation.

PRELUDE = """
import numba, pyspiel, spiel_cfrplus
from spiel_cfrplus.kernels import cfr, passes, tree
def signatures():
    kernels = {name: value for name, value in (vars(passes) | vars(cfr) | vars(tree)).items() if hasattr(value, "signatures")}
    # A constant in a call between kernels is a type of its own, though nothing that a game could vary.
    types = lambda kernel: {tuple(map(numba.types.unliteral, signature)) for signature in kernel.signatures}
    return {name: len(types(kernel)) for name, kernel in kernels.items()}
assert len(signatures()) >= 10
"""


def run_python(script: str) -> None:
    """Runs in a fresh process, whose kernels have met nothing yet."""
    result = subprocess.run([sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_importing_the_package_compiles_nothing():
    run_python("from spiel_cfrplus import *\nassert set(signatures().values()) == {0}, signatures()")


def test_every_kernel_is_compiled_for_one_signature_whatever_is_solved():
    run_python("""
for name in ["kuhn_poker", "kuhn_poker(players=3)", "tiny_hanabi", "leduc_poker"]:
    for algorithm in spiel_cfrplus.ALGORITHMS.values():
        for alternating in (True, False):
            for averaging in ("paper", "openspiel", spiel_cfrplus.Averaging(2)):
                solver = algorithm(pyspiel.load_game(name), alternating=alternating, averaging=averaging)
                solver.run(3)
                solver.evaluate_and_update_policy()
                solver.nash_conv()
                solver.average_policy()
                solver.current_profile().sequence_form(0)
                players = [spiel_cfrplus.regret_minimizers.CFR(treeplex) for treeplex in solver.game.treeplexes]
                players[0].observe_utility(solver.game.payoff_gradient(0, [p.next_strategy() for p in players]))
counts = signatures()
# With and without predictions, with and without actions that symmetry reduction has merged.
assert counts["self_play"] == counts["strategies_from_regrets"] == 4, counts
assert {name for name, count in counts.items() if count > 1} <= {"self_play", "strategies_from_regrets", "sequence_form"}
assert counts["sequence_form"] == 2, counts  # with and without merged actions
assert counts["evaluate"] == counts["payoff_gradient"] == 1, counts
""")
