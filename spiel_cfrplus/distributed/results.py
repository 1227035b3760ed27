"""Policies of games in parts, written to a folder by all processes; `policies.folders` and `load_policy` read them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import numpy as np

from spiel_cfrplus.distributed.session import DistributedSelfPlay
from spiel_cfrplus.policies.folders import Piece, write_list, write_piece


def save_policy(session: DistributedSelfPlay, folder: str | os.PathLike[str], last_iterate: bool = False) -> None:
    """Writes the average policies, or the current ones; all processes call it with the same folder.

    Each process writes the infostates of its parts. The list of files is written when all files are complete.

    Args:
      session: the session.
      folder: created if it does not exist, on a file system that all processes share.
      last_iterate: whether the current policies are written.

    Raises:
      OSError: a file cannot be written.
    """
    game, folder = session.game, pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for number, pieces in zip(game.own_parts, _pieces_of_parts(session, last_iterate), strict=True):
        write_piece(folder / _name(number), pieces)
    if game.communicator.rank == 0:
        write_piece(folder / "top.npz", _pieces_of_top(session, last_iterate))
    game.communicator.wait_for_all()
    if game.communicator.rank == 0:
        names = ["top.npz", *map(_name, range(game.cut.num_parts))]
        write_list(folder, game.game, game.num_histories, names)
    game.communicator.wait_for_all()


def _name(part: int) -> str:
    return f"part-{part:04}.npz"


def _pieces_of_top(session: DistributedSelfPlay, last_iterate: bool) -> Iterator[Piece]:
    game, policy = session.game.top.game, session.top_policy(last_iterate)
    for treeplex, own in zip(game.treeplexes, game.player_slices, strict=True):
        counts = np.diff(treeplex.sequence_start)
        yield Piece(treeplex.player, treeplex.infostate_keys, counts, treeplex.actions[1:], policy[own][1:])


def _pieces_of_parts(session: DistributedSelfPlay, last_iterate: bool) -> Iterator[list[Piece]]:
    for players, policies in zip(session.game.players, session.part_policies(last_iterate), strict=True):
        yield [
            Piece(player, own.infostate_keys, np.diff(own.sequence_start), own.actions, policy)
            for player, (own, policy) in enumerate(zip(players, policies, strict=True))
        ]
