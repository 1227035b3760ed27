"""The solvers that `comparison.py` compares, and the process that runs one of them on one game.

Every contender runs CFR+ with alternating updates and linear weights on one thread, through the documented interface of its
package. All use double precision except OpenSpiel's JAX solver, which supports single precision only.

`comparison.py` starts this file, in many cases with another interpreter, so this file imports only the standard library and the
packages that the contender needs. It prints answers as lines of JSON on standard output; output of contenders is redirected to
standard error.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import itertools
import json
import os
import pathlib
import platform
import resource
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from processes import AbsentError, print_answers
from timing import use_one_core

# Maps each information-state string to the probabilities of the legal actions, in their order.
Policy = dict[str, list[float]]


class Contender(Protocol):
    """A solver on a game. The constructor takes the argument of `pyspiel.load_game`; its time is the set-up time."""

    def run(self, num_iterations: int) -> None:
        """Runs `num_iterations` more iterations and waits until they are done."""

    def nash_conv(self) -> float:
        """NashConv of the average policy, computed by the package of the solver."""

    def policy(self) -> Policy:
        """The average policy."""


class Ours:
    """This package; `reduce` enables the symmetry reduction."""

    def __init__(self, game: str, reduce: bool = False):
        import pyspiel

        import spiel_cfrplus

        options: dict[str, Any] = {}
        if "reduce" in inspect.signature(spiel_cfrplus.CFRPlusSolver).parameters:
            options["reduce"] = reduce
        elif reduce:
            raise AbsentError("this version of CFRPlusSolver does not take reduce")
        self.solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game(game), **options)

    def run(self, num_iterations: int) -> None:
        self.solver.run(num_iterations)

    def nash_conv(self) -> float:
        return self.solver.nash_conv()

    def policy(self) -> Policy:
        return without_actions(self.solver.average_profile().to_dict())


class OurReduced(Ours):
    """This package with symmetry reduction."""

    def __init__(self, game: str):
        super().__init__(game, reduce=True)


class OpenSpielCpp:
    """`pyspiel.CFRPlusSolver`. NashConv is twice `pyspiel.exploitability`, which takes less time than `pyspiel.nash_conv`."""

    def __init__(self, game: str):
        import pyspiel

        self.game = pyspiel.load_game(game)
        self.solver = pyspiel.CFRPlusSolver(self.game)

    def run(self, num_iterations: int) -> None:
        for _ in range(num_iterations):
            self.solver.evaluate_and_update_policy()

    def nash_conv(self) -> float:
        import pyspiel

        return 2 * pyspiel.exploitability(self.game, self.solver.average_policy())

    def policy(self) -> Policy:
        return without_actions(self.solver.tabular_average_policy().policy_table())


class OpenSpielPython(OpenSpielCpp):
    """`open_spiel.python.algorithms.cfr.CFRPlusSolver`; policies are evaluated in C++, which is faster than in Python."""

    def __init__(self, game: str):
        import pyspiel
        from open_spiel.python.algorithms import cfr

        self.game = pyspiel.load_game(game)
        self.solver = cfr.CFRPlusSolver(self.game)

    def nash_conv(self) -> float:
        import pyspiel

        return 2 * pyspiel.exploitability(self.game, self._cpp_policy())

    def policy(self) -> Policy:
        return without_actions(self._cpp_policy().policy_table())

    def _cpp_policy(self) -> Any:
        from open_spiel.python import policy

        return policy.python_policy_to_pyspiel_policy(self.solver.average_policy())


class OpenSpielJax:
    """`open_spiel.python.jax.cfr.jax_cfr.JaxCFR`, which is CFR+ by default; policies are evaluated in C++."""

    def __init__(self, game: str):
        import pyspiel
        from open_spiel.python.jax.cfr import jax_cfr

        self.game = pyspiel.load_game(game)
        self.solver = jax_cfr.JaxCFR(self.game)

    def run(self, num_iterations: int) -> None:
        import jax

        self.solver.multiple_steps(num_iterations)
        jax.block_until_ready((self.solver.regrets, self.solver.averages))

    def nash_conv(self) -> float:
        import pyspiel

        return 2 * pyspiel.exploitability(self.game, {key: list(pairs) for key, pairs in self._pairs()})

    def policy(self) -> Policy:
        return without_actions(dict(self._pairs()))

    def _pairs(self) -> Iterator[tuple[str, list[tuple[int, float]]]]:
        # Its own average_policy() divides by zero at infostates that were never reached.
        for player, rows in enumerate(self.solver.iset_map):
            weights = self.solver.averages[player].tolist()
            legal = self.solver.constants.iset_action_mask[player].tolist()
            for key, row in rows.items():
                if key:  # the empty string marks the state before the first infostate
                    actions = [action for action, is_legal in enumerate(legal[row]) if is_legal]
                    yield key, list(zip(actions, normalized([weights[row][action] for action in actions]), strict=True))


class LiteEfg:
    """A baseline of LiteEFG, CFR+ by default.

    LiteEFG writes the game to a file in the home directory. Without `home` the file is always created again.
    """

    average = "linear-avg-iterate"

    def __init__(self, game: str, baseline: str = "CFRplus", home: str | None = None, **options: Any):
        import LiteEFG
        import pyspiel

        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder if home is None else home
            self.environment = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), regenerate=home is None)
        self.graph = importlib.import_module(f"LiteEFG.baselines.{baseline}").graph(**options)
        self.environment.set_graph(self.graph)

    def run(self, num_iterations: int) -> None:
        for _ in range(num_iterations):
            self.graph.update_graph(self.environment)
            self.environment.update_strategy(self.graph.current_strategy())

    def nash_conv(self) -> float:
        return sum(self.environment.exploitability(self.graph.current_strategy(), self.average))

    def policy(self) -> Policy:
        return self._table(self.average)

    def current_policy(self) -> Policy:
        """The current policy."""
        return self._table("last-iterate")

    def _table(self, which: str) -> Policy:
        import LiteEFG

        result: Policy = {}
        for player in (1, 2):
            table = LiteEFG.FileEnv.get_strategy(self.environment, player, self.graph.current_strategy(), which)
            result |= {urllib.parse.unquote(name.split("__", 1)[1]): probabilities for name, probabilities in table}
        return result


class NoRegret:
    """noregret's CFR+ with NumPy and SciPy. `run` is the loop of its `regret_minimization`, which cannot be resumed."""

    def __init__(self, game: str):
        import noregret

        kernel = noregret.FPKer()
        self.game = noregret.to_efg(kernel, noregret.OpenSpielGame(kernel, game))
        self.minimizers = [noregret.CFR_plus(kernel, polytope) for polytope in self.game.sequence_form_polytopes]
        self.strategies = [minimizer.output() for minimizer in self.minimizers]

    def run(self, num_iterations: int) -> None:
        for _ in range(num_iterations):
            for player, minimizer in enumerate(self.minimizers):
                minimizer.observe(self.game.utility(player, self.strategies[1 - player]))
                self.strategies[player] = minimizer.output()

    def nash_conv(self) -> float:
        return 2 * float(self.game.exploitability(*(minimizer.average_strategy for minimizer in self.minimizers)))

    def policy(self) -> Policy:
        result: Policy = {}
        for polytope, minimizer in zip(self.game.sequence_form_polytopes, self.minimizers, strict=True):
            weights = iter(minimizer.average_strategy[1:].tolist())
            result |= {key: normalized(itertools.islice(weights, len(actions))) for key, actions in polytope.actions.items()}
        return result


