"""Rules of a user: the same doubles as built-in ones, in every way in which they can be run, or a reason why not."""

import copy
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from repository import ROOT
from symmetric_games import COMPARED
from user_rules import counted_hedge, discounted_plus, matching_plus, plain_plus, scheduled_plus

from spiel_cfrplus import Averaging, compile_game
from spiel_cfrplus.regret_minimizers import (
    CFR,
    ComposedCFR,
    LocalRule,
    RegretMatchingPlus,
    SimplexMinimizer,
    jit,
    local_rule,
)
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.symmetry import reduce_game

BUILT_IN = RegretMatchingRule.of(RegretMatchingPlus())


def play(game, rule, num_iterations=60, alternating=True, exact_ties=True, **options):
    session = CompiledSelfPlay(game, rule, Averaging(1), alternating, exact_ties, **options)
    session.run(num_iterations)
    return session


def numbers(session):
    return {name: array.tolist() for name, array in session.state_dict().items()}


@pytest.fixture(autouse=True)
def small_games_are_divided_too(monkeypatch):
    monkeypatch.setattr("spiel_cfrplus.solving.compiled_self_play._LEAST_WORK_OF_TEAM", 0)


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["kuhn_poker_3p", "leduc_poker", "goofspiel"])
def test_the_users_matching_plus_is_the_built_in_one(name, alternating, reduced, threads):
    game = compile_game(COMPARED[name]())
    reduction = reduce_game(game) if reduced else None
    mine, built_in = (
        play(game, rule, alternating=alternating, reduction=reduction, threads=threads) for rule in (matching_plus, BUILT_IN)
    )
    assert numbers(mine) == numbers(built_in)
    assert np.any(mine.cumulative_regrets() > 0)


def test_a_rule_that_knows_no_ties_is_the_built_in_one_without_them(leduc):
    mine, built_in = (play(leduc, rule, exact_ties=False) for rule in (plain_plus, BUILT_IN))
    assert numbers(mine) == numbers(built_in)


@pytest.mark.parametrize("rule", [plain_plus, counted_hedge], ids=str)
@pytest.mark.parametrize("name", COMPARED)
def test_merged_infostates_change_nothing(name, rule):
    # A dozen iterations: in some of these games rounding grows tenfold with each.
    game = compile_game(COMPARED[name]())
    reduction = reduce_game(game, merge_actions=False)
    whole, reduced = play(game, rule, 12), play(game, rule, 12, reduction=reduction)
    assert reduced.current_policy() == pytest.approx(whole.current_policy(), abs=1e-9)
    assert reduced.average_policy() == pytest.approx(whole.average_policy(), abs=1e-9)


def test_without_leave_no_actions_of_one_infostate_are_merged():
    game = compile_game(COMPARED["twins of three players"]())
    everything, infostates = reduce_game(game), reduce_game(game, merge_actions=False)
    assert everything.copies.max() > 1 == infostates.copies.max()
    assert everything.num_sequences < infostates.num_sequences < game.num_sequences
    assert infostates.infostate_copies.max() > 1
    assert infostates.treeplex_arrays.uniform_policy is None


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_per_infostate_is_that_of_the_infostate(kuhn, threads):
    session = play(kuhn, counted_hedge, 7, threads=threads)
    assert session.memory.updates.max() == 7
    updates = session.state_dict()["updates"]
    assert updates.tolist() == [0, *[7] * 6, 0, *[7] * 6]  # not at the roots


def test_a_schedule_computes_what_a_table_has(kuhn):
    computed, listed = (play(kuhn, rule, 30) for rule in (scheduled_plus, discounted_plus))
    assert computed.cumulative_regrets().tolist() == listed.cumulative_regrets().tolist()
    assert computed.memory.calls.tolist() == [60, 0]


