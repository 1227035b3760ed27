"""What all compiled rules have in common."""

import pickle
import subprocess
import sys

import numpy as np

from spiel_cfrplus.regret_minimizers import RegretMatchingPlus
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule
from spiel_cfrplus.regret_minimizers.simplex import SimplexProduct

RULE = RegretMatchingRule.of(RegretMatchingPlus(), 0.5)


def test_memory_and_parameters_can_be_pickled():
    memory = RULE.memory(SimplexProduct(3).arrays)
    memory.regrets[:] = [1, 2, 3]
    twin = pickle.loads(pickle.dumps(memory))
    assert type(twin) is type(memory)
    np.testing.assert_array_equal(twin.regrets, memory.regrets)
    assert twin.uniform_policy is None
    parameters = RULE.empty_parameters()
    assert pickle.loads(pickle.dumps(parameters)) == parameters


def test_other_processes_use_the_compiled_kernels(tmp_path, monkeypatch):
    # Kernels that are loaded from the cache must know the classes of a kernel that is compiled anew.
    monkeypatch.setenv("SPIEL_CFRPLUS_CACHE_DIR", str(tmp_path))
    program = """if True:
        import numpy as np
        from spiel_cfrplus.regret_minimizers import SimplexMinimizer, local_rule
        @local_rule(parameters={"half": 0.5, "quarter": 0.25})
        def keep(point, values, policy, memory, parameters, t):
            for a in point.actions:
                policy[a] = policy[a] * parameters.half + policy[a] * parameters.quarter * 2
        minimizer = SimplexMinimizer(2, keep)
        minimizer.observe_utility([1.0, 0.0])
        print(minimizer.next_strategy())
        """
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
        assert result.stdout == "[0.5 0.5]\n", result.stderr
