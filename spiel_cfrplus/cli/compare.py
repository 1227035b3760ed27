"""Compares the policies of two files, or of a file with the uniform policy.

Prints the NashConv of both, the expected values if each player takes its part from one of them, and how much they differ: the
total variation distance of two distributions is half the sum of the absolute differences of their probabilities. Its mean over
infostates is weighted by the probability that play under the first policy reaches them, divided by the sum of these
probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags

from spiel_cfrplus.analysis.infostate_table import InfostateTable, infostate_table
from spiel_cfrplus.cli import json_lines, policy_files
from spiel_cfrplus.policies.evaluation import expected_values, nash_conv
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import read_policy

USAGE = "compare FILE FILE [--game=GAME] [--json]; the second may be 'uniform'"
# With more players there are too many combinations to print.
_MOST_PLAYERS = 6


class Difference(NamedTuple):
    """How two policies differ.

    Attributes:
      largest: the largest difference of two probabilities.
      row: the row of the table where it is.
      mean_distance: the weighted mean of the total variation distances.
    """

    largest: float
    row: int
    mean_distance: float


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    policy_files.define_game(values)
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Compares the policies."""
    paths = policy_files.checked(arguments, [2], USAGE)
    with json_lines.printer(wanted=values.json) as print_row:
        profiles = policy_files.load(paths, values)
        table, other = map(infostate_table, profiles)
        difference = difference_of(table, other["probability"])
        pairings = list(_pairings(paths, profiles))
        nash_convs = {path: nash_conv(profile.game, profile) for path, profile in zip(paths, profiles, strict=True)}
        if print_row is None:
            print(profiles[0].game.description)
            for path, value in nash_convs.items():
                print(f"NashConv of {path}: {value:.6e}")
            _print_pairings(pairings)
            _print_difference(table, other, difference)
            return 0
        print_row(
            {
                "nash_conv": list(nash_convs.values()),
                "largest_difference": difference.largest,
                "mean_distance": difference.mean_distance,
            }
        )
        for players, numbers in pairings:
            print_row({"players": players, "values": numbers})
    return 0


def difference_of(table: InfostateTable, probabilities: np.ndarray) -> Difference:
    """How the policy of a table differs from another one of the same game.

    Args:
      table: of the first policy.
      probabilities: float64, the column `probability` of the table of the other.
    """
    differences = np.abs(table["probability"] - probabilities)
    row = int(np.argmax(differences))
    weights = table["own_reach"] * table["counterfactual_reach"]
    # Each action has the weight of its infostate, and the probabilities of an infostate sum to 1.
    total = float(weights @ table["probability"])
    return Difference(float(differences[row]), row, float(weights @ differences) / 2 / total)


def _pairings(paths: Sequence[str], profiles: Sequence[StrategyProfile]) -> Iterator[tuple[list[str], np.ndarray]]:
    """For each choice of a policy for each player, the names of the policies and the players' expected values."""
    game = profiles[0].game
    choices = itertools.product(range(len(paths)), repeat=game.num_players) if game.num_players <= _MOST_PLAYERS else ()
    for chosen in choices:
        mixed = read_policy(game, [profiles[choice] for choice in chosen])
        yield [paths[choice] for choice in chosen], expected_values(game, mixed)


def _print_pairings(pairings: Sequence[tuple[list[str], np.ndarray]]) -> None:
    for players, numbers in pairings:
        print(f"expected values of {' and '.join(players)}: {', '.join(f'{number:.9f}' for number in numbers)}")


def _print_difference(table: InfostateTable, other: InfostateTable, difference: Difference) -> None:
    row = difference.row
    print(f"mean total variation distance {difference.mean_distance:.6f}")
    print(
        f"largest difference of a probability {difference.largest:.6f}: player {table['player'][row]}, infostate "
        f"{table['infostate'][row]!r}, action {table['action'][row]} {table['action_name'][row]}: "
        f"{table['probability'][row]:.6f} and {other['probability'][row]:.6f}"
    )
