"""The compiled game: its size, its payoffs compared with a sum over terminal histories, its fingerprint."""

import dataclasses

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, Chance, End, Node, Turn

from spiel_cfrplus import SequenceFormGame, StrategyProfile, compile_game
from spiel_cfrplus._utils.arrays import frozen


@pytest.mark.parametrize(
    ("name", "num_infostates", "num_sequences", "num_nonzeros"),
    [  # From an independent program. Entries of the payoff matrix that are zero by a tie of payoffs are not stored.
        ("kuhn_poker", [6, 6], [13, 13], 30),
        ("liars_dice_3", [96, 96], [190, 190], 567),
        ("dark_hex_2", [33, 101], [77, 169], 216),
        ("misere_kuhn_poker", [6, 6], [13, 13], 30),
        ("goofspiel_3", [8, 8], [18, 18], None),
        ("goofspiel_4", [81, 81], [175, 175], None),
        ("leduc_poker", [468, 468], [1093, 1093], None),
    ],
)
def test_sizes_of_well_known_games(name, num_infostates, num_sequences, num_nonzeros):
    game = compile_game(GAMES[name]())
    assert [treeplex.num_decision_points for treeplex in game.treeplexes] == num_infostates
    assert [treeplex.num_sequences for treeplex in game.treeplexes] == num_sequences
    assert game.num_sequences == sum(num_sequences)
    assert game.num_infostates == sum(num_infostates)
    assert num_nonzeros in (None, len(game.payoffs))


def payoff_table(root: Node) -> dict[tuple[reference.Plan, ...], np.ndarray]:
    """Chance reach times returns, summed over terminal histories with the same tuple of the players' sequences."""
    num_players = reference.num_players(root)
    table: dict[tuple[reference.Plan, ...], np.ndarray] = {}

    def visit(node: Node, chance: float, pasts: tuple[reference.Plan, ...]) -> None:
        match node:
            case End(returns):
                table[pasts] = table.get(pasts, np.zeros(num_players)) + chance * np.array(returns)
            case Chance(probabilities, children):
                for probability, child in zip(probabilities, children, strict=True):
                    visit(child, chance * probability, pasts)
            case Turn(player, key, children):
                for action, child in children.items():
                    own = (*pasts[player], ((player, key), action))
                    visit(child, chance, (*pasts[:player], own, *pasts[player + 1 :]))

    visit(root, 1.0, ((),) * num_players)
    return table


def plans_of(game: SequenceFormGame, player: int) -> list[reference.Plan]:
    """Each of the player's sequences as a list of moves, read from the treeplex."""
    treeplex = game.treeplexes[player]
    plans: list[reference.Plan] = [()]
    for point, key in enumerate(treeplex.infostate_keys):
        before = plans[treeplex.parent_sequence[point]]
        plans.extend((*before, ((player, key), int(treeplex.actions[sequence]))) for sequence in treeplex.sequences(point))
    return plans


