"""Errors in calls name the class that was called."""

import inspect
import re

import pytest

from spiel_cfrplus import ALGORITHMS, CFRBRSolver, CFRPlusSolver, CFRSolver, LearningSolver
from spiel_cfrplus.openspiel import cfr as openspiel_cfr
from spiel_cfrplus.openspiel import cfr_br, discounted_cfr
from spiel_cfrplus.solving.solvers import CompiledSolver


@pytest.mark.parametrize(
    "solver_type",
    [
        *ALGORITHMS.values(),
        CFRBRSolver,
        LearningSolver,
        type("MySolver", (CFRSolver,), {}),
        *(openspiel_cfr.CFRSolver, openspiel_cfr.CFRPlusSolver, openspiel_cfr._CFRSolver, cfr_br.CFRBRSolver),
        *(discounted_cfr.DCFRSolver, discounted_cfr.LCFRSolver),
    ],
)
def test_a_misspelled_keyword_is_reported_for_the_class_that_was_called(solver_type, kuhn):
    name = f"{solver_type.__name__}.__init__()"
    with pytest.raises(TypeError, match=f"^{re.escape(name)} got an unexpected keyword argument 'averging'"):
        solver_type(kuhn, averging="paper")
    assert inspect.signature(CFRPlusSolver) == inspect.signature(CompiledSolver)
    assert CFRPlusSolver.__init__.__doc__ == CompiledSolver.__init__.__doc__
