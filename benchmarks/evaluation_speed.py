"""Time to compute NashConv of an OpenSpiel policy on leduc_poker with this package and with OpenSpiel's evaluators.

This package uses a compiled game. The policy is a Python TabularPolicy, which this package and `exploitability.nash_conv`
accept directly; for `pyspiel.nash_conv` it is converted once, outside the timing. The evaluators run in turns on one core; the
median is printed. The largest difference from the result of this package is over random policies.
"""

import argparse
import functools
from collections.abc import Callable

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability
from timing import print_table, seconds_per_repetition, use_one_core

import spiel_cfrplus

REQUIRED = 50  # required speed-up over exploitability.nash_conv


def random_policy(game: pyspiel.Game, rng: np.random.Generator) -> openspiel_policy.TabularPolicy:
    """A policy with random probabilities of the legal actions."""
    policy = openspiel_policy.TabularPolicy(game)
    weights = policy.legal_actions_mask * rng.exponential(size=policy.action_probability_array.shape)
    policy.action_probability_array = weights / weights.sum(axis=1, keepdims=True)
    return policy


def repeated(work: Callable[[], object]) -> Callable[[int], None]:
    """A function that calls `work` n times."""

    def repeat(n: int) -> None:
        for _ in range(n):
            work()

    return repeat


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=int, default=20, help="random policies to compare on (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=7, help="timed blocks for each evaluator (default: %(default)s)")
    args = parser.parse_args()
    use_one_core()
    game = pyspiel.load_game("leduc_poker")
    compiled = spiel_cfrplus.compile_game(game)
    rng = np.random.default_rng(0)
    differences: dict[str, float] = {"exploitability.nash_conv": 0.0, "pyspiel.nash_conv": 0.0}
    for _ in range(args.policies):
        policy = random_policy(game, rng)
        evaluators = {
            "ours": functools.partial(spiel_cfrplus.nash_conv, compiled, policy),
            "exploitability.nash_conv": functools.partial(exploitability.nash_conv, game, policy),
            "pyspiel.nash_conv": functools.partial(
                pyspiel.nash_conv, game, openspiel_policy.python_policy_to_pyspiel_policy(policy)
            ),
        }
        for name in differences:
            differences[name] = max(differences[name], abs(evaluators["ours"]() - evaluators[name]()))
    seconds = seconds_per_repetition({name: repeated(work) for name, work in evaluators.items()}, blocks=args.blocks)
    rows = []
    for name, time in seconds.items():
        difference = f"{differences[name]:.1e}" if name in differences else ""
        required = REQUIRED if name == "exploitability.nash_conv" else ""
        rows.append([name, f"{1e3 * time:.3f}", f"{time / seconds['ours']:.0f}", required, difference])
    print_table(["NashConv on leduc_poker", "milliseconds", "times ours", "required", "largest difference"], rows)


if __name__ == "__main__":
    main()
