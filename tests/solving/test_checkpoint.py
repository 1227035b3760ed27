"""Saving, loading, pickling and copying solvers."""

import copy
import functools
import importlib
import json
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import warnings

import games
import numpy as np
import pyspiel
import pytest
from families import SOLVERS
from waiting import within

from spiel_cfrplus import Averaging, CFRPlusSolver, CFRSolver, Solver, compile_game, compile_subgame, lock, make_solver
from spiel_cfrplus._utils.files import check_writable
from spiel_cfrplus.regret_minimizers import RegretMatchingPlus, local_rule
from spiel_cfrplus.solving import checkpoint

NAN = float("nan")
KUHN = pyspiel.load_game("kuhn_poker")
LEDUC = pyspiel.load_game("leduc_poker")

OPTIONS = [
    {"alternating": alternating, "averaging": averaging}
    for alternating in (True, False)
    for averaging in ("paper", "openspiel", Averaging(power=2.5))
]


def by_file(solver, folder):
    solver.save(folder / "solver.npz")
    return Solver.load(folder / "solver.npz")


def by_pickle(solver, folder):
    return pickle.loads(pickle.dumps(solver))


def by_deepcopy(solver, folder):
    return copy.deepcopy(solver)


@pytest.mark.parametrize("again", [by_file, by_pickle, by_deepcopy])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("solver_type", SOLVERS.values())
def test_resumed_solver_goes_on_to_the_same_doubles(solver_type, options, again, tmp_path):
    solver = solver_type(KUHN, **options)
    solver.run(20)
    resumed = again(solver, tmp_path)
    assert type(resumed) is type(solver)
    assert (resumed.iteration, resumed.alternating, resumed.averaging) == (20, solver.alternating, solver.averaging)
    solver.run(50)
    resumed.run(50)
    for ours, theirs in zip(solver.self_play.state, resumed.self_play.state, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.any(resumed.self_play.cumulative_regrets() != 0)
    assert resumed.nash_conv() == solver.nash_conv() < 11 / 12  # of the uniform policy


def test_a_resumed_solver_goes_on_to_sum_utilities(tmp_path):
    solver, whole = (CFRSolver(KUHN, alternating=False, record_regrets=True) for _ in range(2))
    solver.run(10)
    solver.save(tmp_path / "solver.npz")
    loaded = Solver.load(tmp_path / "solver.npz")
    loaded.run(10)
    whole.run(20)
    assert loaded.self_play.cce_gap() == whole.self_play.cce_gap()
    assert loaded.self_play.regrets().tolist() == whole.self_play.regrets().tolist()
    with pytest.raises(ValueError, match="record_regrets is for one thread"):
        Solver.load(tmp_path / "solver.npz", threads=2)


def test_resumed_cfr_plus_is_not_plain_cfr():
    # pyspiel.CFRPlusSolver resumes from its pickle as plain CFR: NashConv .00666 after 200 iterations on Kuhn, where CFR+ has
    # .00059 (OpenSpiel's averaging).
    solver = CFRPlusSolver(KUHN, averaging="openspiel")
    solver.run(100)
    resumed = pickle.loads(pickle.dumps(solver))
    resumed.run(100)
    assert resumed.nash_conv() == pytest.approx(0.0005899209670296688, rel=1e-9)


def test_original_and_copy_are_independent():
    solver = CFRSolver(KUHN)
    solver.run(3)
    before = solver.current_profile().probabilities
    copy.deepcopy(solver).run(10)
    np.testing.assert_array_equal(solver.current_profile().probabilities, before)


@pytest.mark.parametrize("load_game", [games.biased_rock_paper_scissors, lambda: games.chain(4)], ids=["matrix", "efg"])
def test_games_without_a_string_are_loaded_by_passing_them(load_game, tmp_path):
    game = load_game()
    solver = CFRPlusSolver(game)
    solver.run(10)
    solver.save(tmp_path / "solver.npz")
    with pytest.raises(ValueError, match=r"which pyspiel\.load_game cannot load; pass it as game="):
        Solver.load(tmp_path / "solver.npz")
    for same_game in (game, load_game(), compile_game(game)):
        assert Solver.load(tmp_path / "solver.npz", same_game).nash_conv() == solver.nash_conv()
    assert pickle.loads(pickle.dumps(solver)).nash_conv() == solver.nash_conv()


def test_a_checkpoint_of_a_part_or_of_a_locked_game_names_it(tmp_path):
    path, state = tmp_path / "solver.npz", KUHN.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    locked = lock(KUHN, {(0, "0"): {0: 1.0}})
    for game, words in (
        (compile_subgame(state), ["than kuhn_poker(), 12 infostates", "kuhn_poker() below [0, 1], 4 infostates"]),
        (locked, ["than kuhn_poker(), 12 infostates", "kuhn_poker(), 11 infostates", "1 infostates locked"]),
    ):
        CFRPlusSolver(game).save(path)
        with pytest.raises(ValueError, match=games.mentions(*words, "Pass the game it was saved for as game=")):
            Solver.load(path, KUHN)
        assert Solver.load(path, game).iteration == 0


def test_a_folder_that_is_missing_is_named(tmp_path):
    for write in (CFRSolver(KUHN).save, check_writable):
        with pytest.raises(FileNotFoundError, match=rf"no such directory: '{re.escape(str(tmp_path / 'missing'))}'$"):
            write(tmp_path / "missing" / "solver.npz")


def test_load_refuses_other_games_and_solvers(tmp_path):
    path = tmp_path / "solver.npz"
    CFRPlusSolver(KUHN).save(path)
    with pytest.raises(ValueError, match=r"saved for a game other than leduc_poker.*: kuhn_poker\(\), 12 infostates"):
        Solver.load(path, LEDUC)
    # The same infostates, other payoffs.
    with pytest.raises(ValueError, match="saved for a game other than"):
        Solver.load(path, pyspiel.load_game("misere(game=kuhn_poker())"))
    with pytest.raises(ValueError, match="saved by a CFRPlusSolver, expected a CFRSolver"):
        CFRSolver.load(path)


def test_a_solver_with_the_algorithm_of_another_is_damaged(tmp_path):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(KUHN).save(path)
    for algorithm in ("cfr", "unknown"):
        changed = rewritten(path, options={"algorithm": algorithm})
        for solver_type in (CFRPlusSolver, Solver):
            with pytest.raises(ValueError, match=f"or is damaged .a CFRPlusSolver of the algorithm '{algorithm}'"):
                solver_type.load(changed)


class _OwnConstructor(CFRPlusSolver):
    def __init__(self, game):
        super().__init__(game)


class _OneMoreArgument(CFRPlusSolver):
    def __init__(self, game, temperature, **options):
        super().__init__(game, **options)
        self.temperature = temperature


class _PassedOn(CFRPlusSolver):
    def __init__(self, game, **options):
        super().__init__(game, **options)


@pytest.mark.parametrize(
    ("solver", "words"),
    [(_OwnConstructor(KUHN), "unexpected keyword argument"), (_OneMoreArgument(KUHN, 1.0), "required argument: 'temperature'")],
    ids=["own", "one more"],
)
def test_a_class_that_could_not_be_loaded_is_told_before_anything_is_saved(solver, words, tmp_path):
    name, path = type(solver).__name__, tmp_path / "solver.npz"
    refusal = games.mentions(f"a {name} can be neither saved nor loaded", words, "pickle it")
    with pytest.raises(TypeError, match=refusal):
        solver.save(path)
    assert not path.exists()
    CFRPlusSolver(KUHN).save(path)  # as earlier versions saved it
    with pytest.raises(TypeError, match=refusal):
        type(solver).load(rewritten(path, options={"solver": name}))


def test_a_constructor_that_passes_its_options_on_is_loaded(tmp_path):
    solver = _PassedOn(KUHN, alternating=False)
    solver.run(3)
    solver.save(tmp_path / "solver.npz")
    loaded = _PassedOn.load(tmp_path / "solver.npz")
    assert (type(loaded), loaded.iteration, loaded.alternating) == (_PassedOn, 3, False)


def test_base_classes_load_any_compiled_solver_and_new_classes_their_own(tmp_path):
    class Mine(CFRPlusSolver):
        pass

    for solver_type in (CFRPlusSolver, Mine):
        solver_type(KUHN).save(tmp_path / f"{solver_type.__name__}.npz")
    assert type(Solver.load(tmp_path / "CFRPlusSolver.npz")) is CFRPlusSolver
    assert type(Mine.load(tmp_path / "Mine.npz")) is Mine
    with pytest.raises(ValueError, match="saved by a CFRPlusSolver, expected a Mine"):
        Mine.load(tmp_path / "CFRPlusSolver.npz")


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "text", "truncated"])
def test_load_refuses_files_that_are_no_checkpoints(content, tmp_path):
    path = tmp_path / "solver.npz"
    CFRPlusSolver(KUHN).save(path)
    path.write_bytes(path.read_bytes()[:1000] if content is None else content)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        Solver.load(path)


