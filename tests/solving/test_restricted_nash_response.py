"""Restricted Nash responses, compared with the linear program of the restricted game, equilibria and best responses."""

import functools

import games
import pyspiel
import pytest
import reference
from games import GAMES, Chance, End, Node, Turn, mentions, tree_of

from spiel_cfrplus import StrategyProfile, compile_game, restricted_nash_response
from spiel_cfrplus.openspiel import exploitability

LP_GAMES = ["kuhn_poker", "goofspiel_3", "random_efg"]
GAP = 1e-4


@functools.cache
def case(name: str) -> tuple[Node, StrategyProfile]:
    """The tree of a game and a random model."""
    game = compile_game(GAMES[name]())
    return tree_of(game.tree.game), StrategyProfile(game, reference.random_probabilities(game, 5))


def restricted_value(name: str, p: float, player: int) -> float:
    """The player's value of the restricted game, by linear programming on a tree that is built without the package."""
    root, model = case(name)
    policy = reference.policy_of(model)

    def with_model(node: Node) -> Node:
        match node:
            case End():
                return node
            case Chance(probabilities, children):
                return Chance(probabilities, [with_model(child) for child in children])
            case Turn(mover, key, children):
                below = {action: with_model(child) for action, child in children.items()}
                if mover == player:
                    return Turn(mover, key, below)
                return Chance([policy[mover, key][action] for action in below], list(below.values()))
        raise TypeError(node)

    value = reference.zero_sum_value(Chance([1 - p, p], [root, with_model(root)]))
    return value if player == 0 else -value


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("name", LP_GAMES)
def test_the_response_is_optimal_in_the_restricted_game(name, p, player):
    """What the response earns at least in the restricted game is the value of the linear program, up to the gap."""
    _, model = case(name)
    response = restricted_nash_response(model.game, model, p, player, target_gap=GAP)
    assert response.gap <= GAP
    earned = (1 - p) * response.worst_case_value + p * response.value_against_model
    value = restricted_value(name, p, player)
    assert value - response.gap - 1e-9 <= earned <= value + 1e-9


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", LP_GAMES)
def test_p_0_is_an_equilibrium_strategy(name, player):
    root, model = case(name)
    response = restricted_nash_response(model.game, model, 0, player, target_gap=GAP)
    value = reference.zero_sum_value(root) * (1 if player == 0 else -1)
    assert response.worst_case_value == pytest.approx(value, abs=GAP)
    assert pyspiel.exploitability(model.game.tree.game, response.profile.to_pyspiel_policy()) <= GAP


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", LP_GAMES)
def test_p_1_is_a_best_response(name, player):
    _, model = case(name)
    response = restricted_nash_response(model.game, model, 1, player, target_gap=GAP)
    best = exploitability.best_response(model.game.tree.game, model.to_tabular_policy(), player)
    assert response.value_against_model == pytest.approx(best["best_response_value"], abs=GAP)


@pytest.mark.parametrize(("player", "value"), [(0, 2 / 3), (1, 7 / 3)])
def test_payoffs_may_have_any_constant_sum(player, value):
    """[[2, 0], [0, 1]] against 3 minus that: both players earn the value with probability 1/3 on their first action."""
    game = games.matrix_game([[2, 0], [0, 1]], [[1, 3], [3, 2]])
    compiled = compile_game(game)
    response = restricted_nash_response(compiled, StrategyProfile.uniform(compiled), 0, player, target_gap=GAP)
    assert response.worst_case_value == pytest.approx(value, abs=GAP)


def test_more_weight_on_the_model_earns_more_against_it_and_less_against_a_best_response(leduc):
    model = StrategyProfile.uniform(leduc)
    responses = [restricted_nash_response(leduc, model, p, 0) for p in (0.1, 0.5, 0.9)]
    against_model = [response.value_against_model for response in responses]
    worst_case = [response.worst_case_value for response in responses]
    assert against_model == sorted(against_model)
    assert worst_case == sorted(worst_case, reverse=True)
    assert max(response.gap for response in responses) <= 1e-4 * 26  # Leduc's payoffs are from -13 to 13


def test_the_result_has_the_game_and_prints_its_values(kuhn):
    response = restricted_nash_response(kuhn, StrategyProfile.uniform(kuhn), 0.5, 1, algorithm="pcfr+")
    assert response.profile.game is kuhn
    assert (response.game.p, response.game.player, response.game.whole) == (0.5, 1, kuhn)
    for text in ("kuhn_poker()", "player 1", "p=0.5", "value_against_model=", "worst_case_value=", "gap=", "iterations"):
        assert text in repr(response)


def test_iterations_end_at_the_limit_with_a_warning(kuhn):
    with pytest.warns(UserWarning, match=mentions("the gap is", "after 7 iterations", "target of 1e-12")):
        response = restricted_nash_response(kuhn, StrategyProfile.uniform(kuhn), 0.5, 0, target_gap=1e-12, max_iterations=7)
    assert response.iterations == 7
    assert response.gap > 1e-12


@pytest.mark.parametrize("name", ["kuhn_poker_3p", "sheriff"])
def test_other_games_are_refused(name):
    game = compile_game(GAMES[name]())
    with pytest.raises(ValueError, match=mentions("two-player constant-sum games", "restrict(game, model, p, player)")):
        restricted_nash_response(game, StrategyProfile.uniform(game), 0.5, 0)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"p": 2}, ValueError, "from 0 to 1"),
        ({"player": 2}, ValueError, "players 0 to 1"),
        ({"target_gap": -1}, ValueError, "target_gap must not be negative"),
        ({"target_gap": float("nan")}, ValueError, "target_gap must not be negative"),
        ({"target_gap": "small"}, TypeError, "target_gap must be a number"),
        ({"max_iterations": 0}, ValueError, "must be 1 or more"),
        ({"algorithm": "cfr++"}, ValueError, "cfr++"),
    ],
)
def test_bad_arguments(kuhn, options, error, words):
    with pytest.raises(error, match=mentions(words)):
        restricted_nash_response(kuhn, StrategyProfile.uniform(kuhn), **{"p": 0.5, "player": 0, **options})
