"""Conversion of policies: all accepted formats give the same numbers, and errors name the infostate."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest
import reference
from games import GAMES, mentions
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import external_sampling_mccfr, get_all_states

from spiel_cfrplus import SequenceFormGame, StrategyProfile, compile_game, compile_subgame, evaluate, lock, read_policy
from spiel_cfrplus.policies import reading

Strategies = dict[str, dict[int, float]]
"""Action probabilities by information-state string."""


def random_profile(game: SequenceFormGame) -> StrategyProfile:
    return StrategyProfile(game, reference.random_probabilities(game, seed=1))


def strategies_of(profile: StrategyProfile) -> Strategies:
    return {key: strategy for (_, key), strategy in reference.policy_of(profile).items()}


def as_mapping(strategies: Strategies) -> dict[str, list[tuple[int, float]]]:
    return {key: list(strategy.items()) for key, strategy in strategies.items()}


def tabular(game: pyspiel.Game, strategies: Strategies, players: list[int] | None = None) -> openspiel_policy.TabularPolicy:
    table = openspiel_policy.TabularPolicy(game, players)
    for key in table.state_lookup:
        for action, probability in strategies[key].items():
            table.policy_for_key(key)[action] = probability
    return table


class CalledPolicy(openspiel_policy.Policy):
    """A policy that returns `answer(state)`."""

    def __init__(self, game: pyspiel.Game, answer: Callable[[pyspiel.State], dict[int, float]]):
        super().__init__(game, list(range(game.num_players())))
        self._answer = answer

    def action_probabilities(self, state: pyspiel.State, player_id: int | None = None) -> dict[int, float]:
        assert player_id in (None, state.current_player())
        return self._answer(state)


class ComputingTable(openspiel_policy.TabularPolicy):
    """A table whose probabilities are not those of its array, which is uniform."""

    def __init__(self, game: pyspiel.Game, strategies: Strategies):
        super().__init__(game)
        self._strategies = strategies

    def action_probabilities(self, state: pyspiel.State, player_id: int | None = None) -> dict[int, float]:
        return self._strategies[state.information_state_string()]


def sparse(strategies: Strategies) -> Strategies:
    """Omits actions of probability 0."""
    return {key: {a: p for a, p in strategy.items() if p > 0} for key, strategy in strategies.items()}


def each_player(game: pyspiel.Game, make: Callable[[int], Any]) -> list[Any]:
    return [make(player) for player in range(game.num_players())]


FORMS: dict[str, Callable[[pyspiel.Game, Strategies], Any]] = {
    "TabularPolicy": tabular,
    "TabularPolicy that computes": ComputingTable,
    "Policy": lambda game, s: CalledPolicy(game, lambda state: s[state.information_state_string()]),
    "tabular policy from callable": lambda game, s: openspiel_policy.tabular_policy_from_callable(
        game, lambda state: s[state.information_state_string()]
    ),
    "pyspiel.TabularPolicy": lambda game, s: pyspiel.TabularPolicy(as_mapping(s)),
    "dict of dicts": lambda game, s: s,
    "dict of dicts without zeros": lambda game, s: sparse(s),
    "dict of pairs": lambda game, s: as_mapping(s),
    "dicts per player": lambda game, s: each_player(game, lambda player: s),
    "tables per player": lambda game, s: each_player(game, lambda player: tabular(game, s, [player])),
    "tuple of mixed forms": lambda game, s: (as_mapping(s), tabular(game, s), pyspiel.TabularPolicy(as_mapping(s)))[
        : game.num_players()
    ],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", ["kuhn_poker_3p", "leduc_poker", "goofspiel_3", "python_kuhn_poker", "scaled_kuhn_poker"])
def test_all_formats_are_read_to_the_same_numbers(name, form):
    game = GAMES[name]()
    compiled = compile_game(game)
    profile = random_profile(compiled)
    result = read_policy(compiled, form(game, strategies_of(profile)))
    np.testing.assert_array_equal(result.probabilities, profile.probabilities)
    assert result.game is compiled


def test_a_profile_is_returned_unchanged(kuhn):
    profile = random_profile(kuhn)
    assert read_policy(kuhn, profile) is profile


def test_profiles_per_player_are_joined(kuhn):
    first, second = random_profile(kuhn), StrategyProfile.uniform(kuhn)
    result = read_policy(kuhn, [first, second])
    np.testing.assert_array_equal(result.of_player(0), first.of_player(0))
    np.testing.assert_array_equal(result.of_player(1), second.of_player(1))


def test_openspiels_own_policies_are_read(leduc):
    game = leduc.tree.game
    uniform = StrategyProfile.uniform(leduc).probabilities
    for policy in (pyspiel.UniformRandomPolicy(game), openspiel_policy.UniformRandomPolicy(game)):
        np.testing.assert_array_equal(read_policy(leduc, policy).probabilities, uniform)
    first = strategies_of(read_policy(leduc, openspiel_policy.FirstActionPolicy(game)))
    assert all(list(strategy.values()) == [1] + [0] * (len(strategy) - 1) for strategy in first.values())


@pytest.mark.parametrize("solver_type", [pyspiel.CFRSolver, pyspiel.CFRPlusSolver])
def test_the_view_into_a_cpp_solver_is_read(leduc, solver_type):
    solver = solver_type(leduc.tree.game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    expected = {key: dict(pairs) for key, pairs in solver.tabular_average_policy().policy_table().items()}
    assert strategies_of(read_policy(leduc, solver.average_policy())) == expected


def test_the_average_of_a_sampling_solver_is_read(kuhn):
    solver = external_sampling_mccfr.ExternalSamplingSolver(kuhn.tree.game)
    for _ in range(200):
        solver.iteration()
    average = solver.average_policy()
    expected = {state.information_state_string(): average.action_probabilities(state) for state in states_of(kuhn)}
    assert strategies_of(read_policy(kuhn, average)) == expected


def states_of(game: SequenceFormGame) -> list[pyspiel.State]:
    return openspiel_policy.TabularPolicy(game.tree.game).states


@pytest.mark.parametrize(("stage_game", "num_repetitions"), [("matrix_rps", 2), ("matrix_pd", 3)])
def test_a_table_keyed_by_observations_is_read_as_openspiel_reads_it(stage_game, num_repetitions):
    """In the second game several infostates share a row, which reading supports."""
    inner = f"repeated_game(stage_game={stage_game}(),num_repetitions={num_repetitions})"
    game = compile_game(pyspiel.load_game(f"turn_based_simultaneous_game(game={inner})"))
    table = openspiel_policy.TabularPolicy(game.tree.game).copy_with_noise(1.0, 1.0, np.random.RandomState(0))
    result = strategies_of(read_policy(game, table))
    states = get_all_states.get_all_states(game.tree.game, include_terminals=False).values()
    assert result == {state.information_state_string(): table.action_probabilities(state) for state in states}


def test_a_profile_is_a_snapshot(kuhn):
    table = openspiel_policy.TabularPolicy(kuhn.tree.game)
    profile = read_policy(kuhn, table)
    table.action_probability_array[:] = 0
    assert set(profile.probabilities) == {0.5, 1.0}


@pytest.mark.parametrize("as_form", ["table", "mapping"])
def test_float32_probabilities_are_accepted(leduc, as_form):
    """The sum of a float32 softmax differs from 1 by about 1e-7."""
    rng = np.random.default_rng(0)
    table = openspiel_policy.TabularPolicy(leduc.tree.game)
    weights = np.exp(rng.normal(size=table.action_probability_array.shape).astype(np.float32)) * table.legal_actions_mask
    table.action_probability_array = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    assert np.any(table.action_probability_array.sum(axis=1, dtype=np.float64) != 1)
    policy = table if as_form == "table" else {key: dict(enumerate(table.policy_for_key(key))) for key in table.state_lookup}
    expected = pyspiel.nash_conv(leduc.tree.game, openspiel_policy.python_policy_to_pyspiel_policy(table))
    assert evaluate(leduc, policy).nash_conv == pytest.approx(expected, abs=1e-6)


# What is no policy of the game.

UNIFORM = {key: {0: 0.5, 1: 0.5} for key in ["0", "0pb", "1", "1pb", "2", "2pb", "0p", "0b", "1p", "1b", "2p", "2b"]}
NAN, INFINITY = float("nan"), float("inf")


def uniform_but(key: str, strategy: dict[int, float]) -> Strategies:
    return {**UNIFORM, key: strategy}


BAD_STRATEGIES = [
    ({0: 0.5, 1: 0.25, 2: 0.25}, ["illegal action 2", "0.25"]),
    ({0: 0.5, 1: 0.5, -1: 0.5}, ["illegal action -1", "0.5"]),
    ({0: 0.5, 1: 0.5, 7: NAN}, ["illegal action 7", "nan"]),
    ({0: 0.5, 1: 0.6}, ["not a probability distribution", "1.1"]),
    ({0: 0.5, 1: 0.5 - 2e-6}, ["not a probability distribution"]),
    ({0: 0.5}, ["not a probability distribution", "0.5"]),
    ({}, ["not a probability distribution"]),
    ({0: 1.5, 1: -0.5}, ["not a probability distribution", "-0.5"]),
    ({0: NAN, 1: 0.5}, ["not a probability distribution", "nan"]),
    ({0: INFINITY, 1: -INFINITY}, ["not a probability distribution", "inf"]),
]
MAKERS: dict[str, Callable[[pyspiel.Game, Strategies], Any]] = {
    "Policy": FORMS["Policy"],
    "TabularPolicy that computes": FORMS["TabularPolicy that computes"],
    "dict": FORMS["dict of dicts"],
    "pyspiel.TabularPolicy": FORMS["pyspiel.TabularPolicy"],
    "per player": FORMS["dicts per player"],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(("key", "player"), [("0", 0), ("2pb", 0), ("1p", 1)])
@pytest.mark.parametrize(("strategy", "words"), BAD_STRATEGIES, ids=str)
def test_a_bad_strategy_is_refused_with_its_player_and_infostate(kuhn, strategy, words, key, player, make):
    policy = make(kuhn.tree.game, uniform_but(key, strategy))
    with pytest.raises(ValueError, match=mentions("kuhn_poker", f"player {player}", f"infostate {key!r}", *words)):
        read_policy(kuhn, policy)


@pytest.mark.parametrize(
    ("row", "words"),
    [  # folding, action 0, is illegal where there is nothing to call
        ([0.5, 0.5, 0.0], ["illegal action 0", "0.5"]),
        ([NAN, 0.5, 0.5], ["illegal action 0", "nan"]),
        ([0.0, 0.5, 0.6], ["not a probability distribution", "1.1"]),
        ([0.0, 1.5, -0.5], ["not a probability distribution", "-0.5"]),
        ([0.0, NAN, 0.5], ["not a probability distribution", "nan"]),
        ([0.0, 0.0, 0.0], ["not a probability distribution", "0.0"]),
    ],
)
def test_a_bad_row_of_a_table_is_refused_with_its_player_and_infostate(leduc, row, words):
    table = openspiel_policy.TabularPolicy(leduc.tree.game)
    key = next(
        key for key in table.states_per_player[1] if table.legal_actions_mask[table.state_lookup[key]].tolist() == [0, 1, 1]
    )
    table.policy_for_key(key)[:] = row
    with pytest.raises(ValueError, match=mentions("leduc_poker", "player 1", f"infostate {key!r}", *words)):
        read_policy(leduc, table)


def without(key: str) -> Strategies:
    return {other: strategy for other, strategy in UNIFORM.items() if other != key}


@pytest.mark.parametrize(
    "make",
    [
        lambda game, strategies: strategies,
        lambda game, strategies: pyspiel.TabularPolicy(as_mapping(strategies)),
        FORMS["Policy"],
        FORMS["TabularPolicy that computes"],
        lambda game, strategies: [UNIFORM, strategies],
        lambda game, strategies: [UNIFORM, openspiel_policy.TabularPolicy(game, [0])],
        lambda game, strategies: openspiel_policy.TabularPolicy(game, [0]),
    ],
    ids=["dict", "pyspiel.TabularPolicy", "Policy", "computing", "per player", "the other's table", "one player's table"],
)
def test_a_missing_infostate_is_named(kuhn, make):
    words = ["kuhn_poker", "player 1", "no entry for infostate '1p'"]
    with pytest.raises(ValueError, match=mentions(*words)):
        read_policy(kuhn, make(kuhn.tree.game, without("1p")))


def test_a_table_with_too_few_actions_is_refused(leduc):
    table = openspiel_policy.TabularPolicy(leduc.tree.game)
    table.action_probability_array = table.action_probability_array[:, :2]
    with pytest.raises(ValueError, match=mentions("leduc_poker", "(936, 2)", "at least (468, 3)")):
        read_policy(leduc, table)


def test_a_policy_of_another_game_is_refused(kuhn, leduc):
    with pytest.raises(ValueError, match=mentions("leduc_poker", "player 0", "no entry for infostate")):
        read_policy(leduc, openspiel_policy.TabularPolicy(kuhn.tree.game))


def test_a_policy_that_is_not_a_function_of_the_infostate_is_refused(kuhn):
    def peek(state: pyspiel.State) -> dict[int, float]:
        """Player 1 bets when player 0 holds card 0, which it cannot see."""
        bet = 1.0 if state.current_player() == 1 and state.history()[0] == 0 else 0.5
        return {0: 1 - bet, 1: bet}

    # Histories are the two cards, then passes (0): card 2 of player 1 is the first that the walk meets again.
    words = ["kuhn_poker", "player 1", "infostate '2p'", "[0.0, 1.0] after history [0, 2, 0]", "[0.5, 0.5] after [1, 2, 0]"]
    with pytest.raises(ValueError, match=mentions("is not a function of the infostate", *words)):
        read_policy(kuhn, CalledPolicy(kuhn.tree.game, peek))


@pytest.mark.parametrize("difference", [0.01, 3e-6])
def test_a_policy_that_differs_slightly_within_an_infostate_is_refused(kuhn, difference):
    def peek(state: pyspiel.State) -> dict[int, float]:
        bet = 0.5 + difference * (state.history()[0] == 0)
        return {0: 1 - bet, 1: bet}

    with pytest.raises(ValueError, match=mentions("is not a function of the infostate", "player 1")):
        read_policy(kuhn, CalledPolicy(kuhn.tree.game, peek))


def test_rounding_differences_within_an_infostate_are_accepted(kuhn):
    def shaky(state: pyspiel.State) -> dict[int, float]:
        noise = 1e-9 * state.history()[0]
        return {0: 0.5 - noise, 1: 0.5 + noise}

    result = read_policy(kuhn, CalledPolicy(kuhn.tree.game, shaky))
    np.testing.assert_allclose(result.probabilities[1:13], 0.5, atol=1e-8)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_wrong_number_of_policies_is_refused(kuhn, count):
    with pytest.raises(ValueError, match=f"kuhn_poker.* has 2 players, got {count} policies"):
        read_policy(kuhn, [UNIFORM] * count)


@pytest.mark.parametrize(
    "wrong",
    ["kuhn_poker", None, 3, lambda state: {}, {"0", "1"}, [None, None], np.ones(26)],
    ids=["name", "none", "number", "function", "set", "list", "array"],
)
def test_arguments_that_are_not_policies_are_type_errors(kuhn, wrong):
    with pytest.raises(TypeError, match="expected a StrategyProfile, an OpenSpiel policy"):
        read_policy(kuhn, wrong)


@pytest.mark.parametrize("make", [lambda profile: profile, lambda profile: [UNIFORM, profile]], ids=["alone", "per player"])
def test_a_profile_is_accepted_by_another_compilation_of_its_game(kuhn, make):
    rng = np.random.default_rng(0)
    again = compile_game(GAMES["kuhn_poker"]())
    sequences = [treeplex.behavioral_policy(rng.random(treeplex.num_sequences)) for treeplex in again.treeplexes]
    profile = StrategyProfile(again, np.concatenate(sequences))
    np.testing.assert_array_equal(read_policy(kuhn, make(profile)).of_player(1), profile.of_player(1))
    other = compile_game(pyspiel.load_game("misere(game=kuhn_poker())"))
    with pytest.raises(ValueError, match=r"belongs to another game, misere\(game=kuhn_poker\(\)\), .* not to kuhn_poker"):
        read_policy(kuhn, make(StrategyProfile(other, profile.probabilities)))


class PolicyForKey(openspiel_policy.TabularPolicy):
    def policy_for_key(self, key):
        return np.array([1.0, 0.0])


def test_tables_with_overridden_methods_are_called(kuhn):
    always_first = kuhn.tree.game
    patched = openspiel_policy.TabularPolicy(always_first)
    patched.action_probabilities = lambda state, player=None: {0: 1.0, 1: 0.0}
    for policy in (PolicyForKey(always_first), patched):
        # OpenSpiel says so too: exploitability.nash_conv of always passing, and folding to a bet, is 2.
        assert evaluate(kuhn, policy).nash_conv == pytest.approx(2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(None, "None"), ([0.5, 0.5], "0.5"), ({0: "half", 1: 0.5}, "half"), ([(0, 0.5), (0, 0.5)], "contains an action twice")],
    ids=str,
)
def test_values_that_are_not_probabilities_by_action_are_refused(kuhn, answer, words):
    table = StrategyProfile.uniform(kuhn).to_dict() | {"2pb": answer}
    with pytest.raises(ValueError, match=mentions("kuhn_poker", "'2pb'", words)):
        read_policy(kuhn, table)


def test_negative_rounding_errors_are_accepted(kuhn):
    table = StrategyProfile.uniform(kuhn).to_dict() | {"2pb": {0: -1e-17, 1: 1.0}}
    assert read_policy(kuhn, table).of_player(0).min() == -1e-17


TABLES = {
    "TabularPolicy": lambda profile: profile.to_tabular_policy(),
    "pyspiel": lambda profile: profile.to_pyspiel_policy(),
    "dictionary": lambda profile: profile.to_dict(),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("per_player", [False, True])
def test_a_table_of_a_game_with_more_players_is_refused(kuhn, make, per_player):
    # Three-player Kuhn poker has all the information-state strings of the two-player game, and 36 others.
    table = make(StrategyProfile.uniform(compile_game(GAMES["kuhn_poker_3p"]())))
    with pytest.raises(ValueError, match=mentions("kuhn_poker()", "this game")):
        read_policy(kuhn, [table, table] if per_player else table)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_a_table_of_the_whole_game_is_read_for_subgames(kuhn, make):
    table = make(StrategyProfile.uniform(kuhn))
    below = compile_subgame(kuhn.tree.game.new_initial_state().child(0).child(1))
    assert read_policy(below, table).probabilities.tolist() == StrategyProfile.uniform(below).probabilities.tolist()
    locked = lock(kuhn, {(0, "0"): {0: 1.0}})
    assert read_policy(locked, table).probabilities.tolist() == StrategyProfile.uniform(locked).probabilities.tolist()


def test_infostates_that_the_game_does_not_have_are_named(kuhn):
    table = StrategyProfile.uniform(kuhn).to_dict() | {"3pb": [(0, 1.0)]}
    with pytest.raises(ValueError, match=mentions("kuhn_poker()", "1 infostates", "'3pb'", "omit these infostates")):
        read_policy(kuhn, table)


def test_read_policy_takes_a_game_that_is_not_compiled():
    game = GAMES["kuhn_poker"]()
    profile = read_policy(game, openspiel_policy.UniformRandomPolicy(game))
    assert (profile.probabilities == StrategyProfile.uniform(compile_game(game)).probabilities).all()
    with pytest.raises(TypeError, match=mentions("expected a pyspiel.Game, got None")):
        read_policy(None, {})


def test_the_error_for_a_short_list_of_policies_names_the_missing_players(kuhn):
    profile = StrategyProfile.uniform(kuhn)
    for policies, words in (
        ([profile], "kuhn_poker() has 2 players, got 1 policies: none for player 1"),
        ([], "kuhn_poker() has 2 players, got 0 policies: none for player 0, 1"),
        ([profile] * 3, "kuhn_poker() has 2 players, got 3 policies; pass one for each player"),
    ):
        with pytest.raises(ValueError, match=mentions(words)):
            evaluate(kuhn, policies)
    with pytest.raises(TypeError, match=mentions("kuhn_poker()", "got None for player 1")):
        evaluate(kuhn, [profile, None])


def test_a_profile_of_another_part_of_the_game_is_refused(kuhn):
    state = kuhn.tree.game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    part = StrategyProfile.uniform(compile_subgame(state))
    words = ["another game, kuhn_poker() below [0, 1], ", "not to kuhn_poker(), 12 infostates, "]
    with pytest.raises(ValueError, match=mentions(*words)):
        read_policy(kuhn, part)


# Where a policy that is a function is called.


class CountingPolicy(CalledPolicy):
    """Uniform, but in `exceptions`; records the histories at which it is called."""

    def __init__(self, game: pyspiel.Game, exceptions: tuple[str, ...] = ()):
        super().__init__(game, self._uniform)
        self.calls: list[str] = []
        self._exceptions = exceptions

    def _uniform(self, state: pyspiel.State) -> dict[int, float]:
        self.calls.append(state.history_str())
        actions = state.legal_actions()
        if self.calls[-1] in self._exceptions:
            return {action: float(action == actions[0]) for action in actions}
        return {action: 1 / len(actions) for action in actions}


def called(game: SequenceFormGame, **options: Any) -> list[str]:
    policy = CountingPolicy(game.tree.game)
    assert (read_policy(game, policy, **options).probabilities == StrategyProfile.uniform(game).probabilities).all()
    assert len(set(policy.calls)) == len(policy.calls)
    return policy.calls


def test_a_function_is_called_once_per_infostate_and_at_a_seeded_sample(leduc):
    tree, calls = leduc.tree, called(leduc)
    assert len(calls) == leduc.num_infostates + 2 * reading.SAMPLE_SIZE
    first = {", ".join(map(str, tree.history_actions(history))) for history in tree.first_history}
    assert first < set(calls)
    assert called(leduc, seed=0) == calls
    assert called(leduc, seed=1) != calls
    assert len(called(leduc, check="all")) == np.count_nonzero(tree.actor >= 0) == 3780


def test_small_games_are_checked_everywhere(kuhn):
    assert sorted(called(kuhn)) == sorted(called(kuhn, check="all"))


def test_check_all_finds_a_single_different_history(leduc):
    tree = leduc.tree
    not_sampled = sorted(set(called(leduc, check="all")) - set(called(leduc)))[0]
    policy = CountingPolicy(tree.game, (not_sampled,))
    assert read_policy(leduc, policy) is not None  # the price of the sample
    with pytest.raises(ValueError, match="is not a function of the infostate"):
        read_policy(leduc, policy, check="all")
    seeds = [seed for seed in range(20) if not_sampled in called(leduc, seed=seed)]
    with pytest.raises(ValueError, match="is not a function of the infostate"):
        read_policy(leduc, policy, seed=seeds[0])


def test_the_histories_of_each_player_of_a_list_are_called(leduc):
    policies = [CountingPolicy(leduc.tree.game), CountingPolicy(leduc.tree.game)]
    read_policy(leduc, policies, check="all")
    assert [len(policy.calls) for policy in policies] == [int((leduc.tree.actor == player).sum()) for player in range(2)]


@pytest.mark.parametrize("check", ["none", None, True, 100])
def test_an_unknown_check_is_refused(kuhn, check):
    with pytest.raises(ValueError, match=mentions("check='sample' or check='all'", repr(check))):
        read_policy(kuhn, UNIFORM, check=check)


def test_progress_is_shown_on_terminals_only(kuhn, monkeypatch, capsys):
    read_policy(kuhn, CountingPolicy(kuhn.tree.game), progress=True)
    assert capsys.readouterr().err == ""
    steps: list[int] = []
    monkeypatch.setattr(reading, "progress_bar", lambda show, unit: contextlib.nullcontext(steps.append if show else None))
    read_policy(kuhn, CountingPolicy(kuhn.tree.game), progress=True)
    assert sum(steps) == 24
