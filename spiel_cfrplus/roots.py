"""Where a tree starts: the states at its roots, and how likely each of them is.

A whole game starts at its initial state. A *sub-game* starts at one state, or at several that are told apart by what some
players do not know, such as the deals of cards that one public betting may have come after.

The histories of a root state z are as likely as the players' play before made them: chance reach(z) times the product over
players of their reach(z), the product of the player's own action probabilities on the path to z. The root distribution of a
sub-game is proportional to that, so its values are those of the whole game given that play comes to one of the roots.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyspiel

History = tuple[int, ...]


def replay(game: pyspiel.Game, history: History) -> pyspiel.State:
    """The state of `game` after the actions of `history`, chance included."""
    state = game.new_initial_state()
    for action in history:
        state.apply_action(action)
    return state


def checked_roots(states: pyspiel.State | Sequence[pyspiel.State]) -> tuple[pyspiel.Game, tuple[History, ...]]:
    """The game that the states belong to, and their histories.

    Raises:
      TypeError: no states.
      ValueError: none at all, or of several games; at one the game is over; one comes after another; or one is not what its
        game comes to by its history.
    """
    states = [states] if isinstance(states, pyspiel.State) else list(states)
    if not all(isinstance(state, pyspiel.State) for state in states):
        raise TypeError(f"expected a pyspiel.State or several, got {states!r}")
    if not states:
        raise ValueError("a sub-game needs at least one state to start from")
    game = states[0].get_game()
    for state in states:
        _check_root(game, state)
    histories = [tuple(state.history()) for state in states]
    ascending = sorted(histories)
    for before, after in itertools.pairwise(ascending):  # whatever comes after `before` follows it at once
        if after[: len(before)] == before:
            raise ValueError(f"{game}: the roots {list(before)} and {list(after)} share histories; leave one of them out")
    return game, tuple(histories)


def _check_root(game: pyspiel.Game, state: pyspiel.State) -> None:
    history = state.history()
    if str(state.get_game()) != str(game):
        raise ValueError(f"the states belong to two games, {game} and {state.get_game()}; give those of one")
    try:
        replayed = replay(game, tuple(history))
        same = (str(replayed), replayed.current_player()) == (str(state), state.current_player())
    except (pyspiel.SpielError, RuntimeError, ValueError, LookupError) as error:
        raise ValueError(f"{game} does not have the history {history} of a state: {error}") from error
    if not same:
        raise ValueError(f"{game}: history {history} does not lead to {state}; a root must be reached by play from the start")
    if state.is_terminal():
        raise ValueError(f"{game}: the game is over at history {history}; start from a state where it is not")


def root_distribution(game: pyspiel.Game, roots: Sequence[History], reach: npt.ArrayLike | None) -> np.ndarray:
    """How likely each root is, float64 (k,).

    Args:
      game: the game.
      roots: k histories.
      reach: every player's reach of each root, (k, n), or (n,) for a single root; 1 by default. For each player only the
        ratios matter.

    Raises:
      ValueError: another shape, numbers that are negative or not finite, or no root that chance and all players reach.
    """
    shape = (len(roots), game.num_players())
    try:
        weights = np.array(np.ones(shape) if reach is None else reach, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{game}: reach must be numbers, one for each root and player, got {reach!r}") from error
    if weights.shape not in (shape, shape[1:]) or weights.size != shape[0] * shape[1]:
        raise ValueError(f"{game}: reach must have shape {shape}, one row for each root, got {weights.shape}")
    weights = weights.reshape(shape)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            f"{game}: reach must be finite and not negative, got {weights[~(weights >= 0) | ~np.isfinite(weights)]}"
        )
    largest = weights.max(axis=0)
    weights = np.array([_chance_reach(game, root) for root in roots]) * (weights / np.where(largest > 0, largest, 1)).prod(
        axis=1
    )
    if not weights.sum() > 0:
        raise ValueError(f"{game}: chance and the players together reach none of the roots {[list(root) for root in roots]}")
    return weights / weights.sum()


def _chance_reach(game: pyspiel.Game, history: History) -> float:
    """The product of the chance probabilities along `history`."""
    state, reach = game.new_initial_state(), 1.0
    for action in history:
        if state.is_chance_node():
            reach *= dict(state.chance_outcomes())[action]
        state.apply_action(action)
    return reach
