"""The solvers that `comparison.py` compares, and the process that runs one of them on one game.

Every contender runs CFR+ with alternating updates and linear weights on one thread, through the calls that its package
documents. All compute in double precision but OpenSpiel's JAX solver, which knows single precision only.

`comparison.py` starts this file, often with another interpreter than its own, so that it imports nothing but the standard
library and what the contender needs. It answers in lines of JSON on standard output; what contenders print goes to standard
error.
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

from timing import use_one_core

# The probabilities of the legal actions, in their order, by information-state string.
Policy = dict[str, list[float]]


class AbsentError(Exception):
    """This interpreter does not have the contender."""


class Contender(Protocol):
    """A solver on a game. It is made from the string that `pyspiel.load_game` takes; making it is its set-up."""

    def run(self, num_iterations: int) -> None:
        """Does so many more iterations and returns when they are done."""

    def nash_conv(self) -> float:
        """NashConv of the average policy, as a user of the package would ask for it."""

    def policy(self) -> Policy:
        """The average policy, for others to check."""


class Ours:
    """This package; `reduce` asks for the quotient by the game's symmetries."""

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
    """This package on the quotient."""

    def __init__(self, game: str):
        super().__init__(game, reduce=True)


class OpenSpielCpp:
    """`pyspiel.CFRPlusSolver`. Half of NashConv is what `pyspiel.exploitability` returns, in less time than NashConv itself."""

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
    """`open_spiel.python.algorithms.cfr.CFRPlusSolver`; its policies are evaluated in C++, which is faster than in Python."""

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
    """`open_spiel.python.jax.cfr.jax_cfr.JaxCFR`, which by default is CFR+; its policies are evaluated in C++."""

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
                if key:  # The empty string stands for having no infostate yet.
                    actions = [action for action, is_legal in enumerate(legal[row]) if is_legal]
                    yield key, list(zip(actions, normalized([weights[row][action] for action in actions]), strict=True))


class LiteEfg:
    """LiteEFG's baseline CFR+. It writes games to a file below the home folder and reads that; here the file is made anew."""

    average = "linear-avg-iterate"

    def __init__(self, game: str):
        import LiteEFG
        import pyspiel
        from LiteEFG.baselines import CFRplus

        with tempfile.TemporaryDirectory() as home:
            os.environ["HOME"] = home
            self.environment = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), regenerate=True)
        self.graph = CFRplus.graph()
        self.environment.set_graph(self.graph)

    def run(self, num_iterations: int) -> None:
        for _ in range(num_iterations):
            self.graph.update_graph(self.environment)
            self.environment.update_strategy(self.graph.current_strategy())

    def nash_conv(self) -> float:
        return sum(self.environment.exploitability(self.graph.current_strategy(), self.average))

    def policy(self) -> Policy:
        import LiteEFG

        result: Policy = {}
        for player in (1, 2):
            table = LiteEFG.FileEnv.get_strategy(self.environment, player, self.graph.current_strategy(), self.average)
            result |= {urllib.parse.unquote(name.split("__", 1)[1]): probabilities for name, probabilities in table}
        return result


class NoRegret:
    """noregret's CFR+ with NumPy and SciPy. `run` is the loop of its `regret_minimization`, which cannot be entered twice."""

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
    """How to make a contender, what to import before, and the name under which it is installed."""

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
    """Drops the actions from a table of (action, probability) pairs."""
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
    """The most resident memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def settle(contender: Contender, most_iterations: int, seconds: float) -> int:
    """Iterates up to `most_iterations` times, but not much longer than `seconds`; returns how often."""
    done, start = 0, time.perf_counter()
    while done < most_iterations and time.perf_counter() - start < seconds / 2:
        n = min(max(done, 1), most_iterations - done)
        contender.run(n)
        done += n
    return done


def converge(contender: Contender, target: float) -> Iterator[dict[str, Any]]:
    """A row at iterations 1, 2, 5, 10, 20, 50, ... until NashConv is at most `target`. The first iteration has been done."""
    done = 1
    for iteration in (factor * 10**exponent for exponent in itertools.count() for factor in (1, 2, 5)):
        contender.run(iteration - done)
        done, nash_conv = iteration, contender.nash_conv()
        row = {"iteration": iteration, "nash_conv": nash_conv}
        yield row | {"seconds": time.process_time(), "peak_megabytes": peak_megabytes()}
        if nash_conv <= target:
            return


def obey(contender: Contender, command: dict[str, Any]) -> dict[str, Any]:
    """Does what the command says and answers."""
    if "settle" in command:
        return {"iterations": settle(contender, *command["settle"])}
    if "run" in command:
        start = time.process_time()
        contender.run(command["run"])
        return {"seconds": time.process_time() - start}
    pathlib.Path(command["export"]).write_text(json.dumps(contender.policy()))
    return {"nash_conv": contender.nash_conv()}


def contend(solver: str, game: str, target: float | None) -> Iterator[dict[str, Any]]:
    """Says that the contender is ready; then the rows of `converge`, or without a target an answer to each command read."""
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
    """NashConv of an exported policy: of this package's policies by OpenSpiel, of all others by this package."""
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
    """Reads the command line and answers. Nothing else may be written where the answers go, also not by C++ code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver", choices=list(CONTENDERS))
    parser.add_argument("game")
    parser.add_argument(
        "--converge-to", type=float, help="print rows until NashConv is that; without, take commands from stdin"
    )
    parser.add_argument("--check", metavar="FILE", help="print NashConv of the policy in the file")
    args = parser.parse_args()
    use_one_core()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1) as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        work = check(args.solver, args.game, args.check) if args.check else contend(args.solver, args.game, args.converge_to)
        try:
            for answer in work:
                print(json.dumps(answer), file=out)
        except (AbsentError, ImportError) as error:
            print(json.dumps({"absent": str(error)}), file=out)
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=out)


if __name__ == "__main__":
    main()
