"""The cache of walks: a cached walk equals the walk, and invalid files are refused."""

import json
import os
import pathlib
import shutil
import zipfile

import games
import numpy as np
import pyspiel
import pytest
from waiting import within

from spiel_cfrplus import CFRPlusSolver, compile_game
from spiel_cfrplus.game import walk, walk_cache

LEDUC = pyspiel.load_game("leduc_poker")
NATIVE = [
    "kuhn_poker",
    "leduc_poker",
    "liars_dice_3",
    "goofspiel_3",
    "dark_hex_2",
    "sheriff",
    "misere_kuhn_poker",
    "kuhn_poker_3p",
]
TREE_FIELDS = (
    *("parent", "action", "actor", "infostate", "chance_probability", "terminal", "returns"),
    *("infostate_player", "legal_action_start", "legal_actions"),
)


@pytest.fixture
def no_walk(monkeypatch):
    """Call it to make any later walk fail."""

    def refuse(*arguments):
        raise AssertionError("the game was walked")

    return lambda: monkeypatch.setattr(walk, "TreeWalk", refuse)


def kept(game, directory):
    """The only file in the cache after a game was cached."""
    compile_game(game, cache=directory)
    (path,) = pathlib.Path(directory).iterdir()
    return path


def contents(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive}


@pytest.mark.parametrize("name", NATIVE)
def test_a_cached_walk_equals_the_walk(name, tmp_path, no_walk):
    game = games.GAMES[name]()
    walked = compile_game(game)
    first = compile_game(game, cache=tmp_path / "made" / "for this")
    no_walk()
    read = compile_game(game, cache=tmp_path / "made" / "for this")
    for compiled in (first, read):
        assert compiled.fingerprint == walked.fingerprint
        assert compiled.tree.infostate_keys == walked.tree.infostate_keys
        for field in TREE_FIELDS:
            ours, expected = getattr(compiled.tree, field), getattr(walked.tree, field)
            assert (ours.dtype, ours.flags.writeable) == (expected.dtype, False)
            np.testing.assert_array_equal(ours, expected)


def test_a_solver_of_a_cached_game_has_the_same_results(tmp_path, no_walk):
    compile_game(LEDUC, cache=tmp_path)
    no_walk()
    solver = CFRPlusSolver(compile_game(LEDUC, cache=tmp_path))
    solver.run(500)
    assert solver.nash_conv() < 0.01
    # The value of Leduc poker, by linear programming.
    assert solver.evaluate().values[0] == pytest.approx(-0.0856064, abs=0.01)


def test_games_with_different_parameters_have_different_files(tmp_path):
    strings = ["kuhn_poker", "kuhn_poker(players=3)", "add_noise(epsilon=0.1,seed=1,game=kuhn_poker())"]
    twin = pyspiel.load_game("add_noise", {"epsilon": np.nextafter(0.1, 1), "seed": 1, "game": {"name": "kuhn_poker"}})
    loaded = [*map(pyspiel.load_game, strings), twin]
    assert str(twin) == str(loaded[2])
    assert len({walk_cache.record_path(game, tmp_path) for game in loaded}) == 4


def test_another_version_of_openspiel_walks_again(tmp_path, monkeypatch):
    compile_game(LEDUC, cache=tmp_path)
    monkeypatch.setattr(pyspiel, "__version__", "99.0")
    compile_game(LEDUC, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (games.GAMES["python_kuhn_poker"], "it is a Python game or a matrix game"),
        (lambda: games.python_chain(3), "it is a Python game or a matrix game"),
        (lambda: games.chain(3), "OpenSpiel cannot load it from its string"),
        (lambda: pyspiel.load_game("misere(game=python_kuhn_poker())"), "it contains python_kuhn_poker"),
        (lambda: pyspiel.load_game("misere(game=misere(game=python_kuhn_poker()))"), "it contains python_kuhn_poker"),
        (lambda: pyspiel.convert_to_turn_based(pyspiel.load_game("matrix_rps")), "it contains matrix_rps"),
        # A user's own matrix game under the name of one that OpenSpiel has.
        (
            lambda: pyspiel.convert_to_turn_based(pyspiel.create_matrix_game("matrix_mp", "", ["a"], ["b"], [[1]], [[-1]])),
            "it contains matrix_mp",
        ),
    ],
)
def test_games_whose_string_does_not_determine_the_rules_are_walked_with_a_warning(load, reason, tmp_path):
    game = load()
    with pytest.warns(UserWarning, match=games.mentions(str(game), "is not cached", reason)):
        compiled = compile_game(game, cache=tmp_path)
    assert compiled.fingerprint == compile_game(game).fingerprint
    assert list(tmp_path.iterdir()) == []


