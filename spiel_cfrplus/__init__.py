"""CFR, CFR+ and their family for OpenSpiel games, on a compiled sequence form.

>>> import pyspiel
>>> import spiel_cfrplus
>>> solver = spiel_cfrplus.CFRPlusSolver(pyspiel.load_game("leduc_poker"))
>>> solver.run(500)
>>> solver.nash_conv() < 0.01
True
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spiel_cfrplus import analysis as analysis
    from spiel_cfrplus import display as display
    from spiel_cfrplus import distributed as distributed
    from spiel_cfrplus import game as game
    from spiel_cfrplus import kernels as kernels
    from spiel_cfrplus import openspiel as openspiel
    from spiel_cfrplus import play as play
    from spiel_cfrplus import policies as policies
    from spiel_cfrplus import regret_minimizers as regret_minimizers
    from spiel_cfrplus import solving as solving
    from spiel_cfrplus import sweeps as sweeps
    from spiel_cfrplus.analysis.infostate_table import InfostateTable, infostate_table
    from spiel_cfrplus.analysis.row_files import RowFile, load_rows
    from spiel_cfrplus.analysis.solver_table import SolverTable, solver_table
    from spiel_cfrplus.display.drawings import draw_game, draw_treeplex
    from spiel_cfrplus.display.explorer import write_explorer
    from spiel_cfrplus.game.efg import write_efg
    from spiel_cfrplus.game.game_tree import GameTree
    from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game, compile_subgame
    from spiel_cfrplus.game.treeplex import Treeplex
    from spiel_cfrplus.play.bots import ProfileBot, pyspiel_bot
    from spiel_cfrplus.play.match import Match, Score, play_match
    from spiel_cfrplus.policies.evaluation import (
        Evaluation,
        best_response,
        evaluate,
        expected_values,
        exploitability,
        nash_conv,
    )
    from spiel_cfrplus.policies.joint_play import JointPlay
    from spiel_cfrplus.policies.locking import LockedGame, lock
    from spiel_cfrplus.policies.profile import StrategyProfile
    from spiel_cfrplus.policies.reading import load_policy, players_reach, read_policy
    from spiel_cfrplus.policies.restriction import RestrictedGame, restrict
    from spiel_cfrplus.regret_minimizers.local_rules import LocalRule, local_rule
    from spiel_cfrplus.solving.algorithms import ALGORITHMS, Algorithm
    from spiel_cfrplus.solving.averaging import Averaging
    from spiel_cfrplus.solving.exact import ExactSolution, solve_exactly
    from spiel_cfrplus.solving.play_recorder import PlayRecorder
    from spiel_cfrplus.solving.restricted_nash_response import RestrictedNashResponse, restricted_nash_response
    from spiel_cfrplus.solving.solvers import (
        CFRBRSolver,
        CFRPlusSolver,
        CFRSolver,
        DiscountedCFRPlusSolver,
        DiscountedCFRSolver,
        LinearCFRSolver,
        PDCFRPlusSolver,
        PredictiveCFRPlusSolver,
        PredictiveCFRSolver,
        Solver,
        make_solver,
    )

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Averaging",
    "CFRBRSolver",
    "CFRPlusSolver",
    "CFRSolver",
    "DiscountedCFRPlusSolver",
    "DiscountedCFRSolver",
    "Evaluation",
    "ExactSolution",
    "GameTree",
    "InfostateTable",
    "JointPlay",
    "LinearCFRSolver",
    "LocalRule",
    "LockedGame",
    "Match",
    "PDCFRPlusSolver",
    "PlayRecorder",
    "PredictiveCFRPlusSolver",
    "PredictiveCFRSolver",
    "ProfileBot",
    "RestrictedGame",
    "RestrictedNashResponse",
    "RowFile",
    "Score",
    "SequenceFormGame",
    "Solver",
    "SolverTable",
    "StrategyProfile",
    "Treeplex",
    "best_response",
    "compile_game",
    "compile_subgame",
    "draw_game",
    "draw_treeplex",
    "evaluate",
    "expected_values",
    "exploitability",
    "infostate_table",
    "load_policy",
    "load_rows",
    "local_rule",
    "lock",
    "make_solver",
    "nash_conv",
    "play_match",
    "players_reach",
    "pyspiel_bot",
    "read_policy",
    "restrict",
    "restricted_nash_response",
    "solve_exactly",
    "solver_table",
    "write_efg",
    "write_explorer",
]

_MODULES = (
    "game.efg",
    "analysis.infostate_table",
    "analysis.row_files",
    "analysis.solver_table",
    "display.drawings",
    "display.explorer",
    "game.game_tree",
    "game.sequence_form",
    "game.treeplex",
    "play.bots",
    "play.match",
    "policies.evaluation",
    "policies.joint_play",
    "policies.locking",
    "policies.profile",
    "policies.reading",
    "policies.restriction",
    "regret_minimizers.local_rules",
    "solving.algorithms",
    "solving.averaging",
    "solving.exact",
    "solving.play_recorder",
    "solving.restricted_nash_response",
    "solving.solvers",
)


if not TYPE_CHECKING:  # for a type checker any name would be a public one

    def __getattr__(name: str) -> Any:
        """Imports a module, or all of `__all__`, on first use (PEP 562), since importing Numba takes a third of a second."""
        if name in _submodules():
            return importlib.import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        for module in _MODULES:
            members = vars(importlib.import_module(f"{__name__}.{module}"))
            globals().update({public: members[public] for public in __all__ if public in members})
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_submodules()})


def _submodules() -> set[str]:
    """The public modules of the package, but for the command line, whose import defines its flags."""
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    return {name for name in names if not name.startswith("_")} - {"cli"}
