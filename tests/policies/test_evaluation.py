"""Expected values, best responses, NashConv and exploitability, compared with OpenSpiel's."""

import functools

import games
import pyspiel
import pytest
import reference
from families import REGRET_MATCHING
from games import GAMES
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from open_spiel.python.algorithms import exploitability as openspiel_exploitability
from open_spiel.python.games import data

import spiel_cfrplus
from spiel_cfrplus import SequenceFormGame, StrategyProfile, compile_game, evaluate, make_solver

ZERO_SUM = ["kuhn_poker", "liars_dice_3", "goofspiel_4", "dark_hex_2", "python_kuhn_poker", "scaled_kuhn_poker", "random_efg"]
OTHER = ["kuhn_poker_3p", "tiny_hanabi", "sheriff", "battle_of_the_sexes"]  # three players, or a general sum
NUM_POLICIES = 20


@functools.cache
def compiled(name: str) -> SequenceFormGame:
    return compile_game(GAMES[name]())


def random_profiles(game: SequenceFormGame, count: int = NUM_POLICIES) -> list[StrategyProfile]:
    return [StrategyProfile(game, reference.random_probabilities(game, 100 * seed)) for seed in range(count)]


def openspiel_table(profile: StrategyProfile) -> pyspiel.TabularPolicy:
    policy = reference.policy_of(profile)
    return pyspiel.TabularPolicy({key: list(strategy.items()) for (_, key), strategy in policy.items()})


def close(value: object) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


# Against OpenSpiel.


@pytest.mark.parametrize("name", ZERO_SUM + OTHER)
def test_nash_conv_is_openspiels(name):
    game = compiled(name)
    for profile in random_profiles(game):
        assert evaluate(game, profile).nash_conv == close(pyspiel.nash_conv(game.tree.game, openspiel_table(profile)))


@pytest.mark.parametrize("name", ZERO_SUM)
def test_exploitability_is_openspiels_and_half_of_nash_conv(name):
    game = compiled(name)
    for profile in random_profiles(game):
        evaluation = evaluate(game, profile)
        assert evaluation.exploitability == close(pyspiel.exploitability(game.tree.game, openspiel_table(profile)))
        assert evaluation.exploitability * 2 == evaluation.nash_conv


@pytest.mark.parametrize("name", ZERO_SUM + OTHER)
def test_expected_values_are_openspiels(name):
    game = compiled(name)
    for profile in random_profiles(game, 3):
        policies = [openspiel_table(profile)] * game.num_players
        expected = expected_game_score.policy_value(game.tree.game.new_initial_state(), policies)
        assert evaluate(game, profile).values == close(expected)


@pytest.mark.parametrize("name", ZERO_SUM + OTHER)
def test_best_response_values_are_openspiels(name):
    game = compiled(name)
    for profile in random_profiles(game, 3):
        table = openspiel_table(profile)
        results = [openspiel_exploitability.best_response(game.tree.game, table, p) for p in range(game.num_players)]
        evaluation = evaluate(game, profile)
        assert evaluation.best_response_values == close([result["best_response_value"] for result in results])
        assert evaluation.player_improvements == close([result["nash_conv"] for result in results])


@pytest.mark.parametrize("name", ZERO_SUM + OTHER)
def test_best_responses_are_pure_and_have_the_reported_values(name):
    game = compiled(name)
    for profile in random_profiles(game, 3):
        evaluation = evaluate(game, profile)
        assert set(evaluation.best_responses.probabilities) <= {0.0, 1.0}
        assert all(evaluation.best_responses.of_player(player)[0] == 1 for player in range(game.num_players))
        others, responses = openspiel_table(profile), openspiel_table(evaluation.best_responses)
        for player in range(game.num_players):
            policies = [responses if p == player else others for p in range(game.num_players)]
            earned = expected_game_score.policy_value(game.tree.game.new_initial_state(), policies)[player]
            assert earned == close(evaluation.best_response_values[player])


