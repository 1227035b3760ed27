"""The two forms of a kernel, for calls from Python and from other kernels."""

import numba
import numpy as np
import pyspiel
import pytest
from compiled_kernels import renewed, run_python

import spiel_cfrplus
from spiel_cfrplus.kernels import self_play
from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.compiled_files import VARIABLE
from spiel_cfrplus.regret_minimizers import RegretMatchingPlus, local_rule
from spiel_cfrplus.regret_minimizers.regret_matching import as_local_rule
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay


def make_kernels():
    @jit
    def double(x):
        return 2 * x

    @jit
    def apply(function, x):
        return function(x) + double(x)

    return double, apply


def test_a_kernel_that_is_called_by_a_kernel_only_has_no_machine_code():
    double, apply = make_kernels()
    assert apply(double, 3.0) == 12.0
    assert double.overloads == {}
    (code,) = double.inlined.overloads.values()
    assert code.library._finalized
    assert not code.library.codegen._engine.is_symbol_defined(code.fndesc.llvm_func_name)
    assert list(double.inlined.overloads) == [(numba.float64,)]


def test_a_kernel_can_be_called_by_kernels_and_from_python():
    double, apply = make_kernels()
    assert double(4) == 8
    assert apply(double, 3) == 12
    assert double(5) == 10
    assert apply(double, 0.5) == 2.0
    assert double(0.25) == 0.5
    assert len(double.signatures) == len(double.inlined.signatures) == 2


def test_calls_are_inlined():
    double, apply = make_kernels()
    apply(double, 3.0)
    (code,) = apply.inspect_llvm().values()
    assert " call " not in code.partition("define")[2].partition("\n}")[0]


def test_an_error_in_a_called_kernel_names_it():
    @jit
    def broken(x):
        return x.no_such_attribute

    @jit
    def caller(x):
        return broken(x)

    with pytest.raises(numba.TypingError, match="no_such_attribute"):
        caller(np.zeros(2))


def test_the_loop_with_a_users_rule_counts_no_more_references_than_with_a_built_in_rule(monkeypatch):
    """Counting references to arrays at each decision point would take longer than the update."""

    @local_rule(per_action=("regrets",))
    def rule(point, values, policy, memory, parameters, t):
        for a in point.actions:
            memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, 0.0)
            policy[a] = 1.0 / len(point.actions)

    game = spiel_cfrplus.compile_game(pyspiel.load_game("kuhn_poker"))
    counts = []
    for played in (as_local_rule(RegretMatchingPlus()), rule):
        loop = renewed(self_play.self_play)
        loop._cache.disable()
        monkeypatch.setattr(self_play, "self_play", loop)
        CompiledSelfPlay(game, played, Averaging(1), alternating=True).run(3)
        (code,) = loop.inspect_llvm().values()
        counts.append(code.count("NRT_incref"))
    assert counts[1] <= counts[0]


def test_with_numba_disabled_nothing_is_compiled_or_written(tmp_path):
    script = """
import pyspiel, spiel_cfrplus
from spiel_cfrplus.solving import compiled_self_play
compiled_self_play._LEAST_WORK_OF_TEAM = 0
for threads in (1, 2):
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"), threads=threads)
    solver.run(10)
    print(round(solver.nash_conv(), 6))
"""
    output, _ = run_python(script, NUMBA_DISABLE_JIT="1", **{VARIABLE: str(tmp_path / "cache")})
    solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
    solver.run(10)
    assert output.splitlines() == [str(round(solver.nash_conv(), 6))] * 2
    assert not (tmp_path / "cache").exists()
