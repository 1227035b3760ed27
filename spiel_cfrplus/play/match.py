"""Matches: the utilities of policies and bots in sampled games, beside their exact expected values.

If all participants are policies, the result of a game is one of the terminal histories, whose probabilities are the products of
the probabilities of chance and of the players. The number of games that end in each terminal history is drawn from the
multinomial distribution, which has the same distribution as playing the games one by one, so the time does not depend on their
number. If a bot takes part, games are played move by move by `pyspiel.evaluate_bots`.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver, StrategyProfile
>>> solver = CFRPlusSolver(pyspiel.load_game("leduc_poker"))
>>> solver.run(500)
>>> uniform = StrategyProfile.uniform(solver.game)
>>> match = play_match(solver.game, [solver.average_profile(), uniform], 1_000_000)
>>> low, high = match.scores[0].confidence_interval
>>> low < match.scores[0].expected < high
True
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import sealed
from spiel_cfrplus._utils.progress import Advance, progress_bar
from spiel_cfrplus._utils.validation import checked_count, checked_number, checked_seed
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game, terminal_chance_reach
from spiel_cfrplus.game.turn_based import turn_based_form
from spiel_cfrplus.play.bots import LARGEST_SEED, ProfileBot
from spiel_cfrplus.policies.evaluation import expected_values
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy


@dataclasses.dataclass(frozen=True)
class Score:
    """The utility of one participant of a match per game, in game units.

    Attributes:
      participant: its position in the list of participants.
      seat: the player of the game that it was; None for the mean over several seats.
      num_games: the number of games.
      mean: the mean over the games; with `seat=None`, the mean of the means.
      standard_error: the estimated standard deviation of `mean`.
      confidence_interval: bounds that contain the expected value with the probability `Match.confidence`, if the number of
        games is so large that the mean is normally distributed.
      expected: the exact expected value; None if a bot took part.
    """

    participant: int
    seat: int | None
    num_games: int
    mean: float
    standard_error: float
    confidence_interval: tuple[float, float]
    expected: float | None


@dataclasses.dataclass(frozen=True, repr=False)
class Match:
    """The result of a match; prints as a table.

    Attributes:
      game: the string of the game, or the description of a subgame or a changed game.
      seed: the seed of the match.
      confidence: of the confidence intervals.
      scores: of each participant, over all seats that it had.
      by_seat: of each participant in each seat that it had.
    """

    game: str
    seed: int
    confidence: float
    scores: tuple[Score, ...]
    by_seat: tuple[Score, ...]

    def __repr__(self) -> str:
        has_swaps = len(self.by_seat) > len(self.scores)
        names = ("participant", "seat", "games", "mean", "standard error", f"{100 * self.confidence:g}% interval", "expected")
        rows = [names, *map(_texts, self.by_seat), *(map(_texts, self.scores) if has_swaps else ())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([f"{self.game}, seed {self.seed}", *lines])


def play_match(
    game: pyspiel.Game | SequenceFormGame,
    participants: Any,
    num_games: int,
    seed: int = 0,
    *,
    swap_seats: bool = False,
    confidence: float = 0.95,
    progress: bool = False,
) -> Match:
    """Plays a number of games and returns what each participant earned.

    Args:
      game: a game, also of simultaneous moves or more than two players, or a compiled game.
      participants: one for each player, in the order of the players: policies, each of any kind that `read_policy` accepts;
        bots, each a `pyspiel.Bot` or a function that makes the bot of a player, such as `lambda player: ProfileBot(profile,
        player)`; or both. One policy or function alone is for all players.
      num_games: the number of games; at least 2, and with `swap_seats` at least 2 for each player.
      seed: of the games and of the policies' choices; bots have their own random numbers.
      swap_seats: whether the participants change seats: the games are divided equally among the rotations, in rotation k
        participant i is player (i + k) modulo the number of players. Bots are then functions that make the bot of a player.
      confidence: the probability of the confidence intervals.
      progress: whether to show a progress bar on standard error while bots play, if that is a terminal.

    Raises:
      TypeError: an argument of another type.
      ValueError: a wrong number of participants or games; a confidence that is not between 0 and 1; a bot that cannot change
        seats, or a bot in a subgame or a game with changed infostates; or an invalid game or policy, see `compile_game` and
        `read_policy`.
    """
    seed = checked_seed(seed)
    rng = np.random.default_rng(seed)
    quantile = statistics.NormalDist().inv_cdf((1 + _checked_confidence(confidence)) / 2)
    setting = _setting(game, participants, swap_seats)
    num_players = len(setting.participants)
    num_rotations = num_players if swap_seats else 1
    num_games = checked_count(num_games, "games", least=2 * num_rotations)
    by_seat = []
    with progress_bar(progress, unit="games", total=num_games) as advance:
        for rotation in range(num_rotations):
            order = [(seat - rotation) % num_players for seat in range(num_players)]
            share = len(range(rotation, num_games, num_rotations))
            estimates = _play(setting, [setting.participants[i] for i in order], share, rng, advance)
            for seat, (participant, estimate) in enumerate(zip(order, estimates, strict=True)):
                by_seat.append(_score(participant, seat, share, estimate, quantile))
    by_seat.sort(key=lambda score: (score.participant, score.seat or 0))
    scores = tuple(_over_seats([score for score in by_seat if score.participant == i], quantile) for i in range(num_players))
    return Match(setting.name, seed, confidence, scores, tuple(by_seat))


class _Estimate(NamedTuple):
    """The utility of a player; see `Score`."""

    mean: float
    standard_error: float
    expected: float | None


@dataclasses.dataclass(frozen=True)
class _Setting:
    """What is played.

    Attributes:
      game: the game that bots play.
      compiled: its sequential form, compiled; None if all participants are bots.
      participants: one for each player; bots are functions that make the bot of a player.
    """

    game: pyspiel.Game
    compiled: SequenceFormGame | None
    participants: Sequence[Any]

    @property
    def name(self) -> str:
        if self.compiled is None or self.compiled.is_whole_game:
            return str(self.game)
        return self.compiled.description


def _setting(game: pyspiel.Game | SequenceFormGame, participants: Any, swap_seats: bool) -> _Setting:
    original = game.tree.game if isinstance(game, SequenceFormGame) else game
    if not isinstance(original, pyspiel.Game):
        raise TypeError(f"expected a pyspiel.Game or a compiled game, got {game!r}")
    per_player = _per_player(participants, original)
    are_bots = [_is_bot(participant) for participant in per_player]
    if isinstance(game, SequenceFormGame) and any(are_bots) and not game.is_whole_game:
        raise ValueError(f"bots play whole games only, not {game.description}; pass policies instead of bots")
    if swap_seats and any(isinstance(participant, pyspiel.Bot) for participant in per_player):
        raise ValueError(
            "with swap_seats, a bot must be given as a function that makes the bot of a player, such as "
            "lambda player: ProfileBot(profile, player)"
        )
    compiled = None if all(are_bots) else compile_game(_sequential(game))
    return _Setting(original, compiled, per_player)


def _sequential(game: pyspiel.Game | SequenceFormGame) -> pyspiel.Game | SequenceFormGame:
    return turn_based_form(game) if isinstance(game, pyspiel.Game) else game


def _per_player(participants: Any, game: pyspiel.Game) -> list[Any]:
    if isinstance(participants, pyspiel.Bot):
        participants = [participants]
    if not isinstance(participants, Sequence) or isinstance(participants, str):
        participants = [participants] * game.num_players()
    if len(participants) != game.num_players():
        raise ValueError(f"{game} has {game.num_players()} players, got {len(participants)} participants")
    return list(participants)


def _is_bot(participant: Any) -> bool:
    """Whether it is a bot, or a function that makes one; OpenSpiel's policies in Python are functions, too."""
    return isinstance(participant, pyspiel.Bot) or (callable(participant) and not hasattr(participant, "action_probabilities"))