def test_ties_of_best_responses_are_broken_in_favor_of_the_first_action():
    """If no player bets, the replies to a bet are not reached."""
    game = compiled("kuhn_poker")
    never_bet = {key: {0: 1.0, 1: 0.0} for treeplex in game.treeplexes for key in treeplex.infostate_keys}
    responses = reference.policy_of(evaluate(game, never_bet).best_responses)
    assert {key for (_, key), strategy in responses.items() if strategy == {0: 1, 1: 0}} >= {
        *("0b", "1b", "2b"),  # answers of player 1
        *("0pb", "1pb", "2pb"),  # answers of player 0
    }


# Known numbers.


@pytest.mark.parametrize(
    ("name", "nash_conv"),
    [("kuhn_poker", 11 / 12), ("leduc_poker", 4.747222222222222)],  # as in OpenSpiel's exploitability_test.py
)
def test_nash_conv_of_the_uniform_policy(name, nash_conv):
    game = GAMES[name]()
    assert spiel_cfrplus.nash_conv(game, openspiel_policy.UniformRandomPolicy(game)) == pytest.approx(nash_conv, rel=1e-14)


@pytest.mark.parametrize("alpha", [0, 1 / 36, 1 / 18, 0.1, 1 / 3])  # at 1/36 and 1/18 rounding makes a raw gain negative
def test_nash_conv_of_an_equilibrium_is_zero_and_never_negative(alpha):
    game = compiled("kuhn_poker")
    evaluation = evaluate(game, data.kuhn_nash_equilibrium(alpha))
    assert 0 <= evaluation.nash_conv < 1e-15
    assert evaluation.player_improvements.min() >= 0
    assert evaluation.values == pytest.approx([-1 / 18, 1 / 18], abs=1e-15)  # the value of the game


@pytest.mark.parametrize("name", ["kuhn_poker", "biased_rock_paper_scissors", "goofspiel_3", "tiny_hanabi"])
def test_gains_are_never_negative_and_sum_to_nash_conv(name):
    """Best responses to best responses: at and near equilibria, rounding determines the sign of a difference."""
    game = compiled(name)
    for profile in random_profiles(game):
        for _ in range(10):
            evaluation = evaluate(game, profile)
            assert evaluation.player_improvements.min() >= 0
            assert evaluation.nash_conv == evaluation.player_improvements.sum()
            profile = StrategyProfile(game, (profile.probabilities + evaluation.best_responses.probabilities) / 2)


def test_gains_by_hand():
    """Uniform play of the battle of the sexes, [[3, 0], [0, 2]] and [[2, 0], [0, 3]], pays both 5/4.

    Player 0's first row earns 3/2 against a uniform column, player 1's second column 3/2 against a uniform row.
    """
    game = compiled("battle_of_the_sexes")
    evaluation = evaluate(game, StrategyProfile.uniform(game))
    assert evaluation.values.tolist() == [5 / 4, 5 / 4]
    assert evaluation.best_response_values.tolist() == [3 / 2, 3 / 2]
    assert evaluation.nash_conv == 1 / 2
    assert reference.policy_of(evaluation.best_responses) == {
        (player, key): {0: float(player == 0), 1: float(player == 1)}
        for player, key in reference.policy_of(StrategyProfile.uniform(game))
    }


# Where exploitability is not defined.


@pytest.mark.parametrize("name", OTHER)
def test_exploitability_is_refused_if_it_is_not_defined(name):
    game = compiled(name)
    uniform = StrategyProfile.uniform(game)
    words = [str(game.tree.game), "two-player constant-sum", "use nash_conv"]
    with pytest.raises(ValueError, match=games.mentions(*words)):
        spiel_cfrplus.exploitability(game, uniform)
    assert spiel_cfrplus.nash_conv(game, uniform) > 0


def test_constant_sums_have_an_exploitability():
    """Payoffs [[1, 0], [0, 2]] out of a sum of 5. Uniform play pays 3/4 and 17/4; best responses pay 1 and 9/2."""
    game = compile_game(games.matrix_game([[1, 0], [0, 2]], [[4, 5], [5, 3]]))
    evaluation = evaluate(game, StrategyProfile.uniform(game))
    assert evaluation.values.tolist() == [3 / 4, 17 / 4]
    assert evaluation.best_response_values.tolist() == [1, 9 / 2]
    assert (evaluation.nash_conv, evaluation.exploitability) == (1 / 2, 1 / 4)


