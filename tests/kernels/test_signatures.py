"""The number of compilations: none at import, and one per kernel and argument types."""

from fresh_process import run_python

PRELUDE = """
import numba, pyspiel, spiel_cfrplus
from spiel_cfrplus.kernels import cfr, passes, regret_matching, self_play, tree
members = vars(tree) | vars(passes) | vars(regret_matching) | vars(cfr) | vars(self_play)
kernels = {name: value for name, value in members.items() if hasattr(value, "signatures")}
def signatures():
    # A constant in a call between kernels is a type of its own, though nothing that a game could vary.
    types = lambda kernel: {tuple(map(numba.types.unliteral, signature)) for signature in kernel.signatures}
    return {name: max(len(types(kernel)), len(types(kernel.inlined))) for name, kernel in kernels.items()}
assert len(kernels) >= 10
"""


def test_importing_the_package_compiles_nothing():
    run_python(PRELUDE + "from spiel_cfrplus import *\nassert set(signatures().values()) == {0}, signatures()")


def test_every_kernel_is_compiled_for_one_signature():
    script = (
        PRELUDE
        + """
for name in ["kuhn_poker", "kuhn_poker(players=3)", "tiny_hanabi", "leduc_poker"]:
    for algorithm in ("cfr", "cfr+", "lcfr", "dcfr", "dcfr+", "pcfr", "pcfr+", "pdcfr+", "sapcfr+", "sapdcfr+"):
        for alternating in (True, False):
            for averaging in ("paper", "openspiel", spiel_cfrplus.Averaging(2)):
                options = {"alternating": alternating, "averaging": averaging}
                solver = spiel_cfrplus.make_solver(algorithm, pyspiel.load_game(name), **options)
                solver.run(3)
                solver.evaluate_and_update_policy()
                solver.nash_conv()
                solver.average_policy()
                solver.current_profile().sequence_form(0)
                players = [spiel_cfrplus.regret_minimizers.CFR(treeplex) for treeplex in solver.game.treeplexes]
                players[0].observe_utility(solver.game.payoff_gradient(0, [p.next_strategy() for p in players]))
if any(kernel.stats.cache_misses for kernel in kernels.values()):
    print("compiled")
    raise SystemExit
counts = signatures()
# With and without predictions, with and without actions that symmetry reduction has merged.
assert counts["self_play"] == 4, counts
varied = {name for name, count in counts.items() if count > 1}
assert varied <= {"self_play", "sequence_form", "strategies_of_policy", "match_all_regrets"}, counts
assert counts["sequence_form"] == 2, counts  # with and without merged actions
assert counts["evaluate"] == counts["payoff_gradient"] == 1, counts
"""
    )
    # Compiling a kernel adds signatures to those that it inlines, loading it does not. What one process compiles another loads.
    if run_python(script) == "compiled\n":
        assert run_python(script) == ""
