"""Checkpoints of games in parts, which any number of processes can resume.

A checkpoint is a folder on a file system that all processes share. It is written in two phases: first each process writes its
parts into a folder of this iteration; when all have finished, process 0 replaces the file `checkpoint.json`, which names this
folder. A process that is killed at any time therefore leaves the previous checkpoint or the new one. Older folders are removed
afterwards.

`checkpoint.json` contains the options of the session; `top.npz` the cut and the arrays of the top tree; `part-0007.npz` the
arrays of part 7. A checkpoint resumes with the same parts, which are dealt to the processes anew, so the doubles do not depend
on the number of processes. The game is walked again.

Reading executes nothing that a file contains.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import Archive, DamagedError, open_archive, open_regular_file, without_duplicates
from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus.distributed.cut import Cut
from spiel_cfrplus.distributed.session import DistributedSelfPlay
from spiel_cfrplus.solving.checkpoint import describe_rule

FORMAT = 1
LIST = "checkpoint.json"
_TOP = "top.npz"
_CUT = ("cut_actions", "cut_ends", "cut_component", "cut_sizes")


def options_of(session: DistributedSelfPlay) -> dict[str, Any]:
    """The options of a session in the form of `checkpoint.json`.

    Raises:
      TypeError: its rule cannot be described.
    """
    return {
        "format": FORMAT,
        "game": str(session.game.game),
        "algorithm": session.algorithm.name,
        "rule": describe_rule(session.algorithm.rule),
        "averaging": dataclasses.asdict(session.averaging),
        "alternating": session.alternating,
        "exact_ties": session.exact_ties,
    }


def save(session: DistributedSelfPlay, folder: str | os.PathLike[str], seconds: float = 0.0) -> None:
    """Writes a checkpoint; all processes call it at the same iteration.

    Args:
      session: the session.
      folder: created if it does not exist.
      seconds: the duration of the run so far.

    Raises:
      OSError: a file cannot be written; the previous checkpoint is unchanged.
      TypeError: the rule of the session cannot be described.
    """
    folder, game = pathlib.Path(folder), session.game
    described = {**options_of(session), "iteration": session.iteration, "seconds": seconds}
    described["most_parts"] = game.cut.most_parts
    current = folder / f"iteration-{session.iteration}"
    current.mkdir(parents=True, exist_ok=True)
    for number, fingerprint, state in zip(game.own_parts, game.fingerprints, session.part_states(), strict=True):
        _write(current / _name(number), {"fingerprint": fingerprint}, state)
    if game.communicator.rank == 0:
        _write(current / _TOP, {"fingerprint": game.top.game.fingerprint}, {**session.top_state(), **_arrays_of_cut(game.cut)})
    game.communicator.wait_for_all()
    if game.communicator.rank == 0:
        with atomic_write(folder / LIST) as file:
            file.write(json.dumps({**described, "folder": current.name}).encode("ascii"))
        for other in folder.glob("iteration-*"):
            if other != current:
                shutil.rmtree(other, ignore_errors=True)
    game.communicator.wait_for_all()


def exists(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder contains a checkpoint."""
    return pathlib.Path(folder, LIST).exists()