def test_games_that_are_read_from_a_file_are_not_cached(tmp_path):
    (tmp_path / "game.efg").write_text(
        'EFG 2 R "" { "a" "b" }\n""\np "" 1 1 "" { "l" "r" } 0\nt "" 1 "" { 1 -1 }\nt "" 2 "" { -1 1 }\n'
    )
    game = pyspiel.load_game("efg_game", {"filename": str(tmp_path / "game.efg")})
    with pytest.warns(UserWarning, match="it is read from a file, which may change"):
        compile_game(game, cache=tmp_path / "cache")


def spoil(path, change):
    """Rewrites an archive with changed arrays and valid checksums."""
    arrays = contents(path)
    change(arrays)
    np.savez(path, **arrays)


def without_last_node(arrays):
    arrays["nodes"] = arrays["nodes"][:-1]


def one_more_root(arrays):
    arrays["nodes"] = np.append(arrays["nodes"], arrays["nodes"][-1])


def end_before_the_start(arrays):
    arrays["nodes"][[0, -1]] = arrays["nodes"][[-1, 0]]


def far_infostate(arrays):
    arrays["nodes"] = np.where(arrays["nodes"] == 5, 10**6, arrays["nodes"]).astype(np.int32)


def unknown_actor(arrays):
    arrays["nodes"][arrays["nodes"] == walk.TERMINAL] = -3


def negative_outcomes(arrays):
    arrays["num_outcomes"][:2] += np.array([7, -7], np.int32)


def one_length_for_all(arrays):
    arrays["num_outcomes"] = arrays["num_outcomes"][:1]


def negative_length(arrays):
    arrays["key_lengths"][:2] = [-1, arrays["key_lengths"][:2].sum() + 1]


def no_outcomes(arrays):
    arrays["num_outcomes"][:2] += np.array([-arrays["num_outcomes"][0], arrays["num_outcomes"][0]], np.int32)


def negative_legal_actions(arrays):
    arrays["num_legal_actions"][:2] += np.array([-7, 7], np.int32)


def third_player(arrays):
    arrays["infostate_player"][7] = 2


def other_type(arrays):
    arrays["returns"] = arrays["returns"].astype(np.float32)


def other_shape(arrays):
    arrays["returns"] = arrays["returns"].reshape(-1, 1)


def one_action_more(arrays):
    arrays["legal_actions"] = np.append(arrays["legal_actions"], 0)


def no_text(arrays):
    arrays["infostate_keys"][:] = 255


def infinite_return(arrays):
    arrays["returns"][3, 0] = np.inf


def nothing(arrays):
    del arrays["nodes"]


def objects(arrays):
    arrays["nodes"] = np.array([object()])


def no_identity(arrays):
    arrays["identity"] = np.array("no json")


@pytest.mark.parametrize(
    "change",
    [
        *(
            without_last_node,
            one_more_root,
            far_infostate,
            unknown_actor,
            negative_outcomes,
            negative_legal_actions,
            no_outcomes,
            one_length_for_all,
            negative_length,
        ),
        *(third_player, other_type, other_shape, one_action_more, no_text, infinite_return, nothing, objects, no_identity),
    ],
)
def test_inconsistent_arrays_are_replaced(change, tmp_path):
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    spoil(path, change)
    check_made_anew(path, good, "is not a walk cached by spiel_cfrplus, or is damaged")


@pytest.mark.parametrize("change", [without_last_node, one_more_root, end_before_the_start])
def test_nodes_that_do_not_form_a_tree_are_refused(change, tmp_path):
    # The compiled pass would go outside the arrays.
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    spoil(path, change)
    check_made_anew(path, good, "the histories do not form a tree")


def test_a_negative_size_is_found_if_all_sizes_are_consistent(tmp_path):
    # A text would be taken from the end of all texts, and there would be a decision without actions at a leaf.
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    spoil(path, negative_length)
    check_made_anew(path, good, "(negative sizes)")


def check_made_anew(path, good, words):
    with pytest.warns(UserWarning, match=games.mentions(str(path), words)) as warned:
        compiled = compile_game(LEDUC, cache=path.parent)
    assert len(warned) == 1
    assert "\n" not in str(warned[0].message)
    assert compiled.fingerprint == compile_game(LEDUC).fingerprint
    again = contents(path)
    assert again.keys() == good.keys()
    assert all(np.array_equal(again[name], good[name]) for name in good)


def compressed(path):
    np.savez_compressed(path, **contents(path))


def header_only(path):
    os.truncate(path, 40)


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path):
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("returns.npy").header_offset
    data = bytearray(path.read_bytes())
    data[offset + 4000] ^= 4
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def foreign(path):
    path.write_text("a text")


def delete_bytes(path):
    data = path.read_bytes()
    path.write_bytes(data[:1000] + data[1100:])


def folder(path):
    path.unlink()
    path.mkdir()


