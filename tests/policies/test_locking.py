"""Games with locked infostates.

Expected values are from trees in which `locked_tree` inserts chance moves, or calculated by hand.
"""

import copy
import pickle

import games
import numpy as np
import pytest
import reference
from families import SOLVERS
from games import GAMES, Chance, Node, Turn, mentions

from spiel_cfrplus import (
    CFRPlusSolver,
    LockedGame,
    PredictiveCFRPlusSolver,
    StrategyProfile,
    compile_game,
    compile_subgame,
    evaluate,
    lock,
    make_solver,
    read_policy,
)
from spiel_cfrplus.analysis.theory import TheoryChecks

NAN = float("nan")
PASS, BET = range(2)


def locked_tree(node: Node, locked: reference.Policy) -> Node:
    """The tree with a chance move at each infostate in `locked`."""
    if isinstance(node, Turn):
        children = {action: locked_tree(child, locked) for action, child in node.children.items()}
        if (node.player, node.key) in locked:
            distribution = locked[node.player, node.key]
            return Chance([distribution.get(action, 0.0) for action in children], list(children.values()))
        return Turn(node.player, node.key, children)
    if isinstance(node, Chance):
        return Chance(node.probabilities, [locked_tree(child, locked) for child in node.children])
    return node


def bets(probability: float) -> dict[int, float]:
    return {PASS: 1 - probability, BET: probability}


def probability_of(profile: StrategyProfile, key: str, action: int) -> float:
    return dict(profile.to_dict()[key])[action]


# Values.


@pytest.mark.parametrize("bluffs", [0.0, 0.1, 0.25, 1 / 3])
def test_the_equilibria_of_kuhn_poker_by_how_often_player_0_bluffs(bluffs):
    """Kuhn 1950: player 0 bets the jack with any a <= 1/3, the king with 3 a, and calls with the queen with a + 1/3."""
    game = lock(GAMES["kuhn_poker"](), {(0, "0"): bets(bluffs)})
    solver = PredictiveCFRPlusSolver(game)
    solver.run(3000)
    assert solver.nash_conv() < 1e-6
    profile = game.whole_profile(solver.average_profile())
    assert probability_of(profile, "0", BET) == bluffs
    assert probability_of(profile, "1", BET) == pytest.approx(0, abs=1e-6)
    assert probability_of(profile, "2", BET) == pytest.approx(3 * bluffs, abs=1e-6)
    assert probability_of(profile, "1pb", BET) == pytest.approx(bluffs + 1 / 3, abs=1e-6)
    assert solver.evaluate().values[0] == pytest.approx(-1 / 18, abs=1e-6)
    # No reply in the whole game does better against it. (Player 1's replies may be off: no bluffs punish them.)
    assert evaluate(game.whole, profile).best_response_values[1] == pytest.approx(1 / 18, abs=1e-6)


def test_the_opponent_calls_if_a_player_bluffs_too_often():
    """Player 0 bets every jack. Even if it bets all kings too, a queen that calls earns (2 - 2) / 2 = 0, more than -1."""
    game = lock(GAMES["kuhn_poker"](), {(0, "0"): bets(1.0)})
    solver = CFRPlusSolver(game)
    solver.run(3000)
    root = locked_tree(games.tree_of(GAMES["kuhn_poker"]()), {(0, "0"): bets(1.0)})
    value = reference.zero_sum_value(root)
    assert value < -1 / 18 - 0.05
    assert solver.evaluate().values[0] == pytest.approx(value, abs=1e-3)
    assert probability_of(solver.average_profile(), "1b", BET) > 0.9
    whole = game.whole_profile(solver.average_profile())
    assert evaluate(game.whole, whole).player_improvements[0] > 0.05  # player 0 would gain by bluffing less
    assert solver.evaluate().player_improvements[0] < 1e-3  # but may not


