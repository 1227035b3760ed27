"""Subgames: their histories, the distribution of their roots, and the use of their solutions."""

import copy
import itertools
import pickle

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, Chance, End, Turn, mentions
from open_spiel.python.policy import UniformRandomPolicy

from spiel_cfrplus import (
    CFRPlusSolver,
    GameTree,
    PredictiveCFRPlusSolver,
    SequenceFormGame,
    StrategyProfile,
    compile_game,
    compile_subgame,
    evaluate,
    players_reach,
    read_policy,
)
from spiel_cfrplus.game.game_tree import CHANCE, NO_INFOSTATE

NAN, INFINITY = float("nan"), float("inf")
JACK, QUEEN, KING = range(3)
PASS, BET = range(2)


def after(game: pyspiel.Game, *actions: int) -> pyspiel.State:
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def kuhn_bets() -> list[pyspiel.State]:
    """All deals of Kuhn poker after player 0's bet."""
    game = GAMES["kuhn_poker"]()
    return [after(game, *deal, BET) for deal in itertools.permutations(range(3), 2)]


def kuhn_reach(jack: float, queen: float, king: float) -> np.ndarray:
    """Reach for given probabilities that player 0 bets with each card; player 1 has not moved."""
    return np.array([[(jack, queen, king)[own], 1] for own, _ in itertools.permutations(range(3), 2)])


def leduc_flops() -> list[pyspiel.State]:
    """Leduc poker after a raise and a call, with card 2 on the table, for all hidden cards."""
    game = GAMES["leduc_poker"]()
    return [after(game, *deal, 2, 1, 2) for deal in itertools.permutations([0, 1, 3, 4, 5], 2)]


def frontier(game: pyspiel.Game, depth: int) -> tuple[list[pyspiel.State], list[pyspiel.State]]:
    """The states after `depth` moves, and terminal states before."""
    states, ended = [game.new_initial_state()], []
    for _ in range(depth):
        states = [state.child(action) for state in states for action in state.legal_actions()]
        ended += [state for state in states if state.is_terminal()]
        states = [state for state in states if not state.is_terminal()]
    return states, ended


def reach_of(state: pyspiel.State, policy: reference.Policy) -> tuple[float, list[float]]:
    """Chance's and every player's reach, move by move."""
    chance, players, path = 1.0, [1.0] * state.num_players(), state.get_game().new_initial_state()
    for action in state.history():
        player = path.current_player()
        if path.is_chance_node():
            chance *= dict(path.chance_outcomes())[action]
        else:
            players[player] *= policy[player, path.information_state_string()][action]
        path.apply_action(action)
    return chance, players


# Values.


@pytest.mark.parametrize(
    ("jack", "king", "value", "queen_calls"),
    [
        # Queen against (jack 1, king 1): a call earns (2 - 2) / 2 = 0, more than -1. Player 1, over jack-queen, jack-king,
        # king-jack, king-queen: 2 + 2 - 1 - 2 = 1, of 4.
        (1.0, 1.0, -1 / 4, 1.0),
        # Against (1/10, 1) a call earns (0.2 - 2) / 1.1 < -1. Player 1: -0.1 + 0.2 - 1 - 1 = -1.9, of 2.2.
        (0.1, 1.0, 1.9 / 2.2, 0.0),
        # Multiples of a range are the same range.
        (0.2, 2.0, 1.9 / 2.2, 0.0),
    ],
)
def test_replies_to_a_bet_in_kuhn_poker_worked_by_hand(jack, king, value, queen_calls):
    game = compile_subgame(kuhn_bets(), kuhn_reach(jack, 0.0, king))
    assert sorted(game.treeplexes[1].infostate_keys) == ["0b", "1b", "2b"]
    assert game.treeplexes[0].infostate_keys == ()
    solver = CFRPlusSolver(game)
    solver.run(100)
    evaluation = solver.evaluate()
    assert evaluation.nash_conv < 1e-2
    assert evaluation.best_responses.to_dict()["1b"][BET][1] == queen_calls
    best = evaluate(game, evaluation.best_responses)
    np.testing.assert_allclose(best.values, [value, -value], atol=1e-12)
    assert best.nash_conv < 1e-12