def test_load_executes_no_pickle(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.savez(tmp_path / "solver.npz", options=np.array(Trap(), dtype=object))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        Solver.load(tmp_path / "solver.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_failed_save_leaves_the_old_checkpoint_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "solver.npz"
    solver = CFRPlusSolver(KUHN)
    solver.run(7)
    solver.save(path)
    solver.run(7)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        solver.save(path)
    assert os.listdir(tmp_path) == ["solver.npz"]
    assert Solver.load(path).iteration == 7


def test_what_is_no_file_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with within(5), pytest.raises(ValueError, match="not a regular file"):
            Solver.load(path)
    with pytest.raises(FileNotFoundError):
        Solver.load(tmp_path / "nowhere")


def test_a_shallow_copy_is_independent_too():
    solver = CFRSolver(KUHN)
    copied = copy.copy(solver)
    copied.run(3)
    assert (solver.iteration, copied.iteration) == (0, 3)


def test_averaging_of_another_class_is_not_saved_as_something_else(tmp_path):
    class Delayed(Averaging):
        def weights(self, iterations):
            return np.maximum(iterations - 10.0, 0.0)

    with pytest.raises(TypeError, match="cannot save"):
        CFRPlusSolver(KUHN, averaging=Delayed()).save(tmp_path / "solver.npz")


def rewritten(path, *, options=None, **arrays):
    """The checkpoint with other options or arrays."""
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive}
    if options is not None:
        kept["options"] = np.array(json.dumps(json.loads(str(kept["options"])) | options))
    np.savez(path, **(kept | arrays))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"options": {"averaging": [1, 2]}},
        {"options": {"averaging": {"power": -1}}},
        {"options": {"rule": "RegretMatching"}},
        {"options": {"rule": {"kind": "Unknown"}}},
        {"options": {"rule": {"kind": "RegretMatching", "prediction_weight": 0.0, "alpha": 1}}},
        {"options": {"game": 3}},
        {"options": {"alternating": "yes"}},
        {"options": {"alternating": 1}},
        {"options": {"format": "4"}},
        {"options": {"format": None}},
        {"options": {"num_histories": 0}},
        {"options": {"num_histories": -58}},
        {"options": {"num_histories": 58.0}},
        {"options": {"num_histories": 2**31}},
        {"options": {"num_histories": 10**300}},
        {"options": {"solver": "two\nlines"}},
        {"options": {"game": "\x1b[2Jkuhn_poker()"}},
        {"options": {"one_more": 1}},
        {"options": {"averaging": {"power": 1.0}}},
        {"options": {"averaging": {"power": float("nan"), "convention": "paper", "delay": 0}}},
        {"options": {"averaging": {"power": 1.0, "convention": "paper", "delay": 0, "one_more": 1}}},
        {"options": {"averaging": {"power": "1", "convention": "paper", "delay": 0}}},
        {
            "options": {
                "rule": {"kind": "DiscountedRegretMatching", "prediction_weight": 0.0, "alpha": float("nan"), "beta": 0.0}
            }
        },
        {"options": {"rule": {"kind": "DiscountedRegretMatching", "prediction_weight": 0.0, "alpha": 10**400, "beta": 0.0}}},
        {"options": {"rule": {"kind": "DiscountedRegretMatching", "prediction_weight": 0.0, "alpha": 1.5}}},
        {"options": {"rule": {"kind": ["RegretMatching"]}}},
        {"options": {"rule": {"kind": "RegretMatchingPlus"}}},
        {"options": {"rule": {"kind": "RegretMatchingPlus", "prediction_weight": 1.5}}},
        {"options": {"rule": {"kind": "RegretMatchingPlus", "prediction_weight": NAN}}},
        {"options": {"rule": {"kind": "RegretMatchingPlus", "prediction_weight": "0"}}},
        {"options": {"rule": {"kind": "module:\x1b[2J"}}},
        {"options": {"rule": {"kind": "module:rule", "parameter": [1]}}},
        {"regrets": np.full(26, np.nan)},
        {"regrets": np.full(26, np.inf)},
        {"regrets": np.zeros(25)},
        {"regrets": np.zeros((26, 1))},
        {"regrets": np.zeros(26, np.float32)},
        {"one_more": np.zeros(3)},
        {"regrets": np.zeros(26, np.complex128)},
        {"cumulative_policy": np.full(26, -1.0)},
        {"policy": np.full(26, -1.0)},
        {"iteration": np.array([-3, -3])},
        {"iteration": np.array([3, 7])},
        {"iteration": np.array([2**63 - 1, 2**63 - 1])},
        {"iteration": np.array([2**53, 2**53])},
        {"iteration": np.array([3.5, 3.5])},
    ],
    ids=str,
)
def test_what_save_would_not_have_written_is_refused(changes, tmp_path):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(pyspiel.load_game("kuhn_poker")).save(path)
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(rewritten(path, **changes))


