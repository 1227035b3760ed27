"""Modules that are imported on first access."""

import sys

import pytest
from fresh_process import run_python

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use


def test_a_module_is_imported_when_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "lazy_package").mkdir()
    for name in ("__init__", "first", "second"):
        (tmp_path / "lazy_package" / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    get, names = modules_on_first_use("lazy_package", [str(tmp_path / "lazy_package")])
    assert names() == ["first", "second"]
    assert get("second") is sys.modules["lazy_package.second"]
    assert "lazy_package.first" not in sys.modules
    with pytest.raises(AttributeError, match="module 'lazy_package' has no attribute 'third'"):
        get("third")


def test_modules_come_when_they_are_used():
    """As in the README: `import spiel_cfrplus`, then `spiel_cfrplus.analysis.plotting.plot_convergence`."""
    run_python("""
import sys, spiel_cfrplus
assert {"analysis", "game", "kernels", "openspiel", "policies", "regret_minimizers", "solving"} <= set(dir(spiel_cfrplus))
assert {"plotting", "theory"} <= set(dir(spiel_cfrplus.analysis)) and "size_estimate" in dir(spiel_cfrplus.game)
assert "spiel_cfrplus.analysis.plotting" not in sys.modules
assert callable(spiel_cfrplus.analysis.plotting.plot_convergence)
assert spiel_cfrplus.analysis.theory.TheoryChecks and spiel_cfrplus.analysis.convergence.convergence
assert spiel_cfrplus.openspiel.cfr_br.CFRBRSolver
assert spiel_cfrplus.CFRSolver is spiel_cfrplus.solving.solvers.CFRSolver
assert not hasattr(spiel_cfrplus, "_kernel") and not hasattr(spiel_cfrplus.game, "theory")
""")
