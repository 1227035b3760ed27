"""The cache of walks on disk: a game that was walked once is read the next time.

A cached walk is a `WalkRecord`, about 16 bytes per history; the tree and the sequence form are derived from it. The file is an
uncompressed `.npz` archive of arrays and a JSON text, read by `_utils.archives`. The file name contains the short name of the
game and a digest of what the record depends on: the game's string, all its parameters, the version of OpenSpiel and `FORMAT`.

The string must determine the rules, otherwise the record of a different game could be read. So Python games, whose source may
change, matrix games, games that are read from files or texts, and games that wrap any of these are not cached. Because
OpenSpiel may have been built from modified source, some plays of the game are compared with every record that is read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import secrets
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import DamagedError, open_archive
from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path, remove_unfinished
from spiel_cfrplus.game.checks import all_parameters, check_game, why_string_is_not_enough
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.parallel_walk import walk_whole_game
from spiel_cfrplus.game.walk import CHANCE, TERMINAL, WalkRecord
from spiel_cfrplus.game.walk_choice import checked_walk
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES, NO_LIMITS, WalkLimits

FORMAT = 1
_DTYPES = {
    "nodes": np.int32,
    "num_outcomes": np.int32,
    "outcomes": np.int64,
    "outcome_probabilities": np.float64,
    "returns": np.float64,
    "infostate_player": np.int8,
    "infostate_keys": np.uint8,
    "key_lengths": np.int32,
    "num_legal_actions": np.int32,
    "legal_actions": np.int64,
}
# Plays that are compared with the game when a record is read, and the limit on their moves.
_PLAYS, _MAX_MOVES = 100, 10_000


def record_path(game: pyspiel.Game, directory: str | os.PathLike[str]) -> pathlib.Path:
    """The path of the cached walk of `game`."""
    digest = hashlib.sha256(json.dumps(_identity(game), sort_keys=True).encode()).hexdigest()
    return pathlib.Path(directory) / f"{game.get_type().short_name}-{digest[:32]}.npz"


def is_cached(game: pyspiel.Game, directory: str | os.PathLike[str]) -> bool:
    """Whether the directory contains a record of the game; the record is not checked."""
    return why_string_is_not_enough(game) is None and record_path(game, directory).is_file()


def _identity(game: pyspiel.Game) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "open_spiel": pyspiel.__version__,
        "game": str(game),
        "parameters": repr(sorted(all_parameters(game.get_parameters()), key=repr)),
    }


def cached_tree(
    game: pyspiel.Game,
    directory: str | os.PathLike[str],
    *,
    processes: int = 1,
    walk: str = "auto",
    limits: WalkLimits = NO_LIMITS,
    progress: bool = False,
) -> GameTree:
    """The tree of a game: read from the cached walk in `directory`, else walked and, if possible, cached.

    Warns:
      UserWarning: the game cannot be cached, or the cached walk is damaged and the game is walked again.

    Raises:
      OSError: the directory cannot be created, read or written; checked before the walk.
      TypeError: `directory` is not a path.
      ValueError: `directory` is empty.
      MemoryError, TimeoutError, TypeError, ValueError: as for `GameTree.from_game`.
    """
    if not checked_path(directory, "cache"):
        raise ValueError("cache must be the name of a directory, got an empty one")
    check_game(game)
    walk = checked_walk(walk)
    reason = why_string_is_not_enough(game)
    if reason is not None:
        warnings.warn(f"{game} is not cached in {directory}: {reason}", stacklevel=3)
        record = walk_whole_game(game, processes=processes, walk=walk, limits=limits, progress=progress)
        return GameTree.from_record(game, ((),), record)
    path = record_path(game, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path)
    try:
        return _read(path, game, limits)
    except DamagedError as error:
        warnings.warn(
            f"{path} is not a walk cached by spiel_cfrplus, or is damaged ({error}); the game is walked again", stacklevel=3
        )
        _remove_non_file(path)
    except (FileNotFoundError, NotADirectoryError):
        if _is_broken_link(path):
            warnings.warn(
                f"{path} is a link to {os.readlink(path)}, whose directory does not exist; the game is walked again",
                stacklevel=3,
            )
            path.unlink()
    check_writable(path)
    record = walk_whole_game(game, processes=processes, walk=walk, limits=limits, progress=progress)
    tree = GameTree.from_record(game, ((),), record)
    try:
        _write(path, game, record)
    except OSError as error:  # for example a full disk; the walk in memory is still valid
        warnings.warn(f"{path} could not be written ({error})", stacklevel=3)
    return tree


def _is_broken_link(path: pathlib.Path) -> bool:
    """Whether the path is a link to a file whose directory does not exist."""
    return path.is_symlink() and not pathlib.Path(os.path.realpath(path)).parent.is_dir()


def _remove_non_file(path: pathlib.Path) -> None:
    """Removes anything but a regular file, because `atomic_write` replaces regular files only; renames a directory."""
    if path.is_file():
        return
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.{secrets.token_hex(4)}"))
    else:
        path.unlink()


def _write(path: pathlib.Path, game: pyspiel.Game, record: WalkRecord) -> None:
    arrays = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    texts = [key.encode("utf-8", "surrogatepass") for key in record.infostate_keys]
    arrays["infostate_keys"] = np.frombuffer(b"".join(texts), np.uint8)
    arrays["key_lengths"] = np.fromiter(map(len, texts), np.int32, len(texts))
    with atomic_write(path) as file:
        np.savez(file, identity=np.array(json.dumps(_identity(game))), **arrays)


def _read(path: pathlib.Path, game: pyspiel.Game, limits: WalkLimits) -> GameTree:
    """Reads a record, and checks that it is valid and belongs to this game.

    Raises:
      OSError: the file cannot be read.
      ValueError: the record has more histories than `limits` allows.
      DamagedError: the record is invalid or belongs to another game.
    """
    with open_archive(path) as archive:
        if archive.json("identity") != _identity(game):
            raise _mismatch(game)
        (num_histories,) = archive.header("nodes").shape
    limits.check_count(game, num_histories)
    with open_archive(path) as archive:
        num_players = game.num_players()
        arrays = {
            name: archive.array(name, dtype, (None, num_players) if name == "returns" else (None,))
            for name, dtype in _DTYPES.items()
        }
        _check(arrays, num_players)
        record = WalkRecord(infostate_keys=_split(arrays.pop("infostate_keys"), arrays.pop("key_lengths")), **arrays)
        tree = GameTree.from_record(game, ((),), record)
        if not _plays_agree(tree):
            raise _mismatch(game)
    return tree


def _mismatch(game: pyspiel.Game) -> DamagedError:
    return DamagedError(f"does not match {game}")


def _split(text: np.ndarray, lengths: np.ndarray) -> tuple[str, ...]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    whole = text.tobytes()
    return tuple(whole[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False))


def _check(arrays: Mapping[str, np.ndarray], num_players: int) -> None:
    """Raises an exception unless the arrays are consistent, so that no later index is out of bounds."""
    nodes, num_legal_actions, num_outcomes = (arrays[name] for name in ("nodes", "num_legal_actions", "num_outcomes"))
    is_chance, is_terminal, num_infostates = nodes == CHANCE, nodes == TERMINAL, len(num_legal_actions)
    if not (is_chance | is_terminal | ((nodes >= 0) & (nodes < num_infostates))).all() or len(nodes) > MOST_HISTORIES:
        raise ValueError("infostate numbers out of range")
    num_children = np.zeros(len(nodes), np.int64)
    num_children[nodes >= 0] = num_legal_actions[nodes[nodes >= 0]]
    num_children[is_chance] = num_outcomes
    # The number of children still to come after each history of a preorder; it becomes 0 at the last history and not before.
    num_pending = 1 + np.cumsum(num_children - 1)
    if not (np.all(num_pending[:-1] > 0) and num_pending[-1] == 0):
        raise ValueError("the histories do not form a tree")
    lengths = arrays["key_lengths"]
    expected = {
        "num_outcomes": (is_chance.sum(),),
        "infostate_player": (num_infostates,),
        "key_lengths": (num_infostates,),
        "legal_actions": (num_legal_actions.sum(),),
        "outcomes": (num_outcomes.sum(),),
        "outcome_probabilities": (num_outcomes.sum(),),
        "returns": (is_terminal.sum(), num_players),
        "infostate_keys": (lengths.sum(dtype=np.int64),),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
    if min(lengths.min(initial=0), num_outcomes.min(initial=1) - 1, num_legal_actions.min(initial=1) - 1) < 0:
        raise ValueError("negative sizes")
    players = arrays["infostate_player"]
    if players.min(initial=0) < 0 or players.max(initial=0) >= num_players:
        raise ValueError("player numbers out of range")


def _plays_agree(tree: GameTree) -> bool:
    """Whether some plays, evenly spaced among the terminal histories, are the same in the game and in the tree."""
    moves_left = _MAX_MOVES
    for row in np.unique(np.linspace(0, tree.num_terminals - 1, _PLAYS).astype(np.int64)):
        path = _path_to(tree, int(tree.terminal[row]))
        state = tree.game.new_initial_state()
        for history, child in itertools.pairwise(path):
            if not _agrees(tree, history, child, state):
                return False
            state.apply_action(int(tree.action[child]))
        if not state.is_terminal() or state.returns() != tree.returns[row].tolist():
            return False
        moves_left -= len(path)
        if moves_left < 0:
            break
    return True


def _path_to(tree: GameTree, history: int) -> list[int]:
    path = [history]
    while path[-1] != 0:
        path.append(int(tree.parent[path[-1]]))
    return path[::-1]


def _agrees(tree: GameTree, history: int, child: int, state: pyspiel.State) -> bool:
    """Whether the player, the infostate and the edge to `child` at a history of the tree match the state."""
    if state.current_player() != tree.actor[history]:
        return False
    if state.is_chance_node():
        return (tree.action[child], tree.chance_probability[child]) in state.chance_outcomes()
    infostate = tree.infostate[history]
    legal = slice(*tree.legal_action_start[infostate : infostate + 2])
    player = int(tree.actor[history])
    here = (state.information_state_string(player), state.legal_actions())
    return here == (tree.infostate_keys[infostate], tree.legal_actions[legal].tolist())