def test_a_lock_applies_to_one_player_of_a_shared_string():
    """The matrix is [[3, -1], [-2, 1]]: against equally likely rows columns earn -1/2 and 0; rows 1 and -1/2."""
    game = games.shared_string_game()
    for player, value, reply in ((0, 0.0, 1), (1, 1.0, 0)):
        locked = lock(game, {(player, "my turn"): {0: 0.5, 1: 0.5}})
        solver = CFRPlusSolver(locked)
        solver.run(50)
        assert solver.evaluate().best_response_values[1 - player] == pytest.approx([value, -value][1 - player])
        whole = locked.whole_profile(solver.evaluate().best_responses)
        assert whole.of_player(player).tolist() == [1, 0.5, 0.5]
        assert whole.of_player(1 - player)[1:].tolist() == [reply == 0, reply == 1]


@pytest.mark.parametrize("seed", range(10))
def test_random_games_have_the_values_of_their_linear_programs(seed):
    rng = np.random.default_rng(seed)
    whole = compile_game(games.random_efg(seed))
    policy = reference.policy_of(StrategyProfile(whole, reference.random_probabilities(whole, seed)))
    locked = {infostate: policy[infostate] for infostate in policy if rng.random() < 0.4}
    assert 0 < len(locked) < len(policy)
    game = lock(whole, locked)
    root = locked_tree(games.tree_of(whole.tree.game), locked)
    assert set(reference.uniform_policy(root)) == set(reference.policy_of(StrategyProfile.uniform(game)))
    solver = CFRPlusSolver(game)
    solver.run(500)
    evaluation = solver.evaluate()
    assert reference.nash_conv(root, reference.policy_of(solver.average_profile())) == pytest.approx(evaluation.nash_conv)
    assert evaluation.values[0] == pytest.approx(reference.zero_sum_value(root), abs=evaluation.nash_conv + 1e-9)
    merged = game.whole_profile(solver.average_profile())
    assert reference.distance({infostate: reference.policy_of(merged)[infostate] for infostate in locked}, locked) < 1e-15
    np.testing.assert_allclose(evaluate(whole, merged).values, evaluation.values, atol=1e-12)


@pytest.mark.parametrize("name", ["kuhn_poker_3p", "liars_dice_3", "battle_of_the_sexes", "sheriff"])
def test_nash_conv_of_a_locked_game_counts_deviations_at_other_infostates(name):
    whole = compile_game(GAMES[name]())
    profile = StrategyProfile(whole, reference.random_probabilities(whole, 5))
    policy = reference.policy_of(profile)
    locked = {infostate: policy[infostate] for number, infostate in enumerate(policy) if number % 3 == 0}
    game = lock(whole, locked)
    evaluation = evaluate(game, StrategyProfile.uniform(game).overwritten_by(profile))
    root = locked_tree(games.tree_of(whole.tree.game), locked)
    left = {infostate: policy[infostate] for infostate in policy if infostate not in locked}
    for player in range(whole.num_players):
        value, best = (measure(root, left, player) for measure in (reference.expected_value, reference.best_response_value))
        assert evaluation.values[player] == pytest.approx(value, abs=1e-12)
        assert evaluation.best_response_values[player] == pytest.approx(best, abs=1e-12)
    assert np.all(evaluation.player_improvements <= evaluate(whole, profile).player_improvements + 1e-12)
    assert evaluation.nash_conv < evaluate(whole, profile).nash_conv


def test_others_learn_a_best_response_to_a_locked_player(leduc):
    profile = StrategyProfile(leduc, reference.random_probabilities(leduc, 2))
    fixed = profile.to_dict()
    game = lock(leduc, {(1, key): fixed[key] for key in leduc.treeplexes[1].infostate_keys})
    assert [treeplex.num_decision_points for treeplex in game.treeplexes] == [468, 0]
    solver = CFRPlusSolver(game)
    solver.run(200)
    best = evaluate(leduc, profile).best_response_values[0]
    assert solver.evaluate().values[0] == pytest.approx(best, abs=1e-3)
    assert evaluate(leduc, game.whole_profile(solver.evaluate().best_responses)).values[0] == pytest.approx(best)