def _play(setting: _Setting, seated: list[Any], num_games: int, rng: np.random.Generator, advance: Advance) -> list[_Estimate]:
    """Plays games, given the participant in each seat; returns an estimate for each seat."""
    if any(map(_is_bot, seated)):
        return _play_bots(setting.game, _bots(setting, seated, rng), num_games, rng, advance)
    profile = read_policy(_compiled(setting), seated)
    return _sample(profile, num_games, rng)


def _play_bots(
    game: pyspiel.Game, bots: list[pyspiel.Bot], num_games: int, rng: np.random.Generator, advance: Advance
) -> list[_Estimate]:
    returns = np.empty((num_games, len(bots)))
    for row, game_seed in zip(returns, rng.integers(LARGEST_SEED, size=num_games).tolist(), strict=True):
        row[:] = pyspiel.evaluate_bots(game.new_initial_state(), bots, game_seed)
        advance(1)
    means, errors = returns.mean(axis=0).tolist(), (returns.std(axis=0, ddof=1) / math.sqrt(num_games)).tolist()
    return [_Estimate(mean, error, None) for mean, error in zip(means, errors, strict=True)]


def _sample(profile: StrategyProfile, num_games: int, rng: np.random.Generator) -> list[_Estimate]:
    """Draws the number of games that end in each terminal history."""
    probabilities = _terminal_probabilities(profile)
    reached = np.flatnonzero(probabilities > 0)
    returns = profile.game.tree.returns[reached]
    counts = rng.multinomial(num_games, probabilities[reached] / probabilities[reached].sum())
    means = counts @ returns / num_games
    errors = np.sqrt(counts @ (returns - means) ** 2 / (num_games - 1) / num_games)
    expected = expected_values(profile.game, profile)
    return [_Estimate(*map(float, numbers)) for numbers in zip(means, errors, expected, strict=True)]