@pytest.mark.parametrize("content", [b"", b"[1]", b"PK\x03\x04 and no more"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "saved.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(ValueError, match="is not a checkpoint of spiel_cfrplus, or is damaged"):
        Solver.load(path.with_suffix(".npy"))


def saved_for(game_string, path, **options):
    """A checkpoint of Kuhn poker that claims another game."""
    CFRPlusSolver(KUHN).save(path)
    return rewritten(path, options={"game": game_string, **options})


@pytest.mark.parametrize(
    "game", ["chess", "go(board_size=3)", "connect_four", "leduc_poker", "phantom_ttt", "python_tic_tac_toe"]
)
def test_a_game_that_the_checkpoint_names_is_walked_only_as_far_as_the_saved_one_went(game, tmp_path):
    path = saved_for(game, tmp_path / "saved.npz")
    with pytest.raises(
        ValueError,
        match=rf"^{re.escape(str(path))} was saved for a game other than .*Pass the game it was saved for as game=$",
    ):
        Solver.load(path)


def test_the_caller_may_limit_the_walk(tmp_path):
    path = saved_for("chess", tmp_path / "saved.npz", num_histories=2**31 - 1)
    with pytest.raises(ValueError, match=r"more than max_histories=1000 histories"):
        Solver.load(path, max_histories=1000)
    CFRPlusSolver(KUHN).save(path)
    assert Solver.load(path, max_histories=58).iteration == 0
    for game in (None, KUHN):
        with pytest.raises(ValueError, match=r"kuhn_poker\(\) has more than max_histories=57 histories"):
            Solver.load(path, game, max_histories=57)


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ("misere(game=" * 2000 + "kuhn_poker()" + ")" * 2000, "has more than 4096 characters"),
        ("misere(game=" * 300 + "kuhn_poker()" + ")" * 300, "nests games more than 8 deep"),
        ("misere(game=" * 300, "nests games more than 8 deep"),
        ("kuhn_poker(players=2" + 5000 * " " + ")", "has more than 4096 characters"),
        ("", "cannot"),
        ("no_such_game", "cannot"),
        ("kuhn_poker(players=99)", "cannot"),
        ("kuhn_poker(", "cannot"),
        ("hex(board_size=100000)", "fails to load in another process .*more than 2 GB"),
    ],
    ids=["long", "deep", "open", "spaces", "empty", "unknown", "players", "cut", "large"],
)
def test_a_string_that_is_no_game_is_refused_in_one_short_line(game, words, tmp_path):
    path = saved_for(game, tmp_path / "saved.npz")
    with pytest.raises(ValueError, match=words) as refused:
        Solver.load(path)
    assert str(refused.value).endswith("pass it as game=")
    assert len(str(refused.value)) < 500
    assert Solver.load(path, KUHN).iteration == 0


