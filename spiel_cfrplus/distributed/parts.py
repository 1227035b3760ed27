"""Parts of a game below a cut: their compilation, and the arrays of all parts of one process."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen, sealed
from spiel_cfrplus._utils.progress import no_advance
from spiel_cfrplus.distributed.top_tree import TopTree
from spiel_cfrplus.game.chance_normalization import normalized
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.payoffs import group_payoffs, sum_by_rows
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.sequence_form import terminal_chance_reach
from spiel_cfrplus.game.walk_choice import walk_in_one_process
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits
from spiel_cfrplus.kernels import layouts


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PlayerPart(Immutable):
    """One player's piece of a part: B boundary sequences, J infostates, S sequences of these infostates.

    The sequences are numbered from 0: the boundary sequences come first.

    Attributes:
      boundary: int32 (B,), the number of each boundary sequence in the player's treeplex of the top tree.
      infostate_keys: tuple of J information-state strings.
      sequence_start: int64 (J + 1,), infostate j has the sequences `sequence_start[j] : sequence_start[j + 1]`; the first is B.
      parent_sequence: int32 (J,).
      actions: int64 (S,), the action id of each sequence of the infostates.
    """

    boundary: np.ndarray
    infostate_keys: tuple[str, ...]
    sequence_start: np.ndarray
    parent_sequence: np.ndarray
    actions: np.ndarray

    def _summary(self) -> str:
        return f"{len(self.boundary)} boundary sequences, {self.num_infostates} infostates, {self.num_sequences} sequences"

    @property
    def num_infostates(self) -> int:
        return len(self.parent_sequence)

    @property
    def num_sequences(self) -> int:
        """Number of sequences without the boundary sequences."""
        return len(self.actions)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Part(Immutable):
    """A compiled part.

    Attributes:
      number: its number.
      players: the piece of each player.
      payoffs: `PayoffArrays` in which the sequences of each player have the numbers of its `PlayerPart`.
      num_histories: histories at the cut and below it.
      component: int64 (I,), a component of the cut that contains each infostate; player after player, as `hashes`.
      common: int64 (m, 2), pairs of components that share an infostate of the part.
      sums: the smallest and the largest sum of the returns of all players at a terminal history.
      largest_return: the largest absolute return.
    """

    number: int
    players: tuple[PlayerPart, ...]
    payoffs: layouts.PayoffArrays
    num_histories: int
    component: np.ndarray
    common: np.ndarray
    sums: tuple[float, float]
    largest_return: float

    def _summary(self) -> str:
        return f"part {self.number}, {self.num_histories} histories, {self.num_infostates} infostates"

    @property
    def num_infostates(self) -> int:
        return sum(player.num_infostates for player in self.players)

    def hashes(self) -> np.ndarray:
        """uint64 (I, 2), a hash of 128 bits of the player and the string of each infostate."""
        return hash_infostates((number, own.infostate_keys) for number, own in enumerate(self.players))

    @property
    def fingerprint(self) -> str:
        """A digest of all data that iterations depend on."""
        digest = hashlib.sha256(self.hashes().tobytes())
        for own in self.players:
            for values in (own.boundary, own.sequence_start, own.parent_sequence, own.actions):
                digest.update(values.tobytes())
        for values in self.payoffs:
            digest.update(values.tobytes())
        return digest.hexdigest()


def hash_infostates(keys_of_players: Iterator[tuple[int, Sequence[str]]]) -> np.ndarray:
    """uint64 (I, 2), a hash of 128 bits of each pair of a player and an information-state string."""
    digests = [
        hashlib.blake2b(f"{player} {key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for player, keys in keys_of_players
        for key in keys
    ]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


def compile_part(game: pyspiel.Game, top: TopTree, number: int, limits: WalkLimits = NO_LIMITS, walk: str = "auto") -> Part:
    """Walks and compiles a part; `walk` as for `compile_game`.

    Raises:
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game` and `SequenceFormGame.from_tree`.
    """
    members = np.flatnonzero(top.part == number)
    roots = tuple(top.histories[member] for member in members)
    probabilities = [1 / len(roots)] * len(roots)
    record = walk_in_one_process(game, roots, probabilities, walk=walk, limits=limits, advance=no_advance)
    tree = normalized(GameTree.from_record(game, roots, record))
    _check_not_above(top, tree)
    component, common = _components_of_infostates(tree, top.component[members])
    boundary, at_roots = zip(*(np.unique(own, return_inverse=True) for own in top.boundary[members].T), strict=True)
    last_sequence, parent_sequence = trace_sequences(tree, np.stack(at_roots, axis=1).astype(np.int32))
    end_sequences = last_sequence[tree.terminal]
    del last_sequence  # arrays over histories are large
    players = tuple(_player_part(tree, player, own, parent_sequence) for player, own in enumerate(boundary))
    sequences, payoffs = sum_by_rows(end_sequences, _terminal_chance_reach(tree, top.chance_reach[members]), tree.returns)
    num_histories, sums, largest = tree.num_histories - (len(roots) > 1), tree.returns.sum(axis=1), np.abs(tree.returns).max()
    del tree, record, end_sequences
    return Part(
        number=number,
        players=players,
        payoffs=group_payoffs(sequences, payoffs, [0] * len(players)),
        num_histories=num_histories,
        component=component,
        common=common,
        sums=(float(sums.min()), float(sums.max())),
        largest_return=float(largest),
    )


def _components_of_infostates(tree: GameTree, component_of_root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The attributes `component` and `common` of a part, from the components of the roots of its tree."""
    if len(component_of_root) == 1:
        return np.full(tree.num_infostates, component_of_root[0]), np.zeros((0, 2), np.int64)
    roots = np.flatnonzero(tree.parent == 0)
    sizes = np.diff(np.append(roots, tree.num_histories))
    decisions = np.flatnonzero(tree.infostate[1:] >= 0)
    component = np.repeat(component_of_root.astype(np.int32), sizes)[decisions]
    infostate = tree.infostate[1:][decisions]
    found = np.zeros(tree.num_infostates, np.int32)
    found[infostate] = component
    differ = found[infostate] != component
    common = np.unique(np.stack([found[infostate[differ]], component[differ]], axis=1), axis=0)
    order = np.argsort(tree.infostate_player, kind="stable")
    return found[order].astype(np.int64), common.astype(np.int64)


def _check_not_above(top: TopTree, tree: GameTree) -> None:
    """Checks that no infostate of a part has histories above the cut.

    Raises:
      ValueError: one has.
    """
    above = {(own.player, key) for own in top.game.treeplexes for key in own.infostate_keys}
    common = above & set(zip(tree.infostate_player.tolist(), tree.infostate_keys, strict=True))
    if common:
        player, key = min(common)
        raise ValueError(
            f"{tree.game}: infostate {key!r} of player {player} has histories above the cut and below it; choose another ply "
            "for the cut"
        )


def _terminal_chance_reach(tree: GameTree, of_roots: np.ndarray) -> np.ndarray:
    """float64 (Z,), the chance reach of each terminal history in the whole game, from that of the roots."""
    if len(of_roots) == 1:
        return terminal_chance_reach(tree, float(of_roots[0]))
    probabilities = tree.chance_probability.copy()  # of the roots, which are children of history 0, they are no distribution
    probabilities[tree.parent == 0] = of_roots
    return terminal_chance_reach(dataclasses.replace(tree, chance_probability=sealed(probabilities)))


def _player_part(tree: GameTree, player: int, boundary: np.ndarray, parent_sequence: np.ndarray) -> PlayerPart:
    infostates = np.flatnonzero(tree.infostate_player == player)
    counts = np.diff(tree.legal_action_start)
    starts = np.concatenate([[0], np.cumsum(counts[infostates])])
    return PlayerPart(
        boundary=frozen(boundary, np.int32),
        infostate_keys=tuple(tree.infostate_keys[infostate] for infostate in infostates),
        sequence_start=frozen(len(boundary) + starts, np.int64),
        parent_sequence=frozen(parent_sequence[infostates], np.int32),
        actions=frozen(tree.legal_actions[np.repeat(tree.infostate_player == player, counts)], np.int64),
    )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Share(Immutable):
    """The parts of one process as one game, on which kernels iterate; P parts, n players.

    A player's root has an empty sequence, which is not used, and the boundary sequences of all parts, part by part. Its
    infostates follow, part by part.

    Attributes:
      treeplex_arrays, payoff_arrays: the game.
      boundary: for each player, the slice of the boundary sequences.
      infostates, sequences: for each part and each player, the slice of its infostates in arrays (J,), and the slice of their
        sequences in arrays (S,).
    """

    treeplex_arrays: layouts.TreeplexArrays
    payoff_arrays: layouts.PayoffArrays
    boundary: tuple[slice, ...]
    infostates: tuple[tuple[slice, ...], ...]
    sequences: tuple[tuple[slice, ...], ...]

    def _summary(self) -> str:
        return f"{len(self.sequences)} parts"

    @property
    def num_sequences(self) -> int:
        return int(self.treeplex_arrays.sequence_start[-1])

    @property
    def work_of_iteration(self) -> int:
        """The approximate number of steps of one iteration, see `compiled_self_play.work_of_iteration`."""
        return len(self.payoff_arrays.entry_utility) + 10 * self.num_sequences


class _Numbers:
    """Where the sequences and infostates of parts are in a `Share`.

    Attributes:
      boundary: int64 (P + 1, n), the first boundary sequence of each part; the last row contains the ends.
      sequences: int64 (P + 1, n), the first sequence of the infostates of each part; likewise.
      infostates: int64 (P + 1, n), the first infostate of each part; likewise.
    """

    def __init__(self, parts: Sequence[Part], num_players: int):
        def offsets(count: Callable[[PlayerPart], int]) -> np.ndarray:
            counts = np.array([list(map(count, part.players)) for part in parts], np.int64).reshape(-1, num_players)
            return np.concatenate([np.zeros((1, num_players), np.int64), np.cumsum(counts, axis=0)])

        boundary = offsets(lambda own: len(own.boundary))
        sequences = offsets(lambda own: own.num_sequences)
        infostates = offsets(lambda own: own.num_infostates)
        first = np.concatenate([[0], np.cumsum(1 + boundary[-1] + sequences[-1])])
        self.player_start = first
        self.boundary = first[:-1] + 1 + boundary
        self.sequences = self.boundary[-1] + sequences
        self.player_block = np.concatenate([[0], np.cumsum(1 + infostates[-1])])
        self.infostates = self.player_block[:-1] + 1 + infostates

    def of(self, place: int, player: int, part: Part, sequences: np.ndarray) -> np.ndarray:
        """The numbers, of type `layouts.INDEX`, of sequences of a player in the part at `place`."""
        num_boundary = len(part.players[player].boundary)
        to_boundary, to_own = self.boundary[place, player], self.sequences[place, player] - num_boundary
        numbers = np.where(sequences < num_boundary, to_boundary + sequences, to_own + sequences)
        return np.asarray(numbers, layouts.INDEX)


def share_of(parts: Sequence[Part], num_players: int) -> Share:
    """Joins the parts of a process."""
    numbers = _Numbers(parts, num_players)
    slices = [
        tuple(tuple(map(slice, start.tolist(), stop.tolist())) for start, stop in itertools.pairwise(own))
        for own in (numbers.infostates, numbers.sequences)
    ]
    return Share(
        treeplex_arrays=_joined_treeplexes(parts, numbers, num_players),
        payoff_arrays=_joined_payoffs(parts, numbers, num_players),
        boundary=tuple(map(slice, numbers.boundary[0].tolist(), numbers.boundary[-1].tolist())),
        infostates=slices[0],
        sequences=slices[1],
    )


def _concatenated(arrays: Iterable[np.ndarray], dtype: npt.DTypeLike) -> np.ndarray:
    return sealed(np.concatenate([np.zeros(0, dtype), *arrays], dtype=dtype, casting="unsafe"))


def _joined_treeplexes(parts: Sequence[Part], numbers: _Numbers, num_players: int) -> layouts.TreeplexArrays:
    starts, parents = [], []
    for player in range(num_players):
        root = numbers.player_start[player : player + 1]
        starts.append(root)
        parents.append(root)
        for place, part in enumerate(parts):
            own = part.players[player]
            starts.append(numbers.of(place, player, part, own.sequence_start[:-1]))
            parents.append(numbers.of(place, player, part, own.parent_sequence))
    return layouts.TreeplexArrays(
        player_block=frozen(numbers.player_block, layouts.INDEX),
        sequence_start=_concatenated([*starts, numbers.player_start[-1:]], layouts.INDEX),
        parent_sequence=_concatenated(parents, layouts.INDEX),
    )


def _joined_payoffs(parts: Sequence[Part], numbers: _Numbers, num_players: int) -> layouts.PayoffArrays:
    pieces = [(player, place, part) for player in range(num_players) for place, part in enumerate(parts)]
    rows = [slice(*part.payoffs.player_block[player : player + 2].tolist()) for player, _, part in pieces]
    ends = [part.payoffs.entry_start[own.start : own.stop + 1] for own, (*_, part) in zip(rows, pieces, strict=True)]
    entries = [slice(int(end[0]), int(end[-1])) for end in ends]
    counts = [0] * num_players
    for own, (player, *_) in zip(rows, pieces, strict=True):
        counts[player] += own.stop - own.start
    opponents = np.zeros((sum(counts), num_players - 1), layouts.INDEX)
    for column in range(num_players - 1):
        found = []
        for own, (player, place, part) in zip(rows, pieces, strict=True):
            opponent = column + (column >= player)
            found.append(numbers.of(place, opponent, part, part.payoffs.opponent_sequences[own, column]))
        opponents[:, column] = _concatenated(found, layouts.INDEX)
    return layouts.PayoffArrays(
        player_block=frozen(np.cumsum([0, *counts]), layouts.INDEX),
        opponent_sequences=sealed(opponents),
        entry_start=frozen(np.cumsum(np.concatenate([[0], *map(np.diff, ends)])), layouts.INDEX),
        entry_sequence=_concatenated(
            (
                numbers.of(place, player, part, part.payoffs.entry_sequence[own])
                for own, (player, place, part) in zip(entries, pieces, strict=True)
            ),
            layouts.INDEX,
        ),
        entry_utility=_concatenated(
            (part.payoffs.entry_utility[own] for own, (*_, part) in zip(entries, pieces, strict=True)), np.float64
        ),
    )