class Entry(NamedTuple):
    """The constructor of a contender, the modules to import before, and the name of the installed distribution."""

    make: Callable[[str], Contender]
    modules: tuple[str, ...]
    distribution: str


CONTENDERS = {
    "spiel_cfrplus": Entry(Ours, ("spiel_cfrplus",), "spiel_cfrplus"),
    "spiel_cfrplus_reduced": Entry(OurReduced, ("spiel_cfrplus",), "spiel_cfrplus"),
    "openspiel_cpp": Entry(OpenSpielCpp, ("pyspiel",), "open_spiel"),
    "openspiel_python": Entry(OpenSpielPython, ("open_spiel.python.algorithms.cfr",), "open_spiel"),
    "openspiel_jax": Entry(OpenSpielJax, ("open_spiel.python.jax.cfr.jax_cfr",), "jax"),
    "liteefg": Entry(LiteEfg, ("LiteEFG", "LiteEFG.baselines.CFRplus"), "liteefg"),
    "noregret": Entry(NoRegret, ("noregret",), "noregret"),
}


def without_actions(table: dict[str, list[tuple[int, float]]]) -> Policy:
    """Removes the actions from a table of (action, probability) pairs."""
    return {key: [probability for _, probability in sorted(pairs)] for key, pairs in table.items()}