def test_leduc_poker_after_the_flop_has_the_value_of_its_linear_program():
    rng = np.random.default_rng(7)
    states = leduc_flops()
    reach = rng.random((len(states), 2))
    for player, seat in itertools.product(range(2), range(6)):  # reach depends on the own card only
        own = [row for row, state in enumerate(states) if state.history()[player] == seat]
        reach[own, player] = rng.random()
    weights = reach.prod(axis=1) / reach.prod(axis=1).sum()  # all deals are equally likely
    root = Chance(weights.tolist(), [games.tree_below(state) for state in states])
    game = compile_subgame(states, reach)
    assert reference.distance(reference.uniform_policy(root), reference.policy_of(StrategyProfile.uniform(game))) < 1e-15
    solver = PredictiveCFRPlusSolver(game)
    solver.run(1000)
    evaluation = solver.evaluate()
    assert evaluation.nash_conv < 1e-4
    assert reference.nash_conv(root, reference.policy_of(solver.average_profile())) == pytest.approx(evaluation.nash_conv)
    assert evaluation.values[0] == pytest.approx(reference.zero_sum_value(root), abs=1e-4)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_only_the_ratios_of_a_players_reach_matter(scale):
    reach = kuhn_reach(0.25, 0.5, 1.0)
    plain, scaled = compile_subgame(kuhn_bets(), reach), compile_subgame(kuhn_bets(), scale * reach)
    np.testing.assert_allclose(scaled.tree.chance_probability, plain.tree.chance_probability, rtol=1e-14)


def test_reach_has_no_effect_on_a_subgame_with_one_root():
    state = after(GAMES["leduc_poker"](), 0, 3, 1, 1, 5)  # jack against queen, a king on the table
    game = compile_subgame(state)
    assert game.fingerprint == compile_subgame([state], [0.25, 1e-3]).fingerprint
    solver = CFRPlusSolver(game)
    solver.run(2000)
    assert solver.evaluate().values[0] == pytest.approx(reference.zero_sum_value(games.tree_below(state)), abs=1e-3)


@pytest.mark.parametrize("seed", [0, 2, 4, 7, 9, 10, 13, 16])  # in which two moves cut no infostate
@pytest.mark.parametrize("num_players", [2, 3])
def test_values_of_subgames_sum_to_those_of_the_whole_game(seed, num_players):
    whole = compile_game(games.random_efg(seed, num_players=num_players, zero_sum=seed % 2 == 0))
    profile = StrategyProfile(whole, reference.random_probabilities(whole, seed))
    policy = reference.policy_of(profile)
    states, ended = frontier(whole.tree.game, 2)
    reach = [reach_of(state, policy) for state in states]
    np.testing.assert_allclose(players_reach(states, profile.to_pyspiel_policy()), [players for _, players in reach])
    np.testing.assert_allclose(players_reach(states, profile.to_tabular_policy()), [players for _, players in reach])
    np.testing.assert_allclose(players_reach(states, profile), [players for _, players in reach])
    weights = [chance * np.prod(players) for chance, players in reach]
    game = compile_subgame(states, [players for _, players in reach])
    part = StrategyProfile.uniform(game).overwritten_by(profile)
    total = sum(weights) * evaluate(game, part).values
    for state in ended:
        chance, players = reach_of(state, policy)
        total = total + chance * np.prod(players) * np.array(state.returns())
    root = games.tree_of(whole.tree.game)
    expected = [reference.expected_value(root, policy, player) for player in range(num_players)]
    np.testing.assert_allclose(total, expected, atol=1e-12)
    # Who can gain below can gain as much in the whole.
    gains = sum(weights) * evaluate(game, part).player_improvements
    assert np.all(gains <= evaluate(whole, profile).player_improvements + 1e-12)


