"""Plays games between the policies of files, one for each player; 'uniform' is the uniform policy.

Prints the mean that each policy earns per game with its confidence interval, beside the exact expected value. Policy k
plays as player k; with --swap_seats, each policy plays as each player equally often."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.cli import json_lines, policy_files
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.cli.numbers import WholeNumbers
from spiel_cfrplus.play.match import play_match

USAGE = "match FILE FILE ... [--games=N] [--seed=S] [--swap_seats] [--game=GAME] [--json]"


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    flags.DEFINE(WholeNumbers(2), "games", 100_000, "Number of games.", flag_values=values)
    flags.DEFINE_integer("seed", 0, "Seed of the games.", 0, flag_values=values)
    flags.DEFINE_boolean("swap_seats", False, "Each policy plays as each player.", flag_values=values)
    flags.DEFINE_float("confidence", 0.95, "Probability of the confidence intervals.", flag_values=values)
    policy_files.define_game(values)
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Plays the games."""
    if not arguments:
        raise UsageError(f"expected a file for each player; usage: spiel-cfrplus {USAGE}")
    with json_lines.printer(wanted=values.json) as print_row:
        profiles = policy_files.load(arguments, values)
        try:
            match = play_match(
                profiles[0].game,
                profiles,
                values.games,
                values.seed,
                swap_seats=values.swap_seats,
                confidence=values.confidence,
            )
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        if print_row is None:
            for participant, path in enumerate(arguments):
                print(f"participant {participant}: {path}")
            print(match)
            return 0
        for score in match.scores:
            print_row({"file": arguments[score.participant], **dataclasses.asdict(score)})
    return 0
