"""Strategy profiles and their exports: OpenSpiel's Python table, its C++ table, and dictionaries."""

import ast
import copy
import gc
import pickle
import re
import weakref

import games
import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, Chance, End, Turn, mentions
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability, get_all_states

from spiel_cfrplus import CFRPlusSolver, GameTree, SequenceFormGame, StrategyProfile, compile_game, evaluate
from spiel_cfrplus.policies import profile


def twelve_cards_game() -> pyspiel.Game:
    """Player 0 cannot distinguish card 2 from 11 or 3 from 10, and so on: numeric and text order of the ids differ."""
    guesses = [Turn(0, f"card {min(card, 13 - card)}", {0: End([card, -card]), 1: End([1, -1])}) for card in range(12)]
    return games.efg_game(Chance([1 / 12] * 12, guesses))


TURN_BASED = {
    "blotto": "blotto(coins=4,fields=3)",  # 15 actions
    "blotto_3p": "blotto(coins=2,fields=2,players=3)",
    "oshi_zumo": "oshi_zumo(coins=10,horizon=2,size=1)",  # second moves after actions 0 to 10
    "repeated_rps": "repeated_game(stage_game=matrix_rps(),num_repetitions=2)",  # a table keyed by observation strings
}


EXPORTED = {
    **GAMES,
    **{
        name: lambda game=game: pyspiel.load_game(f"turn_based_simultaneous_game(game={game})")
        for name, game in TURN_BASED.items()
    },
    "twelve_cards": twelve_cards_game,
}


@pytest.fixture(scope="module", params=EXPORTED)
def game(request) -> SequenceFormGame:
    return compile_game(EXPORTED[request.param]())


def random_profile(game: SequenceFormGame, seed: int = 0) -> StrategyProfile:
    return StrategyProfile(game, reference.random_probabilities(game, seed))


def decision_states(game: pyspiel.Game) -> list[pyspiel.State]:
    return list(get_all_states.get_all_states(game, include_terminals=False).values())


# The Python table.


def test_the_table_equals_the_one_that_openspiel_builds(game):
    ours = StrategyProfile.uniform(game).to_tabular_policy()
    theirs = openspiel_policy.TabularPolicy(game.tree.game)
    assert type(ours) is openspiel_policy.TabularPolicy
    assert vars(ours).keys() == vars(theirs).keys()
    assert list(ours.state_lookup.items()) == list(theirs.state_lookup.items())
    assert ours.states_per_player == theirs.states_per_player
    assert (ours.player_ids, ours.game_type, ours.game) == (theirs.player_ids, theirs.game_type, theirs.game)
    assert [(str(state), state.history()) for state in ours.states] == [
        (str(state), state.history()) for state in theirs.states
    ]
    for name in ("state_in", "legal_actions_mask", "action_probability_array"):
        our_array, their_array = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_array_equal(our_array, their_array, err_msg=name)
        assert getattr(our_array, "dtype", None) == getattr(their_array, "dtype", None)


def test_the_table_has_the_probabilities_of_the_profile_at_every_decision(game):
    profile = random_profile(game)
    table, expected = profile.to_tabular_policy(), reference.policy_of(profile)
    for state in decision_states(game.tree.game):
        player = state.current_player()
        assert table.action_probabilities(state) == expected[player, state.information_state_string()]


def test_table_has_zero_on_illegal_actions(game):
    table = random_profile(game).to_tabular_policy()
    assert np.all(table.action_probability_array[table.legal_actions_mask == 0] == 0)
    np.testing.assert_allclose(table.action_probability_array.sum(axis=1), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "python_kuhn_poker", "goofspiel_3"])
