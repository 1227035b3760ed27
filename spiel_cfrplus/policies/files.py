"""Formats of policies on disk; see `StrategyProfile.save` and `reading.load_policy`.

The ending of a file's name decides its format.

* `.npz`: an uncompressed NumPy archive. Exact, small and fast.
* `.json`: per player, an object from information-state strings to lists of [action id, action name, probability]. Exact.
* `.csv`: RFC 4180 in UTF-8, with the columns player, infostate, action, action_name, probability. Exact, but it says nothing
  about its game, which must be given when it is read, and has no checksum.

The first two also hold the string, the size and the fingerprint of the game and the versions of this package and OpenSpiel.
No format needs a table of OpenSpiel, and all can be read without this package, as docs/policy_files.md shows.

A file may come from another person. Reading one executes nothing that it contains, and sizes are checked before memory is
allocated. Without `game=` the game is loaded by the saved string, see `game.saved_games`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import DamagedError, open_archive, open_regular_file, printable
from spiel_cfrplus._utils.files import atomic_write, check_writable, checked_path
from spiel_cfrplus.game.saved_games import SavedGame
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES
from spiel_cfrplus.policies import folders, text_files

FORMAT = 1
# What a header says, by type.
_HEADER: dict[str, type] = {
    **dict.fromkeys(("policy_format", "num_histories"), int),
    **dict.fromkeys(("game", "description", "fingerprint"), str),
    "whole_game": bool,
    "versions": dict,
}
_VERSIONS = ("open_spiel", "spiel_cfrplus")


@dataclasses.dataclass(frozen=True)
class SavedPolicy(SavedGame):
    """What a file says about its policy.

    Attributes:
      whole_game: whether it has all infostates of the game of its string.
      versions: of the packages that wrote the file.
    """

    whole_game: bool
    versions: dict[str, str]

    def compiled_game(
        self, game: pyspiel.Game | SequenceFormGame | None = None, max_histories: int | None = None
    ) -> SequenceFormGame:
        """As `SavedGame.compiled_game`; a subgame, or a game with locked infostates, must be given."""
        if game is None and not self.whole_game:
            raise ValueError(
                f"{self.path} was saved for a part of a game or for one with locked infostates, {self.description}; pass it as "
                "game="
            )
        return super().compiled_game(game, max_histories)


def write(path: str | os.PathLike[str], game: SequenceFormGame, probabilities: np.ndarray) -> None:
    """Writes a policy; `path` holds either what it held before or the whole new file, whatever happens.

    Args:
      path: the file, of the format that its ending names.
      game: the compiled game.
      probabilities: float64 (S,), see `StrategyProfile`.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a path.
      ValueError: another ending, or see `text_files.write_csv`.
    """
    write_format = _format_of(path).write
    with atomic_write(path) as file:
        write_format(file, game, probabilities)


def read(
    path: str | os.PathLike[str], game: pyspiel.Game | SequenceFormGame | None, max_histories: int | None
) -> tuple[SequenceFormGame, np.ndarray]:
    """The compiled game and the numbers in a file or folder, which may not be distributions; see `reading.load_policy`."""
    if os.path.isdir(checked_path(path)):
        with _damaged_files_named(path):
            if not os.path.exists(os.path.join(path, folders.LIST)):
                raise DamagedError(f"not a regular file, and a folder without {folders.LIST}")
            return folders.read_folder(path, game, max_histories)
    return _format_of(path).read(path, game, max_histories)


def damaged(path: str | os.PathLike[str], reason: object) -> ValueError:
    """The error for a file that `write` would not have written."""
    return ValueError(f"{path} is not a policy of spiel_cfrplus, or is damaged ({reason})")


def check_path(path: str | os.PathLike[str]) -> None:
    """Checks in advance that `write` can write to `path`.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a path.
      ValueError: the ending is unknown.
    """
    _format_of(path)
    check_writable(path)


@dataclasses.dataclass(frozen=True)
class _Format:
    """How files of one format are written and read."""

    write: Callable[[BinaryIO, SequenceFormGame, np.ndarray], None]
    read: Callable[[str | os.PathLike[str], Any, int | None], tuple[SequenceFormGame, np.ndarray]]


def _format_of(path: str | os.PathLike[str]) -> _Format:
    suffix = pathlib.PurePath(checked_path(path)).suffix.lower()
    if suffix not in _FORMATS:
        raise ValueError(f"{path}: the name of a policy's file must end in {', '.join(_FORMATS)}")
    return _FORMATS[suffix]


@contextlib.contextmanager
def _damaged_files_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes one clear error of what a damaged file causes."""
    try:
        yield
    except DamagedError as error:
        raise damaged(path, error) from error


# What the formats have in common.


def _header_of(game: SequenceFormGame) -> dict[str, Any]:
    return {
        "policy_format": FORMAT,
        "versions": {package: importlib.metadata.version(package) for package in _VERSIONS},
        "game": str(game.tree.game),
        "description": printable(game.description),
        "whole_game": game.is_whole_game,
        "num_histories": game.tree.num_histories,
        "fingerprint": game.fingerprint,
    }


