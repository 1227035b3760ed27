"""Imports and loads what most commands need, for the server of processes in `command_line`."""

import matplotlib.pyplot  # noqa: F401
import open_spiel.python.algorithms.exploitability  # noqa: F401
import pyspiel

import spiel_cfrplus.cli.main  # noqa: F401
from spiel_cfrplus import CFRPlusSolver

_SOLVER = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
_SOLVER.run(1)
_SOLVER.nash_conv()
_SOLVER.average_policy()
