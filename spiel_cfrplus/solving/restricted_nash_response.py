"""Restricted Nash responses: strategies that exploit a model of the opponent and remain hard to exploit.

See `policies.restriction` for the definition. The game in which the opponent plays the model with probability p is solved like
any other game, so its NashConv bounds the distance of the result from optimality.

>>> import pyspiel
>>> from spiel_cfrplus import StrategyProfile, compile_game
>>> leduc = compile_game(pyspiel.load_game("leduc_poker"))
>>> uniform = StrategyProfile.uniform(leduc)
>>> for p in (0.25, 0.75):
...     response = restricted_nash_response(leduc, uniform, p, player=0)
...     print(round(response.value_against_model, 1), round(response.worst_case_value, 1))
1.0 -0.1
1.8 -1.0
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable
from spiel_cfrplus._utils.validation import checked_count, checked_number
from spiel_cfrplus._utils.warnings import warn
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.policies.evaluation import evaluate, expected_values
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.restriction import RestrictedGame, restrict
from spiel_cfrplus.solving.solvers import make_solver

# The default of `target_gap`, relative to the range of the payoffs.
_RELATIVE_GAP = 1e-4
# Iterations between two computations of the gap: at least the first number, and the second one relative to those done.
_LEAST_BLOCK = 100
_BLOCK = 0.25


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RestrictedNashResponse(Immutable):
    """A restricted Nash response and what it earns; all values are in game units.

    Attributes:
      game: the restricted game, with the model, `p` and the player.
      profile: the player's response, and the strategy of the opponent where it is free, of the game without the restriction.
      gap: NashConv of the restricted game: in (1 - p) times `worst_case_value` plus p times `value_against_model`, no strategy
        exceeds the response by more.
      value_against_model: the player's expected utility if the opponent plays the model.
      worst_case_value: the player's expected utility if the opponent plays a best response to the response.
      iterations: the number of iterations.
    """

    game: RestrictedGame
    profile: StrategyProfile
    gap: float
    value_against_model: float
    worst_case_value: float
    iterations: int

    def _summary(self) -> str:
        return (
            f"{self.game.whole.tree.game}, player {self.game.player}, p={self.game.p:g}, "
            f"value_against_model={self.value_against_model:.6g}, worst_case_value={self.worst_case_value:.6g}, "
            f"gap={self.gap:.2g} after {self.iterations} iterations"
        )


def restricted_nash_response(
    game: pyspiel.Game | SequenceFormGame,
    opponent_model: Any,
    p: float,
    player: int,
    *,
    target_gap: float | None = None,
    max_iterations: int = 100_000,
    algorithm: str = "cfr+",
) -> RestrictedNashResponse:
    """Computes the player's strategy in an equilibrium of the game whose opponent plays the model with probability `p`.

    For other games, and to choose a solver's options, pass `restrict(...)` to a solver.

    Args:
      game: a two-player constant-sum game, or a compiled one.
      opponent_model: any policy that `read_policy` accepts; only the opponent's infostates must have entries.
      p: the probability of the model, from 0 (an equilibrium strategy) to 1 (a best response to the model).
      player: the player who responds.
      target_gap: stop when the gap is at most this, in game units; by default 1e-4 times the range of the player's payoffs.
      max_iterations: the largest number of iterations.
      algorithm: a name in `ALGORITHMS`; its averages converge.

    Raises:
      TypeError: an argument of another type.
      ValueError: a game with more players or another sum; a negative `target_gap`; or as for `restrict` and `make_solver`.

    Warns:
      UserWarning: the gap is larger than `target_gap` after `max_iterations`.
    """
    game = compile_game(game)
    if not game.is_two_player_constant_sum:
        raise ValueError(
            f"a restricted Nash response is defined for two-player constant-sum games, not for {game.tree.game}; "
            "restrict(game, model, p, player) makes the restricted game of any game"
        )
    target_gap = _checked_gap(game, target_gap)
    max_iterations = checked_count(max_iterations, least=1)
    restricted = restrict(game, opponent_model, p, player)
    solver = make_solver(algorithm, restricted)
    gap = np.inf
    while gap > target_gap and solver.iteration < max_iterations:
        block = max(_LEAST_BLOCK, int(_BLOCK * solver.iteration))
        solver.run(min(block, max_iterations - solver.iteration))
        gap = solver.nash_conv()
    if gap > target_gap:
        warn(f"the gap is {gap:.2g} after {max_iterations} iterations, more than the target of {target_gap:.2g}")
    profile = restricted.whole_profile(solver.average_profile())
    against_model, worst_case = _values(restricted, profile)
    return RestrictedNashResponse(restricted, profile, gap, against_model, worst_case, solver.iteration)


def _checked_gap(game: SequenceFormGame, target_gap: float | None) -> float:
    if target_gap is None:
        return _RELATIVE_GAP * float(np.ptp(game.tree.returns[:, 0]))
    target_gap = checked_number(target_gap, "target_gap")
    if not target_gap >= 0:
        raise ValueError(f"target_gap must not be negative, got {target_gap}")
    return target_gap


def _values(game: RestrictedGame, profile: StrategyProfile) -> tuple[float, float]:
    """The player's utility against the model, and against a best response."""
    whole, player, opponent = game.whole, game.player, 1 - game.player
    against_model = [game.model, game.model]
    against_model[player] = profile
    payoff_sum = float(whole.tree.returns[0].sum())
    worst_case = payoff_sum - evaluate(whole, profile).best_response_values[opponent]
    return float(expected_values(whole, against_model)[player]), float(worst_case)
