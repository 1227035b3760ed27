"""Games with payoffs changed by rounding only, which show how much of a result is due to rounding."""

import dataclasses

import numpy as np

from spiel_cfrplus import SequenceFormGame


def perturbed(game: SequenceFormGame, run: int) -> SequenceFormGame:
    """The game with one payoff changed by the last bit, or by a few of these units if the game has few different payoffs.

    The payoff is changed wherever its absolute value occurs, so that the symmetries of the game remain.

    Args:
      game: any game.
      run: 1 or more; each number is another change.
    """
    absolute = np.abs(game.payoffs)
    distinct = np.unique(absolute[absolute > 0])
    more, which = divmod(run - 1, len(distinct))
    change = np.copysign((1 + more) * np.spacing(absolute), game.payoffs)
    return dataclasses.replace(game, payoffs=game.payoffs + np.where(absolute == distinct[which], change, 0.0))
