"""Policies in folders: one file for each part of a game that is too large for one process, see `distributed`.

A folder contains `policy.json`, which is written last, and the files that it names: NumPy archives with the arrays that a
policy's `.npz` file contains, for the infostates of one part. `read_folder` makes one policy of them, if the game fits into
memory; `probabilities_at` finds one infostate and reads one file at a time.

Reading executes nothing that a file contains; see `files`.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.archives import Archive, DamagedError, open_archive, open_regular_file, without_duplicates
from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus.game.saved_games import SavedGame
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.policies import text_files

FORMAT = 1
LIST = "policy.json"
_HEADER: dict[str, type] = {**dict.fromkeys(("folder_format", "num_histories"), int), "game": str, "files": list}


class Piece(NamedTuple):
    """The policy of one player at some infostates: J infostates, S actions.

    Attributes:
      player: the player.
      keys: J information-state strings.
      num_actions: int (J,), the number of actions of each.
      actions: int64 (S,), action ids.
      probabilities: float64 (S,).
    """

    player: int
    keys: Sequence[str]
    num_actions: np.ndarray
    actions: np.ndarray
    probabilities: np.ndarray


def write_piece(path: str | os.PathLike[str], pieces: Iterable[Piece]) -> None:
    """Writes a file of a folder.

    Raises:
      OSError: the file cannot be written.
    """
    pieces = list(pieces)
    keys = [key.encode("utf-8", "surrogatepass") for piece in pieces for key in piece.keys]
    with atomic_write(path) as file:
        np.savez(
            file,
            infostate_player=np.concatenate([np.full(len(piece.keys), piece.player, np.int32) for piece in pieces]),
            infostate_text=np.frombuffer(b"".join(keys), np.uint8),
            infostate_text_end=np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)), dtype=np.int64),
            num_actions=np.concatenate([piece.num_actions for piece in pieces]).astype(np.int32),
            actions=np.concatenate([piece.actions for piece in pieces]).astype(np.int64),
            probabilities=np.concatenate([piece.probabilities for piece in pieces]).astype(np.float64),
        )


def write_list(folder: str | os.PathLike[str], game: pyspiel.Game, num_histories: int, files: Sequence[str]) -> None:
    """Writes `policy.json`, after all files.

    Raises:
      OSError: the file cannot be written.
    """
    header = {"folder_format": FORMAT, "game": str(game), "num_histories": num_histories, "files": list(files)}
    with atomic_write(pathlib.Path(folder, LIST)) as file:
        file.write(json.dumps(header).encode("ascii"))


def read_folder(
    folder: str | os.PathLike[str], game: pyspiel.Game | SequenceFormGame | None, max_histories: int | None
) -> tuple[SequenceFormGame, np.ndarray]:
    """The compiled game and the numbers in a folder, which may not be distributions; see `reading.load_policy`.

    Raises:
      OSError: a file cannot be read.
      DamagedError: `folder` is not one that was written completely, or has infostates of another game.
    """
    header = _header(folder)
    if game is None:
        saved = SavedGame(folder, header["game"], header["game"], header["num_histories"], "")
        compiled = saved.game_by_string(max_histories)
    else:
        compiled = compile_game(game, max_histories=max_histories)
    rows = (row for name in header["files"] for row in _rows(pathlib.Path(folder, name)))
    return compiled, text_files.probabilities_of_rows(compiled, rows)


def probabilities_at(folder: str | os.PathLike[str], player: int, infostate: str) -> dict[int, float]:
    """The probability of each action at one infostate; holds one file of the folder in memory at a time.

    Args:
      folder: the folder.
      player: the player who acts at the infostate.
      infostate: its information-state string.

    Raises:
      OSError: a file cannot be read.
      DamagedError: `folder` is not one that was written completely.
      KeyError: the folder contains no such infostate.
    """
    wanted = infostate.encode("utf-8", "surrogatepass")
    for name in _header(folder)["files"]:
        with open_archive(pathlib.Path(folder, name)) as archive:
            found = _found(archive, player, wanted)
            if found:
                return found
    raise KeyError(f"{folder} has no infostate {infostate!r} of player {player}")


def _header(folder: str | os.PathLike[str]) -> dict[str, Any]:
    with open_regular_file(os.fspath(pathlib.Path(folder, LIST))) as file:
        text = file.read(1 << 20)
    try:
        header = json.loads(text, object_pairs_hook=without_duplicates)
    except ValueError as error:
        raise DamagedError(error) from error
    if not isinstance(header, dict) or {name: type(value) for name, value in header.items()} != _HEADER:
        raise DamagedError(f"{LIST} is not the list of a policy's files")
    if header["folder_format"] != FORMAT:
        raise DamagedError(f"its format is {header['folder_format']}, this version reads format {FORMAT}")
    if not all(isinstance(name, str) and pathlib.PurePath(name).name == name for name in header["files"]):
        raise DamagedError(f"{LIST} names files of other folders")
    return header


def _arrays(archive: Archive) -> dict[str, np.ndarray]:
    kinds: dict[str, npt.DTypeLike] = {
        **dict.fromkeys(("infostate_player", "num_actions"), np.int32),
        **dict.fromkeys(("infostate_text_end", "actions"), np.int64),
        "infostate_text": np.uint8,
        "probabilities": np.float64,
    }
    archive.check_sums()
    arrays = {name: archive.array(name, kind, (None,)) for name, kind in kinds.items()}
    ends, counts = arrays["infostate_text_end"], arrays["num_actions"]
    sizes = {len(arrays[name]) for name in ("infostate_player", "infostate_text_end", "num_actions")}
    lengths = {len(arrays["infostate_text"]), int(ends.max(initial=0))}
    totals = {len(arrays["actions"]), len(arrays["probabilities"]), int(counts.sum())}
    ascending = (np.diff(ends, prepend=0) >= 0).all() and (counts >= 0).all()
    if not ascending or max(map(len, (sizes, lengths, totals))) > 1:
        raise DamagedError("arrays whose sizes do not agree")
    return arrays


def _rows(path: pathlib.Path) -> Iterator[text_files.Row]:
    with open_archive(path) as archive:
        arrays = _arrays(archive)
    text, ends = arrays["infostate_text"].tobytes(), arrays["infostate_text_end"].tolist()
    actions, probabilities = arrays["actions"].tolist(), arrays["probabilities"].tolist()
    place = 0
    columns = zip(arrays["infostate_player"].tolist(), [0, *ends], ends, arrays["num_actions"].tolist(), strict=False)
    for player, start, end, count in columns:
        key = text[start:end].decode("utf-8", "surrogatepass")
        for here in range(place, place + count):
            yield player, key, actions[here], probabilities[here]
        place += count


def _found(archive: Archive, player: int, wanted: bytes) -> dict[int, float]:
    arrays = _arrays(archive)
    ends = arrays["infostate_text_end"]
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    text = arrays["infostate_text"].tobytes()
    possible = np.flatnonzero((arrays["infostate_player"] == player) & (ends - starts == len(wanted)))
    for place in possible.tolist():
        if text[starts[place] : ends[place]] == wanted:
            first = int(arrays["num_actions"][:place].sum())
            own = slice(first, first + int(arrays["num_actions"][place]))
            return dict(zip(arrays["actions"][own].tolist(), arrays["probabilities"][own].tolist(), strict=True))
    return {}
