"""Algorithms by what they have in common, and algorithms as Python objects."""

import functools

from spiel_cfrplus import ALGORITHMS, Solver, compile_game, make_solver
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import checked_averaging

# Self-play with regret matching and its relatives, with averaging weights that are powers; `auto` is sapdcfr+ by another name.
REGRET_MATCHING = [
    name
    for name, algorithm in ALGORITHMS.items()
    if name != "auto"
    and isinstance(algorithm.rule, RegretMatchingRule)
    and algorithm.averaging is None
    and not algorithm.refusal(Feature.THEORY)
]
SOLVERS = {name: functools.partial(make_solver, name) for name in REGRET_MATCHING}
# Self-play of any kind that exists as Python objects.
SELF_PLAY = [
    name for name, algorithm in ALGORITHMS.items() if algorithm.has_minimizers and not algorithm.refusal(Feature.THEORY)
]


def in_python(name, game, *, alternating=True, averaging="paper", rule=None, **parameters):
    """A solver whose players are the algorithm's Python objects."""
    game, algorithm = compile_game(game), ALGORITHMS[name].with_parameters(**parameters)
    algorithm = algorithm if rule is None else algorithm.with_rule(rule)
    averaging = checked_averaging(averaging, algorithm.default_averaging)
    return Solver.of_session(SelfPlay(game, algorithm.minimizers(game), averaging, alternating), name)