@pytest.mark.parametrize("name", GAMES)
def test_payoffs_are_sums_over_the_plays_of_each_tuple_of_sequences(name):
    game = compile_game(GAMES[name]())
    expected = payoff_table(games.tree_of(game.tree.game))
    plans = [plans_of(game, player) for player in range(game.num_players)]
    stored = {
        tuple(plans[player][sequence] for player, sequence in enumerate(row)): payoffs
        for row, payoffs in zip(game.payoff_sequences, game.payoffs, strict=True)
    }
    assert len(stored) == len(game.payoffs)
    assert stored.keys() == {key for key, payoffs in expected.items() if np.any(np.abs(payoffs) > 1e-14)}
    for key, payoffs in expected.items():
        assert np.allclose(stored.get(key, 0.0), payoffs, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("name", GAMES)
def test_payoff_gradient_is_the_sum_over_the_ends_of_all_plays(name):
    game = compile_game(GAMES[name]())
    root = games.tree_of(game.tree.game)
    profile = StrategyProfile(game, reference.random_probabilities(game, seed=3))
    policy = reference.policy_of(profile)
    strategies = [profile.sequence_form(player) for player in range(game.num_players)]
    table = payoff_table(root)
    for player in range(game.num_players):
        gradient = dict.fromkeys(plans_of(game, player), 0.0)
        for pasts, payoffs in table.items():
            others = [past for other, past in enumerate(pasts) if other != player]
            reach = np.prod([policy[infostate][action] for past in others for infostate, action in past])
            gradient[pasts[player]] += reach * payoffs[player]
        result = game.payoff_gradient(player, strategies)
        assert np.allclose(result, list(gradient.values()), rtol=1e-12, atol=1e-14)
        value = reference.expected_value(root, policy, player)
        assert strategies[player] @ result == pytest.approx(value, rel=1e-12, abs=1e-13)


def test_payoff_gradient_does_not_read_the_players_own_strategy():
    game = compile_game(GAMES["kuhn_poker_3p"]())
    strategies = [t.sequence_form(reference.random_policy(t, seed=0)) for t in game.treeplexes]
    expected = game.payoff_gradient(1, strategies)
    strategies[1] = np.full_like(strategies[1], np.nan)
    assert game.payoff_gradient(1, strategies).tolist() == expected.tolist()


def test_a_game_without_payoffs_compiles():
    game = compile_game(games.matrix_game([[0, 0], [0, 0]]))
    assert len(game.payoffs) == 0
    assert game.payoff_gradient(0, [np.ones(3), np.ones(3)]).tolist() == [0, 0, 0]


def test_a_game_of_one_player_compiles():
    game = compile_game(games.lone_player_game())
    assert game.payoff_gradient(0, [np.ones(3)]).tolist() == [0, 0.25, 0.75]


@pytest.mark.parametrize("field", ["payoff_sequences", "payoffs"])
def test_payoffs_are_read_only(field):
    game = compile_game(GAMES["kuhn_poker"]())
    with pytest.raises(ValueError, match="read-only"):
        getattr(game, field)[0] = 1


@pytest.mark.parametrize("record", ["treeplex_arrays", "payoff_arrays"])
def test_arrays_for_kernels_are_read_only(record):
    arrays = [array for array in getattr(compile_game(GAMES["kuhn_poker"]()), record) if array is not None]
    assert len(arrays) >= 3
    assert not any(array.flags.writeable for array in arrays)


def test_games_and_trees_cannot_be_changed():
    game = compile_game(GAMES["kuhn_poker"]())
    for record, field in [(game, "payoffs"), (game.tree, "parent"), (game.treeplexes[0], "actions")]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field, None)


def test_compiling_a_compiled_game_gives_the_same_object():
    game = compile_game(GAMES["kuhn_poker"]())
    assert compile_game(game) is game


def test_the_limit_on_histories_is_passed_on():
    with pytest.raises(ValueError, match="max_histories=57"):
        compile_game(GAMES["kuhn_poker"](), max_histories=57)


def test_player_slices_partition_a_vector_over_all_sequences():
    game = compile_game(GAMES["kuhn_poker_3p"]())
    indices = np.arange(game.num_sequences)
    assert [len(indices[own]) for own in game.player_slices] == [treeplex.num_sequences for treeplex in game.treeplexes]
    assert np.concatenate([indices[own] for own in game.player_slices]).tolist() == indices.tolist()


# Recall.


def test_gradient_refuses_invalid_players_and_strategies():
    game = compile_game(GAMES["kuhn_poker"]())
    strategies = [treeplex.sequence_form(treeplex.uniform_policy()) for treeplex in game.treeplexes]
    for player in (-1, 2):
        with pytest.raises(ValueError, match=f"players 0 to 1, got {player}"):
            game.payoff_gradient(player, strategies)
    for misfit in (strategies[:1], [strategies[0], strategies[1][1:]], [strategies[0], strategies[1][None]]):
        with pytest.raises(ValueError, match="one sequence-form strategy for each player"):
            game.payoff_gradient(0, misfit)


# Constant sums.


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (GAMES["kuhn_poker"], True),
        (GAMES["goofspiel_3"], True),
        (GAMES["kuhn_poker_3p"], False),  # zero-sum, but of three players
        (GAMES["battle_of_the_sexes"], False),
        (GAMES["sheriff"], False),
        (GAMES["tiny_hanabi"], False),
        (lambda: games.random_efg(3), True),
        (lambda: games.random_efg(3, zero_sum=False), False),
        (lambda: games.matrix_game([[0, 0], [0, 0]]), True),
        (lambda: games.matrix_game([[1, 0], [0, 2]], [[4, 5], [5, 3]]), True),  # every play returns 5, though not zero-sum
        (lambda: games.matrix_game([[1, 0], [0, 2]], [[4, 5], [5, 3.001]]), False),
        (lambda: games.matrix_game([[0.1, 0.3]], [[0.2, 0]]), True),  # 0.1 + 0.2 is not 0.3 in float64
        (lambda: games.scaled_game(GAMES["kuhn_poker"](), 1e-12), True),
        (lambda: games.scaled_game(GAMES["kuhn_poker"](), 0.1), True),
        (lambda: games.efg_game(Turn(0, "pick", {0: End([1e-12, 1e-12]), 1: End([1e-12, -1e-12])})), False),
    ],
)
def test_two_player_constant_sum_is_read_from_the_returns(load, expected):
    game = compile_game(load())
    assert game.is_two_player_constant_sum is expected