# Arrays.


def test_the_subgame_at_the_initial_state_is_the_whole_game():
    game = GAMES["leduc_poker"]()
    assert compile_subgame(game.new_initial_state()).fingerprint == compile_game(game).fingerprint
    assert GameTree.from_states(game.new_initial_state()).roots == GameTree.from_game(game).roots == ((),)


def test_histories_and_states_of_several_roots():
    states = kuhn_bets()
    tree = GameTree.from_states(states, kuhn_reach(0.25, 0.5, 1.0))
    # A root, six bets, two replies to each.
    assert (tree.num_histories, tree.num_terminals, tree.num_infostates) == (19, 12, 3)
    assert (tree.actor[0], tree.infostate[0]) == (CHANCE, NO_INFOSTATE)
    assert tree.history_actions(0) == ()
    assert tree.parent.tolist() == [-1] + [h for root in range(1, 19, 3) for h in (0, root, root)]
    np.testing.assert_allclose(tree.chance_probability[1::3], np.repeat([0.25, 0.5, 1.0], 2) / 3.5)
    decisions = np.flatnonzero(tree.infostate != NO_INFOSTATE)
    for (history, state), given in zip(tree.states(decisions), states, strict=True):
        assert tree.history_actions(history) == tuple(state.history()) == tuple(given.history())
        assert state.information_state_string() == tree.infostate_keys[tree.infostate[history]]
    ends = [state.returns() for _, state in tree.states(tree.terminal)]
    assert ends == tree.returns.tolist()


def test_root_states_are_not_modified():
    states = kuhn_bets()
    before = [state.history() for state in states]
    compile_subgame(states)
    compile_subgame(states[0])
    assert [state.history() for state in states] == before


def test_roots_may_be_chance_nodes_with_unequal_probabilities():
    deals = [Turn(0, f"card {card}", {a: End([a * (3 * card - 1), a * (1 - 3 * card)]) for a in range(2)}) for card in range(2)]
    game = games.efg_game(Chance([0.25, 0.75], deals))
    whole = compile_subgame(game.new_initial_state())
    both = compile_subgame(frontier(game, 1)[0])
    assert both.tree.chance_probability[both.tree.parent == 0].tolist() == [0.25, 0.75]
    assert both.payoffs.tolist() == whole.payoffs.tolist() == [[-0.25, 0.25], [1.5, -1.5]]


def test_python_games_and_wrapped_games_have_subgames():
    python = games.lone_player_game()
    states, _ = frontier(python, 1)
    game = compile_subgame(states)
    assert evaluate(game, StrategyProfile.uniform(game)).best_response_values.tolist() == [0.75]
    wrapped = pyspiel.load_game("start_at(game=tic_tac_toe(),history=4;0)")
    game = compile_subgame(after(wrapped, 8, 2, 1))
    assert game.tree.history_actions(0) == (8, 2, 1)
    assert all(state.history()[:3] == [8, 2, 1] for _, state in game.tree.states(game.tree.terminal))


def test_recall_is_checked_below_the_roots():
    game = games.forgetful_game()
    with pytest.raises(ValueError, match=mentions("player 0", "does not have perfect recall", "history [1, 0]")):
        compile_subgame(game.new_initial_state())
    states, _ = frontier(game, 1)
    assert compile_subgame(states).num_infostates == 2  # "reply" and "later": what was forgotten lies before


def test_an_infostate_before_and_below_the_roots_is_refused():
    # Player 1 moves first or, in ignorance of that, after player 0.
    start = Chance([0.5, 0.5], [Turn(1, "when?", {a: End([a, -a]) for a in range(2)}), Turn(0, "first", {0: End([0, 0])})])
    start.children[1].children[1] = Turn(1, "when?", {a: End([3 * a, -3 * a]) for a in range(2)})
    game = games.python_game("test_when", start)
    assert compile_subgame(after(game, 1)).num_infostates == 2
    later = games.python_game("test_later", Turn(1, "when?", {0: start.children[1], 1: End([1, -1])}))
    with pytest.raises(ValueError, match=mentions("'when?' of player 1", "both before the roots", "below them")):
        compile_subgame(after(later, 0))


