"""Restricted games, compared with mixtures of utilities in the game without the restriction."""

import itertools

import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, mentions

from spiel_cfrplus import (
    SequenceFormGame,
    StrategyProfile,
    compile_game,
    compile_subgame,
    evaluate,
    expected_values,
    infostate_table,
    lock,
    restrict,
)


def after_bet_of_player_0() -> SequenceFormGame:
    """A subgame of Kuhn poker with six roots."""
    states = []
    for deal in itertools.permutations(range(3), 2):
        state = pyspiel.load_game("kuhn_poker").new_initial_state()
        for action in (*deal, 0, 1):  # player 0 passes, player 1 bets
            state.apply_action(action)
        states.append(state)
    return compile_subgame(states, np.arange(1, 13).reshape(6, 2))


def without_a_choice() -> SequenceFormGame:
    return lock(GAMES["kuhn_poker"](), {(0, "0"): {0: 0.25, 1: 0.75}})


def restricted_twice() -> SequenceFormGame:
    return restrict(GAMES["kuhn_poker"](), StrategyProfile.uniform(compile_game(GAMES["kuhn_poker"]())), 0.5, 1)


CASES = {
    **{name: GAMES[name] for name in ("kuhn_poker", "kuhn_poker_3p", "sheriff", "goofspiel_3", "python_kuhn_poker")},
    "subgame": after_bet_of_player_0,
    "locked": without_a_choice,
    "restricted": restricted_twice,
}


def random_profile(game: SequenceFormGame, seed: int) -> StrategyProfile:
    return StrategyProfile(game, reference.random_probabilities(game, seed))


def with_others(profile: StrategyProfile, model: StrategyProfile, player: int) -> list[StrategyProfile]:
    return [profile if p == player else model for p in range(profile.game.num_players)]


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_utilities_are_mixtures_of_those_against_the_model_and_against_free_play(name, p):
    whole = compile_game(CASES[name]())
    profile, model = random_profile(whole, 1), random_profile(whole, 100)
    for player in range(whole.num_players):
        game = restrict(whole, model, p, player)
        expected = (1 - p) * expected_values(whole, profile) + p * expected_values(whole, with_others(profile, model, player))
        values = expected_values(game, StrategyProfile(game, profile.probabilities))
        assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_players_have_the_same_infostates(name):
    whole = compile_game(CASES[name]())
    game = restrict(whole, StrategyProfile.uniform(whole), 0.3, 0)
    for mine, theirs in zip(game.treeplexes, whole.treeplexes, strict=True):
        assert mine.infostate_keys == theirs.infostate_keys
        assert mine.actions.tolist() == theirs.actions.tolist()
        assert mine.parent_sequence.tolist() == theirs.parent_sequence.tolist()
    assert (game.whole, game.p, game.player) == (whole, 0.3, 0)


@pytest.mark.parametrize("name", CASES)
def test_histories_lead_to_states_of_the_game(name):
    whole = compile_game(CASES[name]())
    tree = restrict(whole, StrategyProfile.uniform(whole), 0.3, 0).tree
    assert tree.action[tree.parent == 0].tolist() == list(range(len(tree.roots)))
    decisions = np.flatnonzero(tree.actor >= 0)
    assert len(decisions) > np.count_nonzero(whole.tree.actor >= 0)
    for history, state in tree.states(decisions):
        assert state.current_player() == tree.actor[history]
        assert state.information_state_string() == tree.infostate_keys[tree.infostate[history]]
        assert state.history() == list(tree.history_actions(history))
    for history, state in tree.states(tree.terminal):
        assert state.returns() == tree.returns[np.searchsorted(tree.terminal, history)].tolist()


def test_only_the_infostates_of_the_others_need_a_model(kuhn):
    model = {key: {0: 1.0} for key in kuhn.treeplexes[1].infostate_keys}
    game = restrict(kuhn, model, 0.3, 0)
    assert (game.model.of_player(0)[1:] == 0.5).all()
    assert dict(game.model.to_dict()["0b"]) == {0: 1.0, 1: 0.0}
    assert restrict(kuhn, [None, model], 0.3, 0).fingerprint == game.fingerprint
    with pytest.raises(ValueError, match="no entry for infostate"):
        restrict(kuhn, model, 0.3, 1)


def test_profiles_of_the_restricted_game_are_profiles_of_the_whole_game(kuhn):
    game = restrict(kuhn, StrategyProfile.uniform(kuhn), 0.3, 0)
    profile = random_profile(game, 7)
    whole = game.whole_profile(profile)
    assert whole.game is kuhn
    assert whole.probabilities.tolist() == profile.probabilities.tolist()


def test_tables_of_infostates_have_the_conditional_values(kuhn):
    """Player 0 has the jack, has passed and faces a bet; calling loses 2 against either card, in both copies."""
    always_bets = {key: {1: 1.0} for key in kuhn.treeplexes[1].infostate_keys}
    game = restrict(kuhn, always_bets, 0.3, 0)
    table = infostate_table(StrategyProfile.uniform(game)).of_infostate(0, "0pb")
    assert table["expected_value"].tolist() == pytest.approx([-1, -2])
    # 1/3 for the jack; the model always bets, the free opponent in half of the cases
    assert table["counterfactual_reach"].tolist() == pytest.approx([1 / 3 * (0.3 + 0.7 / 2)] * 2)


def test_the_description_names_the_restriction(kuhn):
    game = restrict(kuhn, StrategyProfile.uniform(kuhn), 0.3, 1)
    assert "a model against player 1 with probability 0.3" in game.description
    assert not game.is_whole_game
    assert game.is_two_player_constant_sum


@pytest.mark.parametrize("p", [-1e-9, 1.5, float("nan")])
def test_p_must_be_a_probability(kuhn, p):
    with pytest.raises(ValueError, match=mentions("p is a probability", "from 0 to 1")):
        restrict(kuhn, StrategyProfile.uniform(kuhn), p, 0)


def test_other_bad_arguments(kuhn):
    uniform = StrategyProfile.uniform(kuhn)
    with pytest.raises(TypeError, match="p must be a number"):
        restrict(kuhn, uniform, "half", 0)
    with pytest.raises(ValueError, match="players 0 to 1"):
        restrict(kuhn, uniform, 0.5, 2)
    with pytest.raises(ValueError, match="2 players, got 1 policies"):
        restrict(kuhn, [uniform], 0.5, 0)
    with pytest.raises(TypeError, match="expected a StrategyProfile"):
        restrict(kuhn, 3, 0.5, 0)


def test_the_best_response_to_the_model_does_not_depend_on_p(kuhn):
    """If the free opponent plays the model, too, the opponent plays the model in any case."""
    model = random_profile(kuhn, 3)
    for p in (0.0, 0.5, 1.0):
        game = restrict(kuhn, model, p, 0)
        value = evaluate(game, StrategyProfile(game, model.probabilities)).best_response_values[0]
        assert value == pytest.approx(evaluate(kuhn, model).best_response_values[0], rel=1e-12)
