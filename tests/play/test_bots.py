"""Bots that play profiles, in OpenSpiel's loops in Python and C++."""

import collections

import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, mentions
from open_spiel.python.algorithms import evaluate_bots

from spiel_cfrplus import ProfileBot, StrategyProfile, compile_game, pyspiel_bot, read_policy

NUM_DRAWS = 4000


def after(game: pyspiel.Game, *actions: int) -> pyspiel.State:
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


@pytest.fixture
def biased(kuhn) -> StrategyProfile:
    """Player 0 bets 1/4 of its jacks, always its kings and never its queens."""
    policy = StrategyProfile.uniform(kuhn).to_dict() | {"0": {0: 0.75, 1: 0.25}, "1": {0: 1.0}, "2": {1: 1.0}}
    return read_policy(kuhn, policy)


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
@pytest.mark.parametrize(("card", "share_of_bets"), [(0, 0.25), (1, 0.0), (2, 1.0)])
def test_actions_have_the_probabilities_of_the_profile(make, card, share_of_bets, biased):
    bot, state = make(biased, 0, 1), after(biased.game.tree.game, card, (card + 1) % 3)
    counts = collections.Counter(bot.step(state) for _ in range(NUM_DRAWS))
    deviation = 5 * np.sqrt(share_of_bets * (1 - share_of_bets) / NUM_DRAWS)  # five standard deviations of a frequency
    assert abs(counts[1] / NUM_DRAWS - share_of_bets) <= deviation
    assert sum(counts.values()) == counts[0] + counts[1]


def test_actions_without_probability_are_never_played(biased, monkeypatch):
    """The smallest random number is 0, which selects the first action that has a probability."""
    bot = ProfileBot(biased, 0)
    monkeypatch.setattr(bot._random, "random", lambda: 0.0)
    assert bot.step(after(biased.game.tree.game, 2, 0)) == 1


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
def test_bots_provide_their_policy(make, biased):
    bot, state = make(biased, 0, 1), after(biased.game.tree.game, 0, 1)
    assert bot.provides_policy()
    assert bot.get_policy(state) == [(0, 0.75), (1, 0.25)]
    policy, action = bot.step_with_policy(state)
    assert policy == [(0, 0.75), (1, 0.25)]
    assert action in (0, 1)


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
def test_the_seed_determines_the_actions_and_a_restart_does_not_repeat_them(make, biased):
    def actions(bot: pyspiel.Bot) -> list[int]:
        return [bot.step(state) for _ in range(50)]

    state = after(biased.game.tree.game, 0, 1)
    bot = make(biased, 0, 1)
    first = actions(bot)
    bot.restart()
    assert actions(make(biased, 0, 1)) == first
    assert actions(make(biased, 0, 2)) != first
    assert actions(bot) != first


GAMES_PLAYED = {
    **{name: GAMES[name] for name in ("kuhn_poker_3p", "python_kuhn_poker", "random_efg")},
    "goofspiel_simultaneous": lambda: pyspiel.load_game("goofspiel(imp_info=True,num_cards=3,points_order=descending)"),
    "rock_paper_scissors": lambda: pyspiel.load_game("matrix_rps"),
}


def sequential(game: pyspiel.Game) -> pyspiel.Game:
    is_sequential = game.get_type().dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    return game if is_sequential else pyspiel.convert_to_turn_based(game)


@pytest.mark.parametrize("name", GAMES_PLAYED)
def test_openspiels_loops_play_the_bots(name):
    game = GAMES_PLAYED[name]()
    compiled = compile_game(sequential(game))
    profile = StrategyProfile(compiled, reference.random_probabilities(compiled, 4))
    bots = [ProfileBot(profile, player, player) for player in range(game.num_players())]
    outcomes = {tuple(returns) for returns in compiled.tree.returns.tolist()}
    for seed in range(20):
        assert tuple(pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)) in outcomes
        assert tuple(evaluate_bots.evaluate_bots(game.new_initial_state(), bots, np.random.RandomState(seed))) in outcomes
    assert [bot.player_id() for bot in bots] == list(range(game.num_players()))


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
def test_the_only_legal_action_may_be_action_0(make):
    """OpenSpiel's Python bot returns no action there."""
    game = pyspiel.load_efg_game('EFG 2 R "" { "a" "b" } ""\np "" 1 1 "x" { "only" } 0\nt "" 1 "" { 1 -1 }\n')
    bot = make(StrategyProfile.uniform(compile_game(game)), 0)
    assert bot.step(game.new_initial_state()) == 0


def test_a_bot_does_not_act_for_others(biased):
    bot = ProfileBot(biased, 1)
    with pytest.raises(ValueError, match="player 1 has no infostate"):
        bot.step(after(biased.game.tree.game, 0, 1))
    with pytest.raises(ValueError, match="belongs to another game"):
        bot.step(after(GAMES["leduc_poker"](), 0, 1))


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
@pytest.mark.parametrize(
    ("player", "seed", "error", "words"),
    [
        (2, 0, ValueError, "players 0 to 1, got 2"),
        ("0", 0, TypeError, "a player must be an integer"),
        (0, -1, ValueError, "the seed must be from 0 to"),
        (0, 2**64, ValueError, "the seed must be from 0 to"),
        (0, 0.5, TypeError, "the seed must be an integer"),
    ],
)
def test_bad_arguments(make, player, seed, error, words, biased):
    with pytest.raises(error, match=mentions(words)):
        make(biased, player, seed)


@pytest.mark.parametrize("make", [ProfileBot, pyspiel_bot])
def test_other_policies_must_be_read_first(make, biased):
    with pytest.raises(TypeError, match=mentions("expected a StrategyProfile", "read_policy")):
        make(biased.to_tabular_policy(), 0)
