"""Solvers that go on from a policy."""

import copy
import dataclasses
import math
import pickle

import games
import numpy as np
import pyspiel
import pytest
import reference
from families import SOLVERS, in_python
from games import GAMES, Chance, End, Turn, mentions

from spiel_cfrplus import (
    Averaging,
    CFRPlusSolver,
    CFRSolver,
    LinearCFRSolver,
    PDCFRPlusSolver,
    PredictiveCFRPlusSolver,
    SequenceFormGame,
    Solver,
    StrategyProfile,
    compile_game,
    compile_subgame,
    nash_conv,
)
from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus.analysis.theory import THEOREM_5, TheoryChecks
from spiel_cfrplus.solving.warm_start import counterfactual_ranges

NAN = float("nan")
all_solvers = pytest.mark.parametrize("solver_type", SOLVERS.values(), ids=SOLVERS)

# Games in which the strategies of predictive solvers converge.
CONVERGENT = [
    "kuhn_poker",
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,points_order=descending))",
    "liars_dice(dice_sides=4)",
]

# An equilibrium of Kuhn poker, with probabilities of a bet (Kuhn 1950): player 0 bluffs with 1/4 of its jacks.
EQUILIBRIUM = {"0": 1 / 4, "1": 0, "2": 3 / 4, "0pb": 0, "1pb": 7 / 12, "2pb": 1}
EQUILIBRIUM |= {"0p": 1 / 3, "1p": 0, "2p": 1, "0b": 0, "1b": 1 / 3, "2b": 1}


def kuhn_policy(bets: dict[str, float]) -> dict[str, dict[int, float]]:
    return {key: {0: 1 - bet, 1: bet} for key, bet in bets.items()}


def random_profile(game: SequenceFormGame, seed: int) -> StrategyProfile:
    return StrategyProfile(game, reference.random_probabilities(game, seed))


def warm(solver: Solver, policy: object, weight: int) -> Solver:
    solver.warm_start(policy, weight)
    return solver


def regrets(solver: Solver) -> dict[str, list[float]]:
    """Of both players of Kuhn poker, by infostate."""
    table = solver.self_play.cumulative_regrets()
    return {
        key: table[own][treeplex.sequences(point)].tolist()
        for treeplex, own in zip(solver.game.treeplexes, solver.game.player_slices, strict=True)
        for point, key in enumerate(treeplex.infostate_keys)
    }


# What is promised.


@all_solvers
@pytest.mark.parametrize("name", ["kuhn_poker_3p", "goofspiel_3", "tiny_hanabi", "sheriff"])
@pytest.mark.parametrize("weight", [1, 1000])
def test_the_current_policy_is_the_policy_everywhere(solver_type, name, weight):
    game = compile_game(GAMES[name]())
    profile = random_profile(game, 11)
    assert profile.probabilities.tolist().count(0) > 2  # so there are places where players do not come
    solver = warm(solver_type(game), profile, weight)
    assert solver.iteration == weight
    np.testing.assert_allclose(solver.current_profile().probabilities, profile.probabilities, rtol=0, atol=1e-15)
    average = solver.average_profile()
    for player in range(game.num_players):
        np.testing.assert_allclose(average.sequence_form(player), profile.sequence_form(player), rtol=0, atol=1e-14)
    solver.run(3)
    assert np.isfinite(solver.average_profile().probabilities).all()


@all_solvers
def test_weight_0_changes_nothing(solver_type, leduc):
    solvers = [warm(solver_type(leduc), random_profile(leduc, 1), 0), solver_type(leduc)]
    for solver in solvers:
        assert solver.iteration == 0
        solver.run(10)
    assert np.array_equal(*(solver.average_profile().probabilities for solver in solvers))


@all_solvers
@pytest.mark.parametrize("alternating", [True, False])
def test_an_equilibrium_is_not_left(solver_type, alternating, kuhn):
    """Where it mixes all values are equal, and there are no regrets; what it leaves out has none that are positive.

    Like a pencil on its tip: rounding grows, so after some dozens of iterations it may be left.
    """
    solver = warm(solver_type(kuhn, alternating=alternating), kuhn_policy(EQUILIBRIUM), 10)
    for _ in range(15):
        solver.run(1)
        assert nash_conv(kuhn, solver.current_profile()) < 1e-8
        assert solver.nash_conv() < 1e-10
    assert dict(solver.current_profile().to_dict()["1pb"])[1] == pytest.approx(7 / 12, abs=1e-8)