def _terminal_probabilities(profile: StrategyProfile) -> np.ndarray:
    """float64 (Z,), the probability of each terminal history; they sum to 1 as exactly as those of the profile."""
    last_sequences, result = profile.game.derived(_terminal_sequences), profile.game.derived(_chance_reach).copy()
    for player, last in enumerate(last_sequences.T):
        result *= profile.sequence_form(player)[last]
    return result


def _terminal_sequences(game: SequenceFormGame) -> np.ndarray:
    """int32 (Z, n), each player's last sequence at each terminal history."""
    last_sequence, _ = trace_sequences(game.tree)
    return sealed(last_sequence[game.tree.terminal])


def _chance_reach(game: SequenceFormGame) -> np.ndarray:
    return sealed(terminal_chance_reach(game.tree))


def _compiled(setting: _Setting) -> SequenceFormGame:
    assert setting.compiled is not None  # for type checkers: a participant is a policy
    return setting.compiled


def _bots(setting: _Setting, seated: list[Any], rng: np.random.Generator) -> list[pyspiel.Bot]:
    """The bot in each seat; policies become bots."""
    return [_bot(setting, participant, seat, rng) for seat, participant in enumerate(seated)]


def _bot(setting: _Setting, participant: Any, seat: int, rng: np.random.Generator) -> pyspiel.Bot:
    if not _is_bot(participant):
        game = _compiled(setting)
        per_player: list[Any] = [StrategyProfile.uniform(game)] * game.num_players
        per_player[seat] = participant  # only this player's part is used, and the policy need not have others
        return ProfileBot(read_policy(game, per_player), seat, int(rng.integers(LARGEST_SEED)))
    bot = participant if isinstance(participant, pyspiel.Bot) else participant(seat)
    if not isinstance(bot, pyspiel.Bot):
        raise TypeError(f"the bot of player {seat} is {bot!r}, not a pyspiel.Bot")
    return bot


def _score(participant: int, seat: int | None, num_games: int, estimate: _Estimate, quantile: float) -> Score:
    half = quantile * estimate.standard_error
    interval = (estimate.mean - half, estimate.mean + half)
    return Score(participant, seat, num_games, estimate.mean, estimate.standard_error, interval, estimate.expected)


def _over_seats(scores: list[Score], quantile: float) -> Score:
    """The mean of the scores of one participant in its seats; the score itself if it had one seat only."""
    if len(scores) == 1:
        return scores[0]
    expected = [score.expected for score in scores if score.expected is not None]
    estimate = _Estimate(
        statistics.fmean(score.mean for score in scores),
        math.hypot(*(score.standard_error for score in scores)) / len(scores),
        statistics.fmean(expected) if expected else None,
    )
    return _score(scores[0].participant, None, sum(score.num_games for score in scores), estimate, quantile)


def _checked_confidence(confidence: float) -> float:
    confidence = checked_number(confidence, "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    return confidence


def _texts(score: Score) -> tuple[str, ...]:
    """The cells of a row of the table."""
    low, high = score.confidence_interval
    return (
        str(score.participant),
        "all" if score.seat is None else str(score.seat),
        str(score.num_games),
        f"{score.mean:.6f}",
        f"{score.standard_error:.6f}",
        f"[{low:.6f}, {high:.6f}]",
        "-" if score.expected is None else f"{score.expected:.6f}",
    )
