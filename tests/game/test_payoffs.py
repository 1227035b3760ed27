"""Sparse payoffs, against dictionaries."""

import collections

import numpy as np
import pytest

from spiel_cfrplus.game import payoffs
from spiel_cfrplus.game.payoffs import group_payoffs, magnitudes, sum_by_rows


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_sum_by_rows(seed, num_players):
    rng = np.random.default_rng(seed)
    keys, weights = rng.integers(0, 5, size=(60, num_players)).astype(np.int32), rng.random(60)
    values = rng.integers(-2, 3, size=(60, 2)).astype(float)
    values[keys[:, 0] == 3] = 0.0
    expected = collections.defaultdict(float)
    for key, weight, value in zip(keys.tolist(), weights, values, strict=True):
        expected[tuple(key)] += weight * value
    expected = {key: total for key, total in expected.items() if total.any()}
    rows, sums = sum_by_rows(keys, weights, values)
    assert rows.tolist() == sorted(map(list, expected))
    np.testing.assert_allclose(sums, [expected[tuple(row)] for row in rows.tolist()], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("num_columns", [1, 2, 3])
def test_equal_rows_keep_their_order(num_columns):
    columns = list(np.random.default_rng(0).integers(0, 4, size=(num_columns, 200)))
    assert payoffs._order_of_rows(columns).tolist() == np.lexsort(columns[::-1]).tolist()


@pytest.mark.parametrize("sorted_by", range(3))
def test_columns_in_order_are_not_sorted_again(sorted_by, monkeypatch):
    passes = []
    sort = payoffs.tree_kernels.counting_sort_pass
    monkeypatch.setattr(payoffs.tree_kernels, "counting_sort_pass", lambda *arrays: passes.append(sort(*arrays)))
    columns = list(np.random.default_rng(0).integers(0, 4, size=(2, 200)))
    if sorted_by < 2:
        columns[sorted_by] = np.sort(columns[sorted_by])
    else:
        columns = [column[np.lexsort(columns[::-1])] for column in columns]
    assert payoffs._order_of_rows(columns).tolist() == np.lexsort(columns[::-1]).tolist()
    assert len(passes) == [2, 1, 0][sorted_by]


@pytest.mark.parametrize("rows", [[], [(3, 1)], [(1, 2), (1, 2)], [(1, 2), (2, 0)]])
def test_rows_in_order(rows):
    assert payoffs._are_ascending(list(np.array(rows, int).reshape(-1, 2).T))


@pytest.mark.parametrize("rows", [[(1, 2), (1, 1)], [(2, 0), (1, 5)], [(0, 0), (1, 1), (1, 0)]])
def test_rows_out_of_order(rows):
    assert not payoffs._are_ascending(list(np.array(rows).T))


def test_magnitudes_of_a_player():
    sequences, earnings = np.array([[0, 1], [1, 0], [1, 1]], np.int32), np.array([[-1.0, 2.0], [0.0, -3.0], [4.0, 0.0]])
    arrays = group_payoffs(sequences, earnings, [0, 2])
    for player, expected in enumerate([[1.0, 4.0], [2.0, 3.0]]):  # the entries of player 0 are before those of player 1
        found = magnitudes(arrays, player).entry_utility[2 * player : 2 * player + 2]
        assert sorted(found.tolist()) == expected
    assert arrays.entry_utility.min() == -3


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_group_payoffs(seed, num_players):
    rng = np.random.default_rng(seed)
    sequences = np.unique(rng.integers(0, 6, size=(40, num_players)), axis=0).astype(np.int32)
    earnings = rng.integers(-1, 2, size=(len(sequences), num_players)).astype(float)
    offsets = [10 * player for player in range(num_players)]
    arrays = group_payoffs(sequences, earnings, offsets)
    for player in range(num_players):
        expected = collections.defaultdict(list)
        for tuple_of_sequences, earned in zip((sequences + offsets).tolist(), earnings[:, player].tolist(), strict=True):
            if earned != 0:
                own = tuple_of_sequences.pop(player)
                expected[tuple(tuple_of_sequences)].append((own, earned))
        found = {}
        for row in range(arrays.player_block[player], arrays.player_block[player + 1]):
            entries = slice(arrays.entry_start[row], arrays.entry_start[row + 1])
            pairs = zip(arrays.entry_sequence[entries].tolist(), arrays.entry_utility[entries].tolist(), strict=True)
            found[tuple(arrays.opponent_sequences[row].tolist())] = list(pairs)
        assert list(found.items()) == sorted((row, sorted(pairs)) for row, pairs in expected.items())
