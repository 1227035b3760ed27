"""Public situations: what all players know together about the play so far.

Two histories of one length belong to the same *situation* if their prefixes do and a chain of histories joins them in which
neighbors have the same information-state string for some player. So a situation is a finest set of histories of which all
players know, and know that the others know, that play is in it. Hidden moves lead to one situation, public ones to several.
In games with public observations whose sequence distinguishes no more than this, the situations are those of the sequences.

The strings are those of all players, not only of the player to move. A player whose string a game does not give at a history is
assumed to distinguish it from all others there. Terminal histories belong to the same situation if the last move has the same
name.

Situations form a tree and are numbered level by level, so the children of a situation are consecutive.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> found = situations_of(compile_game(pyspiel.load_game("kuhn_poker")))
>>> found.num_situations  # root, two hidden cards, p, b, pp, pb, bp, bb, pbp, pbb
11
>>> [found.labels[label] for label in found.label[2:6]]
['hidden: Deal:0, Deal:1 or Deal:2', 'Pass', 'Bet', 'Pass']
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np
import pyspiel

from spiel_cfrplus._utils.graphs import connected_components
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.analysis.infostate_table import names_of_actions
from spiel_cfrplus.game.action_names import action_name
from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.walk import CHANCE, TERMINAL
from spiel_cfrplus.kernels import tree as tree_kernels

_MOST_NAMES_IN_LABEL = 4


@dataclasses.dataclass(frozen=True, eq=False)
class Situations:
    """M situations of a tree; number 0 is that of the root.

    Attributes:
      of_history: int64 (H,), the situation of each history.
      child_start: int64 (M + 1,), the children of situation s are `child_start[s] : child_start[s + 1]`, in the order of moves.
      level_start: int64 (D + 1,), the situations after d moves are `level_start[d] : level_start[d + 1]`.
      infostate_start: int64 (M + 1,), the infostates of situation s are `infostates[infostate_start[s] :
        infostate_start[s + 1]]`.
      infostates: int64, numbers of infostates of the tree. An infostate with histories of several lengths can be in several
        situations.
      label: int64 (M,), the names of the moves that lead to each situation, as an index of `labels`; "" at the root.
      labels: the texts.
    """

    of_history: np.ndarray
    child_start: np.ndarray
    level_start: np.ndarray
    infostate_start: np.ndarray
    infostates: np.ndarray
    label: np.ndarray
    labels: tuple[str, ...]

    @property
    def num_situations(self) -> int:
        return len(self.label)

    @functools.cached_property
    def parent(self) -> np.ndarray:
        """int64 (M - 1,), the parent of each situation but the root."""
        return np.repeat(np.arange(self.num_situations), np.diff(self.child_start))

    def totals(self, of_history: np.ndarray) -> np.ndarray:
        """float64 (M,): the sum of the numbers of the histories in each situation, and in all situations below it."""
        total = np.bincount(self.of_history, of_history, self.num_situations)
        for start, end in reversed(list(itertools.pairwise(self.level_start.tolist()))[1:]):
            total += np.bincount(self.parent[start - 1 : end - 1], total[start:end], self.num_situations)
        return total


def situations_of(game: SequenceFormGame) -> Situations:
    """The situations of the tree of a game.

    The time is that of a walk through the histories with one string for each player at each of them.
    """
    tree = game.tree
    depth = np.ones(tree.num_histories, np.int64)
    tree_kernels.add_parents(tree.parent, depth)
    name, names = names_of_moves(game)
    links = _numbered_strings(tree)
    links[tree.terminal] = -1 - name[tree.terminal, None]
    of_history = np.zeros(tree.num_histories, np.int64)
    level_start, num_children = [0, 1], []
    for level in range(2, int(depth.max()) + 1):
        histories = np.flatnonzero(depth == level)
        above = of_history[tree.parent[histories]]
        number, first = _components(above, links[histories])
        of_history[histories] = level_start[-1] + number
        num_children.append(np.bincount(above[first] - level_start[-2], minlength=level_start[-1] - level_start[-2]))
        level_start.append(level_start[-1] + len(first))
    num_children.append(np.zeros(level_start[-1] - level_start[-2], np.int64))
    infostate_start, infostates = _grouped(of_history, tree.infostate, tree.infostate != NO_INFOSTATE, level_start[-1])
    label, labels = _labels(of_history, name, names, level_start[-1])
    return Situations(
        of_history=of_history,
        child_start=1 + _starts(np.concatenate(num_children)),
        level_start=np.array(level_start),
        infostate_start=infostate_start,
        infostates=infostates,
        label=label,
        labels=labels,
    )


def _components(above: np.ndarray, links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joins the histories of a level that have the same situation above and, for some player, the same string.

    Args:
      above: int64 (K,), the situation above each history, ascending where the histories are.
      links: int64 (K, n), a number for each player's string.

    Returns:
      int64 (K,), the component of each history, ordered by the situation above and then by the first history; int64 (C,), the
      first history of each component.
    """
    size, rows, columns = len(above), [], []
    num_nodes = size
    for link in links.T:
        _, node = np.unique(_pairs(above, link - link.min()), return_inverse=True)
        rows.append(np.arange(size))
        columns.append(num_nodes + node)
        num_nodes = int(columns[-1].max()) + 1
    component = connected_components(num_nodes, np.concatenate(rows), np.concatenate(columns))
    _, first, component = np.unique(component[:size], return_index=True, return_inverse=True)
    order = np.lexsort((first, above[first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[component], first[order]


def _grouped(group: np.ndarray, member: np.ndarray, chosen: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct members of each group among the chosen pairs, ascending, and where those of each group start."""
    span = int(member.max()) + 1
    groups, members = np.divmod(np.unique(_pairs(group[chosen], member[chosen], span)), span)
    return _starts(np.bincount(groups, minlength=num_groups)), members


def _pairs(first: np.ndarray, second: np.ndarray, span: int | None = None) -> np.ndarray:
    """A number for each pair of numbers, int64; they have the order of the pairs. `span` exceeds all second numbers."""
    return np.asarray(first.astype(np.int64) * (int(second.max()) + 1 if span is None else span) + second)


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])


# Names.


def _labels(of_history: np.ndarray, name: np.ndarray, names: list[str], size: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """The text for each situation, as an index, and the texts: a name, or several names joined."""
    start, moves = _grouped(of_history, name, np.ones(len(name), bool), size)
    label = moves[start[:-1]]
    numbers = {text: number for number, text in enumerate(names)}
    for situation in np.flatnonzero(np.diff(start) > 1).tolist():
        text = _joined([names[move] for move in moves[start[situation] : start[situation + 1]].tolist()])
        label[situation] = numbers.setdefault(text, len(numbers))
    return label, tuple(numbers)


def _joined(names: list[str]) -> str:
    shown = names if len(names) <= _MOST_NAMES_IN_LABEL else [*names[: _MOST_NAMES_IN_LABEL - 1], _others(names)]
    return f"hidden: {', '.join(shown[:-1])} or {shown[-1]}"


def _others(names: list[str]) -> str:
    return f"{len(names) - _MOST_NAMES_IN_LABEL + 1} others"


def names_of_moves(game: SequenceFormGame) -> tuple[np.ndarray, list[str]]:
    """The name of the move that leads to each history, int64 (H,), as an index of the names; "" at the root.

    Actions without a name have their number.
    """
    tree = game.tree
    numbers = {"": 0}
    numbered = functools.partial(_numbered, numbers)
    result = np.zeros(tree.num_histories, np.int64)
    mover = tree.actor[tree.parent]  # at the root that of the last history, which is terminal
    decided, drawn = np.flatnonzero(mover >= 0), np.flatnonzero(mover == CHANCE)
    own = [numbered(*pair) for pair in zip(names_of_actions(game), tree.legal_actions.tolist(), strict=True)]
    first = tree.legal_action_start[tree.infostate[tree.parent[decided]]]
    result[decided] = np.array(own, np.int64)[first + _ranks(tree)[decided]]
    drawn = drawn[np.argsort(tree.parent[drawn], kind="stable")]
    result[drawn] = list(map(numbered, _names_of_outcomes(tree, drawn), tree.action[drawn].tolist()))
    return result, list(numbers)


def _numbered(numbers: dict[str, int], name: str, action: int) -> int:
    return numbers.setdefault(name or f"action {action}", len(numbers))


def _ranks(tree: GameTree) -> np.ndarray:
    """int64 (H,), how many siblings precede each history."""
    by_parent = np.argsort(tree.parent, kind="stable")
    start = np.searchsorted(tree.parent[by_parent], tree.parent)
    ranks = np.empty(tree.num_histories, np.int64)
    ranks[by_parent] = np.arange(tree.num_histories)
    return np.asarray(ranks - start)


def _names_of_outcomes(tree: GameTree, outcomes: np.ndarray) -> Iterator[str]:
    """The names of chance outcomes, given as histories ordered by their parents; of several roots, their numbers."""
    parents, counts = np.unique(tree.parent[outcomes], return_counts=True)
    actions = iter(tree.action[outcomes].tolist())
    for (parent, state), count in zip(tree.states(parents), counts.tolist(), strict=True):
        is_choice_of_root = parent == 0 and len(tree.roots) > 1
        for action in itertools.islice(actions, count):
            yield f"root {action}" if is_choice_of_root else action_name(state, action)


# Strings.


def _numbered_strings(tree: GameTree) -> np.ndarray:
    """int64 (H, n), a number for each player's string at each history that is not terminal; equal strings, equal numbers."""
    result = np.zeros((tree.num_histories, tree.num_players), np.int64)
    numbers: dict[object, int] = {}
    with silent_stderr():
        for history, state in tree.states(np.flatnonzero(tree.actor != TERMINAL)):
            for player in range(tree.num_players):
                text = _string(state, player)
                result[history, player] = numbers.setdefault(history if text is None else text, len(numbers))
    return result


def _string(state: pyspiel.State, player: int) -> str | None:
    try:
        text: str = state.information_state_string(player)
    except Exception:  # of a game that gives strings to the player to move only; the documentation above says what follows
        return None
    return text