def _saved_policy(path: str | os.PathLike[str], header: dict[str, Any]) -> SavedPolicy:
    """What a header says, if it is such as `_header_of` gives.

    Raises:
      ValueError: it is not, or of another format.
    """
    version = header.get("policy_format")
    if type(version) is not int:
        raise DamagedError("no policy_format")
    if version != FORMAT:
        raise DamagedError(f"its format is {version}, this version reads format {FORMAT}")
    if header.keys() != _HEADER.keys():
        raise DamagedError(f"other entries than expected: {sorted(header.keys() ^ _HEADER.keys())}")
    for name, kind in _HEADER.items():
        if type(header[name]) is not kind:
            raise DamagedError(f"{name} is {header[name]!r}")
    texts = [header["game"], header["description"], header["fingerprint"], *header["versions"].values()]
    if not all(isinstance(text, str) and printable(text) == text for text in texts):
        raise DamagedError("texts with characters that cannot be printed")
    if not 1 <= header["num_histories"] <= MOST_HISTORIES:
        raise DamagedError(f"num_histories is {header['num_histories']}")
    return SavedPolicy(path, **{name: header[name] for name in _HEADER if name != "policy_format"})


# Archives.


def _write_archive(file: BinaryIO, game: SequenceFormGame, probabilities: np.ndarray) -> None:
    arrays: dict[str, Any] = {"probabilities": probabilities[_has_action(game)], **_infostate_arrays(game)}
    np.savez(file, header=np.array(json.dumps(_header_of(game))), **arrays)


def _read_archive(path: str | os.PathLike[str], game: Any, max_histories: int | None) -> tuple[SequenceFormGame, np.ndarray]:
    with _damaged_files_named(path), open_archive(path) as archive:
        saved = _saved_policy(path, archive.json("header"))
        archive.check_sums()
    compiled = saved.compiled_game(game, max_histories)
    expected = _infostate_arrays(compiled)
    probabilities, has_action = np.ones(compiled.num_sequences), _has_action(compiled)
    with _damaged_files_named(path), open_archive(path) as archive:
        if archive.names != {"header", "probabilities", *expected}:
            raise DamagedError(f"arrays {sorted(archive.names)}")
        for name, found in archive.arrays_like(expected).items():
            if not np.array_equal(found, expected[name]):
                raise DamagedError(f"{name} is not that of the game")
        probabilities[has_action] = archive.array("probabilities", np.float64, (int(has_action.sum()),))
    return compiled, probabilities


def _infostate_arrays(game: SequenceFormGame) -> dict[str, np.ndarray]:
    """The infostates of all players, player 0 first, and their actions; strings are in UTF-8, one after the other."""
    keys = [key.encode("utf-8", "surrogatepass") for treeplex in game.treeplexes for key in treeplex.infostate_keys]
    points = [treeplex.num_decision_points for treeplex in game.treeplexes]
    return {
        "infostate_player": np.repeat(np.arange(game.num_players, dtype=np.int32), points),
        "infostate_text": np.frombuffer(b"".join(keys), np.uint8),
        "infostate_text_end": np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)), dtype=np.int64),
        "num_actions": np.concatenate([np.diff(treeplex.sequence_start) for treeplex in game.treeplexes]).astype(np.int32),
        "actions": np.concatenate([treeplex.actions[1:] for treeplex in game.treeplexes]),
    }


def _has_action(game: SequenceFormGame) -> np.ndarray:
    """bool (S,): False at the empty sequences."""
    has_action = np.ones(game.num_sequences, bool)
    has_action[[own.start for own in game.player_slices]] = False
    return has_action


# Texts.


def _write_json(file: BinaryIO, game: SequenceFormGame, probabilities: np.ndarray) -> None:
    header = json.dumps({**_header_of(game), "checksum": _checksum(game, probabilities)})
    file.write(f'{header[:-1]}, "players": [\n'.encode("ascii"))
    for part in text_files.json_players(game, probabilities):
        file.write(part.encode("ascii"))
    file.write(b"]}\n")


def _read_json(path: str | os.PathLike[str], game: Any, max_histories: int | None) -> tuple[SequenceFormGame, np.ndarray]:
    with _damaged_files_named(path), open_regular_file(checked_path(path)) as file:
        header = text_files.read_json(file)
        players, checksum = header.pop("players", None), header.pop("checksum", None)
        saved = _saved_policy(path, header)
    compiled = saved.compiled_game(game, max_histories)
    with _damaged_files_named(path):
        probabilities = text_files.probabilities_of_rows(compiled, text_files.json_rows(players))
        if checksum != _checksum(compiled, probabilities):
            raise DamagedError("the checksum is wrong")
    return compiled, probabilities


def _checksum(game: SequenceFormGame, probabilities: np.ndarray) -> str:
    return hashlib.sha256(probabilities[_has_action(game)].astype("<f8").tobytes()).hexdigest()


def _read_csv(path: str | os.PathLike[str], game: Any, max_histories: int | None) -> tuple[SequenceFormGame, np.ndarray]:
    if game is None:
        raise ValueError(f"{path}: a .csv file does not say which game it is for; pass it as game=")
    compiled = compile_game(game, max_histories=max_histories)
    with _damaged_files_named(path), open_regular_file(checked_path(path)) as file:
        return compiled, text_files.probabilities_of_rows(compiled, text_files.csv_rows(file))


_FORMATS = {
    ".npz": _Format(_write_archive, _read_archive),
    ".json": _Format(_write_json, _read_json),
    ".csv": _Format(text_files.write_csv, _read_csv),
}
