"""Where a tree starts: the states at its roots, and how likely each of them is.

A whole game starts at its initial state. A *sub-game* starts at one state, or at several that are told apart by what some
players do not know, such as the deals of cards that one public betting may have come after.

The histories of a root state z are as likely as the players' play before made them: chance reach(z) times the product over
players of their reach(z), the product of the player's own action probabilities on the path to z. The root distribution of a
sub-game is proportional to that, so its values are those of the whole game given that play comes to one of the roots.
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
    """What leads from a state to its children, in the order of the walk.

    Raises:
      ValueError: two are the same, one is no action, or chance outcomes are not a distribution.
    """
    player = state.current_player()
    if player == pyspiel.PlayerId.CHANCE:
        return [action for action, _ in checked_outcomes(state)]
    if player < 0:
        return []
    actions = state.legal_actions()
    check_legal_actions(state, player, actions)
    return actions


def check_legal_actions(state: pyspiel.State, player: int, actions: list[int]) -> None:
    """Refuses a list of legal actions that has one of them twice, or one that OpenSpiel does not play.

    Raises:
      ValueError: it has.
    """
    for action in actions:
        is_int64 = isinstance(action, int | np.integer) and -(2**63) <= action < 2**63
        if not is_int64 or action == pyspiel.INVALID_ACTION:
            raise ValueError(
                f"{at(state)} player {player} has the legal actions {actions}, but {action!r} is no action; an action is an "
                f"integer of 64 bits other than {pyspiel.INVALID_ACTION}"
            )
    if len(set(actions)) < len(actions):
        raise ValueError(f"{at(state)} player {player} has the legal actions {actions}, one of them twice")


def checked_roots(states: pyspiel.State | Sequence[pyspiel.State]) -> tuple[pyspiel.Game, tuple[History, ...]]:
    """The game that the states belong to, and their histories.

    Raises:
      TypeError: no states.
      ValueError: none at all, or of several games; at one the game is over; one comes after another; or one is not what its
        game comes to by its history.
    """
    if isinstance(states, pyspiel.State):
        states = [states]
    if not isinstance(states, Sequence) or not all(isinstance(state, pyspiel.State) for state in states):
        raise TypeError(f"expected one pyspiel.State or a list of them, got {states!r}")
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
    if state.get_game() is not game and (reason := why_string_is_not_enough(game)):
        raise ValueError(
            f"the states belong to two games that are both called {game} and may differ: {reason}; load the game once and take "
            "all states from it"
        )
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
    players = _checked_reach(game, len(roots), reach)
    largest = players.max(axis=0)
    chance = [math.prod(chance_probability(*move) for move in moves(game, z) if move[0].is_chance_node()) for z in roots]
    weights = np.array(chance) * np.prod(players / np.where(largest > 0, largest, 1), axis=1)
    if not weights.sum() > 0:
        raise ValueError(f"{game}: chance and the players together reach none of the roots {[list(root) for root in roots]}")
    return weights / weights.sum()


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
    """The states along `history`, each with the action taken there; the state is good until the next is asked for."""
    state = game.new_initial_state()
    for action in history:
        yield state, action
        state.apply_action(action)


def infostates_before(game: pyspiel.Game, roots: Sequence[History]) -> set[tuple[int, str]]:
    """The infostates, (player, string), that players pass on the way to the roots."""
    states = (state for root in roots for state, _ in moves(game, root))
    players = ((state, state.current_player()) for state in states if not state.is_chance_node())
    return {(player, state.information_state_string(player)) for state, player in players}