def full_folder(path):
    folder(path)
    (path / "somebody's").write_text("file")


def link_to_itself(path):
    path.unlink()
    path.symlink_to(path.name)


def link_to_a_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        *(truncate, flip_a_bit, empty, foreign, compressed, header_only, delete_bytes),
        *(folder, full_folder, link_to_itself, link_to_a_device, pipe),
    ],
)
def test_damaged_files_are_replaced(damage, tmp_path):
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    damage(path)
    with within(30):
        check_made_anew(path, good, "is not a walk cached by spiel_cfrplus, or is damaged")


def test_a_directory_in_place_of_a_cached_walk_is_renamed(tmp_path):
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    full_folder(path)
    check_made_anew(path, good, "not a regular file")
    assert [found.read_text() for found in tmp_path.glob("*/somebody's")] == ["file"]


@pytest.mark.parametrize("target", ["/nonexistent/walk.npz", f"{__file__}/walk.npz"])
def test_a_link_into_a_missing_directory_is_replaced(target, tmp_path):
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    path.unlink()
    path.symlink_to(target)
    check_made_anew(path, good, f"is a link to {target}")
    assert not path.is_symlink()


def test_a_cached_walk_may_be_a_link(tmp_path, no_walk):
    path = kept(LEDUC, tmp_path / "here")
    (tmp_path / "there").mkdir()
    elsewhere = tmp_path / "there" / "walk.npz"
    path.unlink()
    path.symlink_to(elsewhere)  # to nothing so far
    compile_game(LEDUC, cache=path.parent)
    assert path.is_symlink()
    assert elsewhere.is_file()
    no_walk()
    assert compile_game(LEDUC, cache=path.parent).tree.num_histories == 9457


def test_the_walk_of_another_game_is_replaced(tmp_path):
    path, other = kept(LEDUC, tmp_path / "a"), kept(pyspiel.load_game("kuhn_poker"), tmp_path / "b")
    good = contents(path)
    shutil.copy(other, path)
    check_made_anew(path, good, "does not match leduc_poker()")


def other_version(arrays):
    arrays["identity"] = np.array(json.dumps(json.loads(str(arrays["identity"])) | {"open_spiel": "1.0"}))


def pay_more(arrays):
    arrays["returns"] *= 2


def swap_keys(arrays):
    text = arrays["infostate_keys"].tobytes().replace(b"[Pot", b"[Pit")
    arrays["infostate_keys"] = np.frombuffer(text, np.uint8)


def load_dice(arrays):
    arrays["outcome_probabilities"][:2] = [0.1, 0.2333]


def rename_actions(arrays):
    arrays["legal_actions"][arrays["legal_actions"] == 2] = 3


@pytest.mark.parametrize("change", [other_version, pay_more, swap_keys, load_dice, rename_actions])
def test_a_walk_with_other_rules_is_replaced(change, tmp_path):
    # As if OpenSpiel had been built from changed source under the same version.
    path = kept(LEDUC, tmp_path)
    good = contents(path)
    spoil(path, change)
    check_made_anew(path, good, "does not match leduc_poker()")


def test_limits_apply_to_cached_walks(tmp_path):
    size = compile_game(LEDUC, cache=tmp_path).tree.num_histories
    assert compile_game(LEDUC, cache=tmp_path, max_histories=size).tree.num_histories == size
    with pytest.raises(ValueError, match=rf"more than max_histories={size - 1} histories \(counted {size}"):
        compile_game(LEDUC, cache=tmp_path, max_histories=size - 1)


def test_an_unusable_directory_is_refused_before_the_walk(tmp_path, no_walk):
    (tmp_path / "file").write_text("")
    no_walk()
    for directory in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere", "/proc"):
        with pytest.raises(OSError, match=r"."):
            compile_game(LEDUC, cache=directory)
    with pytest.raises(ValueError, match="cache must be the name of a directory"):
        compile_game(LEDUC, cache="")


def test_games_that_cannot_be_walked_are_refused_as_without_a_cache(tmp_path):
    with pytest.raises(ValueError, match=r"pyspiel\.convert_to_turn_based"):
        compile_game(pyspiel.load_game("goofspiel"), cache=tmp_path)


def test_a_full_disk_does_not_lose_the_walk(tmp_path, monkeypatch):
    def full(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(UserWarning, match="could not be written .*No space left"):
        compiled = compile_game(LEDUC, cache=tmp_path)
    assert compiled.tree.num_histories == 9457
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_no_file(tmp_path, monkeypatch):
    def interrupt(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_game(LEDUC, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cached_walk_contains_its_identity(tmp_path):
    identity = json.loads(str(contents(kept(LEDUC, tmp_path))["identity"]))
    assert (identity["game"], identity["open_spiel"]) == ("leduc_poker()", pyspiel.__version__)
