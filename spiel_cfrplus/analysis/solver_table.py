"""Tables of what a running solver has learned at each infostate: policies and cumulative regrets by action name.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(1)
>>> print(solver_table(solver).of_infostate(1, "2b"))
player  infostate  action  action_name  current_probability  average_probability  cumulative_regret
     1  2b              0  Pass                           0                  0.5                  0
     1  2b              1  Bet                            1                  0.5                0.5
"""

from __future__ import annotations

import dataclasses

import numpy as np

from spiel_cfrplus.analysis.infostate_table import Table, action_labels, joined
from spiel_cfrplus.solving.session import Feature
from spiel_cfrplus.solving.solvers import Solver

_REGRETS = "cumulative_regret"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SolverTable(Table):
    """A row for each action at each infostate of the whole game, in the order of `InfostateTable`.

    Attributes:
      columns: `player`, `infostate` (string), `action` (id), `action_name`, `current_probability`, `average_probability` and,
        unless there are none, `cumulative_regret`: the regret table of the algorithm, in game units, after its discounts
        and truncations (CFR+ stores no negative regrets).
      no_regrets: why there is no column `cumulative_regret`; empty if there is one.
    """

    no_regrets: str = ""

    def __getitem__(self, name: str) -> np.ndarray:
        if name == _REGRETS and self.no_regrets:
            raise KeyError(f"no column {name}: {self.no_regrets}")
        return super().__getitem__(name)

    def _note(self, shown: Table) -> str:
        missing = f"(no {_REGRETS}: {self.no_regrets})" if self.no_regrets else ""
        return "\n".join(filter(None, [super()._note(shown), missing]))


def solver_table(solver: Solver) -> SolverTable:
    """The table of a solver after its last iteration; later iterations do not change it.

    The infostates are those of the whole game, also if the solver iterates on a reduction. Merged infostates have regrets of
    their own, as if the solver had iterated on the whole game; at infostates with one action the regret is 0.

    Raises:
      TypeError: not a solver.
    """
    if not isinstance(solver, Solver):
        raise TypeError(f"expected a solver, got {solver!r}; infostate_table is for profiles")
    session, game = solver.self_play, solver.game
    vectors = {"current_probability": session.current_policy(), "average_probability": session.average_policy()}
    no_regrets = session.refusal(Feature.CUMULATIVE_REGRETS)
    if not no_regrets:
        vectors[_REGRETS] = session.tables().cumulative_regrets
    pairs = zip(action_labels(game), game.player_slices, strict=True)
    parts = [labels | {name: vector[own][1:] for name, vector in vectors.items()} for labels, own in pairs]
    return SolverTable(joined(parts), no_regrets)