# What comes out.


def test_solutions_are_inserted_into_policies_of_the_whole_game():
    whole = compile_game(GAMES["kuhn_poker"]())
    blueprint = StrategyProfile(whole, reference.random_probabilities(whole, 3))
    states = kuhn_bets()
    game = compile_subgame(states, players_reach(states, blueprint.to_tabular_policy()))
    solver = CFRPlusSolver(game)
    solver.run(200)
    merged = blueprint.overwritten_by(solver.average_profile())
    assert merged.to_dict() == blueprint.to_dict() | solver.average_profile().to_dict()
    assert merged.to_dict() != blueprint.to_dict()
    assert evaluate(whole, merged).values[1] > evaluate(whole, blueprint).values[1]
    table = solver.average_policy()
    assert sorted(table.state_lookup) == ["0b", "1b", "2b"]
    assert table.action_probabilities(states[0]) == dict(merged.to_dict()["1b"])
    assert read_policy(game, merged.to_tabular_policy()).to_dict() == solver.average_profile().to_dict()


def test_an_infostate_that_its_player_never_reaches_stays_uniform():
    game = compile_subgame([after(GAMES["kuhn_poker"](), *deal, PASS, BET) for deal in ((0, 1), (2, 1))], [[0, 1], [1, 1]])
    solver = CFRPlusSolver(game)
    solver.run(50)
    policy = solver.average_profile().to_dict()
    assert policy["0pb"] == [(PASS, 0.5), (BET, 0.5)]
    assert policy["2pb"][BET][1] > 0.9


def test_solvers_of_subgames_are_saved_copied_and_pickled(tmp_path):
    game = compile_subgame(leduc_flops())
    solver = CFRPlusSolver(game)
    solver.run(20)
    solver.save(tmp_path / "solver")
    resumed = [CFRPlusSolver.load(tmp_path / "solver", game), copy.copy(solver), pickle.loads(pickle.dumps(solver))]
    assert resumed[2].game.tree.roots == game.tree.roots
    solver.run(20)
    for other in resumed:
        other.run(20)
        assert np.array_equal(other.average_profile().probabilities, solver.average_profile().probabilities)
    with pytest.raises(ValueError, match="Pass the game it was saved for"):
        CFRPlusSolver.load(tmp_path / "solver")


def test_summaries_show_the_roots():
    assert "below [0, 1, 1] and 5 others, " in repr(compile_subgame(kuhn_bets()))
    assert "below [0, 1, 1], " in repr(GameTree.from_states(kuhn_bets()[0]))


# Errors.


def terminal() -> pyspiel.State:
    return after(GAMES["kuhn_poker"](), 0, 1, PASS, PASS)