def test_regrets_worked_by_hand(kuhn):
    """They are the policy, made as long as sqrt(T * 2 actions) * (others' reach) * (range of payoffs), T = 0.1, predictive 0.5.

    With a third of the prediction T is 0.1 + 0.4 / 3 = 7/30.

    Others play the policy or, as often, uniformly.
    '0': reach 1/3 (the card), payoffs -2 to 1 (only the last card in a fight loses 2).
    '2': reach 1/3, payoffs -1 (for a king that passes, and folds) to 2.
    '1pb': player 1 bets the jack with (1/3 + 1/2) / 2 = 5/12, the king with (1 + 1/2) / 2 = 3/4, at 1/6 each: 7/36. Payoffs
    -2 to 2.
    '1b': player 0 bets the jack with (1/4 + 1/2) / 2 = 3/8, the king with (3/4 + 1/2) / 2 = 5/8: 1/6. Payoffs -2 to 2.
    """
    expected = {"0": (1 / 3 * 3, 1 / 4), "2": (1 / 3 * 3, 3 / 4), "1pb": (7 / 36 * 4, 7 / 12), "1b": (1 / 6 * 4, 1 / 3)}
    for solver_type, weight, factor in (
        (CFRSolver, 1, 0.2),
        (CFRSolver, 7, 0.2),
        (PredictiveCFRPlusSolver, 7, 1.0),
        (SOLVERS["sapcfr+"], 7, 7 / 15),
    ):
        found = regrets(warm(solver_type(kuhn), kuhn_policy(EQUILIBRIUM), weight))
        for key, (size, bet) in expected.items():
            length = size * math.sqrt(factor) / math.hypot(bet, 1 - bet)
            assert found[key] == pytest.approx([length * (1 - bet), length * bet], rel=1e-12)


def test_the_update_after_it_worked_by_hand():
    """[[2, -1], [-1, 1]]; players play (3/4, 1/4) and (1/4, 3/4), updated at once.

    Rows earn 2/4 - 3/4 = -1/4 and -1/4 + 3/4 = 1/2, on average -3/16 + 1/8 = -1/16: regrets -3/16 and 9/16. The columns cost
    6/4 - 1/4 = 5/4 and -3/4 + 1/4 = -1/2, so they earn -5/4 and 1/2, on average -5/16 + 3/8 = 1/16: -21/16 and 7/16.
    """
    solver = CFRPlusSolver(games.matrix_game([[2, -1], [-1, 1]]), alternating=False)
    solver.warm_start(matrix_policies(solver.game), 4)
    length = 3 * math.sqrt(0.2) / math.hypot(3, 1)  # payoffs range from -1 to 2, and -2 to 1
    rows = np.array([3 * length - 3 / 16, length + 9 / 16])
    columns = np.array([max(length - 21 / 16, 0), 3 * length + 7 / 16])
    solver.run(1)
    np.testing.assert_allclose(solver.current_profile().of_player(0)[1:], rows / rows.sum(), rtol=1e-12)
    np.testing.assert_allclose(solver.current_profile().of_player(1)[1:], columns / columns.sum(), rtol=1e-12)


def matrix_policies(game: SequenceFormGame) -> list[dict[str, dict[int, float]]]:
    """Rows 3/4, 1/4 and columns 1/4, 3/4."""
    mixes = [{0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}]
    return [{treeplex.infostate_keys[0]: mix} for treeplex, mix in zip(game.treeplexes, mixes, strict=True)]