def test_constant_sum_does_not_depend_on_the_game_type():
    # A Python game declared zero-sum that is not.
    game = games.python_game("test_liar", Turn(0, "pick", {0: End([1, -1]), 1: End([1, 1])}))
    assert game.get_type().utility == pyspiel.GameType.Utility.ZERO_SUM
    assert not compile_game(game).is_two_player_constant_sum


def other_actions(treeplex):
    actions = treeplex.actions.copy()
    actions[[1, 2]] = actions[[2, 1]]
    return {"actions": frozen(actions, actions.dtype)}


def other_parents(treeplex):
    parents = treeplex.parent_sequence.copy()
    parents[-1] = 1 - parents[-1]
    return {"parent_sequence": frozen(parents, parents.dtype)}


def other_keys(treeplex):
    return {"infostate_keys": ("other", *treeplex.infostate_keys[1:])}


def other_numbers_of_actions(treeplex):
    starts = treeplex.sequence_start.copy()
    starts[1] += 1
    return {"sequence_start": frozen(starts, starts.dtype)}


@pytest.mark.parametrize("change", [other_actions, other_parents, other_keys, other_numbers_of_actions])
def test_games_with_one_difference_have_different_fingerprints(change, kuhn):
    other = dataclasses.replace(kuhn.treeplexes[0], **change(kuhn.treeplexes[0]))
    assert dataclasses.replace(kuhn, treeplexes=(other, kuhn.treeplexes[1])).fingerprint != kuhn.fingerprint
    assert dataclasses.replace(kuhn, treeplexes=kuhn.treeplexes[::-1]).fingerprint != kuhn.fingerprint


@pytest.mark.parametrize("field", ["payoffs", "payoff_sequences"])
def test_games_with_other_payoffs_have_different_fingerprints(field, kuhn):
    values = getattr(kuhn, field).copy()
    values[-1, 0] += 1
    assert dataclasses.replace(kuhn, **{field: frozen(values, values.dtype)}).fingerprint != kuhn.fingerprint


def test_compiled_games_are_compared_by_identity(kuhn):
    again = compile_game(kuhn.tree.game)
    assert {kuhn: "first", again: "second"} == {again: "second", kuhn: "first"}
    assert kuhn != again


def test_equal_games_have_equal_fingerprints(kuhn):
    assert compile_game(pyspiel.load_game("kuhn_poker(players=2)")).fingerprint == kuhn.fingerprint


def test_empty_sequences_have_no_action(kuhn):
    assert [treeplex.actions[0] for treeplex in kuhn.treeplexes] == [-1, -1]
    assert all(treeplex.actions[1:].tolist() == 6 * [0, 1] for treeplex in kuhn.treeplexes)


def test_tie_tolerance_by_hand():
    # 2^-44 of the larger of (|2| + |-4|) / 2 and (1 + 4) / 2 for the row player, of (2 + 1) / 2 and (4 + 4) / 2 for the other.
    game = compile_game(games.matrix_game([[2, -4], [1, 4]]))
    assert (game.tie_tolerance * 2**44).tolist() == [3, 3, 3, 4, 4, 4]


def test_tie_tolerance_by_hand_with_two_moves_of_the_player(kuhn):
    # A deal has 1/6. With the jack, facing a bet (half of both deals): calling costs 2, so 2 * 1/12 * 2 = 1/3. Before that,
    # betting loses 2 or wins 1, so 2 * 1/12 * (2 + 1) = 1/2; passing costs 1 if passed, so 2 * 1/12 * 1, and 1/3 from above.
    treeplex, rounding = kuhn.treeplexes[0], kuhn.tie_tolerance[kuhn.player_slices[0]]
    for key, expected in {"0": 1 / 2, "0pb": 1 / 3}.items():
        own = treeplex.sequences(treeplex.infostate_keys.index(key))
        assert rounding[own.start : own.stop] * 2**44 == pytest.approx([expected, expected], rel=1e-14)


def test_payoffs_that_sum_to_zero_are_omitted():
    tenths = Chance([0.1, 0.2, 0.3, 0.4], [End(pay) for pay in ([1, -1], [1, -1], [-1, 1], [0, 0])])
    assert 0.1 + 0.2 - 0.3 != 0
    game = compile_game(games.efg_game(Turn(0, "start", {0: tenths, 1: End([7, -7])})))
    assert game.payoffs.tolist() == [[7, -7]]