def read_list(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The options of a checkpoint, with its `iteration`, its `seconds` and the name of its `folder`.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not a checkpoint, or has another format.
    """
    with open_regular_file(os.fspath(pathlib.Path(folder, LIST))) as file:
        text = file.read(1 << 20)
    try:
        found = json.loads(text, object_pairs_hook=without_duplicates)
        name, iteration = found["folder"], found["iteration"]
        is_valid = type(iteration) is int and name == f"iteration-{iteration}" and type(found["seconds"]) is float
        is_valid = is_valid and type(found["most_parts"]) is int and found["most_parts"] >= 1
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error
    if not is_valid:
        raise _damaged(folder, f"its folder is {name!r}")
    if found["format"] != FORMAT:
        raise ValueError(f"{folder} has checkpoint format {found['format']}, this version reads format {FORMAT}")
    return dict(found)


def check_options(folder: str | os.PathLike[str], session: DistributedSelfPlay) -> None:
    """Checks that a session with the same options wrote the checkpoint.

    Raises:
      ValueError: they differ; the message names the first difference.
    """
    saved = read_list(folder)
    for name, value in json.loads(json.dumps(options_of(session))).items():
        if saved.get(name) != value:
            raise ValueError(f"{folder} was saved with {name} {saved.get(name)!r}, not {value!r}; pass the same options")


def read_cut(folder: str | os.PathLike[str], game: pyspiel.Game) -> Cut:
    """The cut of a checkpoint.

    Args:
      folder: the checkpoint.
      game: the game.

    Raises:
      OSError: a file cannot be read.
      ValueError: it is not a checkpoint, or one of another game.
    """
    saved = read_list(folder)
    if saved.get("game") != str(game):
        raise ValueError(f"{folder} was saved for the game {saved.get('game')!r}, not for {game}")
    try:
        with open_archive(pathlib.Path(folder, saved["folder"], _TOP)) as archive:
            archive.check_sums()
            actions, ends, component = (archive.array(name, np.int64, (None,)) for name in _CUT[:3])
            sizes = archive.array(_CUT[3], np.float64, (None,))
        if len(component) != len(ends) or not np.array_equal(np.unique(component), np.arange(len(sizes))):
            raise DamagedError("components that do not belong to its cut")
    except DamagedError as error:
        raise _damaged(folder, error) from error
    histories = tuple(tuple(history.tolist()) for history in np.split(actions, ends[:-1]))
    return Cut(histories, component, sizes, saved["most_parts"])


def load(session: DistributedSelfPlay, folder: str | os.PathLike[str]) -> float:
    """Continues a new session from a checkpoint; returns the seconds of its run.

    Args:
      session: a session with the cut of the checkpoint, see `read_cut`, and the same options.
      folder: the checkpoint.

    Raises:
      OSError: a file cannot be read.
      ValueError: it is not a checkpoint, or one with other options or of another game.
    """
    check_options(folder, session)
    saved, game = read_list(folder), session.game
    current = pathlib.Path(folder, saved["folder"])
    top = _read(current / _TOP, game.top.game.fingerprint, session.top_state(), others=set(_CUT))
    expected = zip(game.own_parts, game.fingerprints, session.part_states(), strict=True)
    parts = [_read(current / _name(number), fingerprint, state) for number, fingerprint, state in expected]
    session.load_states(top, parts)
    return float(saved["seconds"])


def _name(part: int) -> str:
    return f"part-{part:04}.npz"


def _arrays_of_cut(cut: Cut) -> dict[str, np.ndarray]:
    actions = np.array([action for history in cut.histories for action in history], np.int64)
    ends = np.cumsum([len(history) for history in cut.histories], dtype=np.int64)
    return dict(zip(_CUT, (actions, ends, cut.component.astype(np.int64), cut.sizes), strict=True))


def _write(path: pathlib.Path, header: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    with atomic_write(path) as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]


def _read(
    path: pathlib.Path, fingerprint: str, expected: dict[str, np.ndarray], others: frozenset[str] | set[str] = frozenset()
) -> dict[str, np.ndarray]:
    try:
        with open_archive(path) as archive:
            return _read_archive(archive, fingerprint, expected, others)
    except DamagedError as error:
        raise _damaged(path, error) from error


def _read_archive(
    archive: Archive, fingerprint: str, expected: dict[str, np.ndarray], others: frozenset[str] | set[str]
) -> dict[str, np.ndarray]:
    archive.check_sums()
    if archive.names != {"header", *expected, *others}:
        raise DamagedError(f"arrays {sorted(archive.names)}")
    if archive.json("header").get("fingerprint") != fingerprint:
        raise DamagedError("it was saved for other infostates or payoffs")
    arrays = archive.arrays_like(expected)
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise DamagedError(f"{name} with other than finite numbers")
    return arrays


def _damaged(path: str | os.PathLike[str], reason: object) -> ValueError:
    return ValueError(f"{path} is not a checkpoint of a game in parts, or is damaged ({reason})")
