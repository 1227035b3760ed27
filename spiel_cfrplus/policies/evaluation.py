"""Evaluation of policies on a compiled game, at the cost of about one CFR iteration.

Terms: the *improvement* of a player is the utility of its best response to the others minus its utility. *NashConv* is the sum
of the players' improvements; the CFR+ paper calls this sum exploitability. *Exploitability*, as defined by OpenSpiel, is
NashConv divided by the number of players, for two-player constant-sum games only. All are in game units.

With `tremble`, a best response is the best policy that plays every action with at least this probability, so NashConv is the
distance from an equilibrium among such policies (see `solving.exact`).

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> game = compile_game(pyspiel.load_game("kuhn_poker"))
>>> uniform = evaluate(game, StrategyProfile.uniform(game))
>>> uniform.values.round(6), uniform.best_response_values.round(6), round(uniform.nash_conv, 6)
(array([ 0.125, -0.125]), array([0.5     , 0.416667]), 0.916667)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus._utils.validation import checked_number, checked_player
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Immutable):
    """The expected utilities of a profile and the best responses to it.

    Attributes:
      game: the compiled game.
      values: float64 (n,), expected utility of each player under the profile.
      best_response_values: float64 (n,), expected utility of each player's best response to the others' policies.
      best_responses: the best responses as one profile, pure without `tremble`; ties are broken in favor of the first action.
    """

    game: SequenceFormGame
    values: npt.NDArray[np.float64]
    best_response_values: npt.NDArray[np.float64]
    best_responses: StrategyProfile

    def _summary(self) -> str:
        return f"{self.game.tree.game}, values={self.values}, nash_conv={self.nash_conv}"

    @property
    def player_improvements(self) -> npt.NDArray[np.float64]:
        """float64 (n,), the improvement of each player; negative rounding errors are set to zero."""
        return np.maximum(self.best_response_values - self.values, 0.0)

    @property
    def nash_conv(self) -> float:
        """The sum of the players' improvements."""
        return float(self.player_improvements.sum())

    @property
    def exploitability(self) -> float:
        """NashConv / 2.

        Raises:
          ValueError: the game does not have two players and a constant sum.
        """
        if not self.game.is_two_player_constant_sum:
            raise ValueError(
                f"exploitability is defined for two-player constant-sum games only; for {self.game.tree.game} use nash_conv"
            )
        return self.nash_conv / 2


def evaluate(game: pyspiel.Game | SequenceFormGame, policy: Any, *, tremble: float = 0.0) -> Evaluation:
    """Evaluates `policy` in `game`.

    Args:
      game: a game; to evaluate many policies, compile it once with `compile_game`.
      policy: anything that `read_policy` accepts.
      tremble: best responses play every action with at least this probability; `policy` need not.

    Raises:
      TypeError: `tremble` is not a number.
      ValueError: the game or the policy is invalid, see `compile_game` and `read_policy`; or `tremble` is, see
        `checked_tremble`.
    """
    game = compile_game(game)
    least = (_least_policy(game, tremble),) if checked_tremble(game, tremble) else ()
    policies = read_policy(game, policy).probabilities.copy()  # kernels are compiled for writable arrays only
    values, best_response_values = np.empty(game.num_players), np.empty(game.num_players)
    reach, utility, response = (np.empty(game.num_sequences) for _ in range(3))
    passes.evaluate(
        game.treeplex_arrays,
        game.payoff_arrays,
        policies,
        reach,
        utility,
        response,
        values,
        best_response_values,
        *least,
    )
    return Evaluation(
        game, frozen(values, np.float64), frozen(best_response_values, np.float64), StrategyProfile(game, response)
    )


def checked_tremble(game: SequenceFormGame, tremble: float) -> float:
    """A probability with which every action of every infostate can be played at the same time.

    Raises:
      TypeError: it is not a number.
      ValueError: it is negative, or the actions of some infostate would have probabilities of 1 or more in total.
    """
    most_actions = max(int(np.diff(treeplex.sequence_start).max(initial=1)) for treeplex in game.treeplexes)
    if not 0 <= checked_number(tremble, "tremble") * most_actions < 1:
        raise ValueError(
            f"tremble={tremble} must be at least 0 and less than 1/{most_actions}, because an infostate of {game.tree.game} "
            f"has {most_actions} actions"
        )
    return float(tremble)


def _least_policy(game: SequenceFormGame, tremble: float) -> npt.NDArray[np.float64]:
    """float64 (S,), the smallest probability of each action: 1 for forced moves and empty sequences."""
    num_actions = np.diff(game.treeplex_arrays.sequence_start)
    return np.repeat(np.where(num_actions > 1, tremble, 1.0), num_actions)


def best_response(game: pyspiel.Game | SequenceFormGame, policy: Any, player: int) -> StrategyProfile:
    """The profile in which `player` plays its (pure) best response to the others, who play as before.

    Ties are broken in favor of the first action. At infostates that chance and the others do not reach, the first action is
    played.

    Args:
      game, policy: as for `evaluate`.
      player: the player who responds.

    Raises:
      TypeError, ValueError: the player does not exist; or as for `evaluate`.
    """
    game = compile_game(game)
    own = game.player_slices[checked_player(player, game.num_players, game.tree.game)]
    profile = read_policy(game, policy)
    probabilities = profile.probabilities.copy()
    probabilities[own] = evaluate(game, profile).best_responses.probabilities[own]
    return StrategyProfile(game, probabilities)


def expected_values(game: pyspiel.Game | SequenceFormGame, policy: Any) -> npt.NDArray[np.float64]:
    """Each player's expected utility, float64 (n,). Arguments and errors as for `evaluate`."""
    return evaluate(game, policy).values


def nash_conv(game: pyspiel.Game | SequenceFormGame, policy: Any) -> float:
    """The sum of the players' improvements. Arguments and errors as for `evaluate`."""
    return evaluate(game, policy).nash_conv


def exploitability(game: pyspiel.Game | SequenceFormGame, policy: Any) -> float:
    """NashConv / 2 in two-player constant-sum games. Arguments and errors as for `evaluate` and `Evaluation.exploitability`."""
    return evaluate(game, policy).exploitability