def test_a_game_locked_everywhere_has_one_value(kuhn):
    profile = StrategyProfile(kuhn, reference.random_probabilities(kuhn, 8))
    policy = reference.policy_of(profile)
    game = lock(kuhn, policy)
    assert game.num_infostates == 0
    solver = CFRPlusSolver(game)
    solver.warm_start(solver.current_profile(), 3)
    solver.run(2)
    value = reference.expected_value(games.tree_of(GAMES["kuhn_poker"]()), policy, 0)
    assert solver.evaluate().values.tolist() == pytest.approx([value, -value])
    assert solver.nash_conv() == 0
    assert np.array_equal(game.whole_profile(solver.average_profile()).probabilities, profile.probabilities)


def test_locks_with_probability_0_cause_no_nan_below():
    """Player 0 always passes: infostates after its bets have no weight and stay uniform."""
    game = lock(GAMES["kuhn_poker"](), {(0, str(card)): {PASS: 1.0} for card in range(3)})
    solver = CFRPlusSolver(game)
    solver.run(300)
    policy = solver.average_profile().to_dict()
    assert [policy[f"{card}b"] for card in range(3)] == [[(PASS, 0.5), (BET, 0.5)]] * 3
    assert dict(policy["2p"])[BET] > 0.9
    assert np.isfinite(solver.average_profile().probabilities).all()


# Locks in company.


@pytest.mark.parametrize("solver_type", SOLVERS.values(), ids=SOLVERS)
def test_no_solver_changes_locked_infostates(solver_type):
    game = lock(GAMES["kuhn_poker"](), {(0, "0"): bets(0.25), (1, "1p"): bets(0.125)})
    solver = solver_type(game)
    solver.run(500)
    assert solver.nash_conv() < 0.02
    table = game.whole_profile(solver.average_profile()).to_tabular_policy()
    assert table.action_probability_array.shape == (12, 2)
    assert (table.policy_for_key("0").tolist(), table.policy_for_key("1p").tolist()) == ([0.75, 0.25], [0.875, 0.125])
    with pytest.raises(KeyError):
        solver.average_policy().policy_for_key("0")


def test_learners_and_theory_take_locked_games():
    game = lock(GAMES["kuhn_poker"](), {(0, "0"): bets(0.25)})
    learner = make_solver("cfr_hedge", game)
    learner.run(500)
    assert learner.nash_conv() < 0.02
    checks = TheoryChecks(CFRPlusSolver(game))
    checks.run(100)
    assert len(checks.report()) > 3


def test_locks_can_be_combined_and_apply_to_subgames(kuhn):
    once = lock(kuhn, {(0, "0"): bets(0.25), (1, "1b"): bets(0.75)})
    twice = lock(lock(kuhn, {(0, "0"): bets(0.25)}), {(1, "1b"): bets(0.75)})
    assert once.fingerprint == twice.fingerprint != kuhn.fingerprint
    profile = StrategyProfile(twice, reference.random_probabilities(twice, 1))
    inner = twice.whole_profile(profile)
    assert inner.to_dict() == {"1b": [(PASS, 0.25), (BET, 0.75)]} | profile.to_dict()
    assert twice.whole.whole_profile(inner).to_dict() == once.whole_profile(profile).to_dict()
    states = [kuhn.tree.game.new_initial_state() for _ in range(2)]
    for state, card in zip(states, (1, 2), strict=True):
        for action in (card, 0, BET):
            state.apply_action(action)
    sub_game = lock(compile_subgame(states), {(1, "0b"): bets(0.5)})
    # A call of the jack loses 2 to either, a fold 1.
    assert evaluate(sub_game, {}).values.tolist() == [1.5, -1.5]


def test_without_locks_the_game_is_unchanged(kuhn):
    game = lock(kuhn, {})
    assert game.fingerprint == kuhn.fingerprint
    profile = StrategyProfile(kuhn, reference.random_probabilities(kuhn, 4))
    assert np.array_equal(game.whole_profile(profile).probabilities, profile.probabilities)


