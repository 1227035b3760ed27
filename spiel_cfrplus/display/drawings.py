"""Pictures of decision processes and game trees, for games that are small enough to look at.

`draw_treeplex` draws the tree-form decision process of a player as in MIT 6.7980, Lecture 8: filled circles are decision
points, crosses are observation points, squares are ends. `draw_game` draws the game tree: circles with the number of the player
to move, diamonds for chance, payoffs at the ends, and dashed lines between the histories of an infostate.

Requires matplotlib, which is imported on first use; see `plotting` for files and notebooks.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> figure = draw_treeplex(compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0])
>>> [text.get_text() for text in figure.axes[0].texts][:3]
['0', '1', 'j1 0']
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.analysis.infostate_table import names_of_actions
from spiel_cfrplus.analysis.plotting import format_of, new_figure, write_figure
from spiel_cfrplus.display.situations import names_of_moves
from spiel_cfrplus.game.game_tree import NO_INFOSTATE
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, DecisionPoint, End, Node, ObservationPoint, Treeplex
from spiel_cfrplus.game.walk import CHANCE, TERMINAL
from spiel_cfrplus.policies.profile import StrategyProfile, checked_profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LEAVES = 300
_DEPTH = 10
_MOST_CHARACTERS = 16
# Inches for each leaf and each level, and the smallest size.
_LEAF, _LEVEL, _SMALLEST = 0.6, 0.9, 2.5
# The height of the lowest arcs between histories of an infostate, in levels.
_RISE = 0.08
# Markers of the kinds of nodes, as matplotlib names them; a cut is where the depth limit ends the picture.
_DECISION, _OBSERVATION, _CHANCE, _END, _CUT = "o", "x", "D", "s", "."


@dataclasses.dataclass(frozen=True, eq=False)
class _Picture:
    """A node of a picture with what is drawn below it.

    Attributes:
      marker: the kind of the node.
      text: what is written beside it, and `inside` in it.
      branches: the text of each edge and the node at its end.
      joined: the infostate, or `NO_INFOSTATE`.
    """

    marker: str
    text: str = ""
    inside: str = ""
    branches: list[tuple[str, _Picture]] = dataclasses.field(default_factory=list)
    joined: int = NO_INFOSTATE

    def nodes(self) -> Iterator[_Picture]:
        """This node and all below it, in preorder."""
        yield self
        for _, below in self.branches:
            yield from below.nodes()


# The place of each node, in leaves and levels.
_Places = dict[_Picture, tuple[float, float]]


def draw_treeplex(
    treeplex: Treeplex,
    path: str | os.PathLike[str] | None = None,
    *,
    profile: StrategyProfile | None = None,
    depth: int = _DEPTH,
) -> Figure:
    """Draws a player's decision process.

    Decision points are numbered as in `Treeplex.describe`. With a profile, edges have the names of actions and the probability
    of their sequence, its entry of the sequence-form strategy; without one, edges have the ids of actions.

    Args:
      treeplex: the decision process.
      path: a file name that ends in `.png`, `.pdf` or `.svg`; by default the figure is not written.
      profile: a profile of the game of the treeplex.
      depth: the number of levels below the root; what is deeper is omitted, at a point with the text "...".

    Returns:
      The figure.

    Raises:
      ImportError: matplotlib is not installed.
      OSError: the file cannot be written.
      TypeError, ValueError: unsupported extension or depth; a profile of another game; or more than `MOST_LEAVES` leaves.
    """
    label = _sequence_ids(treeplex) if profile is None else _sequence_labels(treeplex, checked_profile(profile))
    numbers = {point: f"j{number}" for number, point in enumerate(treeplex.breadth_first(), 1)}

    def picture(node: Node, left: int) -> _Picture:
        match node:
            case End():
                return _Picture(_END)
            case _ if left == 0:
                return _Picture(_CUT, "...")
            case DecisionPoint(index):
                branches = [(label(s), picture(treeplex.after(s), left - 1)) for s in treeplex.sequences(index)]
                return _Picture(_DECISION, f"{numbers[index]} {_short(treeplex.infostate_keys[index])}", "", branches)
            case ObservationPoint():
                return _Picture(_OBSERVATION, "", "", [("", picture(below, left - 1)) for below in treeplex.signals(node)])

    return _drawn(picture(treeplex.after(EMPTY_SEQUENCE), checked_count(depth)), path)


def _sequence_ids(treeplex: Treeplex) -> Callable[[int], str]:
    return lambda sequence: str(treeplex.actions[sequence])


def _sequence_labels(treeplex: Treeplex, profile: StrategyProfile) -> Callable[[int], str]:
    if not any(treeplex is own for own in profile.game.treeplexes):
        raise ValueError(f"the treeplex {treeplex!r} is not one of those of the profile's game, {profile.game.description}")
    game, strategy = profile.game, profile.sequence_form(treeplex.player)
    owner = np.repeat(game.tree.infostate_player, np.diff(game.tree.legal_action_start))
    names = ["", *itertools.compress(names_of_actions(game), (owner == treeplex.player).tolist())]
    return lambda sequence: f"{_short(names[sequence] or str(treeplex.actions[sequence]))}\n{strategy[sequence]:.3g}"


def draw_game(game: SequenceFormGame, path: str | os.PathLike[str] | None = None, *, depth: int = _DEPTH) -> Figure:
    """Draws the tree of a compiled game.

    Args:
      game: the game.
      path, depth: as for `draw_treeplex`.

    Returns:
      The figure.

    Raises:
      ImportError, OSError: as for `draw_treeplex`.
      TypeError, ValueError: unsupported extension or depth, or more than `MOST_LEAVES` leaves.
    """
    tree = game.tree
    name, names = names_of_moves(game)
    children: dict[int, list[int]] = {}
    levels = np.zeros(tree.num_histories, np.int64)
    for history, parent in enumerate(tree.parent[1:].tolist(), 1):
        levels[history] = levels[parent] + 1
        if levels[history] <= checked_count(depth):
            children.setdefault(parent, []).append(history)
    payoffs = dict(zip(tree.terminal.tolist(), tree.returns.tolist(), strict=True))

    def picture(history: int) -> _Picture:
        actor = int(tree.actor[history])
        if actor == TERMINAL:
            return _Picture(_END, "\n".join(f"{payoff:g}" for payoff in payoffs[history]))
        if history not in children:
            return _Picture(_CUT, "...")
        branches = [(_short(names[name[child]]), picture(child)) for child in children[history]]
        if actor == CHANCE:
            return _Picture(_CHANCE, branches=branches)
        infostate = int(tree.infostate[history])
        return _Picture(_DECISION, _short(tree.infostate_keys[infostate]), str(actor), branches, infostate)

    return _drawn(picture(0), path)


def _short(text: str) -> str:
    """A text on one line; a long one loses its beginning, which infostates of a game often share."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARACTERS else f"...{line[3 - _MOST_CHARACTERS :]}"