@pytest.mark.parametrize(
    "game",
    [
        "efg_game(filename={})",
        "nfg_game(filename={})",
        "misere(game=efg_game(filename={}))",
        "bargaining(instances_file={})",
        "turn_based_simultaneous_game(game=colored_trails(boards_file={}))",
        "crossword(puzzles_root={})",
    ],
)
def test_a_file_that_the_checkpoint_names_is_not_opened(game, tmp_path, capfd):
    (tmp_path / "secret").write_text("a secret")
    path = saved_for(game.format(tmp_path / "secret"), tmp_path / "saved.npz")
    with pytest.raises(ValueError, match=r"which is read from '.*/secret'; pass it as game="):
        Solver.load(path)
    assert "a secret" not in "".join(capfd.readouterr())


def test_games_within_games_are_loaded_by_their_string(tmp_path):
    path = tmp_path / "saved.npz"
    for depth in (7, 8):
        game = pyspiel.load_game("misere(game=" * depth + "kuhn_poker()" + ")" * depth)
        CFRPlusSolver(game).save(path)
        if depth < 8:
            assert str(Solver.load(path).game.tree.game) == str(game)
        else:
            with pytest.raises(ValueError, match="nests games more than 8 deep"):
                Solver.load(path)


def test_a_sub_game_is_loaded_by_passing_it(tmp_path):
    state = KUHN.new_initial_state()
    state.apply_action(0)
    path = tmp_path / "saved.npz"
    solver = CFRPlusSolver(compile_subgame(state))
    solver.save(path)
    with pytest.raises(ValueError, match=r"or for a part of it: .*Pass the game it was saved for as game="):
        Solver.load(path)
    assert Solver.load(path, solver.game).iteration == 0