def test_rounding_errors_in_a_distribution_are_normalized(kuhn):
    near = {PASS: 0.75 + 4e-7, BET: 0.25}
    game = lock(kuhn, {(0, "0"): near, (0, "1"): {PASS: 1 + 1e-8, BET: -1e-8}})
    chosen = game.fixed.to_dict()
    assert chosen["0"][BET][1] == pytest.approx(0.25 / (1 + 4e-7), rel=1e-15)
    assert chosen["1"] == [(PASS, 1.0), (BET, 0.0)]
    sums = np.bincount(game.tree.parent[1:], game.tree.chance_probability[1:])[
        game.tree.actor[: game.tree.parent[-1] + 1] == -1
    ]
    assert np.allclose(sums, 1, rtol=0, atol=1e-15)


def test_locked_games_are_saved_copied_and_pickled(tmp_path):
    game = lock(GAMES["kuhn_poker"](), {(0, "0"): bets(0.25)})
    solver = CFRPlusSolver(game)
    solver.run(20)
    solver.save(tmp_path / "solver")
    resumed = [CFRPlusSolver.load(tmp_path / "solver", game), copy.copy(solver), pickle.loads(pickle.dumps(solver))]
    solver.run(20)
    for other in resumed:
        other.run(20)
        assert isinstance(other.game, LockedGame)
        assert probability_of(other.game.whole_profile(other.average_profile()), "0", BET) == 0.25
        assert np.array_equal(other.average_profile().probabilities, solver.average_profile().probabilities)
    with pytest.raises(ValueError, match="Pass the game it was saved for"):
        CFRPlusSolver.load(tmp_path / "solver")
    assert "1 infostates locked" in repr(game)


# Errors.


@pytest.mark.parametrize(
    ("distributions", "words"),
    [
        ({(0, "7"): bets(0.5)}, ["player 0 has no infostate '7'", "kuhn_poker()"]),
        ({(0, "1b"): bets(0.5)}, ["player 0 has no infostate '1b'", "it is an infostate of player 1"]),
        ({(2, "0"): bets(0.5)}, ["players 0 to 1, got 2"]),
        ({(-1, "0"): bets(0.5)}, ["players 0 to 1, got -1"]),
        ({(0, "0"): {BET: 0.5}}, ["player 0 is not a probability distribution at infostate '0'", "0.5"]),
        ({(0, "0"): bets(1.5)}, ["not a probability distribution", "-0.5"]),
        ({(0, "0"): bets(NAN)}, ["not a probability distribution", "nan"]),
        ({(0, "0"): {PASS: 0.5, 2: 0.5}}, ["illegal action 2"]),
        ({(0, "0"): [(PASS, 0.5), (PASS, 0.5)]}, ["twice"]),
        ({(0, "0"): 0.5}, ["0.5, not probabilities by action"]),
        ({(0, "1"): bets(0.5), (0, "0"): {}}, ["'0'", "sums to 0"]),
    ],
)
def test_invalid_locks_are_refused(kuhn, distributions, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        lock(kuhn, distributions)


@pytest.mark.parametrize("distributions", [None, [], [((0, "0"), bets(0.5))], {"0": bets(0.5)}, {("0", 0): bets(0.5)}, {0: 1}])
def test_invalid_infostate_keys_are_refused(kuhn, distributions):
    with pytest.raises(TypeError, match="infostate string"):
        lock(kuhn, distributions)


def test_profiles_of_another_game_are_refused(kuhn, leduc):
    game = lock(kuhn, {(0, "0"): bets(0.25)})
    with pytest.raises(ValueError, match="belongs to another game"):
        game.whole_profile(StrategyProfile.uniform(leduc))
    with pytest.raises(ValueError, match="belongs to another game"):
        read_policy(game, StrategyProfile.uniform(kuhn))
