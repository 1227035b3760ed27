"""A compiled replacement for `open_spiel.python.algorithms.cfr` with the same names, conventions and float64 results.

Only the import changes:

    from open_spiel.python.algorithms import cfr      # before
    from spiel_cfrplus.openspiel import cfr           # after

Tables and policies are identical, bit for bit, to those of `pyspiel.CFRSolver` and `pyspiel.CFRPlusSolver`, and in two-player
games to those of OpenSpiel's Python solvers. (With more players, OpenSpiel's Python and C++ solvers multiply reaches in
different orders.) docs/from_openspiel.md lists what else is identical and what differs.

>>> import pyspiel
>>> solver = CFRSolver(pyspiel.load_game("kuhn_poker"))
>>> for _ in range(10):
...     solver.evaluate_and_update_policy()
>>> solver.average_policy() is solver.average_policy()
True
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import pickle
from collections.abc import Iterator, MutableMapping
from typing import Any, ClassVar, Self

import numpy as np
import pyspiel
from open_spiel.python import policy

from spiel_cfrplus._utils.calls import name_constructor_after
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus._utils.warnings import warn
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.portable_games import portable_pickle, restores_itself
from spiel_cfrplus.game.recall import ImperfectRecallError, trace_sequences
from spiel_cfrplus.kernels import histories as history_kernels
from spiel_cfrplus.openspiel.histories import Histories
from spiel_cfrplus.openspiel.kept_trees import kept_tree
from spiel_cfrplus.policies.profile import TabularTable
from spiel_cfrplus.regret_minimizers.regret_matching import DiscountSchedule, RegretMatching, RegretMatchingPlus
from spiel_cfrplus.solving.compiled_self_play import blocks

_NOT_SEQUENTIAL = (
    "CFR requires sequential games. If you're trying to run it on a simultaneous (or normal-form) game, please first transform "
    "it using turn_based_simultaneous_game."
)


class _SlotMapping(MutableMapping[int, float]):
    """A part of a table as a dictionary from action ids to numbers, as in OpenSpiel; writes modify the table."""

    def __init__(self, table: np.ndarray, actions: list[int]):
        self._table = table
        self._actions = actions

    def __getitem__(self, action: int) -> float:
        number: float = self._table[self._position(action)]
        return number

    def __setitem__(self, action: int, value: float) -> None:
        self._table[self._position(action)] = value

    def __delitem__(self, action: int) -> None:
        self[action] = 0.0  # OpenSpiel's defaultdicts return 0.0 for missing actions

    def __iter__(self) -> Iterator[int]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)

    def clear(self) -> None:
        """Sets all entries to 0."""
        self._table[:] = 0.0

    def copy(self) -> dict[int, float]:
        """An independent dictionary."""
        return dict(self)

    def _position(self, action: int) -> int:
        try:
            return self._actions.index(action)
        except ValueError:
            raise KeyError(action) from None


@dataclasses.dataclass
class _InfoStateNode:
    """The data of an information state; arguments and attributes are those of OpenSpiel."""

    legal_actions: list[int]
    index_in_tabular_policy: int
    cumulative_regret: MutableMapping[int, float] = dataclasses.field(default_factory=lambda: collections.defaultdict(float))
    cumulative_policy: MutableMapping[int, float] = dataclasses.field(default_factory=lambda: collections.defaultdict(float))


class _SolverNode(_InfoStateNode):
    """A node of a solver: assigning a dictionary writes its entries to the solver's table."""

    def __setattr__(self, name: str, value: Any) -> None:
        mapping = self.__dict__.get(name)
        if isinstance(mapping, _SlotMapping):
            mapping.clear()
            mapping.update(value)
        else:
            super().__setattr__(name, value)


def _apply_regret_matching_plus_reset(info_state_nodes: dict[str, _InfoStateNode]) -> None:
    """Sets negative cumulative regrets to 0, in place."""
    for node in info_state_nodes.values():
        for action, regret in node.cumulative_regret.items():
            if regret < 0:
                node.cumulative_regret[action] = 0


def _update_current_policy(current_policy: policy.TabularPolicy, info_state_nodes: dict[str, _InfoStateNode]) -> None:
    """Writes the result of regret matching at every node to `current_policy`."""
    for key, node in info_state_nodes.items():
        row = current_policy.policy_for_key(key)
        for action, probability in _regret_matching(node.cumulative_regret, node.legal_actions).items():
            row[action] = probability


