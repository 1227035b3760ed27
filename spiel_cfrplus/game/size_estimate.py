"""Estimates of the size of a game tree and of the memory it takes, from a few thousand histories in a fraction of a second.

Knuth (1975), "Estimating the efficiency of backtrack programs": descend from the root, choose each child with some probability
p, and count each visited node 1 / p times; the mean over such probes is the number of nodes. Chen (1992), "Heterogeneous
sampling: a generalization of Knuth's method", runs many probes in parallel and assigns some to each stratum of nodes.

Here two children in a ply are in one stratum if they have the same position among their siblings and if their parents have the
same player and the same number of actions. If a ply has more than `PROBES` children, each stratum receives an equal number of
probes, chosen by systematic sampling. The estimate is unbiased for any strata. It is exact if no ply has more than `PROBES`
histories, or if the subtrees within each stratum have equal sizes. On the games of docs/large_games.md it is within 6 %.

The random generator has a fixed seed, so a game has the same estimate each time.

>>> import pyspiel
>>> estimate_size(pyspiel.load_game("kuhn_poker")).num_histories
58.0
>>> estimate = estimate_size(pyspiel.load_game("liars_dice(dice_sides=8)"))
>>> print(f"{estimate.num_histories / 1e6:.1f} million histories")
8.4 million histories
"""

from __future__ import annotations

import dataclasses
import random
import sys
import warnings
from collections.abc import Sequence

import pyspiel

from spiel_cfrplus._utils.memory import available_bytes
from spiel_cfrplus._utils.progress import Advance
from spiel_cfrplus.game.checks import check_game, no_information_states
from spiel_cfrplus.game.subgames import actions_of
from spiel_cfrplus.game.walk_limits import MOST_HISTORIES, WalkLimits

PROBES = 1000
# In histories; the walk of a smaller game takes a few seconds.
LARGE_GAME = 1_000_000
# A history takes about 5 microseconds in a native game and up to 50 in a Python game.
_MAX_VISITS = 20_000

# Peak memory while a game is compiled and solved; see docs/large_games.md. The payoffs of each player are stored with the
# sequences of all other players, hence the term for ordered pairs of players.
_BYTES_PER_HISTORY, _BYTES_PER_HISTORY_AND_PLAYER, _BYTES_PER_HISTORY_AND_PAIR = 45, 20, 8
_BYTES_PER_INFOSTATE = 360

# A sampled history: its state, and its weight, the number of histories of the ply that it represents.
_Probe = tuple[pyspiel.State, float]
# A child of a probe: player to move at the probe, number of actions, position of the child; index of the probe; action.
# The first three numbers are the stratum.
_Edge = tuple[int, int, int, int, int]


@dataclasses.dataclass(frozen=True)
class SizeEstimate:
    """An estimate of the size of a game tree.

    Attributes:
      num_players: number of players.
      num_histories: number of histories, chance and terminal ones included.
      num_decisions: number of decision histories.
      key_bytes: mean size in bytes of the information-state string of a decision.
      is_complete: whether all probes reached the end of the game. If not, because the game is too deep or too large, the
        numbers are for the plies above the last probes.
    """

    num_players: int
    num_histories: float
    num_decisions: float
    key_bytes: float
    is_complete: bool

    @property
    def least_bytes(self) -> float:
        """Approximate memory to compile and solve the game if it has few infostates relative to its histories."""
        ordered_pairs = self.num_players * (self.num_players - 1)
        return self.num_histories * (
            _BYTES_PER_HISTORY + self.num_players * _BYTES_PER_HISTORY_AND_PLAYER + ordered_pairs * _BYTES_PER_HISTORY_AND_PAIR
        )

    @property
    def most_bytes(self) -> float:
        """Approximate memory if each decision is a separate infostate, as in games of perfect information."""
        return self.least_bytes + self.num_decisions * (_BYTES_PER_INFOSTATE + self.key_bytes)

    @property
    def memory(self) -> str:
        """The range from `least_bytes` to `most_bytes` in GB, or one number if both round to the same tenth of a GB."""
        least, most = f"{self.least_bytes / 1e9:.1f}", f"{self.most_bytes / 1e9:.1f}"
        return f"{least} GB" if least == most else f"{least} to {most} GB, depending on the number of infostates"


class LargeGameWarning(UserWarning):
    """A game will probably not fit into memory."""


def warning_on_the_way(game: pyspiel.Game, limits: WalkLimits, advance: Advance) -> Advance:
    """A progress callback that calls `warn_if_too_large` after `LARGE_GAME` histories."""
    counted = 0

    def advance_and_warn(steps: int) -> None:
        nonlocal counted
        if counted < LARGE_GAME <= counted + steps:
            warn_if_too_large(game, limits)
        counted += steps
        advance(steps)

    return advance_and_warn


