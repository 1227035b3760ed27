"""Normalization of chance probabilities; see `chance` for the sums that are accepted."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import sealed
from spiel_cfrplus._utils.warnings import warn
from spiel_cfrplus.game.chance import ROUNDING
from spiel_cfrplus.game.game_tree import GameTree


def normalized(tree: GameTree) -> GameTree:
    """The tree with chance probabilities that sum to 1 up to rounding; returns `tree` itself if they already do.

    Warns:
      UserWarning: some probabilities were normalized; the message names the first such history.
    """
    children = 1 + np.flatnonzero(tree.actor[tree.parent[1:]] == int(pyspiel.PlayerId.CHANCE))
    if len(children) == 0:
        return tree
    children = children[np.argsort(tree.parent[children], kind="stable")]
    starts = np.flatnonzero(np.diff(tree.parent[children], prepend=-1))
    probabilities = tree.chance_probability[children]
    sums = np.add.reduceat(probabilities, starts)
    stops = np.append(starts[1:], len(children))
    # `reduceat` rounds at every addition, so its error may exceed ROUNDING where the exact sum is 1.
    for node in np.flatnonzero(np.abs(sums - 1) > ROUNDING):
        sums[node] = math.fsum(probabilities[starts[node] : stops[node]])
    sums[np.abs(sums - 1) <= ROUNDING] = 1.0
    off = np.flatnonzero(sums != 1)
    if len(off) == 0:
        return tree
    first, total = list(tree.history_actions(int(tree.parent[children[starts[off[0]]]]))), float(sums[off[0]])
    warn(
        f"{tree.game}, history {first}: the chance probabilities sum to {total}; they were divided by their sum here"
        f"{_other_histories(len(off) - 1)}"
    )
    chance_probability = tree.chance_probability.copy()
    chance_probability[children] = probabilities / np.repeat(sums, stops - starts)
    return dataclasses.replace(tree, chance_probability=sealed(chance_probability))


def _other_histories(count: int) -> str:
    if count == 0:
        return ""
    return " and at 1 other history" if count == 1 else f" and at {count} other histories"