@pytest.mark.parametrize(
    ("states", "reach", "words"),
    [
        ([], None, ["at least one root state"]),
        (terminal(), None, ["history [0, 1, 0, 0] is terminal"]),
        ([*kuhn_bets(), after(GAMES["leduc_poker"](), 0)], None, ["two games", "kuhn_poker()", "leduc_poker()"]),
        (kuhn_bets() * 2, None, ["[0, 1, 1] and [0, 1, 1] overlap"]),
        ([*kuhn_bets(), after(GAMES["kuhn_poker"](), 2)], None, ["[2] and [2, 0, 1] overlap"]),
        (kuhn_bets(), -kuhn_reach(0.5, 0, 1), ["not negative", "-0.5"]),
        (kuhn_bets(), kuhn_reach(NAN, 0, 1), ["finite", "nan"]),
        (kuhn_bets(), kuhn_reach(INFINITY, 0, 1), ["finite", "inf"]),
        (kuhn_bets(), kuhn_reach(0, 0, 0), ["none of the roots"]),
        (kuhn_bets(), [1.0, 1.0], ["shape (6, 2)", "(2,)"]),
        (kuhn_bets()[0], [1.0, 1.0, 1.0], ["shape (1, 2)", "(3,)"]),
        (kuhn_bets()[:2], np.ones((1, 4)), ["shape (2, 2)", "(1, 4)"]),
        (kuhn_bets()[0], "often", ["must be numbers", "often"]),
        (pyspiel.load_game("matrix_rps").new_initial_state(), None, ["simultaneous moves"]),
    ],
)
def test_invalid_roots_are_refused(states, reach, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        compile_subgame(states, reach)


@pytest.mark.parametrize("states", [None, "kuhn_poker", [0, 1, 1], [*kuhn_bets(), None]])
def test_arguments_that_are_not_states_are_refused(states):
    with pytest.raises(TypeError, match="expected one pyspiel"):
        compile_subgame(states)


def test_a_state_that_its_history_does_not_lead_to_is_refused():
    state = pyspiel.load_game("chess").new_initial_state("8/8/8/8/8/4k3/4q3/4K3 b - - 0 1")
    with pytest.raises(ValueError, match=mentions("chess", "history []", "must lead from the initial state to it")):
        compile_subgame(state, max_histories=10)


def test_limits_apply_to_all_roots_together():
    assert compile_subgame(kuhn_bets(), max_histories=19).tree.num_histories == 19
    with pytest.raises(ValueError, match="max_histories=18"):
        compile_subgame(kuhn_bets(), max_histories=18)


def test_profiles_of_unrelated_games_cannot_be_combined():
    kuhn, leduc = (StrategyProfile.uniform(compile_game(GAMES[name]())) for name in ("kuhn_poker", "leduc_poker"))
    with pytest.raises(ValueError, match=mentions("neither", "kuhn_poker", "leduc_poker", "all infostates")):
        kuhn.overwritten_by(leduc)
    three = StrategyProfile.uniform(compile_game(GAMES["kuhn_poker_3p"]()))
    with pytest.raises(ValueError, match="different numbers of players"):
        kuhn.overwritten_by(three)

    def one_turn(*actions: int) -> SequenceFormGame:
        return compile_game(games.efg_game(Turn(0, "x", {action: End([action, -action]) for action in actions})))

    narrow, wide = (StrategyProfile.uniform(one_turn(*range(count))) for count in (2, 3))
    with pytest.raises(ValueError, match=mentions("player 0 has the actions [0, 1]", "[0, 1, 2]")):
        narrow.overwritten_by(wide)


def test_profiles_with_different_action_ids_cannot_be_combined():
    def one_turn(*actions: int) -> SequenceFormGame:
        ends = {action: End([action, -action]) for action in actions}
        return compile_game(games.python_game(f"test_one_turn_{actions[1]}", Turn(0, "x", ends)))

    one, other = (StrategyProfile.uniform(one_turn(0, action)) for action in (1, 2))
    with pytest.raises(ValueError, match=mentions("player 0 has the actions [0, 1] at infostate 'x'", "but [0, 2] in")):
        one.overwritten_by(other)


def test_reach_requires_a_policy_object():
    game = compile_game(GAMES["kuhn_poker"]())
    state = after(game.tree.game, 0, 1, 0)
    for policy in (None, {}, 1):
        with pytest.raises(TypeError, match="expected a StrategyProfile or an OpenSpiel policy, got"):
            players_reach(state, policy)
    below = StrategyProfile.uniform(compile_subgame(state))
    with pytest.raises(ValueError, match="player 0 has no infostate '0' in SequenceFormGame"):
        players_reach(state, below)


@pytest.mark.parametrize("make", [lambda profile: profile, StrategyProfile.to_tabular_policy], ids=["profile", "table"])
def test_reach_is_refused_for_policies_of_games_with_other_players(make):
    policy = make(StrategyProfile.uniform(compile_game(GAMES["kuhn_poker"]())))
    state = after(GAMES["kuhn_poker_3p"](), 0, 1, 2, 0)
    with pytest.raises(ValueError, match=mentions("kuhn_poker(players=3)", "game")):
        players_reach(state, policy)


def test_a_profile_refuses_states_of_other_games():
    # The two games have the same information-state strings at the first move.
    small, large = (pyspiel.load_game(f"leduc_poker(players={players})") for players in (2, 3))
    profile = StrategyProfile.uniform(compile_game(small, max_histories=20_000))
    asked = after(large, 0, 1, 2)
    with pytest.raises(ValueError, match=mentions("another game, leduc_poker(", "not to leduc_poker(players=3)")):
        profile.action_probabilities(asked)


def test_a_profile_accepts_its_game_with_explicit_default_parameters():
    profile = StrategyProfile.uniform(compile_game(pyspiel.load_game("kuhn_poker")))
    state = after(pyspiel.load_game("kuhn_poker(players=2)"), 0, 1, 0)
    assert players_reach(state, profile).tolist() == [[0.5, 1.0]]


class _Answer(UniformRandomPolicy):
    """A policy with the same distribution everywhere."""

    def __init__(self, game, answer):
        super().__init__(game)
        self._answer = answer

    def action_probabilities(self, state, player_id=None):
        return self._answer


def _without_root(as_table):
    game = GAMES["kuhn_poker"]()
    answers = StrategyProfile.uniform(compile_game(game)).to_dict()
    del answers["0"]
    if as_table:
        return pyspiel.TabularPolicy(answers)
    table = StrategyProfile.uniform(compile_game(game)).to_tabular_policy()
    del table.state_lookup["0"]
    return table


@pytest.mark.parametrize("as_table", [True, False], ids=["pyspiel", "Python"])
def test_reach_requires_every_infostate_on_the_path(as_table):
    policy = _without_root(as_table)
    with pytest.raises(ValueError, match=mentions("kuhn_poker()", "history [0, 1]", "player 0 has no entry for infostate '0'")):
        players_reach(after(GAMES["kuhn_poker"](), 0, 1, 0), policy)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({0: 0.5, 1: 0.4}, "is not a probability distribution"),
        ({0: 1.5, 1: -0.5}, "is not a probability distribution"),
        ({0: 0.5, 2: 0.5}, "plays the illegal action 2"),
    ],
)
def test_reach_requires_a_distribution_over_the_legal_actions(answer, words):
    game = GAMES["kuhn_poker"]()
    with pytest.raises(ValueError, match=mentions("kuhn_poker(), history [0, 1]", "policy of player 0", words)):
        players_reach(after(game, 0, 1, 0), _Answer(game, answer))