def test_compressed_checkpoints_are_refused(tmp_path):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(KUHN).save(path)
    with np.load(path) as archive:
        np.savez_compressed(path, **{name: archive[name] for name in archive})
    with pytest.raises(ValueError, match=r"is not a checkpoint of spiel_cfrplus, or is damaged \(.* is compressed\)"):
        Solver.load(path)


def test_arrays_of_another_size_than_the_games_are_refused_before_they_are_read(tmp_path, kuhn):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(kuhn).save(path)
    rewritten(path, regrets=np.zeros(4_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"regrets is float64 of shape \(4000000,\), not float64 of shape \(26,\)"):
        Solver.load(path, kuhn)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_a_device_is_neither_read_nor_replaced(path):
    with pytest.raises(ValueError, match="not a regular file"):
        Solver.load(path)
    with pytest.raises(OSError, match=f"not a regular file: '{path}'"):
        CFRPlusSolver(KUHN).save(path)


def test_a_loop_of_links_is_neither_read_nor_written(tmp_path):
    path = tmp_path / "loop"
    path.symlink_to("loop")
    with pytest.raises(ValueError, match="a loop of links"):
        Solver.load(path)
    with pytest.raises(OSError, match=r"symbolic links: .*loop"):
        CFRPlusSolver(KUHN).save(path)


def test_checkpoints_of_other_versions_are_told_from_damaged_ones(tmp_path):
    path = tmp_path / "saved.npz"
    CFRPlusSolver(KUHN).save(path)
    with pytest.raises(ValueError, match=rf"has checkpoint format 99, this version reads format {checkpoint.FORMAT}"):
        Solver.load(rewritten(path, options={"format": 99}, a_new_array=np.zeros(3)))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"rows": np.zeros((4_000_000, 7))}, "more rows than iterations"),
        ({"rows": np.array([[7.0, 0, 0, 0, 0, 0, 0], [3.0, 0, 0, 0, 0, 0, 0]])}, "not those of a run"),
        ({"rows": np.array([[1.5, 0, 0, 0, 0, 0, 0]])}, "not those of a run"),
        ({"rows": np.array([[np.nan, 0, 0, 0, 0, 0, 0]])}, "not those of a run"),
        ({"rows": np.array([[-1.0, 0, 0, 0, 0, 0, 0]])}, "not those of a run"),
        ({"rows": np.array([[7.0, 0, 0, 0, 0, 0, np.inf]])}, "not those of a run"),
        ({"rows": np.array([[21.0, 0, 0, 0, 0, 0, 0]])}, "rows of later iterations"),
        ({"rows": np.zeros((3, 5))}, r"rows is float64 of shape \(3, 5\)"),
        ({"rows": np.zeros((3, 7), np.float32)}, "rows is float32"),
        ({"iteration": np.full(4_000_000, 20)}, "iterations of too many players"),
        ({"options": {"seconds": float("nan")}}, "nan seconds"),
        ({"options": {"seconds": "1"}}, "seconds is '1'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_that_are_not_those_of_the_run_are_refused(arrays, words, tmp_path, kuhn):
    path, solver = tmp_path / "saved.npz", CFRPlusSolver(kuhn)
    solver.run(20)
    solver.save(path)
    rewritten(path, **arrays)
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"is not a checkpoint of spiel_cfrplus, or is damaged .*{words}"):
        checkpoint.read_curve(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


# Rules of the user.

PLUS = """
    total = 0.0
    for a in point.actions:
        memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, parameters.floor)
        total += memory.regrets[a]
    for a in point.actions:
        policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)
"""
MODULE = f"""
from spiel_cfrplus import Algorithm
from spiel_cfrplus.regret_minimizers import local_rule

@local_rule(per_action=("regrets",), parameters={{"floor": 0.0}}, scale_free=True)
def plus(point, values, policy, memory, parameters, t):{PLUS}
@local_rule(per_action=("regrets",), parameters={{"floor": 0.0}}, scale_free=True)
def other(point, values, policy, memory, parameters, t):{PLUS}
mine = Algorithm("mine", plus, averaging_power=3.0)

class Halved:
    def __init__(self, factor):
        self.factor = factor

    def discounts(self, iterations):
        return [[self.factor, 0.0]] * len(iterations)
"""


@pytest.fixture
def rules(tmp_path, monkeypatch):
    (tmp_path / "rules_of_checkpoints.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("rules_of_checkpoints")
    del sys.modules["rules_of_checkpoints"]


@pytest.mark.parametrize("what", ["plus", "mine"])
def test_a_rule_of_the_user_is_saved_by_its_place_and_must_be_passed(what, rules, tmp_path):
    path, what = tmp_path / "solver.npz", getattr(rules, what)
    solver = make_solver(what, KUHN, averaging=Averaging(2))
    solver.run(20)
    solver.save(path)
    with pytest.raises(ValueError, match=r"the rule rules_of_checkpoints:plus\(floor=0.0\); pass that rule as rule="):
        Solver.load(path)
    loaded = Solver.load(path, rule=what)
    assert (loaded.iteration, str(loaded.algorithm)) == (20, str(solver.algorithm))
    for each in (solver, loaded):
        each.run(30)
    assert loaded.nash_conv() == solver.nash_conv()
    with pytest.raises(ValueError, match=r"was saved with the rule rules_of_checkpoints:plus\(floor=0.0\), not rules_of_chec"):
        Solver.load(path, rule=rules.other)
    with pytest.raises(ValueError, match=r"not RegretMatchingPlus\(prediction_weight=0.0\)"):
        Solver.load(path, rule=RegretMatchingPlus())


def test_the_parameters_of_a_rule_are_those_of_the_checkpoint(rules, tmp_path):
    solver = make_solver(rules.plus.with_parameters(floor=0.125), KUHN)
    solver.run(20)
    solver.save(tmp_path / "solver.npz")
    loaded = Solver.load(tmp_path / "solver.npz", rule=rules.plus)
    assert dict(loaded.algorithm.rule.parameters) == {"floor": 0.125}


def test_discounts_of_the_user_are_saved_by_their_place(rules, tmp_path):
    path, solver = tmp_path / "solver.npz", CFRPlusSolver(KUHN, rule=rules.Halved(0.5))
    solver.run(20)
    solver.save(path)
    loaded = CFRPlusSolver.load(path, rule=rules.Halved(0.5))
    assert type(loaded) is CFRPlusSolver
    for each in (solver, loaded):
        each.run(10)
    assert loaded.nash_conv() == solver.nash_conv()
    for rule in (None, rules.Halved(0.25), RegretMatchingPlus()):
        with pytest.raises(ValueError, match=r"with the rule rules_of_checkpoints:Halved\(factor=0.5, predict"):
            CFRPlusSolver.load(path, rule=rule)


def test_loading_imports_nothing_that_a_file_names(tmp_path):
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    CFRPlusSolver(KUHN).save(tmp_path / "saved.npz")
    rewritten(tmp_path / "saved.npz", options={"rule": {"kind": "trap:rule"}, "algorithm": "trap:rule", "solver": "Solver"})
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import spiel_cfrplus; spiel_cfrplus.Solver.load('saved.npz')"
    result = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.stderr.endswith("saved.npz was saved with the rule trap:rule(); pass that rule as rule=\n")
    assert not (tmp_path / "sprung").exists()


def test_a_parameter_that_cannot_be_described_is_refused(rules, tmp_path):
    for rule in (rules.plus.with_parameters(floor=functools.partial(np.ones_like)), rules.Halved([0.5])):
        with pytest.raises(TypeError, match=r"cannot save .*: the (floor|factor) of the rule .* is neither a number nor text"):
            CFRPlusSolver(KUHN, rule=rule).save(tmp_path / "solver.npz")


@pytest.mark.parametrize("name", ["sapcfr+", "sapdcfr+"])
def test_algorithms_without_a_class_of_their_own_are_resumed(name, tmp_path):
    solver = make_solver(name, KUHN)
    solver.run(20)
    solver.save(tmp_path / "solver.npz")
    loaded = Solver.load(tmp_path / "solver.npz")
    assert (type(loaded), loaded.algorithm.name) == (type(solver), name)
    for each in (solver, loaded):
        each.run(30)
    assert loaded.nash_conv() == solver.nash_conv()


def test_the_weight_of_a_prediction_is_part_of_a_checkpoint(tmp_path):
    solver = make_solver("pcfr+", KUHN, prediction_weight=0.25)
    solver.run(20)
    solver.save(tmp_path / "solver.npz")
    assert Solver.load(tmp_path / "solver.npz").algorithm.rule.prediction_weight == 0.25


def closed_rule(numerator):
    @local_rule(per_action=("regrets",))
    def closed(point, values, policy, memory, parameters, t):
        for a in point.actions:
            policy[a] = min(numerator, 1.0) / len(point.actions)

    return closed


def test_a_rule_whose_code_has_changed_is_loaded_with_a_warning(tmp_path):
    path, solver = tmp_path / "solver.npz", make_solver(closed_rule(1.0), KUHN)
    solver.run(2)
    solver.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Solver.load(path, rule=closed_rule(1.0)).iteration == 2
    with pytest.warns(UserWarning, match=r"the code of the rule .*closed\(\) has changed since .*solver.npz was saved"):
        assert Solver.load(path, rule=closed_rule(2.0)).iteration == 2