# Drawing.


def _drawn(root: _Picture, path: str | os.PathLike[str] | None) -> Figure:
    file_format = None if path is None else format_of(path)
    places = _places(root)
    width, height = (1 + np.ptp(list(places.values()), axis=0)).tolist()
    figure = new_figure((max(_SMALLEST, _LEAF * width), max(_SMALLEST, _LEVEL * height)))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.margins(0.05, 0.08)
    for node in places:
        _draw_node(axes, node, places)
    _join_infostates(axes, places)
    if path is not None:
        write_figure(figure, path, file_format)
    return figure


def _places(root: _Picture) -> _Places:
    """The places of all nodes, in preorder: leaves side by side, others above the middle of their branches."""
    nodes = list(root.nodes())
    leaves = [node for node in nodes if not node.branches]
    if len(leaves) > MOST_LEAVES:
        raise ValueError(f"the picture would have {len(leaves)} leaves, the limit is {MOST_LEAVES}; pass a smaller depth=")
    x, y = {leaf: float(number) for number, leaf in enumerate(leaves)}, {root: 0.0}
    for node in nodes:
        y.update((below, y[node] - 1) for _, below in node.branches)
    for node in reversed(nodes):
        if node.branches:
            x[node] = (x[node.branches[0][1]] + x[node.branches[-1][1]]) / 2
    return {node: (x[node], y[node]) for node in nodes}


def _draw_node(axes: Axes, node: _Picture, places: _Places) -> None:
    x, y = place = places[node]
    for text, below in node.branches:
        to_x, to_y = places[below]
        axes.plot([x, to_x], [y, to_y], color="0.6", linewidth=0.8, zorder=1)
        middle = ((x + 2 * to_x) / 3, (y + 2 * to_y) / 3)
        _write_text(axes, text, middle, ha="center", va="center", backgroundcolor="white")
    size, color = (14, "white") if node.inside else (6, "black")
    axes.plot(x, y, node.marker, markersize=size, markerfacecolor=color, markeredgecolor="black", zorder=2)
    _write_text(axes, node.inside, place, ha="center", va="center")
    offset = (0, -6) if not node.branches else (9 if node.inside else 6, 4)
    alignment = {"ha": "left", "va": "baseline"} if node.branches else {"ha": "center", "va": "top"}
    _write_text(axes, node.text, place, offset, **alignment)


def _write_text(axes: Axes, text: str, place: tuple[float, float], offset: tuple[int, int] = (0, 0), **styles: Any) -> None:
    """Writes a text at a place, moved by an offset in points."""
    if text:
        box = (
            {"facecolor": styles.pop("backgroundcolor"), "edgecolor": "none", "pad": 0.5}
            if "backgroundcolor" in styles
            else None
        )
        axes.annotate(
            text, place, offset, textcoords="offset points", fontsize=7, parse_math=False, zorder=3, bbox=box, **styles
        )


def _join_infostates(axes: Axes, places: _Places) -> None:
    """Draws dashed arcs between the histories of each infostate; the arcs of several infostates have several heights."""
    joined: dict[int, list[tuple[float, float]]] = {}
    for node, place in places.items():
        if node.joined != NO_INFOSTATE:
            joined.setdefault(node.joined, []).append(place)
    for infostate, own in joined.items():
        for (left, low), (right, high) in itertools.pairwise(own):
            across, rise = np.linspace(0, 1, 30), _RISE * (1 + infostate % 4)
            x = left + across * (right - left)
            y = low + across * (high - low) + rise * 4 * across * (1 - across)
            axes.plot(x, y, "--", color=f"C{infostate % 10}", linewidth=1, zorder=1.5)
