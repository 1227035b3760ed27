"""Prints what the policy of a file is worth: its NashConv, and each player's expected value and gain from a best response.

All values are in game units."""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.cli import json_lines, policy_files
from spiel_cfrplus.policies.evaluation import Evaluation
from spiel_cfrplus.policies.evaluation import evaluate as evaluation_of

USAGE = "evaluate FILE [--game=GAME] [--json]"


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    policy_files.define_game(values)
    json_lines.define(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Evaluates the policy."""
    (path,) = policy_files.checked(arguments, [1], USAGE)
    with json_lines.printer(wanted=values.json) as print_row:
        (profile,) = policy_files.load([path], values)
        evaluation = evaluation_of(profile.game, profile)
        if print_row is None:
            print_evaluation(evaluation)
        else:
            print_row({"file": path, "game": str(profile.game.tree.game), **as_row(evaluation)})
    return 0


def as_row(evaluation: Evaluation) -> dict[str, object]:
    """The numbers of an evaluation by name; `exploitability` is None where it is not defined."""
    return {
        "nash_conv": evaluation.nash_conv,
        "exploitability": evaluation.exploitability if evaluation.game.is_two_player_constant_sum else None,
        "values": evaluation.values,
        "best_response_values": evaluation.best_response_values,
        "player_improvements": evaluation.player_improvements,
    }


def print_evaluation(evaluation: Evaluation) -> None:
    """Prints an evaluation as a table."""
    print(evaluation.game.description)
    print(f"NashConv {evaluation.nash_conv:.6e}")
    if evaluation.game.is_two_player_constant_sum:
        print(f"exploitability {evaluation.exploitability:.6e}")
    print(f"{'player':>6} {'expected value':>18} {'best response':>18} {'gain':>13}")
    numbers = zip(evaluation.values, evaluation.best_response_values, evaluation.player_improvements, strict=True)
    for player, (value, best, gain) in enumerate(numbers):
        print(f"{player:>6} {value:>18.9f} {best:>18.9f} {gain:>13.6e}")
