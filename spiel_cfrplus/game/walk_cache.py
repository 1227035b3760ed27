"""Walks on disk: a game that was walked once is read the next time.

What is kept is a `WalkRecord`, some 16 bytes for each history; the tree and the sequence form are derived anew. A record is an
uncompressed `.npz` archive of arrays and a JSON text, read as `_archives` does. Its name holds the game's
short name and a digest of what it depends on: the game's string, all its parameters, the version of OpenSpiel and `FORMAT`.

A string must tell the rules, or a record would be taken for that of another game. So Python games, whose source anybody may
edit, matrix games and games that are read from files or texts are not kept, nor what wraps them. And as OpenSpiel may have been
built from changed source, some plays of the game are compared with every record that is read.
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
# How much of the game is played again when a record is read.
_PLAYS, _MOST_MOVES = 100, 10_000


def record_path(game: pyspiel.Game, directory: str | os.PathLike[str]) -> pathlib.Path:
    """Where the walk through `game` is kept."""
    digest = hashlib.sha256(json.dumps(_identity(game), sort_keys=True).encode()).hexdigest()
    return pathlib.Path(directory) / f"{game.get_type().short_name}-{digest[:32]}.npz"


def is_cached(game: pyspiel.Game, directory: str | os.PathLike[str]) -> bool:
    """Whether there is a record of the game, good or bad."""
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
    limits: WalkLimits = NO_LIMITS,
    progress: bool = False,
) -> GameTree:
    """The game's tree: from `directory` if its walk is kept there, else the game is walked, and the walk kept if it can be.

    What cannot be kept, or is damaged and walked again, is said in a `UserWarning`.

    Raises:
      OSError: the directory cannot be made, read or written; this is found out before the walk.
      TypeError: the directory is no path.
      ValueError: the directory has no name.
      MemoryError, TimeoutError, TypeError, ValueError: as for `GameTree.from_game`.
    """
    if not checked_path(directory, "cache"):
        raise ValueError("cache needs the name of a directory")
    check_game(game)
    reason = why_string_is_not_enough(game)
    if reason is not None:
        warnings.warn(f"{game} is not kept in {directory}: {reason}", stacklevel=3)
        record = walk_whole_game(game, processes=processes, limits=limits, progress=progress)
        return GameTree.from_record(game, ((),), record)
    path = record_path(game, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path)
    try:
        return _read(path, game, limits)
    except DamagedError as error:
        warnings.warn(f"{path} is not a walk that spiel_cfrplus kept, or is damaged ({error}); it is made anew", stacklevel=3)
        _make_way(path)
    except (FileNotFoundError, NotADirectoryError):
        if _leads_nowhere(path):
            warnings.warn(f"{path} is a link to {os.readlink(path)}, whose folder is missing; it is made anew", stacklevel=3)
            path.unlink()
    check_writable(path)
    record = walk_whole_game(game, processes=processes, limits=limits, progress=progress)
    tree = GameTree.from_record(game, ((),), record)
    try:
        _write(path, game, record)
    except OSError as error:  # the disk may be full; no reason to lose the walk
        warnings.warn(f"{path} could not be written ({error})", stacklevel=3)
    return tree


def _leads_nowhere(path: pathlib.Path) -> bool:
    """Whether the path is a link and nothing can be written to where it leads."""
    return path.is_symlink() and not pathlib.Path(os.path.realpath(path)).parent.is_dir()


def _make_way(path: pathlib.Path) -> None:
    """Removes what is no regular file, which `atomic_write` does not replace. A folder is renamed: it may not be empty."""
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
    """Reads all of a record and finds out whether it is one, and this game's.

    Raises:
      OSError: the file cannot be read.
      ValueError: more histories than `limits` admit.
      DamagedError: it is none.
    """
    with open_archive(path) as archive:
        if archive.json("identity") != _identity(game):
            raise _disagreement(game)
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
            raise _disagreement(game)
    return tree


def _disagreement(game: pyspiel.Game) -> DamagedError:
    return DamagedError(f"does not agree with {game}")


def _split(text: np.ndarray, lengths: np.ndarray) -> tuple[str, ...]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    whole = text.tobytes()
    return tuple(whole[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False))


def _check(arrays: Mapping[str, np.ndarray], num_players: int) -> None:
    """Raises some exception unless the arrays fit together, so that nothing is read or written outside them afterwards."""
    nodes, num_legal_actions, num_outcomes = (arrays[name] for name in ("nodes", "num_legal_actions", "num_outcomes"))
    is_chance, is_terminal, num_infostates = nodes == CHANCE, nodes == TERMINAL, len(num_legal_actions)
    if not (is_chance | is_terminal | ((nodes >= 0) & (nodes < num_infostates))).all() or len(nodes) > MOST_HISTORIES:
        raise ValueError("infostates that there are not")
    num_children = np.zeros(len(nodes), np.int64)
    num_children[nodes >= 0] = num_legal_actions[nodes[nodes >= 0]]
    num_children[is_chance] = num_outcomes
    still_open = 1 + np.cumsum(num_children - 1)
    if not (np.all(still_open[:-1] > 0) and still_open[-1] == 0):
        raise ValueError("histories that do not make a tree")
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
        raise ValueError("players that there are not")


def _plays_agree(tree: GameTree) -> bool:
    """Whether some plays, spread evenly over the terminal histories, go in the game as they do in the tree."""
    moves_left = _MOST_MOVES
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
    """Whether a history and what leads to its child are as the state says."""
    if state.current_player() != tree.actor[history]:
        return False
    if state.is_chance_node():
        return (tree.action[child], tree.chance_probability[child]) in state.chance_outcomes()
    infostate = tree.infostate[history]
    legal = slice(*tree.legal_action_start[infostate : infostate + 2])
    player = int(tree.actor[history])
    here = (state.information_state_string(player), state.legal_actions())
    return here == (tree.infostate_keys[infostate], tree.legal_actions[legal].tolist())