def _update_average_policy(average_policy: policy.TabularPolicy, info_state_nodes: dict[str, _InfoStateNode]) -> None:
    """Writes the normalized cumulative policy of every node to `average_policy`; uniform if its sum is zero."""
    for key, node in info_state_nodes.items():
        row = average_policy.policy_for_key(key)
        total = sum(node.cumulative_policy.values())
        if total == 0:
            row[node.legal_actions] = 1 / len(node.legal_actions)
        else:
            for action, weight in node.cumulative_policy.items():
                row[action] = weight / total


def _regret_matching(cumulative_regrets: MutableMapping[int, float], legal_actions: list[int]) -> dict[int, float]:
    """The normalized positive regrets by action; uniform if none is positive. The dictionary may contain other actions."""
    total = sum(regret for regret in cumulative_regrets.values() if regret > 0)
    if total > 0:
        return {action: max(0.0, cumulative_regrets[action]) / total for action in legal_actions}
    return dict.fromkeys(legal_actions, 1.0 / len(legal_actions))


_COMPILED = ("_compute_counterfactual_regret_for_player", "_get_infostate_policy", "_initialize_info_state_nodes")


class _CFRSolverBase:
    """A solver over histories, with OpenSpiel's constructor and methods.

    In addition to OpenSpiel's solvers, every solver has `iteration`, `run(n)`, `tabular_average_policy()` and
    `tabular_current_policy()` (snapshots for OpenSpiel's C++ functions), has no limit on the depth of the game, supports chance
    outcomes of probability zero, and returns averages that support `sample_action`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name_constructor_after(cls)
        for name in _COMPILED:
            if name in vars(cls):
                raise TypeError(f"{cls.__name__}.{name} is never called, because the passes over the tree are compiled")

    def __init__(self, game: pyspiel.Game, alternating_updates: bool, linear_averaging: bool, regret_matching_plus: bool):
        """Walks the game.

        Args:
          game: the game.
          alternating_updates: players update in turn, player 0 first; otherwise simultaneously.
          linear_averaging: iteration t has weight t in the average, otherwise 1.
          regret_matching_plus: negative cumulative regrets are set to 0 after each update.

        Raises:
          AssertionError: the game is not sequential (type and message as in OpenSpiel).
          pyspiel.SpielError: the game has no information-state strings (type and message as in OpenSpiel).
          ValueError: the game cannot be walked, see `GameTree.from_game`, or a player is absent-minded.

        Warns:
          UserWarning: a player has imperfect recall. The solver runs as OpenSpiel's does, without convergence guarantees.
        """
        if game.get_type().dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
            raise AssertionError(_NOT_SEQUENTIAL)
        self._game = game
        self._num_players = game.num_players()
        self._alternating_updates = bool(alternating_updates)
        self._linear_averaging = linear_averaging
        self._regret_matching_plus = regret_matching_plus
        self._histories = Histories(_walk(game))
        self._check_recall()
        self._learner = self._histories.new_learner()
        self._root_node = game.new_initial_state()
        table = TabularTable.of(self._histories.tree)
        self._rows = table.rows[self._histories.representative][self._histories.infostate_of_entry]
        self._current_table = table.new_policy()
        self._average_policy = table.new_policy()
        # Whether the caller has a reference to the current policy, through which it may read and write.
        self._is_current_shared = False

    def _check_recall(self) -> None:
        try:
            trace_sequences(self._histories.tree)
        except ImperfectRecallError as error:
            warn(str(error))

    @property
    def iteration(self) -> int:
        """The number of iterations done."""
        return int(self._learner.iteration[0])

    @property
    def _iteration(self) -> int:
        return self.iteration

    @_iteration.setter
    def _iteration(self, iteration: int) -> None:
        self._learner.iteration[0] = iteration

    @functools.cached_property
    def _info_state_nodes(self) -> dict[str, _InfoStateNode]:
        """Nodes by information-state string; their dictionaries read and write the solver's tables."""
        nodes: dict[str, _InfoStateNode] = {}
        starts = self._histories.arrays.table_start.tolist()
        for key, infostate in self._histories.infostate_of_key.items():
            own = slice(starts[infostate], starts[infostate + 1])
            actions = self._histories.actions[own].tolist()
            nodes[key] = _SolverNode(
                legal_actions=actions,
                index_in_tabular_policy=int(self._rows[own.start]),
                cumulative_regret=_SlotMapping(self._learner.cumulative_regrets[own], actions),
                cumulative_policy=_SlotMapping(self._learner.cumulative_policy[own], actions),
            )
        return nodes

    def __getstate__(self) -> dict[str, Any]:
        return self._own_state()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if restores_itself(self._game):
            return super().__reduce_ex__(protocol)
        return _restored, (type(self), portable_pickle(self._own_state()))  # its policies contain the game and its states

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(self._own_state())
        return copied

    def _own_state(self) -> dict[str, Any]:
        # The nodes are views of the tables; copies of the nodes would not be.
        return {name: value for name, value in vars(self).items() if name != "_info_state_nodes"}

    def evaluate_and_update_policy(self) -> None:
        """Runs one iteration."""
        self.run(1)

    def run(self, num_iterations: int) -> None:
        """Runs `num_iterations` in compiled code; the results are identical, bit for bit, to single iterations.

        Raises:
          TypeError, ValueError: not an integer, or negative.
        """
        current = self._learner.probabilities[: len(self._rows)]
        if self._is_current_shared:
            current[:] = self._current_table.action_probability_array[self._rows, self._histories.actions]
        try:
            self._run(checked_count(num_iterations))
        finally:
            if self._is_current_shared:
                self._write(self._current_table, current)

    def _run(self, num_iterations: int) -> None:
        raise NotImplementedError

    @property
    def _current_policy(self) -> policy.TabularPolicy:
        if not self._is_current_shared:
            self._is_current_shared = True
            self._write(self._current_table, self._learner.probabilities[: len(self._rows)])
        return self._current_table

    def current_policy(self) -> policy.TabularPolicy:
        """The current policy. As in OpenSpiel, always the same object, which later iterations update in place.

        Iterations start from its contents, so writing to it is a warm start.
        """
        return self._current_policy

    def average_policy(self) -> policy.TabularPolicy:
        """The average policy. As in OpenSpiel, always the same object, which the next call updates in place."""
        arrays = self._histories.arrays
        probabilities = np.empty(len(self._rows))
        history_kernels.match_table(arrays, self._learner.cumulative_policy, probabilities)
        self._write(self._average_policy, probabilities)
        return self._average_policy

    def tabular_current_policy(self) -> pyspiel.TabularPolicy:
        """A snapshot of the current policy for OpenSpiel's C++ functions."""
        return policy.python_policy_to_pyspiel_policy(self.current_policy())

    def tabular_average_policy(self) -> pyspiel.TabularPolicy:
        """A snapshot of the average policy for OpenSpiel's C++ functions."""
        return policy.python_policy_to_pyspiel_policy(self.average_policy())

    def _write(self, table: policy.TabularPolicy, probabilities: np.ndarray) -> None:
        table.action_probability_array[self._rows, self._histories.actions] = probabilities