@pytest.mark.parametrize(("solver_type", "power"), [(CFRSolver, 0), (CFRPlusSolver, 1), (PredictiveCFRPlusSolver, 2)])
@pytest.mark.parametrize("convention", ["paper", "openspiel"])
def test_the_policy_has_the_weight_of_the_iterations_it_stands_for(solver_type, power, convention, kuhn):
    profile, weight = random_profile(kuhn, 6), 5
    solver = warm(solver_type(kuhn, averaging=convention), profile, weight)
    currents = [solver.current_profile()]
    for _ in range(4):
        solver.run(1)
        currents.append(solver.current_profile())
    for player in range(2):
        first = int(player == 0 and convention == "paper")
        total = sum(i**power for i in range(1, weight + 1)) * profile.sequence_form(player)
        for i, current in enumerate(currents[first : first + 4], weight + 1):
            total = total + i**power * current.sequence_form(player)
        average = total / total[0]
        np.testing.assert_allclose(solver.average_profile().sequence_form(player), average, rtol=0, atol=1e-13)


def test_discounts_go_on_from_the_weight(kuhn):
    """Linear CFR multiplies all regrets by t / (t + 1) in iteration t, here 9 / 10."""
    profile = kuhn_policy(dict.fromkeys(EQUILIBRIUM, 0.3))
    solvers = [warm(solver_type(kuhn, alternating=False), profile, 8) for solver_type in (LinearCFRSolver, CFRSolver)]
    for solver in solvers:
        solver.run(1)
    linear, plain = map(regrets, solvers)
    assert linear.keys() == plain.keys()
    for key in plain:
        assert linear[key] == pytest.approx([0.9 * regret for regret in plain[key]], rel=1e-12)


# What it is good for.


@all_solvers
def test_goes_on_about_as_well_as_the_run_that_the_policy_came_from(solver_type, leduc):
    solver = solver_type(leduc)
    solver.run(100)
    policy, before = solver.average_policy(), solver.nash_conv()
    started = warm(solver_type(leduc), policy, 100)
    assert started.nash_conv() == pytest.approx(before)
    for num_iterations in (1, 9, 90):
        started.run(num_iterations)
        assert started.nash_conv() < 1.5 * before
    solver.run(900)
    started.run(800)
    assert started.nash_conv() < before / 3
    # Where predictions have a weight, the regrets to start with are a compromise; see the module `warm_start`.
    assert started.nash_conv() < (2.5 if solver.algorithm.rule.prediction_weight in (0, 1) else 4) * solver.nash_conv()


@pytest.mark.parametrize("name", CONVERGENT)
@pytest.mark.parametrize("solver_type", [PredictiveCFRPlusSolver, PDCFRPlusSolver])
def test_predictive_solvers_do_not_fall_back(solver_type, name):
    game = compile_game(pyspiel.load_game(name))
    solver = solver_type(game)
    solver.run(200)
    started = warm(solver_type(game), solver.average_profile(), 200)
    before = solver.nash_conv()
    for num_iterations in (30, 170):
        started.run(num_iterations)
        assert started.nash_conv() < 2 * before
    solver.run(1000)
    started.run(800)
    assert started.nash_conv() < 5 * solver.nash_conv() < before / 20


def test_a_bad_policy_is_unlearned(leduc):
    def last(treeplex):
        policy = np.zeros(treeplex.num_sequences)
        policy[treeplex.sequence_start[1:] - 1] = policy[0] = 1
        return policy

    raises = StrategyProfile(leduc, np.concatenate([last(treeplex) for treeplex in leduc.treeplexes]))
    assert nash_conv(leduc, raises) > 4
    solver = warm(CFRPlusSolver(leduc), raises, 10)
    solver.run(1000)
    assert solver.nash_conv() < 0.02


def test_sub_games_start_from_the_blueprint(leduc):
    solver = CFRPlusSolver(leduc)
    solver.run(100)
    state = leduc.tree.game.new_initial_state()
    for action in (0, 3, 1, 1):
        state.apply_action(action)
    part = warm(CFRPlusSolver(compile_subgame(state)), solver.average_policy(), 100)
    wanted = solver.average_profile().to_dict()
    for key, pairs in part.current_profile().to_dict().items():
        assert pairs == [(action, pytest.approx(probability, abs=1e-15)) for action, probability in wanted[key]]


