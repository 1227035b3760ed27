"""Bots that play a strategy profile, in OpenSpiel's protocol.

`ProfileBot` is a bot in Python. It plays a sequential game, and also the simultaneous-move game of which the game of its
profile is the turn-based form. `pyspiel_bot` returns a bot of OpenSpiel's C++ library, for sequential games; games between
such bots take about a twentieth of the time.

>>> import pyspiel
>>> from spiel_cfrplus import StrategyProfile, compile_game
>>> game = pyspiel.load_game("kuhn_poker")
>>> profile = StrategyProfile.uniform(compile_game(game))
>>> bots = [ProfileBot(profile, player=0, seed=1), pyspiel_bot(profile, player=1, seed=2)]
>>> sum(pyspiel.evaluate_bots(game.new_initial_state(), bots, 3))
0.0
"""

from __future__ import annotations

import random

import pyspiel

from spiel_cfrplus._utils.validation import checked_player, checked_seed
from spiel_cfrplus.policies.profile import StrategyProfile, checked_profile

LARGEST_SEED = 2**31 - 1
"""OpenSpiel's seeds are 32-bit integers."""


class ProfileBot(pyspiel.Bot):  # type: ignore[misc]  # OpenSpiel has no type annotations
    """A bot that plays a player's part of a profile.

    It plays at any states of the game, in any order, so it need not be informed of other players' actions, and a restart does
    not change it: its random numbers continue.

    Args:
      profile: of a game, a subgame or a game with locked infostates; `read_policy` converts OpenSpiel's policies.
      player: the player whose part it plays.
      seed: of its random numbers, an integer that is not negative.

    Raises:
      TypeError: `profile` is not a `StrategyProfile`, or the player or the seed is not an integer.
      ValueError: the player does not exist, or the seed is negative.
    """

    def __init__(self, profile: StrategyProfile, player: int, seed: int = 0):
        super().__init__()
        self._player = _checked_player(profile, player)
        self._profile = profile
        self._random = random.Random(checked_seed(seed))

    def player_id(self) -> int:
        """The player whose part the bot plays; Python bots of OpenSpiel have a method of this name."""
        return self._player

    def provides_policy(self) -> bool:
        """True: `get_policy` and `step_with_policy` return probabilities."""
        return True

    def restart(self) -> None:
        """Prepares for another game; nothing needs to be done."""

    def restart_at(self, state: pyspiel.State) -> None:
        """Prepares for play from a state; nothing needs to be done."""

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        """The (action, probability) pairs of the legal actions.

        Raises:
          ValueError: the player does not move at the state, or the state belongs to another game.
        """
        return list(self._profile.action_probabilities(state, self._player).items())

    def step_with_policy(self, state: pyspiel.State) -> tuple[list[tuple[int, float]], int]:
        """The (action, probability) pairs of the legal actions, and an action drawn from them.

        Raises:
          ValueError: as for `get_policy`.
        """
        policy = self.get_policy(state)
        weights = [max(probability, 0.0) for _, probability in policy]  # negative within `PROBABILITY_TOLERANCE`
        [(action, _)] = self._random.choices(policy, weights)
        return policy, action

    def step(self, state: pyspiel.State) -> int:
        """An action, drawn from the profile.

        Raises:
          ValueError: as for `get_policy`.
        """
        return self.step_with_policy(state)[1]


def pyspiel_bot(profile: StrategyProfile, player: int, seed: int = 0) -> pyspiel.Bot:
    """A bot of OpenSpiel's C++ library that plays a player's part of a profile, see `pyspiel.make_policy_bot`.

    Args:
      profile, player: as for `ProfileBot`.
      seed: of its random numbers, from 0 to `LARGEST_SEED`.

    Raises:
      TypeError, ValueError: as for `ProfileBot`; the seed is too large; or two players share an information-state string.
    """
    player = _checked_player(profile, player)
    seed = checked_seed(seed, LARGEST_SEED)
    return pyspiel.make_policy_bot(profile.game.tree.game, player, seed, profile.to_pyspiel_policy())


def _checked_player(profile: StrategyProfile, player: int) -> int:
    game = checked_profile(profile).game
    return checked_player(player, game.num_players, game.tree.game)