_TWO_GAMES = """EFG 2 R "the same description" { "A" "B" } ""
c "" 1 "" { "heads" 1/2 "tails" 1/2 } 0
p "" 2 1 "second" { "a" "b" } 0
t "" 1 "" { BEST -1 }
t "" 2 "" { 1 -1 }
p "" 2 1 "second" { "a" "b" } 0
t "" 3 "" { 0 0 }
t "" 4 "" { BEST -2 }
"""


def test_states_of_two_games_that_share_a_string_are_refused():
    one, other = (pyspiel.load_efg_game(_TWO_GAMES.replace("BEST", best)) for best in ("3", "4"))
    assert str(one) == str(other)
    states = [after(one, 0), after(other, 1)]
    for use in (compile_subgame, lambda states: players_reach(states, UniformRandomPolicy(one))):
        with pytest.raises(ValueError, match=mentions("two game objects", "efg_game()", "load the game once")):
            use(states)
    assert compile_subgame([after(one, 0), after(one, 1)]).num_infostates == 1


def test_states_of_a_game_that_was_loaded_twice_can_be_combined():
    states = [after(pyspiel.load_game("kuhn_poker"), *deal) for deal in ((JACK, QUEEN), (JACK, KING))]
    assert len(compile_subgame(states).tree.roots) == 2
