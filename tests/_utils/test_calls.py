"""Errors in calls name the class that was called."""

import inspect
import re

import pytest

from spiel_cfrplus import CFRBRSolver, CFRPlusSolver, CFRSolver, PDCFRPlusSolver, Solver
from spiel_cfrplus.openspiel import cfr as openspiel_cfr
from spiel_cfrplus.openspiel import cfr_br, discounted_cfr


@pytest.mark.parametrize(
    "solver_type",
    [
        *(Solver, CFRSolver, CFRPlusSolver, PDCFRPlusSolver, CFRBRSolver),
        type("MySolver", (CFRSolver,), {}),
        *(openspiel_cfr.CFRSolver, openspiel_cfr.CFRPlusSolver, openspiel_cfr._CFRSolver, cfr_br.CFRBRSolver),
        *(discounted_cfr.DCFRSolver, discounted_cfr.LCFRSolver),
    ],
)
def test_a_misspelled_keyword_is_reported_for_the_class_that_was_called(solver_type, kuhn):
    name = f"{solver_type.__name__}.__init__()"
    with pytest.raises(TypeError, match=f"^{re.escape(name)} got an unexpected keyword argument 'averging'"):
        solver_type(kuhn, averging="paper")
    assert inspect.signature(CFRPlusSolver) == inspect.signature(Solver)
    assert CFRPlusSolver.__init__.__doc__ == Solver.__init__.__doc__
