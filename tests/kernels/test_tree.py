"""The kernels that convert walks, compared with plain implementations."""

import fractions
import itertools
import math
from typing import Any

import numpy as np
import pytest
from random_arrays import SEEDS, call, close

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.kernels import tree as tree_kernels


def random_tree(rng, size):
    """Children of each node, numbered in preorder."""
    children = {0: []}
    open_nodes = [0]
    for node in range(1, size):
        del open_nodes[rng.integers(len(open_nodes)) + 1 :]  # go on somewhere on the path to the node before
        children[open_nodes[-1]].append(node)
        children[node] = []
        open_nodes.append(node)
    return children


@pytest.mark.parametrize("seed", range(20))
def test_link_parents_finds_parents_and_edges(seed):
    rng = np.random.default_rng(seed)
    children = random_tree(rng, 60)
    # Nodes with as many children share a group of edges, or have one of two such groups.
    groups = [(count, twin) for count in range(1, 60) for twin in range(2)]
    edge_start = np.cumsum([0, *(count for count, _ in groups)]).astype(np.int32)
    edge_action, edge_probability = rng.integers(0, 99, edge_start[-1]).astype(np.int32), rng.random(edge_start[-1])
    group = np.array([groups.index((len(children[n]), rng.integers(2))) if children[n] else -1 for n in range(60)], np.int32)
    parent, action, probability = np.full(60, -7, np.int32), np.full(60, -7, np.int32), np.full(60, -7.0)
    tree_kernels.link_parents(
        group, edge_start, edge_action, edge_probability, np.zeros(60, np.int32), parent, action, probability
    )
    assert (parent[0], action[0], probability[0]) == (-7, -7, -7.0)
    for node, below in children.items():
        assert parent[below].tolist() == [node] * len(below)
        edges = edge_start[group[node]] + np.arange(len(below))
        assert action[below].tolist() == edge_action[edges].tolist()
        assert probability[below].tolist() == edge_probability[edges].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_segment_sums_sums_each_run(seed):
    rng = np.random.default_rng(seed)
    order, run_start = rng.permutation(30), np.array([0, 1, 4, 15, 30])
    weights, values = rng.random(30), rng.normal(size=(30, 3))
    sums = np.full((4, 3), np.nan)
    tree_kernels.segment_sums(order, run_start, weights, values, sums)
    for run in range(4):
        members = order[run_start[run] : run_start[run + 1]]
        for column in range(3):
            assert sums[run, column] == pytest.approx(math.fsum(weights[m] * values[m, column] for m in members), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-40, 1.0, 2.0**40])
def test_segment_sums_removes_rounding_errors_only(unit):
    tenths = np.array([[0.1], [0.2], [-0.3], [0.1], [0.2], [-0.3 * (1 - 1e-12)]]) * unit
    exact = sum(map(fractions.Fraction, tenths[:3, 0].tolist()))
    assert exact != 0  # 0.1 + 0.2 is not 0.3 in binary
    sums = np.full((2, 1), np.nan)
    tree_kernels.segment_sums(np.arange(6), np.array([0, 3, 6]), np.ones(6), tenths, sums)
    assert sums[0, 0] == 0
    assert sums[1, 0] == pytest.approx(3e-13 * unit, rel=1e-2)


def tree_of_size(rng, size):
    """(parent of each node, ancestors of each node, itself last) of a random tree."""
    children = random_tree(rng, size)
    parent = np.full(size, -1, np.int32)
    for node, below in children.items():
        parent[below] = node
    paths = {0: [0]}
    for node in range(1, size):
        paths[node] = [*paths[parent[node]], node]
    return parent, paths


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_added_to_parents_and_from_parents(seed):
    rng = np.random.default_rng(seed)
    parent, paths = tree_of_size(rng, 40)
    steps = rng.integers(1, 100, 40)
    upwards, downwards = steps.copy(), steps.copy()
    tree_kernels.add_to_parents(parent, upwards)
    tree_kernels.add_parents(parent, downwards)
    assert upwards.tolist() == [sum(steps[n] for n in range(40) if node in paths[n]) for node in range(40)]
    assert downwards.tolist() == [sum(steps[n] for n in paths[node]) for node in range(40)]


@pytest.mark.parametrize("seed", range(5))
def test_chance_reach_is_the_product_along_the_path(seed):
    rng = np.random.default_rng(seed)
    parent, paths = tree_of_size(rng, 40)
    probability, reach = np.append(1.0, rng.random(39)), np.full(40, np.nan)
    tree_kernels.chance_reach(parent, probability, reach)
    np.testing.assert_allclose(reach, [math.prod(probability[paths[node]]) for node in range(40)], rtol=1e-14)


@pytest.mark.parametrize("seed", range(30))
def test_a_repeated_infostate_is_the_first_with_an_ancestor_in_it(seed):
    rng = np.random.default_rng(seed)
    _, paths = tree_of_size(rng, 30)
    infostate = rng.integers(-1, 40, 30).astype(np.int32)
    subtree_end = np.array([1 + max(n for n in range(30) if node in paths[n]) for node in range(30)])
    repeated = [n for n in range(30) if infostate[n] >= 0 and infostate[n] in infostate[paths[n][:-1]]]
    found = tree_kernels.find_repeated_infostate(infostate, subtree_end, np.full(40, -1))
    assert found == min(repeated, default=-1)


def test_an_infostate_on_two_branches_is_not_repeated():
    # 0 is the parent of 1 and 2, which share an infostate; in the second tree 1 is the parent of 2, and 0 is in it as well.
    for infostate, subtree_end, expected in [([0, 1, 1], [3, 2, 3], -1), ([0, 1, 1], [3, 3, 3], 2), ([1, 1, 1], [3, 2, 3], 1)]:
        latest = np.full(2, -1)
        assert tree_kernels.find_repeated_infostate(np.array(infostate, np.int32), np.array(subtree_end), latest) == expected


@pytest.mark.parametrize("seed", range(5))
def test_counting_sort_pass_is_stable(seed):
    rng = np.random.default_rng(seed)
    order, keys = rng.permutation(50).astype(np.uint32), rng.integers(0, 6, 50).astype(np.uint32)
    counts = np.bincount(keys, minlength=6)
    placed = np.full(50, 99, np.uint32)
    tree_kernels.counting_sort_pass(keys, order, np.cumsum(counts) - counts, placed)
    assert placed.tolist() == sorted(order.tolist(), key=lambda row: keys[row])


def random_parents(rng: np.random.Generator, size: int) -> np.ndarray:
    """A tree in preorder: the parent of each node is the node before it or one of its ancestors."""
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
    """All decisions of a player after the same own moves share an infostate, so recall is perfect."""
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
def test_find_repeated_infostate_finds_the_first_repetition(seed):
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, 40)
    infostate = frozen(rng.integers(-1, 25, size=40), np.int32)
    paths = [path(parent, node) for node in range(40)]
    ends = np.array([1 + max(n for n in range(40) if node in paths[n]) for node in range(40)])
    repeated = [n for n in range(40) if infostate[n] >= 0 and infostate[n] in infostate[paths[n][:-1]]]
    found = tree_kernels.find_repeated_infostate(infostate, frozen(ends, np.int64), np.full(25, -1))
    assert found == (repeated[0] if repeated else -1)