# Numerics.


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40, 1e-9, 1e9])
@pytest.mark.parametrize("solver_type", [CFRPlusSolver, PredictiveCFRPlusSolver])
def test_the_unit_of_payoffs_does_not_matter(factor, solver_type):
    game = games.random_efg(4)
    policies = []
    for unit in (1.0, factor):
        compiled = compile_game(games.scaled_game(game, unit))
        solver = warm(solver_type(compiled), random_profile(compiled, 9), 20)
        solver.run(30)
        policies.append(solver.current_profile().probabilities)
    assert np.ptp(policies[0]) > 0.5
    np.testing.assert_allclose(*policies, rtol=0, atol=0 if math.frexp(factor)[0] == 0.5 else 1e-9)


def test_a_constant_added_to_payoffs_does_not_matter(kuhn):
    def raised(node):
        match node:
            case End(returns):
                return End([returns[0] + 1024, returns[1] - 1024])
            case Chance(probabilities, children):
                return Chance(probabilities, [raised(child) for child in children])
            case Turn(player, key, children):
                return Turn(player, key, {action: raised(child) for action, child in children.items()})

    game = compile_game(games.efg_game(raised(games.tree_of(kuhn.tree.game))))
    solvers = [CFRSolver(kuhn), CFRSolver(game)]
    for solver in solvers:
        solver.warm_start(random_profile(solver.game, 3), 10)
    tables = [solver.self_play.cumulative_regrets() for solver in solvers]
    np.testing.assert_allclose(*tables, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@all_solvers
def test_the_policy_stays_where_nothing_is_at_stake(solver_type, unit):
    """Everything pays the same at "same", and chance never leads to "never"; at "free" nobody is paid."""
    turns = [
        Turn(0, "same", {action: End([3 * unit, -3 * unit]) for action in range(2)}),
        Turn(0, "never", {action: End([action * unit, -action * unit]) for action in range(2)}),
        Turn(0, "free", {action: End([0, 0]) for action in range(2)}),
    ]
    game = games.bad_chance_game([0.5, 0.0, 0.5], turns)
    policy = {key: {0: 0.9, 1: 0.1} for key in ("same", "never", "free")}
    solver = warm(solver_type(game), policy, 10)
    solver.run(100)
    for pairs in solver.current_profile().to_dict().values():
        assert pairs == [(0, pytest.approx(0.9)), (1, pytest.approx(0.1))]


# Company.


@pytest.mark.parametrize("solver_type", [CFRPlusSolver, PredictiveCFRPlusSolver])
def test_saved_copied_and_pickled_solvers_go_on_to_the_same_doubles(solver_type, kuhn, tmp_path):
    solver = warm(solver_type(kuhn), random_profile(kuhn, 2), 15)
    solver.save(tmp_path / "solver")
    resumed = [solver_type.load(tmp_path / "solver"), copy.copy(solver), pickle.loads(pickle.dumps(solver))]
    solver.run(30)
    for other in resumed:
        other.run(30)
        assert other.iteration == 45
        assert np.array_equal(other.average_profile().probabilities, solver.average_profile().probabilities)
        assert np.array_equal(other.current_profile().probabilities, solver.current_profile().probabilities)


def test_theory_holds_from_a_warm_start(kuhn):
    checks = TheoryChecks(warm(CFRPlusSolver(kuhn), random_profile(kuhn, 2), 15))
    checks.run(100)
    findings = {finding.statement: finding for finding in checks.report()}
    assert findings[THEOREM_5].slack >= -1e-12
    assert any("began before" in finding.verdict for finding in findings.values())


# Errors.


class TestNothingIsChangedBy:
    @pytest.fixture
    def solver(self, kuhn):
        return CFRPlusSolver(kuhn)

    @pytest.fixture(autouse=True)
    def _compare(self, solver, kuhn):
        yield
        assert solver.iteration == 0
        assert np.array_equal(solver.current_profile().probabilities, StrategyProfile.uniform(kuhn).probabilities)
        assert np.array_equal(solver.average_profile().probabilities, StrategyProfile.uniform(kuhn).probabilities)

    def test_a_negative_weight(self, solver):
        with pytest.raises(ValueError, match=mentions("not be negative", "-1")):
            solver.warm_start(kuhn_policy(EQUILIBRIUM), -1)

    @pytest.mark.parametrize("weight", [NAN, 2.5, "3", None])
    def test_a_weight_that_is_no_integer(self, solver, weight):
        with pytest.raises(TypeError, match="integer"):
            solver.warm_start(kuhn_policy(EQUILIBRIUM), weight)

    @pytest.mark.parametrize("weight", [0, 5])
    def test_a_policy_that_is_none(self, solver, weight, leduc):
        with pytest.raises(ValueError, match="no entry for infostate '2pb'"):
            solver.warm_start({key: mix for key, mix in kuhn_policy(EQUILIBRIUM).items() if key != "2pb"}, weight)
        with pytest.raises(ValueError, match="not a probability distribution"):
            solver.warm_start(kuhn_policy(EQUILIBRIUM | {"1": NAN}), weight)
        with pytest.raises(ValueError, match="another game"):
            solver.warm_start(StrategyProfile.uniform(leduc), weight)
        with pytest.raises(TypeError, match="StrategyProfile"):
            solver.warm_start(0.5, weight)


def test_weights_too_large_for_the_average_are_refused(kuhn):
    solver = CFRPlusSolver(kuhn, averaging=Averaging(150.0))
    with pytest.raises(ValueError, match="too large for a float64 sum from iteration 101"):
        solver.warm_start(kuhn_policy(EQUILIBRIUM), 200)
    assert solver.iteration == 0


def test_only_new_solvers_are_started(kuhn):
    solver = CFRPlusSolver(kuhn)
    solver.run(2)
    before = solver.average_profile().probabilities
    with pytest.raises(ValueError, match=mentions("2 iterations", "new solver")):
        solver.warm_start(kuhn_policy(EQUILIBRIUM), 5)
    started = warm(CFRPlusSolver(kuhn), kuhn_policy(EQUILIBRIUM), 3)
    with pytest.raises(ValueError, match="3 iterations"):
        started.warm_start(kuhn_policy(EQUILIBRIUM), 5)
    assert np.array_equal(solver.average_profile().probabilities, before)


@pytest.mark.parametrize("weight", [10**9 + 1, 2**62])
def test_weights_whose_sum_would_take_minutes_or_years_are_refused(weight, kuhn):
    solver = CFRPlusSolver(kuhn)
    with pytest.raises(ValueError, match="the number of iterations of a warm start must be at most 1000000000, got"):
        solver.warm_start(StrategyProfile.uniform(kuhn), weight)
    assert solver.iteration == 0


def test_learners_of_ones_own_are_refused(kuhn):
    solver = in_python("cfr+", kuhn)
    with pytest.raises(TypeError, match=mentions("cannot warm-start cfr+", "its minimizers are Python objects")):
        solver.warm_start(kuhn_policy(EQUILIBRIUM), 5)
    assert solver.iteration == 0


def test_one_policy_object_may_start_many(kuhn):
    table = pyspiel.TabularPolicy(kuhn_to_pairs())
    solvers = [warm(CFRPlusSolver(kuhn), table, 3) for _ in range(2)]
    solvers[0].run(10)
    assert dict(solvers[1].current_profile().to_dict()["2"])[1] == pytest.approx(0.75)


def kuhn_to_pairs() -> dict[str, list[tuple[int, float]]]:
    return {key: list(mix.items()) for key, mix in kuhn_policy(EQUILIBRIUM).items()}


def test_regrets_of_a_warm_start_are_in_the_unit_of_the_players_own_payoffs():
    tree = compile_game(GAMES["kuhn_poker"]()).tree
    other = dataclasses.replace(tree, returns=frozen(tree.returns * [1, 1000], np.float64))
    ranges, scaled = (counterfactual_ranges(StrategyProfile.uniform(SequenceFormGame.from_tree(t))) for t in (tree, other))
    np.testing.assert_allclose(scaled, ranges * np.where(tree.infostate_player == 1, 1000, 1))
    # With the jack player 0 wins at most 1 and loses at most 2; chance deals it the jack once in 3 games.
    assert ranges[tree.infostate_keys.index("0")] == pytest.approx(3 / 3)
