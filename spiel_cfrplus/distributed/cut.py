"""The cut: histories whose subtrees are divided among parts, and the components in which they share infostates.

Whether two subtrees share an infostate is known after they have been walked. Here components are found by what is cheap: from
each history at the cut a few paths are followed to the end of the game, of first or last actions, and of chance outcomes that
are chosen by their numbers, so that two histories meet the same cards where they can. Histories whose paths share an infostate
are in one component. `compilation` compares the infostates of all components after the walk, and joins those that share one.

The automatic cut starts at the root and repeatedly moves the cut of the largest component one ply down, until no component has
more histories than a part should have.

>>> import pyspiel
>>> cut = choose_cut(pyspiel.load_game("leduc_poker"), num_parts=8)
>>> cut.num_parts, len(cut.histories), round(cut.largest_share, 2)
(8, 600, 0.13)
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable
from spiel_cfrplus._utils.graphs import connected_components
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.game.checks import check_game
from spiel_cfrplus.game.size_estimate import histories_below
from spiel_cfrplus.game.subgames import History, actions_of
from spiel_cfrplus.solving.partition import dealt_out

# For each process, so that its load is near the mean; and at least, so that a part takes little memory while it is walked.
PARTS_PER_PROCESS = 4
LEAST_PARTS = 16
# The paths from a history at the cut take some tenths of a millisecond in a native game.
_MOST_HISTORIES = 40_000
_MOST_PLIES = 1_000
# For the estimate of the size of one component; see `size_estimate`.
_ROOTS, _PROBES = 4, 100
# Two orders of chance outcomes: by the remainder of a multiple.
_MULTIPLIERS, _MODULUS = (40503, 48271), 65521


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Cut(Immutable):
    """Histories at a cut, their components, and the parts to which these are dealt.

    Attributes:
      histories: k histories; none follows another, and none is terminal.
      component: int64 (k,), the component of each history.
      sizes: float64 (C,), the estimated number of histories in and below each component.
      most_parts: the largest number of parts.
    """

    histories: tuple[History, ...]
    component: np.ndarray
    sizes: np.ndarray
    most_parts: int

    def _summary(self) -> str:
        return str(self)

    def __str__(self) -> str:
        plies = sorted({len(history) for history in self.histories})
        where = f"ply {plies[0]}" if len(plies) == 1 else f"plies {plies[0]} to {plies[-1]}"
        return (
            f"{self.num_parts} parts, the largest with {100 * self.largest_share:.1f} % (estimated); cut at {where}, "
            f"{len(self.histories)} histories, {len(self.sizes)} components"
        )

    @property
    def num_parts(self) -> int:
        return min(self.most_parts, len(self.sizes))

    @functools.cached_property
    def part_of_component(self) -> np.ndarray:
        """int64 (C,), the part of each component, from 0 to `num_parts` - 1."""
        return dealt_out(self.sizes, self.num_parts)

    @property
    def part(self) -> np.ndarray:
        """int64 (k,), the part of each history."""
        return np.asarray(self.part_of_component[self.component])

    @property
    def share(self) -> np.ndarray:
        """float64 (num_parts,), the estimated fraction of the histories below the cut that each part contains."""
        return np.asarray(np.bincount(self.part_of_component, self.sizes) / self.sizes.sum())

    @property
    def largest_share(self) -> float:
        """The largest of `share`."""
        return float(self.share.max())

    def joined(self, pairs: np.ndarray) -> Cut:
        """The cut with fewer components.

        Args:
          pairs: int64 (m, 2), pairs of components that become one.
        """
        label = _connected(len(self.sizes), pairs[:, 0], pairs[:, 1])
        return Cut(self.histories, label[self.component], np.bincount(label, self.sizes), self.most_parts)


def checked_num_parts(num_parts: int | None, num_processes: int) -> int:
    """The number of parts, by default four for each process, and at least 16.

    Raises:
      TypeError, ValueError: not a positive integer, or fewer parts than processes.
    """
    if num_parts is None:
        return max(LEAST_PARTS, PARTS_PER_PROCESS * num_processes)
    return checked_count(num_parts, f"parts for {num_processes} processes", least=num_processes)


def choose_cut(game: pyspiel.Game, num_parts: int, ply: int | None = None) -> Cut:
    """Chooses a cut and deals its components to parts of about equal size.

    Args:
      game: a game, see `GameTree.from_game`.
      num_parts: the largest number of parts.
      ply: cut all histories at this ply; by default the cut moves down where a component is larger than a part should be.

    Raises:
      TypeError, ValueError: the game cannot be walked, `ply` is not a positive integer, or the game ends before it.
    """
    check_game(game)
    components = _automatic(game, num_parts) if ply is None else _at_ply(game, checked_count(ply, "plies", least=1))
    return Cut(
        histories=tuple(tuple(state.history()) for component in components for state in component.states),
        component=np.repeat(np.arange(len(components)), [len(component.states) for component in components]),
        sizes=np.array([component.size for component in components]),
        most_parts=num_parts,
    )


@dataclasses.dataclass(frozen=True)
class _Component:
    """States at the cut whose subtrees share infostates.

    Attributes:
      states: the states.
      size: an estimate of the number of histories in their subtrees.
      infostates: the infostates that were found in their subtrees.
    """

    states: Sequence[pyspiel.State]
    size: float
    infostates: frozenset[Hashable]


def _automatic(game: pyspiel.Game, num_parts: int) -> list[_Component]:
    """Divides the largest component until all are small or nothing more can be divided.

    A component is not divided if an infostate of the histories at its cut is also found below these.
    """
    start = [game.new_initial_state()]
    if start[0].is_terminal():
        raise ValueError(f"{game} has one history, which cannot be cut")
    order = itertools.count()  # of components of equal size
    whole = histories_below(game, start, _ROOTS, _PROBES)
    heap = [(-whole, next(order), _Component(start, whole, frozenset()))]
    undivided, num_histories = [], 1
    while heap and -heap[0][0] > whole / num_parts:
        _, _, largest = heapq.heappop(heap)
        below = _children(largest.states)
        divided = [] if num_histories + len(below) > _MOST_HISTORIES else _components(game, below)
        above = {_infostate(state) for state in largest.states if state.current_player() >= 0}
        if not divided or any(above & component.infostates for component in divided):
            undivided.append(largest)
            continue
        num_histories += len(below) - len(largest.states)
        for component in divided:
            heapq.heappush(heap, (-component.size, next(order), component))
    found = undivided + [component for _, _, component in heap]
    return sorted(found, key=lambda component: component.states[0].history())


def _at_ply(game: pyspiel.Game, ply: int) -> list[_Component]:
    states: Sequence[pyspiel.State] = [game.new_initial_state()]
    for _ in range(ply):
        states = _children(states)
        if len(states) > _MOST_HISTORIES:
            raise ValueError(f"{game} has more than {_MOST_HISTORIES} histories at ply {ply}; choose a smaller one for the cut")
    if not states:
        raise ValueError(f"{game} ends before ply {ply}; choose a smaller one for the cut")
    return _components(game, states)


def _children(states: Sequence[pyspiel.State]) -> list[pyspiel.State]:
    """The children that are not terminal."""
    children = (state.child(action) for state in states for action in actions_of(state))
    return [child for child in children if not child.is_terminal()]


def _components(game: pyspiel.Game, states: Sequence[pyspiel.State]) -> list[_Component]:
    number: dict[Hashable, int] = {}
    owners, infostates = [], []
    for owner, state in enumerate(states):
        for infostate in _infostates_on_paths(state):
            owners.append(owner)
            infostates.append(len(states) + number.setdefault(infostate, len(number)))
    label = _connected(len(states) + len(number), np.array(owners, int), np.array(infostates, int))
    groups: dict[int, list[pyspiel.State]] = {}
    for one, state in zip(label.tolist(), states, strict=False):
        groups.setdefault(one, []).append(state)
    found: dict[int, list[Hashable]] = {one: [] for one in groups}
    for infostate, one in zip(number, label[len(states) :].tolist(), strict=True):
        found[one].append(infostate)
    sizes = (histories_below(game, group, _ROOTS, _PROBES) for group in groups.values())
    return [_Component(group, size, frozenset(found[one])) for (one, group), size in zip(groups.items(), sizes, strict=True)]


def _connected(size: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """int64 (size,), the component of each number in the graph with the edges (first, second), in order of appearance."""
    label = connected_components(size, first, second)
    _, position, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(position))[inverse])


def _infostate(state: pyspiel.State) -> Hashable:
    return state.current_player(), state.information_state_string(state.current_player())


def _infostates_on_paths(state: pyspiel.State) -> Iterator[Hashable]:
    """The infostates, (player, string), on some paths below a state, itself included.

    Players take the first action or the last one; chance outcomes are the first ones in one of two orders of all numbers.
    """
    for place, order in itertools.product((0, -1), _MULTIPLIERS):
        below = state.clone()
        for _ in range(_MOST_PLIES):
            if below.is_terminal():
                break
            if below.current_player() >= 0:
                yield _infostate(below)
                below.apply_action(actions_of(below)[place])
            else:
                below.apply_action(min(actions_of(below), key=functools.partial(_remainder, order)))


def _remainder(multiplier: int, outcome: int) -> int:
    return (outcome + 1) * multiplier % _MODULUS
