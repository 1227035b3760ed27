"""Compilation of a game in several processes: the cut, the top tree, and the parts, which share no infostate.

>>> import pyspiel
>>> compiled = compile_in_parts(pyspiel.load_game("leduc_poker"), num_parts=4)
>>> print(compiled)
leduc_poker(): 4 parts, the largest with 39.5 % (estimated); cut at plies 4 to 5, 150 histories, 5 components
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable
from spiel_cfrplus.distributed.communicator import Alone, Communicator
from spiel_cfrplus.distributed.cut import Cut, checked_num_parts, choose_cut
from spiel_cfrplus.distributed.parts import Part, PlayerPart, Share, compile_part, share_of
from spiel_cfrplus.distributed.top_tree import TopTree, walk_top_tree
from spiel_cfrplus.game.walk_choice import checked_walk
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits
from spiel_cfrplus.solving.partition import dealt_out


class PartError(Exception):
    """A part cannot be walked; the message names the process, the part, and the error, which is its cause."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DistributedGame(Immutable):
    """A game in parts, of which this process has some; n players.

    Attributes:
      game: the game.
      communicator: the processes.
      cut: the cut.
      top: the top tree.
      rank_of: int64 (num_parts,), the process of each part.
      share: the parts of this process as one game.
      players: for each part of this process, the piece of each player.
      fingerprints: for each part of this process, a digest of its data.
      num_histories: the histories of the whole game.
      is_two_player_constant_sum: as for `SequenceFormGame`.
    """

    game: pyspiel.Game
    communicator: Communicator
    cut: Cut
    top: TopTree
    rank_of: np.ndarray
    share: Share
    players: tuple[tuple[PlayerPart, ...], ...]
    fingerprints: tuple[str, ...]
    num_histories: int
    is_two_player_constant_sum: bool

    def __str__(self) -> str:
        return f"{self.game}: {self.cut}"

    def _summary(self) -> str:
        return f"{self}, process {self.communicator.rank} of {self.communicator.size}"

    @property
    def num_players(self) -> int:
        return self.top.game.num_players

    @property
    def own_parts(self) -> list[int]:
        """The parts of this process, ascending."""
        return parts_of(self.rank_of, self.communicator.rank)


def parts_of(rank_of: np.ndarray, rank: int) -> list[int]:
    """The parts of a process, ascending."""
    return np.flatnonzero(rank_of == rank).tolist()


def compile_in_parts(
    game: pyspiel.Game,
    communicator: Communicator | None = None,
    *,
    num_parts: int | None = None,
    ply: int | None = None,
    cut: Cut | None = None,
    limits: WalkLimits = NO_LIMITS,
    walk: str = "auto",
) -> DistributedGame:
    """Walks and compiles a game in parts; all processes call it with the same arguments.

    Components in different parts that turn out to share an infostate are joined, and all components are dealt to parts anew. A
    part that does not change is not walked again.

    Args:
      game: the game, made in each process.
      communicator: the processes; by default this one alone.
      num_parts: the largest number of parts; by default four for each process, and at least 16.
      ply: the ply of the cut; by default `choose_cut` chooses one.
      cut: a cut made before, such as that of a checkpoint; excludes the two others.
      limits: limits on the histories and the time of the top tree, and of each part.
      walk: how parts are walked, as for `compile_game`.

    Raises:
      TypeError, ValueError: see `GameTree.from_game`, `choose_cut` and `SequenceFormGame.from_tree`; the processes have
        different games; or an infostate has histories above the cut and below it.
      PartError: a part cannot be walked, for one of these reasons.
    """
    communicator, walk = Alone() if communicator is None else communicator, checked_walk(walk)
    if cut is None:
        cut = choose_cut(game, checked_num_parts(num_parts, communicator.size), ply)
    _check_same(game, cut, communicator)
    walked: dict[tuple[int, ...], Part] = {}
    while True:
        top = walk_top_tree(game, cut, limits)
        rank_of = dealt_out(cut.share, communicator.size)
        own = {tuple(np.flatnonzero(top.part == number).tolist()): number for number in parts_of(rank_of, communicator.rank)}
        # A part of this process that was not joined with another one is not walked again.
        walked = {members: part for members, part in walked.items() if members in own}
        for members, number in own.items():
            if members in walked:
                walked[members] = dataclasses.replace(walked[members], number=number)
            else:
                walked[members] = _compiled_part(game, top, number, communicator.rank, limits, walk)
        parts = sorted(walked.values(), key=lambda part: part.number)
        pairs = _components_with_common_infostates(parts, communicator)
        if len(pairs) == 0:
            break
        cut = cut.joined(pairs)
    counts = communicator.gather_rows(np.array([[sum(part.num_histories for part in parts)]]))
    above = top.game.tree.num_histories - len(top.histories)
    return DistributedGame(
        game=game,
        communicator=communicator,
        cut=cut,
        top=top,
        rank_of=rank_of,
        share=share_of(parts, game.num_players()),
        players=tuple(part.players for part in parts),
        fingerprints=tuple(part.fingerprint for part in parts),
        num_histories=above + sum(int(count[0, 0]) for count in counts),
        is_two_player_constant_sum=_is_constant_sum(top, parts, communicator) and game.num_players() == 2,
    )