class _CFRSolver(_CFRSolverBase):
    """CFR with OpenSpiel's three flags."""

    # Whether a strategy is multiplied by the weight after or before the reach. The order affects the last bit.
    _weigh_last: ClassVar[bool] = False

    def _local_rule(self) -> DiscountSchedule:
        return RegretMatchingPlus() if self._regret_matching_plus else RegretMatching()

    def _weights(self, iterations: np.ndarray) -> np.ndarray:
        return iterations.astype(np.float64) if self._linear_averaging else np.ones(len(iterations))

    def _discounted(self) -> np.ndarray:
        """bool (n, J), the infostates that are discounted after each player's pass."""
        return np.ones((self._num_players, len(self._histories.representative)), bool)

    def _run(self, num_iterations: int) -> None:
        work = 10 * self._num_players * self._histories.tree.num_histories
        for iterations in blocks(self.iteration, num_iterations, work):
            history_kernels.iterate(
                self._histories.arrays,
                self._learner,
                self._alternating_updates,
                self._discounted(),
                self._local_rule().discounts(iterations),
                self._weights(iterations),
                self._weigh_last,
            )


class CFRPlusSolver(_CFRSolver):
    """CFR+: regret matching+, alternating updates, linear averaging."""

    def __init__(self, game: pyspiel.Game):
        super().__init__(game, regret_matching_plus=True, alternating_updates=True, linear_averaging=True)


class CFRSolver(_CFRSolver):
    """CFR: regret matching, alternating updates, uniform averaging."""

    def __init__(self, game: pyspiel.Game):
        super().__init__(game, regret_matching_plus=False, alternating_updates=True, linear_averaging=False)


def _walk(game: pyspiel.Game) -> GameTree:
    try:
        return kept_tree(game)
    except ValueError as error:
        if isinstance(error.__cause__, pyspiel.SpielError):
            raise error.__cause__ from None  # OpenSpiel's solver raises this error
        raise


def _restored(solver_type: type[_CFRSolverBase], pickled: bytes) -> _CFRSolverBase:
    """The solver with the attributes in a `portable_pickle`."""
    solver = object.__new__(solver_type)
    vars(solver).update(pickle.loads(pickled))
    return solver