@pytest.mark.parametrize("rule", [matching_plus, counted_hedge, discounted_plus, scheduled_plus], ids=str)
@pytest.mark.parametrize("other", [copy.copy, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_copies_go_on_to_the_same_doubles(kuhn, rule, other):
    session = play(kuhn, rule, 20)
    twin = other(session)
    assert twin.rule == rule
    assert twin.rule.function is rule.function
    for each in (session, twin):
        each.run(10)
    assert numbers(twin) == numbers(session)


def test_a_rule_is_found_by_its_name_in_another_process():
    script = (
        f"import pickle; rule = pickle.loads({pickle.dumps(counted_hedge)!r}); print(rule, rule.function.py_func.__module__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "tests" / "helpers", capture_output=True, text=True, check=True
    )
    assert result.stdout == "LocalRule counted_hedge(rate=0.3) user_rules\n"


@pytest.mark.parametrize("rule", [plain_plus, counted_hedge, discounted_plus], ids=str)
def test_a_rule_is_the_same_alone_composed_and_in_self_play(kuhn, rule):
    whole = [CFR(treeplex, rule) for treeplex in kuhn.treeplexes]
    composed = [ComposedCFR(treeplex, SimplexMinimizer(treeplex.num_actions, rule)) for treeplex in kuhn.treeplexes]
    for _ in range(25):
        strategies = [player.next_strategy() for player in whole]
        for player, (one, other) in enumerate(zip(whole, composed, strict=True)):
            assert other.next_strategy().tolist() == strategies[player].tolist()
            utility = kuhn.payoff_gradient(player, strategies)
            one.observe_utility(utility)
            other.observe_utility(utility)
    session = play(kuhn, rule, 25, alternating=False, exact_ties=False)
    assert np.concatenate([player.current_policy() for player in whole]).tolist() == session.current_policy().tolist()


def test_parameters_may_be_set(kuhn):
    fast, slow = play(kuhn, counted_hedge.with_parameters(rate=3.0), 5), play(kuhn, counted_hedge, 5)
    assert np.abs(fast.current_policy() - slow.current_policy()).max() > 0.1
    with pytest.raises(TypeError, match="counted_hedge has no parameter 'speed'; its parameters are rate"):
        counted_hedge.with_parameters(speed=1)
    with pytest.raises(TypeError, match="plain_plus has no parameter 'rate'; it has no parameters"):
        plain_plus.with_parameters(rate=1)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("fast", TypeError, "the parameter rate of counted_hedge"),
        (float("nan"), ValueError, "not one finite number for each iteration"),
        (lambda t: t[:1] * 0.0, ValueError, "not one finite number for each iteration"),
        (lambda t: np.log(t - 1.0 + 0 * t), ValueError, "not one finite number for each iteration"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(kuhn, value, error, words):
    rule = counted_hedge.with_parameters(rate=value)
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        play(kuhn, rule, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: local_rule(3), "a rule must be a function of (point, values, policy, memory, parameters, t), got 3"),
        (lambda: local_rule(lambda a, b: None), "the rule <lambda> must take (point, values, policy, memory, parameters, t)"),
        (
            lambda: local_rule(plain_plus.function, schedule=lambda t: (1.0,)),
            "the schedule <lambda> must take (actions, values, memory, parameters, t), it takes (t)",
        ),
    ],
)
def test_functions_of_another_form_are_refused(make, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"per_action": ("tie_tolerance",)},
        {"per_action": ("regrets", "regrets")},
        {"per_action": ("regrets",), "per_infostate": ("regrets",)},
        {"per_action": ("two words",)},
        {"per_player": ("_private",)},
        {"per_action": ("a__b",)},
        {"parameters": {"1": 2.0}},
    ],
    ids=str,
)
def test_names_that_cannot_be_used_are_refused(options):
    with pytest.raises(ValueError, match="name"):
        local_rule(plain_plus.function, name="mine", **options)


@local_rule(per_action=("regrets",))
def allocating(point, values, policy, memory, parameters, t):
    policy[point.actions.start] = np.zeros(1)[0]


@local_rule(per_action=("regrets",))
def misspelled(point, values, policy, memory, parameters, t):
    memory.regret[0] = 0.0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (allocating, "allocating cannot be compiled: it allocates an array"),
        (misspelled, "misspelled cannot be compiled: `memory` contains no 'regret'; a rule must declare"),
    ],
)
def test_what_cannot_be_compiled_is_named_with_the_reason(kuhn, rule, words):
    for run in (
        lambda: play(kuhn, rule, 1),
        lambda: CFR(kuhn.treeplexes[0], rule).observe_utility(np.zeros(kuhn.treeplexes[0].num_sequences)),
        lambda: SimplexMinimizer(2, rule).observe_utility([0.0, 1.0]),
    ):
        with pytest.raises(TypeError, match=words):
            run()