def warn_if_too_large(game: pyspiel.Game, limits: WalkLimits) -> None:
    """Warns if the walk, up to its limit of histories, will probably need more memory than is available.

    Warns:
      LargeGameWarning: it will probably need more; the estimate takes a fraction of a second.
    """
    size = estimate_size(game, time_limit=limits.seconds_left)
    fraction_walked, available = min(1.0, limits.max_histories / size.num_histories), available_bytes()
    if fraction_walked * size.least_bytes > available:
        warnings.warn(
            f"{game} has {'about' if size.is_complete else 'more than'} {size.num_histories:.2g} histories (estimated), which "
            f"take {size.least_bytes / 1e9:.1f} GB or more, but {available / 1e9:.1f} GB are available; choose smaller "
            "game parameters, or set max_histories to stop the walk before memory runs out",
            LargeGameWarning,
            stacklevel=2,
        )


def estimate_size(game: pyspiel.Game, seed: int = 0, *, time_limit: float | None = None) -> SizeEstimate:
    """Estimates the size of a game tree; visits about ten thousand histories.

    Args:
      game: see `GameTree.from_game`.
      seed: seed of the random generator.
      time_limit: stop after about this many seconds, with an incomplete estimate; no limit by default.

    Raises:
      TypeError, ValueError: the game cannot be walked, see `check_game`; or `time_limit` is negative or NaN.
    """
    limits = WalkLimits.starting_now(time_limit=time_limit)
    check_game(game)
    return _estimate(game, [(game.new_initial_state(), 1.0)], random.Random(seed), PROBES, limits)


def histories_below(game: pyspiel.Game, states: Sequence[pyspiel.State], most_roots: int, num_probes: int) -> float:
    """An estimate of the number of histories in the subtrees of `states`, which are included.

    Args:
      game: the game, which has been checked.
      states: the states; those after the first `most_roots` at equal distances are represented by these.
      most_roots: the largest number of states below which probes are made.
      num_probes: the largest number of probes per ply.
    """
    roots = states[:: -(-len(states) // most_roots)]
    probes = [(state, len(states) / len(roots)) for state in roots]
    return _estimate(game, probes, random.Random(0), num_probes, WalkLimits.starting_now()).num_histories


def _estimate(
    game: pyspiel.Game, probes: list[_Probe], generator: random.Random, num_probes: int, limits: WalkLimits
) -> SizeEstimate:
    """The size of the subtrees of the first probes."""
    histories, decisions, key_bytes, visits = sum(weight for _, weight in probes), 0.0, 0.0, len(probes)
    while probes and histories <= MOST_HISTORIES and visits <= _MAX_VISITS and limits.seconds_left > 0:
        weights = [weight for _, weight in probes]
        edges = [edge for number, (state, _) in enumerate(probes) for edge in _edges(state, number)]
        histories += sum(weights[number] for *_, number, _ in edges)
        for state, weight in probes:
            if state.current_player() >= 0:
                decisions += weight
                key_bytes += weight * _key_bytes(game, state)
        if len(edges) > num_probes:
            chosen = _sample(sorted(edges), weights, generator, num_probes)
        else:
            chosen = [(edge, weights[edge[3]]) for edge in edges]  # edge[3] is the index of the probe
        probes = [(probes[number][0].child(action), weight) for (*_, number, action), weight in chosen]
        visits += len(probes)
    return SizeEstimate(game.num_players(), histories, decisions, key_bytes / max(decisions, 1), not probes)


def _key_bytes(game: pyspiel.Game, state: pyspiel.State) -> int:
    try:
        return sys.getsizeof(state.information_state_string(state.current_player()))
    except (pyspiel.SpielError, NotImplementedError) as error:
        raise no_information_states(game, error) from error


def _edges(state: pyspiel.State, number: int) -> list[_Edge]:
    player, actions = state.current_player(), actions_of(state)
    return [(player, len(actions), place, number, action) for place, action in enumerate(actions)]


def _sample(
    edges: Sequence[_Edge], weights: Sequence[float], generator: random.Random, num_probes: int
) -> list[tuple[_Edge, float]]:
    """About `num_probes` of the edges, which are sorted by stratum, each with its new weight: systematic sampling.

    Edge e is chosen with probability p_e, proportional to its fraction of the weight of its stratum, and receives the weight
    w_e / p_e.
    """
    stratum_weight: dict[tuple[int, ...], float] = {}
    for *stratum, number, _ in edges:
        stratum_weight[tuple(stratum)] = stratum_weight.get(tuple(stratum), 0.0) + weights[number]
    chosen, cumulative_probability, threshold = [], 0.0, generator.random()
    for edge in edges:
        *stratum, number, _ = edge
        probability = min(1.0, weights[number] / stratum_weight[tuple(stratum)] * num_probes / len(stratum_weight))
        cumulative_probability += probability
        if cumulative_probability > threshold:
            chosen.append((edge, weights[number] / probability))
            threshold += 1
    return chosen
