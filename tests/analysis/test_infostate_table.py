"""Tables of profiles against brute force, and how they are shown."""

import functools
import html
from collections import defaultdict

import games
import numpy as np
import pytest
import reference
from games import GAMES, Chance, End, Turn

import spiel_cfrplus
from spiel_cfrplus import InfostateTable, StrategyProfile, compile_game, compile_subgame, infostate_table, lock
from spiel_cfrplus.analysis.infostate_table import Table

NAMES = ["kuhn_poker", "kuhn_poker_3p", "liars_dice_3", "goofspiel_3", "tiny_hanabi", "random_efg", "python_kuhn_poker"]
COLUMNS = [
    "player",
    "infostate",
    "action",
    "action_name",
    "probability",
    "own_reach",
    "counterfactual_reach",
    "expected_value",
    "regret",
]


@functools.cache
def tree(name):
    return games.tree_of(GAMES[name]())


@functools.cache
def random_profile(name):
    game = compile_game(GAMES[name]())
    return StrategyProfile(game, reference.random_probabilities(game, seed=7))


def reach_of_others(root, policy):
    """The reach of the histories of each infostate by chance and the others, in preorder."""
    result = defaultdict(list)

    def visit(node, reach):
        if isinstance(node, End):
            return
        mover = len(reach) - 1 if isinstance(node, Chance) else node.player
        if isinstance(node, Turn):
            result[mover, node.key].append(np.prod([reach[p] for p in range(len(reach)) if p != mover]))
        for probability, child in reference.branches(node, policy):
            visit(child, [r * probability if p == mover else r for p, r in enumerate(reach)])

    visit(root, [1.0] * (reference.num_players(root) + 1))
    return result


@pytest.mark.parametrize("name", NAMES)
def test_tables_equal_brute_force(name):
    profile, root = random_profile(name), tree(name)
    policy, pasts = reference.policy_of(profile), reference.own_pasts(root)
    others = reach_of_others(root, policy)
    values = {}
    for player in range(profile.game.num_players):
        values |= reference.counterfactual_values(root, policy, player)
    table = infostate_table(profile)
    assert list(table.columns) == COLUMNS
    assert len(table) == sum(map(len, policy.values()))
    rows = zip(*(table[name].tolist() for name in COLUMNS if name != "action_name"), strict=True)
    some_unreached = False
    for player, key, action, probability, own_reach, reach, expected, regret in rows:
        infostate = (player, key)
        assert probability == policy[infostate][action]
        assert own_reach == pytest.approx(np.prod([policy[past][a] for past, a in pasts[infostate]]), abs=1e-12)
        assert reach == pytest.approx(sum(others[infostate]), abs=1e-12)
        mean = sum(policy[infostate][a] * value for a, value in values[infostate].items())
        assert regret == pytest.approx(values[infostate][action] - mean, abs=1e-12)
        if sum(others[infostate]) == 0:
            some_unreached = True
            assert np.isnan(expected)
        else:
            assert expected * reach == pytest.approx(values[infostate][action], abs=1e-12)
            assert expected == pytest.approx(values[infostate][action] / sum(others[infostate]), rel=1e-9, abs=1e-12)
    assert some_unreached == any(sum(reaches) == 0 for reaches in others.values())


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker_3p", "liars_dice_3", "random_efg"])
def test_beliefs_equal_brute_force(name):
    profile = random_profile(name)
    others = reach_of_others(tree(name), reference.policy_of(profile))
    beliefs = infostate_table(profile).beliefs()
    assert len(beliefs) == sum(map(len, others.values()))
    found = defaultdict(list)
    for player, key, _, probability in zip(*(column.tolist() for column in beliefs.columns.values()), strict=True):
        found[player, key].append(probability)
    for infostate, reaches in others.items():
        total = sum(reaches)
        assert len(found[infostate]) == len(reaches)
        if total > 0:
            assert found[infostate] == pytest.approx([reach / total for reach in reaches], abs=1e-12)
        else:
            assert np.isnan(found[infostate]).all()


def test_the_mean_of_expected_values_is_the_value_of_the_game(kuhn):
    """At the infostates with nothing before them, weighted by their reach."""
    profile = StrategyProfile(kuhn, reference.random_probabilities(kuhn, seed=2))
    table = infostate_table(profile)
    first = np.isin(table["infostate"], ["0", "1", "2"])
    mean = np.sum((table["probability"] * table["counterfactual_reach"] * table["expected_value"])[first])
    assert mean == pytest.approx(spiel_cfrplus.expected_values(kuhn, profile)[0], abs=1e-12)


def test_an_equilibrium_has_no_positive_regret_where_it_is_reached(leduc):
    solver = spiel_cfrplus.CFRPlusSolver(leduc)
    solver.run(2000)
    profile = spiel_cfrplus.read_policy(leduc, solver.average_profile())
    table = infostate_table(profile)
    assert np.max(table["own_reach"] * table["regret"]) <= solver.nash_conv() + 1e-12 < 1e-2