def _is_constant_sum(top: TopTree, parts: Sequence[Part], communicator: Communicator) -> bool:
    tree = top.game.tree
    above = tree.returns[~np.isin(tree.terminal, top.leaves)]
    sums = [*above.sum(axis=1), *(bound for part in parts for bound in part.sums)] or [math.nan]
    largest = max([np.abs(above).max(initial=0.0), *(part.largest_return for part in parts)])
    numbers = communicator.gather(np.array([np.min(sums), np.max(sums), largest]), [3] * communicator.size).reshape(-1, 3)
    return bool(np.nanmax(numbers[:, 1]) - np.nanmin(numbers[:, 0]) <= 1e-9 * numbers[:, 2].max())


def _check_same(game: pyspiel.Game, cut: Cut, communicator: Communicator) -> None:
    """Checks that all processes cut the same game at the same histories.

    Raises:
      ValueError: they do not.
    """
    digest = hashlib.sha256(repr((str(game), cut.histories, cut.component.tolist())).encode())
    rows = communicator.gather_rows(np.frombuffer(digest.digest(), np.int64).reshape(1, -1))
    different = [rank for rank, row in enumerate(rows) if not np.array_equal(row, rows[0])]
    if different:
        raise ValueError(
            f"{game}: process {different[0]} cuts the game at other histories than process 0; all processes must have the same "
            "version of the game"
        )


def _compiled_part(game: pyspiel.Game, top: TopTree, number: int, rank: int, limits: WalkLimits, walk: str) -> Part:
    try:
        return compile_part(game, top, number, limits, walk)
    except MemoryError as error:
        raise PartError(
            f"process {rank}, part {number} of {top.num_parts}: memory ran out; use more processes, or more parts ({error})"
        ) from error
    except Exception as error:
        raise PartError(f"process {rank}, part {number} of {top.num_parts}: {error}") from error


def _components_with_common_infostates(parts: Sequence[Part], communicator: Communicator) -> np.ndarray:
    """int64 (m, 2), pairs of components, of any process, that share an infostate; none if no two parts share one.

    Each process receives the hashes of a range, with the numbers of their components, and compares these.
    """
    rows = np.concatenate([np.zeros((0, 3), np.uint64), *(_numbered_hashes(part) for part in parts)])
    receiver = rows[:, 0] % np.uint64(communicator.size)
    rows = communicator.scatter_rows([rows[receiver == rank] for rank in range(communicator.size)])
    rows = rows[np.lexsort(rows.T[::-1])]
    above, below = rows[:-1], rows[1:]
    common = (above[:, 0] == below[:, 0]) & (above[:, 1] == below[:, 1])
    pairs = np.stack([above[common, 2], below[common, 2]], axis=1).astype(np.int64)
    across = np.concatenate(communicator.gather_rows(np.unique(pairs, axis=0)))
    if len(across) == 0:
        return across
    within = np.concatenate([np.zeros((0, 2), np.int64), *(part.common for part in parts)])
    return np.unique(np.concatenate([across, *communicator.gather_rows(within)]), axis=0)


def _numbered_hashes(part: Part) -> np.ndarray:
    """uint64 (I, 3), the hashes of a part's infostates, and the component of each."""
    return np.column_stack([part.hashes(), part.component.astype(np.uint64)])