def test_a_compiled_function_stays_what_it_is():
    @jit
    def nothing(point, values, policy, memory, parameters, t):
        pass

    assert local_rule(nothing, per_action=("x",)).function is nothing
    assert isinstance(local_rule(per_action=("x",))(nothing), LocalRule)


@local_rule(per_action=("regrets",))
def counted_from_zero(point, values, policy, memory, parameters, t):
    for a in range(len(point.actions)):
        policy[a] = 1.0 / len(point.actions)


@local_rule(per_action=("regrets",))
def one_too_far(point, values, policy, memory, parameters, t):
    for a in range(point.actions.start, point.actions.stop + 1):
        memory.regrets[a] += 1.0


@local_rule(per_infostate=("visits",))
def indexed_by_action(point, values, policy, memory, parameters, t):
    memory.visits[point.actions.start] += 1.0


@local_rule(per_action=("regrets",))
def sums_to_two(point, values, policy, memory, parameters, t):
    for a in point.actions:
        policy[a] = 2.0 / len(point.actions)


@local_rule(per_action=("regrets",))
def not_a_number(point, values, policy, memory, parameters, t):
    for a in point.actions:
        policy[a] = values[a] / 0.0


@local_rule(per_action=("regrets",))
def divided_by_zeros(point, values, policy, memory, parameters, t):
    """Wrong for values of 0 only, which the trial before the first use has."""
    total = 0.0
    for a in point.actions:
        total += abs(values[a])
    for a in point.actions:
        policy[a] = abs(values[a]) / total


@local_rule(parameters={"wrong": lambda t: t > 12})
def wrong_later(point, values, policy, memory, parameters, t):
    for a in point.actions:
        policy[a] = (1.0 - parameters.wrong) / len(point.actions)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (counted_from_zero, "counted_from_zero writes to policy outside its decision point"),
        (one_too_far, "one_too_far writes to memory.regrets outside its decision point"),
        (indexed_by_action, "indexed_by_action writes to memory.visits outside its decision point"),
        (sums_to_two, "sums_to_two left the policy [1. 1.] at a decision point with 2 actions, no distribution"),
        (not_a_number, "not_a_number left the policy"),
        (divided_by_zeros, "divided_by_zeros left the policy"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_a_rule_that_leaves_its_place_or_plays_no_distribution_is_refused(kuhn, rule, words):
    for run in (
        lambda: play(kuhn, rule, 1),
        lambda: CFR(kuhn.treeplexes[0], rule).observe_utility(np.zeros(kuhn.treeplexes[0].num_sequences)),
        lambda: SimplexMinimizer(2, rule).observe_utility([0.0, 1.0]),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            run()


def test_a_rule_that_goes_wrong_later_leaves_the_session_as_it_was(kuhn):
    session = play(kuhn, wrong_later, 10)
    before = numbers(session)
    with pytest.raises(ValueError, match="wrong_later left the policy"):
        session.run(5)
    assert numbers(session) == before
    session.run(2)
    assert session.iteration == 12


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"per_action": "regrets"}, TypeError, "expected a tuple of names, such as ('regrets',), got 'regrets'"),
        ({"statements": "theorem_5"}, TypeError, "expected a tuple of names, such as ('theorem_5',)"),
        ({"parameters": ("rate",)}, TypeError, "parameters must be a dictionary of names and values, got ('rate',)"),
        ({"scale_free": "no"}, TypeError, "must be True or False, got 'no'"),
        ({"weighs_actions": True}, ValueError, "weighs_actions=True requires scale_free=True"),
    ],
    ids=["a name", "a statement", "no dictionary", "no bool", "weights alone"],
)
def test_options_of_another_form_are_refused(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        local_rule(plain_plus.function, **options)