def test_names_of_actions_are_openspiels(leduc):
    table = infostate_table(StrategyProfile.uniform(leduc))
    assert set(zip(table["action"].tolist(), table["action_name"].tolist(), strict=True)) == {
        (0, "Fold"),
        (1, "Call"),
        (2, "Raise"),
    }


def test_subgames_and_locked_games_have_tables(kuhn):
    state = kuhn.tree.game.new_initial_state().child(0).child(1)
    below = infostate_table(StrategyProfile.uniform(compile_subgame(state)))
    assert set(below["infostate"]) == {"0", "0pb", "1p", "1b"}
    assert set(below.beliefs()["history"]) == {"0, 1", "0, 1, 0", "0, 1, 1", "0, 1, 0, 1"}
    locked = lock(kuhn, {(0, "0"): {0: 0.25, 1: 0.75}})
    table = infostate_table(StrategyProfile.uniform(locked))
    assert "0" not in table["infostate"][table["player"] == 0]
    assert table.of_infostate(1, "1b")["counterfactual_reach"][0] == pytest.approx((0.75 + 0.5) / 6, abs=1e-15)


def test_columns_are_read_only_arrays_of_one_length(kuhn):
    table = infostate_table(StrategyProfile.uniform(kuhn))
    for columns in (table.columns, table.beliefs().columns):
        assert len({len(column) for column in columns.values()}) == 1
        assert not any(column.flags.writeable for column in columns.values())
    assert table["infostate"].dtype == object
    assert type(table["infostate"][0]) is str


def test_tables_become_data_frames(kuhn):
    pandas = pytest.importorskip("pandas")
    table = infostate_table(StrategyProfile.uniform(kuhn))
    frame = pandas.DataFrame(table.columns)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(table) == 24


# How tables are shown.


def test_a_small_table_prints_all_rows(kuhn):
    table = infostate_table(StrategyProfile.uniform(kuhn))
    lines = str(table).splitlines()
    assert len(lines) == 25
    assert lines[0].split() == COLUMNS
    assert lines[1].split() == ["0", "0", "0", "Pass", "0.5", "1", "0.3333", "-1.25", "-0.2083"] or "Pass" in lines[1]
    assert repr(table).startswith("InfostateTable(24 rows of player, infostate, action")
    assert str(table.beliefs()).splitlines()[0].split() == ["player", "infostate", "history", "probability"]


def test_a_large_table_prints_the_infostates_reached_most_often(leduc):
    table = infostate_table(StrategyProfile.uniform(leduc))
    lines = str(table).splitlines()
    top = table.top(20)
    assert lines[-1] == f"({len(top)} of {len(table)} rows, the infostates reached most often)"
    assert len(lines) == len(top) + 2
    assert isinstance(top, InfostateTable)
    reach = table["own_reach"] * table["counterfactual_reach"]
    assert np.count_nonzero(reach > (top["own_reach"] * top["counterfactual_reach"]).min()) <= len(top)
    assert len({(int(p), k) for p, k in zip(top["player"], top["infostate"], strict=True)}) == 20
    assert all(len(line) < 170 for line in lines)
    assert "(60 of" in str(table.beliefs())


def test_an_infostate_can_be_selected(kuhn):
    table = infostate_table(StrategyProfile.uniform(kuhn))
    rows = table.of_infostate(0, "2pb")
    assert rows["action"].tolist() == [0, 1]
    assert rows.profile is table.profile
    with pytest.raises(KeyError, match="player 1 has no infostate '2pb'"):
        table.of_infostate(1, "2pb")
    assert len(table.top(0)) == 0
    assert len(table.top(100)) == len(table)
    assert str(table.top(0)).split() == COLUMNS
    with pytest.raises(ValueError, match="must not be negative"):
        table.top(-1)


def test_texts_are_on_one_line_and_escaped():
    columns = {
        "player": np.array([0]),
        "infostate": np.array(['a\n<b> & "c" ' + "x" * 100], object),
        "probability": np.array([np.nan]),
    }
    table = Table(columns)
    assert len(str(table).splitlines()) == 2
    assert "a\\n<b>" in str(table)
    assert "..." in str(table)
    page = table._repr_html_()
    assert "<b>" not in page
    assert html.escape("a\\n<b>") in page
    assert page.count("<tr>") == 2
    assert "nan" in page


def test_only_profiles_have_tables(kuhn):
    with pytest.raises(TypeError, match=r"expected a StrategyProfile, .*read_policy"):
        infostate_table({"0": {0: 1.0}})


def test_a_game_without_decisions_of_a_player_has_a_table():
    game = compile_game(games.python_game("test_table_one_mover", Turn(0, "only", {0: End([1, -1]), 1: End([2, -2])})))
    table = infostate_table(StrategyProfile.uniform(game))
    assert table["expected_value"].tolist() == [1, 2]
    assert table["regret"].tolist() == [-0.5, 0.5]
    assert len(table.beliefs()) == 1