@pytest.mark.parametrize("again", [lambda table: pickle.loads(pickle.dumps(table)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_the_table_can_be_copied(name, again):
    table = random_profile(compile_game(GAMES[name]())).to_tabular_policy()
    copied = again(table)
    assert copied.state_lookup == table.state_lookup
    np.testing.assert_array_equal(copied.action_probability_array, table.action_probability_array)
    state = table.states[-1]
    assert copied.action_probabilities(state) == table.action_probabilities(state)
    copied.action_probability_array[:] = 0
    assert np.any(table.action_probability_array != 0)


def test_table_samples_actions(leduc):
    pure = evaluate(leduc, StrategyProfile.uniform(leduc)).best_responses
    expected, table = reference.policy_of(pure), pure.to_tabular_policy()
    for state in table.states:
        assert expected[state.current_player(), state.information_state_string()][table.sample_action(state)] == 1


def test_each_table_samples_with_its_own_generator(kuhn):
    first, second = (StrategyProfile.uniform(kuhn).to_tabular_policy() for _ in range(2))
    assert first._random_state is not second._random_state


def test_exports_are_independent_of_each_other_and_of_the_profile(leduc):
    profile = random_profile(leduc)
    before = profile.probabilities.copy()
    first, second = profile.to_tabular_policy(), profile.to_tabular_policy()
    first.action_probability_array[:] = 0
    first.policy_for_key(next(iter(first.state_lookup)))[:] = 7
    profile.to_dict().popitem()[1].clear()
    np.testing.assert_array_equal(profile.probabilities, before)
    np.testing.assert_array_equal(second.action_probability_array, profile.to_tabular_policy().action_probability_array)


def test_writes_to_one_table_do_not_affect_the_next(leduc):
    first, expected = (random_profile(leduc).to_tabular_policy() for _ in range(2))
    first.state_lookup.clear()
    first.legal_actions_mask[:] = 0
    first.states.clear()
    first.states_per_player[0].clear()
    with pytest.raises(ValueError, match="read-only"):  # the tables share it
        first.state_in[:] = 0
    second = random_profile(leduc).to_tabular_policy()
    assert second.state_lookup == expected.state_lookup != {}
    np.testing.assert_array_equal(second.legal_actions_mask, expected.legal_actions_mask)
    assert second.legal_actions_mask.any()
    assert len(second.states) == len(expected.states) > 0
    assert second.states_per_player == expected.states_per_player
    assert len(second.states_per_player[0]) > 0


def test_states_are_replayed_for_the_first_export_only(monkeypatch):
    game = compile_game(GAMES["leduc_poker"]())
    first = random_profile(game, seed=1).to_tabular_policy()
    monkeypatch.setattr(GameTree, "states", None)
    second = random_profile(game, seed=2).to_tabular_policy()
    assert second.state_lookup == first.state_lookup
    assert np.any(second.action_probability_array != first.action_probability_array)


def test_exporting_does_not_keep_a_reference_to_the_tree():
    game = compile_game(GAMES["kuhn_poker"]())
    tree, table = weakref.ref(game.tree), StrategyProfile.uniform(game).to_tabular_policy()
    del game
    gc.collect()
    assert tree() is None
    assert exploitability.nash_conv(table.game, table) == pytest.approx(11 / 12)  # of the uniform policy


def test_deep_trees_can_be_exported():
    game = compile_game(games.chain(2000))
    profile = random_profile(game)
    table = profile.to_tabular_policy()
    assert table.action_probability_array.shape == (2000, 2)
    for (_, key), strategy in reference.policy_of(profile).items():
        assert dict(enumerate(table.policy_for_key(key))) == strategy


# The C++ table and the dictionary.


@pytest.mark.parametrize("name", GAMES)
def test_exports_have_the_same_nash_conv_in_openspiel(name):
    game = GAMES[name]()
    profile = random_profile(compile_game(game))
    expected = exploitability.nash_conv(game, profile.to_tabular_policy())
    cpp_policy = profile.to_pyspiel_policy()
    assert type(cpp_policy) is pyspiel.TabularPolicy
    assert pyspiel.nash_conv(game, cpp_policy) == pytest.approx(expected, rel=1e-12)
    assert pyspiel.nash_conv(game, profile.to_dict()) == pytest.approx(expected, rel=1e-12)


def test_dictionary_lists_the_legal_actions_of_every_infostate_in_order(game):
    profile = random_profile(game)
    expected = {key: list(strategy.items()) for (_, key), strategy in reference.policy_of(profile).items()}
    legal = {state.information_state_string(): state.legal_actions() for state in decision_states(game.tree.game)}
    result = profile.to_dict()
    assert result == expected
    assert {key: [action for action, _ in pairs] for key, pairs in result.items()} == legal
    assert all(type(action) is int and type(probability) is float for action, probability in result.popitem()[1])


# Games whose infostates share a key.


STRING_KEYED = ["to_tabular_policy", "to_pyspiel_policy", "to_dict"]


@pytest.mark.parametrize("export", STRING_KEYED)
def test_a_game_with_a_shared_string_is_solved_but_not_exported(export):
    solver = CFRPlusSolver(games.shared_string_game())
    solver.run(1000)
    assert solver.nash_conv() < 1e-2
    with pytest.raises(ValueError, match=mentions("test_shared_string", "two players", "'my turn'", "StrategyProfile")):
        getattr(solver.average_profile(), export)()


def repeated_game(stage_game: str, num_repetitions: int) -> pyspiel.Game:
    inner = f"repeated_game(stage_game={stage_game}(),num_repetitions={num_repetitions})"
    return pyspiel.load_game(f"turn_based_simultaneous_game(game={inner})")


def test_a_table_keyed_by_observations_is_exported():
    # OpenSpiel's own solver raises KeyError here: its table is keyed by observation, its tree by infostate.
    solver = CFRPlusSolver(repeated_game("matrix_rps", 2))
    solver.run(10)
    table = solver.average_policy()
    assert all(table.action_probabilities(state) for state in decision_states(table.game))
    assert exploitability.nash_conv(table.game, table) == pytest.approx(solver.nash_conv(), abs=1e-12)


def test_a_table_whose_observations_merge_infostates_is_refused():
    solver = CFRPlusSolver(repeated_game("matrix_pd", 3))
    solver.run(100)
    profile = solver.average_profile()  # OpenSpiel's evaluator goes by information-state strings, which are distinct
    assert solver.nash_conv() == pytest.approx(pyspiel.nash_conv(solver.game.tree.game, profile.to_dict()), abs=1e-12)
    # 42 infostates: 1 + 4 + 16 for each player. Each sees the last round only: 1 + 4 observations.
    with pytest.raises(ValueError, match=mentions("10 rows for 42 infostates", "observation", "StrategyProfile")) as refused:
        profile.to_tabular_policy()
    tree, (first, second) = solver.game.tree, re.search(r"strings; ('.*') and ('.*') share", str(refused.value)).groups()
    shared = [tree.infostate_keys.index(ast.literal_eval(key)) for key in (first, second)]
    states = [state for _, state in tree.states(np.sort(tree.first_history[shared]))]
    assert len({state.observation_string(state.current_player()) for state in states}) == 1
    assert len(states) == len(set(shared)) == 2


def test_histories_are_ranked_in_the_order_of_openspiel(game):
    tree = game.tree
    texts = [", ".join(map(str, tree.history_actions(history))) for history in range(tree.num_histories)]
    assert profile._ranks_by_text(tree).argsort().tolist() == sorted(range(len(texts)), key=texts.__getitem__)


# The profile itself.


def test_uniform_profile_is_uniform(game):
    for strategy in reference.policy_of(StrategyProfile.uniform(game)).values():
        assert set(strategy.values()) == {1 / len(strategy)}


def test_profile_has_a_read_only_copy(kuhn):
    probabilities = StrategyProfile.uniform(kuhn).probabilities.copy()
    profile = StrategyProfile(kuhn, probabilities)
    probabilities[:] = 0
    assert set(profile.probabilities) == {0.5, 1.0}
    for view in (profile.probabilities, profile.of_player(1)):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0


@pytest.mark.parametrize("shape", [(25,), (27,), (26, 1), ()])
def test_vectors_of_the_wrong_shape_are_refused_as_profiles(kuhn, shape):
    with pytest.raises(ValueError, match="each of 26 sequences"):
        StrategyProfile(kuhn, np.ones(shape))


def test_sequence_form_multiplies_the_players_own_probabilities(kuhn):
    profile = random_profile(kuhn)
    expected = reference.policy_of(profile)
    treeplex, reach = kuhn.treeplexes[0], profile.sequence_form(0)
    point = treeplex.infostate_keys.index("2pb")  # reached by passing (action 0) with card 2
    for sequence in treeplex.sequences(point):
        own = expected[0, "2"][0] * expected[0, "2pb"][int(treeplex.actions[sequence])]
        assert reach[sequence] == pytest.approx(own, rel=1e-15)


@pytest.mark.parametrize("text", [repr, str])
def test_reprs_of_compiled_objects_are_short(text):
    game = compile_game(GAMES["leduc_poker"]())
    profile = StrategyProfile.uniform(game)
    for thing in (game, game.tree, game.treeplexes[0], profile, evaluate(game, profile)):
        assert type(thing).__name__ in text(thing)
        assert len(text(thing)) < 200
    assert "936 infostates" in text(game)