def normalized(weights: Iterable[float]) -> list[float]:
    """The weights divided by their sum; equal probabilities if that is 0."""
    weights = list(weights)
    total = sum(weights)
    return [weight / total if total > 0 else 1 / len(weights) for weight in weights]


def version(entry: Entry) -> str:
    """The installed version of a contender."""
    try:
        return importlib.metadata.version(entry.distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed, run from its source"


def peak_megabytes() -> float:
    """The peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def settle(contender: Contender, most_iterations: int, seconds: float) -> int:
    """Runs up to `most_iterations` iterations, but not much longer than `seconds`; returns their number."""
    done, start = 0, time.perf_counter()
    while done < most_iterations and time.perf_counter() - start < seconds / 2:
        n = min(max(done, 1), most_iterations - done)
        contender.run(n)
        done += n
    return done


def converge(contender: Contender, target: float) -> Iterator[dict[str, Any]]:
    """Yields a row at iterations 1, 2, 5, 10, 20, 50, ... until NashConv is at most `target`; iteration 1 is already done."""
    done = 1
    for iteration in (factor * 10**exponent for exponent in itertools.count() for factor in (1, 2, 5)):
        contender.run(iteration - done)
        done, nash_conv = iteration, contender.nash_conv()
        row = {"iteration": iteration, "nash_conv": nash_conv}
        yield row | {"seconds": time.process_time(), "peak_megabytes": peak_megabytes()}
        if nash_conv <= target:
            return


def obey(contender: Contender, command: dict[str, Any]) -> dict[str, Any]:
    """Executes a command and returns the answer."""
    if "settle" in command:
        return {"iterations": settle(contender, *command["settle"])}
    if "run" in command:
        start = time.process_time()
        contender.run(command["run"])
        return {"seconds": time.process_time() - start}
    pathlib.Path(command["export"]).write_text(json.dumps(contender.policy()))
    return {"nash_conv": contender.nash_conv()}


def contend(solver: str, game: str, target: float | None) -> Iterator[dict[str, Any]]:
    """Yields the set-up time; then the rows of `converge` or, without a target, the answer to each command on stdin."""
    entry = CONTENDERS[solver]
    for module in entry.modules:
        importlib.import_module(module)
    start = time.process_time()
    contender = entry.make(game)
    contender.run(1)
    yield {"setup_seconds": time.process_time() - start, "version": version(entry), "python": platform.python_version()}
    if target is not None:
        yield from converge(contender, target)
    else:
        yield from (obey(contender, json.loads(line)) for line in sys.stdin)


def check(solver: str, game: str, path: str) -> Iterator[dict[str, Any]]:
    """NashConv of an exported policy: computed by OpenSpiel for policies of this package, else by this package."""
    import numpy as np
    import pyspiel

    import spiel_cfrplus

    policy: Policy = json.loads(pathlib.Path(path).read_text())
    compiled = spiel_cfrplus.compile_game(pyspiel.load_game(game))
    parts = [np.concatenate([[1.0], *(policy[key] for key in treeplex.infostate_keys)]) for treeplex in compiled.treeplexes]
    profile = spiel_cfrplus.StrategyProfile(compiled, np.concatenate(parts))
    if CONTENDERS[solver].distribution == "spiel_cfrplus":
        yield {"checked": pyspiel.nash_conv(compiled.tree.game, profile.to_dict())}
    else:
        yield {"checked": spiel_cfrplus.nash_conv(compiled, profile)}


def main() -> None:
    """Reads the command line and prints the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver", choices=list(CONTENDERS))
    parser.add_argument("game")
    parser.add_argument(
        "--converge-to", type=float, help="print rows until this NashConv; without it, read commands from standard input"
    )
    parser.add_argument("--check", metavar="FILE", help="print NashConv of the policy in this file")
    args = parser.parse_args()
    use_one_core()
    if args.check:
        print_answers(check(args.solver, args.game, args.check))
    else:
        print_answers(contend(args.solver, args.game, args.converge_to))


if __name__ == "__main__":
    main()
