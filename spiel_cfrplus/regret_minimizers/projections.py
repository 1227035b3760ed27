"""Euclidean projections onto the decision sets: the simplex, and the sequence-form polytope of a treeplex.

Both are exact up to rounding: they solve a piecewise-linear equation, and do not iterate to a limit.

>>> import numpy as np
>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> project_onto_simplex([0.7, 0.5, -0.3])
array([0.6, 0.4, 0. ])

The strategy of smallest norm in Kuhn poker: after a bet the player has no other decision, but after a pass of probability p
there may be a second one, which adds at least p^2 / 2 to the squared norm. The minimum of p^2 + (1 - p)^2 + p^2 / 2 is at
p = 2/5.

>>> treeplex = compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0]
>>> treeplex.infostate_keys[:2]
('0', '0pb')
>>> project_onto_treeplex(treeplex, np.zeros(treeplex.num_sequences))[:5].round(12)
array([1. , 0.4, 0.6, 0.2, 0.2])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.kernels import projection as projection_kernels
from spiel_cfrplus.kernels import simplex as simplex_kernels
from spiel_cfrplus.kernels.layouts import INDEX


def project_onto_simplex(point: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The distribution nearest to `point`, float64 (k,): max(point - threshold, 0) with the threshold at which this sums to 1.

    Held, Wolfe and Crowder 1974; the threshold is found as by Michelot 1986.

    Args:
      point: float64 (k,).

    Raises:
      ValueError: not a vector of at least one number, or numbers that are not finite.
    """
    nearest = np.array(point, np.float64)
    if nearest.ndim != 1 or len(nearest) == 0 or not np.isfinite(nearest).all():
        raise ValueError(f"expected a vector of finite numbers, one for each action, got {nearest!r}")
    simplex_kernels.project_onto_simplex(nearest, INDEX(0), INDEX(len(nearest)), nearest)
    return nearest


def project_onto_treeplex(treeplex: Treeplex, point: np.ndarray) -> npt.NDArray[np.float64]:
    """The sequence-form strategy nearest to `point`, float64 (S,).

    A bottom-up pass computes the marginal cost of reach at each decision point as a piecewise-linear function, and the support;
    a top-down pass computes the probabilities (see `projection_kernels`). The idea is that of Gilpin, Pena and Sandholm 2012
    for other distances on the polytope. A sequence contributes to every function above it: the time is O(S d log b) with at
    most d decisions of the player on a path and b actions at a decision point or decision points after a sequence.

    Args:
      treeplex: the decision problem.
      point: float64 (S,); the entry of the empty sequence has no effect.

    Raises:
      ValueError: wrong shape, or numbers that are not finite.
    """
    point = treeplex.checked_utility(point)
    scratch, nearest = projection_kernels.allocate_scratch(len(point)), np.zeros(len(point))
    projection_kernels.project_onto_treeplex(treeplex.arrays, 0, point, scratch, nearest)
    return nearest
