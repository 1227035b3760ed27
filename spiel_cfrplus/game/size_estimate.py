"""How large a game's tree is and how much memory it takes, estimated from a few thousand histories in a fraction of a second.

Knuth (1975), "Estimating the efficiency of backtrack programs": go down from the root, choose each child with some probability
p, and count all that is met 1 / p times; the mean over such probes is the number of nodes. Chen (1992), "Heterogeneous
sampling: a generalization of Knuth's method", sends many probes down side by side and has some for each kind of node.

Here the children of a ply are of one kind if they are in the same place below histories where the same player moves and has as
many actions. Where there are more than `PROBES` of them, every kind gets an equal share of the probes, and systematic sampling
picks them. Whatever the kinds are, the estimate is unbiased; it is exact where no ply has more than `PROBES` histories, and
where histories of a kind have as much below them. On the games of docs/large_games.md it is within 6 %.

The draws come from a generator of their own, so that a game has the same estimate each time.

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
# Smaller games are walked in a few seconds.
LARGE_GAME = 1_000_000
# Histories looked at in all: native games need some 5 microseconds for one, those in Python up to 50.
_MOST_VISITS = 20_000

# Peak memory while a game is compiled and solved; see docs/large_games.md. Payoffs are kept for each player, with the sequences
# of the others.
_BYTES_PER_HISTORY, _BYTES_PER_HISTORY_AND_PLAYER, _BYTES_PER_HISTORY_AND_PAIR = 45, 20, 8
_BYTES_PER_INFOSTATE = 360

# A history that was reached: the state, and how many of its ply it stands for.
_Probe = tuple[pyspiel.State, float]
# One of its children: whose move it comes from, among how many, in which place; the number of the probe; the action.
_Edge = tuple[int, int, int, int, int]


@dataclasses.dataclass(frozen=True)
class SizeEstimate:
    """What probes of a game's tree tell.

    Attributes:
      num_players: n.
      num_histories: how many histories there are, chance and terminal ones included.
      num_decisions: how many of them are decisions.
      key_bytes: the mean size of an information-state string of a decision.
      is_complete: whether the probes came to the end of the game everywhere; if not, because it is too deep or too large, the
        numbers count what is above them.
    """

    num_players: int
    num_histories: float
    num_decisions: float
    key_bytes: float
    is_complete: bool

    @property
    def least_bytes(self) -> float:
        """About what it takes to compile and solve the game if its infostates are few compared with its histories."""
        ordered_pairs = self.num_players * (self.num_players - 1)
        return self.num_histories * (
            _BYTES_PER_HISTORY + self.num_players * _BYTES_PER_HISTORY_AND_PLAYER + ordered_pairs * _BYTES_PER_HISTORY_AND_PAIR
        )

    @property
    def most_bytes(self) -> float:
        """About what it takes if each decision is an infostate of its own, as in games of perfect information."""
        return self.least_bytes + self.num_decisions * (_BYTES_PER_INFOSTATE + self.key_bytes)

    @property
    def memory(self) -> str:
        """The range of `least_bytes` to `most_bytes` in GB, or one figure where they are the same to a tenth of one."""
        least, most = f"{self.least_bytes / 1e9:.1f}", f"{self.most_bytes / 1e9:.1f}"
        return f"{least} GB" if least == most else f"{least} to {most} GB, depending on how many infostates they fall into"


class LargeGameWarning(UserWarning):
    """A game will probably not fit into memory."""


def warning_on_the_way(game: pyspiel.Game, limits: WalkLimits, advance: Advance) -> Advance:
    """An `advance` for a walk, which also warns about memory when the game turns out to be large; see `warn_if_too_large`."""
    counted = 0

    def advance_and_warn(steps: int) -> None:
        nonlocal counted
        if counted < LARGE_GAME <= counted + steps:
            warn_if_too_large(game, limits)
        counted += steps
        advance(steps)

    return advance_and_warn


def warn_if_too_large(game: pyspiel.Game, limits: WalkLimits) -> None:
    """Warns if the walk will need more memory than is available, unless it is limited to fewer histories.

    Warns:
      LargeGameWarning: it probably will; an estimate takes a fraction of a second.
    """
    size = estimate_size(game, time_limit=limits.seconds_left)
    share, available = min(1.0, limits.max_histories / size.num_histories), available_bytes()
    if share * size.least_bytes > available:
        warnings.warn(
            f"{game} has {'about' if size.is_complete else 'more than'} {size.num_histories:.2g} histories (estimated), which "
            f"take {size.least_bytes / 1e9:.1f} GB or more, but {available / 1e9:.1f} GB are available; choose smaller "
            "game parameters, or set max_histories to stop the walk before memory runs out",
            LargeGameWarning,
            stacklevel=2,
        )


def estimate_size(game: pyspiel.Game, seed: int = 0, *, time_limit: float | None = None) -> SizeEstimate:
    """Estimates how large the game is; looks at some ten thousand of its histories.

    Args:
      game: what `GameTree.from_game` takes.
      seed: for the draws.
      time_limit: after about this many seconds the estimate ends, incomplete; no limit by default.

    Raises:
      TypeError, ValueError: the game cannot be walked, see `check_game`; or `time_limit` is negative or NaN.
    """
    limits = WalkLimits.starting_now(time_limit=time_limit)
    check_game(game)
    generator = random.Random(seed)
    histories, decisions, key_bytes, visits = 1.0, 0.0, 0.0, 1
    probes: list[_Probe] = [(game.new_initial_state(), 1.0)]
    while probes and histories <= MOST_HISTORIES and visits <= _MOST_VISITS and limits.seconds_left > 0:
        weights = [weight for _, weight in probes]
        edges = [edge for number, (state, _) in enumerate(probes) for edge in _edges(state, number)]
        histories += sum(weights[number] for *_, number, _ in edges)
        for state, weight in probes:
            if state.current_player() >= 0:
                decisions += weight
                key_bytes += weight * _key_bytes(game, state)
        chosen = _sample(sorted(edges), weights, generator) if len(edges) > PROBES else [(e, weights[e[3]]) for e in edges]
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


def _sample(edges: Sequence[_Edge], weights: Sequence[float], generator: random.Random) -> list[tuple[_Edge, float]]:
    """Some `PROBES` of the edges, which come kind after kind, and what each of them stands for.

    Edge e is chosen with probability p_e, proportional to its share in the weight of its kind, and then stands for w_e / p_e.
    """
    weight_of_kind: dict[tuple[int, ...], float] = {}
    for *kind, number, _ in edges:
        weight_of_kind[tuple(kind)] = weight_of_kind.get(tuple(kind), 0.0) + weights[number]
    chosen, passed, mark = [], 0.0, generator.random()
    for edge in edges:
        *kind, number, _ = edge
        probability = min(1.0, weights[number] / weight_of_kind[tuple(kind)] * PROBES / len(weight_of_kind))
        passed += probability
        if passed > mark:
            chosen.append((edge, weights[number] / probability))
            mark += 1
    return chosen