# The interface.


def test_functions_accept_games_compiled_or_not_and_policies_of_any_kind():
    game = compiled("kuhn_poker")
    (profile,) = random_profiles(game, 1)
    expected = evaluate(game, profile)
    for policy in (openspiel_table(profile), openspiel_table(profile).policy_table()):
        for either in (game, game.tree.game):
            assert spiel_cfrplus.expected_values(either, policy).tolist() == expected.values.tolist()
            assert spiel_cfrplus.nash_conv(either, policy) == expected.nash_conv
            assert spiel_cfrplus.exploitability(either, policy) == expected.exploitability


def test_an_evaluation_is_immutable():
    game = compiled("kuhn_poker")
    first, second = random_profiles(game, 2)
    evaluation = evaluate(game, first)
    before = evaluation.values.tolist()
    evaluate(game, second)
    assert evaluation.values.tolist() == before
    for array in (evaluation.values, evaluation.best_response_values, evaluation.best_responses.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("algorithm", REGRET_MATCHING)
def test_a_solver_reports_the_nash_conv_of_its_average_policy(algorithm):
    solver = make_solver(algorithm, compiled("leduc_poker"))
    solver.run(20)
    average, current = (openspiel_table(profile) for profile in (solver.average_profile(), solver.current_profile()))
    game = solver.game.tree.game
    assert solver.nash_conv() == solver.evaluate().nash_conv == close(pyspiel.nash_conv(game, average))
    assert evaluate(solver.game, solver.current_profile()).nash_conv == close(pyspiel.nash_conv(game, current))


# Best responses as profiles.


@pytest.mark.parametrize("name", ZERO_SUM + OTHER)
def test_a_best_response_is_a_profile_worth_its_value(name):
    game = compiled(name)
    profile = random_profiles(game, 1)[0]
    evaluation = evaluate(game, profile)
    for player in range(game.num_players):
        response = spiel_cfrplus.best_response(game, profile, player)
        assert spiel_cfrplus.expected_values(game, response)[player] == close(evaluation.best_response_values[player])
        for other in range(game.num_players):
            if other != player:
                assert (response.of_player(other) == profile.of_player(other)).all()
        assert set(response.of_player(player)) <= {0.0, 1.0}


def test_best_responses_read_policies_and_games_and_refuse_unknown_players():
    game = GAMES["kuhn_poker"]()
    response = spiel_cfrplus.best_response(game, openspiel_policy.UniformRandomPolicy(game), 1)
    assert response.to_dict()["1b"] == [(0, 0.0), (1, 1.0)]
    with pytest.raises(ValueError, match="players 0 to 1, got 2"):
        spiel_cfrplus.best_response(game, StrategyProfile.uniform(compile_game(game)), 2)


# Trembles.


@pytest.mark.parametrize("tremble", [0, 0.1, 0.25])
def test_best_responses_with_trembles(tremble):
    """Rock against scissors pays double. Against paper, the rows earn -1, 0, 1, so a best response with trembles e earns

    -e + (1 - 2e), and so does one of player 1 against paper; both earn 0, so NashConv is twice as much.
    """
    game = compile_game(games.biased_rock_paper_scissors())
    paper = [1, 0, 1, 0]
    evaluation = evaluate(game, StrategyProfile(game, [*paper, *paper]), tremble=tremble)
    assert evaluation.best_response_values == close([1 - 3 * tremble] * 2)
    assert evaluation.nash_conv == close(2 - 6 * tremble)
    assert evaluation.best_responses.probabilities == close([1, tremble, tremble, 1 - 2 * tremble] * 2)


@pytest.mark.parametrize(("tremble", "error"), [(1 / 3, ValueError), (-0.1, ValueError), ("0.1", TypeError)])
def test_trembles_that_are_no_probabilities_of_all_actions(tremble, error):
    game = compile_game(games.biased_rock_paper_scissors())
    with pytest.raises(error, match="tremble"):
        evaluate(game, StrategyProfile.uniform(game), tremble=tremble)
