"""The roots of subgames and their distribution.

A *subgame* starts at one state, its root, or at several roots that differ in information that some players do not have, such as
all deals of cards that are consistent with the public actions.

The probability that play reaches a root z is the chance reach of z times the product of the players' reaches of z. A player's
reach is the product of its own action probabilities on the path to z. The root distribution of a subgame is proportional to
this probability, so the values of the subgame are those of the whole game, conditional on reaching one of the roots.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus.game.chance import at, chance_probability, checked_outcomes
from spiel_cfrplus.game.checks import why_string_is_not_enough

History = tuple[int, ...]


def replay(game: pyspiel.Game, history: History) -> pyspiel.State:
    """The state of `game` after the actions of `history`, chance included."""
    state = game.new_initial_state()
    for action in history:
        state.apply_action(action)
    return state


def actions_of(state: pyspiel.State) -> list[int]:
    """The legal actions or chance outcomes of a state, in the order of the walk.

    Raises:
      ValueError: an action occurs twice or is invalid, or the chance outcomes are not a distribution.
    """
    player = state.current_player()
    if player == pyspiel.PlayerId.CHANCE:
        return [action for action, _ in checked_outcomes(state)]
    if player < 0:
        return []
    actions: list[int] = state.legal_actions()
    check_legal_actions(state, player, actions)
    return actions


def check_legal_actions(state: pyspiel.State, player: int, actions: list[int]) -> None:
    """Checks that a list of legal actions has no duplicates and no action that OpenSpiel cannot play.

    Raises:
      ValueError: the list does.
    """
    for action in actions:
        is_int64 = isinstance(action, int | np.integer) and -(2**63) <= action < 2**63
        if not is_int64 or action == pyspiel.INVALID_ACTION:
            raise ValueError(
                f"{at(state)} player {player} has the legal actions {actions}, but {action!r} is not an action; an action is a "
                f"64-bit integer other than {pyspiel.INVALID_ACTION}"
            )
    if len(set(actions)) < len(actions):
        raise ValueError(f"{at(state)} player {player} has the legal actions {actions}, one of which occurs twice")


def checked_roots(states: pyspiel.State | Sequence[pyspiel.State]) -> tuple[pyspiel.Game, tuple[History, ...]]:
    """The game that the states belong to, and their histories.

    Raises:
      TypeError: the argument is neither a state nor a sequence of states.
      ValueError: the list is empty; the states belong to different games; a state is terminal; a state follows another; or a
        state differs from the state that its history leads to.
    """
    if isinstance(states, pyspiel.State):
        states = [states]
    if not isinstance(states, Sequence) or not all(isinstance(state, pyspiel.State) for state in states):
        raise TypeError(f"expected one pyspiel.State or a list of them, got {states!r}")
    if not states:
        raise ValueError("a subgame requires at least one root state, got an empty list")
    game = states[0].get_game()
    for state in states:
        _check_root(game, state)
    histories = [tuple(state.history()) for state in states]
    ascending = sorted(histories)  # sorted, so a history that extends another one, if any, comes directly after one
    for before, after in itertools.pairwise(ascending):
        if after[: len(before)] == before:
            raise ValueError(f"{game}: the subgames at the roots {list(before)} and {list(after)} overlap; omit one of them")
    return game, tuple(histories)


def _check_root(game: pyspiel.Game, state: pyspiel.State) -> None:
    history = state.history()
    if str(state.get_game()) != str(game):
        raise ValueError(f"the states belong to two games, {game} and {state.get_game()}; pass states of one game")
    if state.get_game() is not game and (reason := why_string_is_not_enough(game)):
        raise ValueError(
            f"the states belong to two game objects with the string {game}, which may differ: {reason}; load the game once and "
            "create all states from it"
        )
    try:
        replayed = replay(game, tuple(history))
        same = (str(replayed), replayed.current_player()) == (str(state), state.current_player())
    except (pyspiel.SpielError, RuntimeError, ValueError, LookupError) as error:
        raise ValueError(f"{game} does not have the history {history} of a state: {error}") from error
    if not same:
        raise ValueError(
            f"{game}: history {history} does not lead to {state}; the history of a root must lead from the initial state to it"
        )
    if state.is_terminal():
        raise ValueError(f"{game}: history {history} is terminal; a root must not be terminal")


def root_distribution(game: pyspiel.Game, roots: Sequence[History], reach: npt.ArrayLike | None) -> np.ndarray:
    """The probability of each root, float64 (k,).

    Args:
      game: the game.
      roots: k histories.
      reach: each player's reach of each root, (k, n), or (n,) for a single root; 1 by default. A positive factor per player
        has no effect.

    Raises:
      ValueError: wrong shape, negative or non-finite numbers, or no root that chance and all players reach.
    """
    players = _checked_reach(game, len(roots), reach)
    largest = players.max(axis=0)
    chance = [math.prod(chance_probability(*move) for move in moves(game, z) if move[0].is_chance_node()) for z in roots]
    weights = np.array(chance) * np.prod(players / np.where(largest > 0, largest, 1), axis=1)
    if not weights.sum() > 0:
        raise ValueError(f"{game}: none of the roots {[list(root) for root in roots]} has positive reach")
    return np.asarray(weights / weights.sum())


def _checked_reach(game: pyspiel.Game, num_roots: int, reach: npt.ArrayLike | None) -> np.ndarray:
    shape = (num_roots, game.num_players())
    try:
        players = np.array(np.ones(shape) if reach is None else reach, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{game}: reach must be numbers, one for each root and player, got {reach!r}") from error
    if players.shape != shape and (num_roots, players.shape) != (1, shape[1:]):
        raise ValueError(f"{game}: reach must have shape {shape}, one row for each root, got {players.shape}")
    bad = players[~((players >= 0) & np.isfinite(players))]
    if len(bad):
        raise ValueError(f"{game}: reach must be finite and not negative, got {bad[0]}")
    return players.reshape(shape)


def moves(game: pyspiel.Game, history: History) -> Iterator[tuple[pyspiel.State, int]]:
    """Yields the states along `history`, each with the action taken there; a state is valid until the next one is requested."""
    state = game.new_initial_state()
    for action in history:
        yield state, action
        state.apply_action(action)


def infostates_before(game: pyspiel.Game, roots: Sequence[History]) -> set[tuple[int, str]]:
    """The infostates, (player, string), on the paths to the roots."""
    states = (state for root in roots for state, _ in moves(game, root))
    players = ((state, state.current_player()) for state in states if not state.is_chance_node())
    return {(player, state.information_state_string(player)) for state, player in players}
