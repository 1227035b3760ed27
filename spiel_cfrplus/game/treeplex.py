"""One player's decision problem in sequence form, with the terms of Lecture 8.

Terms (Farina and Daskalakis, MIT 6.7980, Lecture 8, with the names used in this package):

* A *tree-form decision process*, here `Treeplex`, is the decision problem of one player.
* A *decision point* j is a point where the player acts: an infostate. Its actions are A_j.
* An *observation point* k is a point where the player observes a signal s from S_k. Here a signal is identified with the node
  that follows it, the next decision point or the end of the process. Consecutive observation points are merged, and observation
  points with a single signal are omitted.
* A *sequence* is a pair (j, a) of a decision point and an action there, or the *empty sequence* `EMPTY_SEQUENCE` = 0.
* The *parent sequence* p_j is the last sequence on the path from the root to j; empty if the player does not act before j.
* The *transition function* rho(j, a) is the decision point or observation point that follows (j, a), or the end of the process.
* A *sequence-form strategy* x assigns to each sequence the product of the player's own action probabilities up to it:
  x[empty] = 1, and sum over a of x[ja] = x[p_j]. These constraints and x >= 0 define the *sequence-form polytope*.
* A *behavioral policy* b assigns to each sequence the probability of its action at its decision point: x[ja] = x[p_j] b[ja].

Sequences of one decision point are contiguous and in `legal_actions()` order. Decision points are numbered from 0 in the order
in which a walk of the game first visits them, so p_j is always smaller than the sequences of j.

>>> import pyspiel
>>> from spiel_cfrplus import compile_game
>>> treeplex = compile_game(pyspiel.load_game("kuhn_poker")).treeplexes[0]
>>> treeplex.num_decision_points, len(treeplex.observation_points), treeplex.num_sequences
(6, 4, 13)
>>> print(treeplex.describe(lambda j, action: ["pass", "bet"][action]))
root -> k1
j1 '0': p = empty, rho(j1, pass) = k2, rho(j1, bet) = end
j2 '1': p = empty, rho(j2, pass) = k3, rho(j2, bet) = end
j3 '2': p = empty, rho(j3, pass) = k4, rho(j3, bet) = end
j4 '0pb': p = (j1, pass), rho(j4, pass) = end, rho(j4, bet) = end
j5 '1pb': p = (j2, pass), rho(j5, pass) = end, rho(j5, bet) = end
j6 '2pb': p = (j3, pass), rho(j6, pass) = end, rho(j6, bet) = end
k1 after empty: j1, j2 or j3
k2 after (j1, pass): j4 or end
k3 after (j2, pass): j5 or end
k4 after (j3, pass): j6 or end
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfrplus._utils.arrays import Immutable, finite_vector, frozen
from spiel_cfrplus.kernels import layouts, passes

EMPTY_SEQUENCE = 0


@dataclasses.dataclass(frozen=True)
class DecisionPoint:
    """Decision point number `index` of a treeplex."""

    index: int


@dataclasses.dataclass(frozen=True)
class ObservationPoint:
    """The observation point after `sequence`."""

    sequence: int


@dataclasses.dataclass(frozen=True)
class End:
    """The end of the decision process, written as the symbol "bottom" in the lecture."""


END = End()
Node = DecisionPoint | ObservationPoint | End


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Treeplex(Immutable):
    """One player's tree-form decision process as read-only arrays: J decision points, S sequences.

    Attributes:
      player: the player.
      infostate_keys: tuple of J information-state strings.
      sequence_start: int32 (J + 1,), decision point j has the sequences `sequence_start[j] : sequence_start[j + 1]`.
      parent_sequence: int32 (J,).
      actions: int64 (S,), the action id of each sequence; -1 for the empty sequence.
      may_end: bool (S,), whether each sequence is the player's last one at some terminal history.
    """

    player: int
    infostate_keys: tuple[str, ...]
    sequence_start: npt.NDArray[np.int32]
    parent_sequence: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int64]
    may_end: npt.NDArray[np.bool_]

    def _summary(self) -> str:
        return f"player {self.player}, {self.num_decision_points} decision points, {self.num_sequences} sequences"

    @property
    def num_decision_points(self) -> int:
        return len(self.parent_sequence)

    @property
    def num_sequences(self) -> int:
        return len(self.actions)

    @property
    def dimension(self) -> int:
        """The dimension of a sequence-form strategy, `num_sequences`; the attribute name is the same for every strategy set."""
        return self.num_sequences

    @functools.cached_property
    def num_actions(self) -> npt.NDArray[np.int32]:
        """int32 (J,), the number of actions at each decision point."""
        return frozen(np.diff(self.sequence_start), np.int32)

    @functools.cached_property
    def decision_point_of(self) -> npt.NDArray[np.int32]:
        """int32 (S,), the decision point of each sequence; -1 for the empty sequence."""
        points = np.repeat(np.arange(self.num_decision_points), self.num_actions)
        return frozen(np.concatenate([[-1], points]), np.int32)

    @functools.cached_property
    def decision_point_at(self) -> Mapping[str, int]:
        """The decision point of each information-state string; read-only."""
        return types.MappingProxyType({key: point for point, key in enumerate(self.infostate_keys)})

    @functools.cached_property
    def arrays(self) -> layouts.TreeplexArrays:
        """The arrays that kernels take, with this treeplex as the only player."""
        return join_treeplexes([self])

    def sequences(self, decision_point: int) -> range:
        """The sequences (j, a) of decision point j, in the order of its legal actions."""
        return range(int(self.sequence_start[decision_point]), int(self.sequence_start[decision_point + 1]))

    # The transition function and its parts.

    @functools.cached_property
    def _children(self) -> dict[int, tuple[int, ...]]:
        children: dict[int, list[int]] = {}
        for decision_point, sequence in enumerate(self.parent_sequence.tolist()):
            children.setdefault(sequence, []).append(decision_point)
        return {sequence: tuple(points) for sequence, points in children.items()}

    def after(self, sequence: int) -> Node:
        """rho(j, a) for the sequence (j, a); the root of the process for the empty sequence."""
        children = self._children.get(sequence, ())
        if not children:
            return END
        if len(children) == 1 and not self.may_end[sequence]:
            return DecisionPoint(children[0])
        return ObservationPoint(sequence)

    def signals(self, observation_point: ObservationPoint) -> tuple[Node, ...]:
        """rho(k, s) for each signal s in S_k: the decision points that can follow, then `END` if the process can end."""
        children = tuple(map(DecisionPoint, self._children.get(observation_point.sequence, ())))
        return children + ((END,) if self.may_end[observation_point.sequence] else ())

    @property
    def observation_points(self) -> tuple[ObservationPoint, ...]:
        """K, in the order of the sequences they follow."""
        nodes = map(self.after, range(self.num_sequences))
        return tuple(node for node in nodes if isinstance(node, ObservationPoint))

    def breadth_first(self) -> list[int]:
        """The decision points ordered by the number of own decisions before them: the lecture's numbering j_1, j_2, ..."""
        depth: list[int] = []
        for sequence in self.parent_sequence:
            depth.append(0 if sequence == EMPTY_SEQUENCE else depth[self.decision_point_of[sequence]] + 1)
        return sorted(range(self.num_decision_points), key=depth.__getitem__)

    def describe(self, action_name: Callable[[int, int], str] | None = None) -> str:
        """The whole process in the lecture's notation, one line for each decision and observation point.

        Args:
          action_name: maps (decision point, action id) to a name; by default the id.
        """
        return _describe(self, action_name or (lambda decision_point, action: str(action)))

    # Strategies.

    def sequence_form(self, policy: np.ndarray) -> npt.NDArray[np.float64]:
        """The sequence-form strategy of a behavioral policy: x[ja] = x[p_j] b[ja].

        Args:
          policy: float64 (S,); the entry of the empty sequence is not read.
        """
        reach = np.ones(self.num_sequences)
        passes.sequence_form(self.arrays, 0, self._vector(policy), reach)
        return reach

    def behavioral_policy(self, sequence_form: np.ndarray) -> npt.NDArray[np.float64]:
        """The behavioral policy of a sequence-form strategy: b[ja] = x[ja] / sum of x[ja'] over a'; uniform if the sum is 0.

        The strategy may be scaled by any non-negative factor; an unnormalized sum of strategies is accepted.

        Args:
          sequence_form: float64 (S,).

        Returns:
          float64 (S,), 1 at the empty sequence.
        """
        policy = np.ones(self.num_sequences)
        passes.match_all_regrets(self.arrays, 0, self._vector(sequence_form), policy)
        return policy

    def counterfactual_values(self, policy: np.ndarray, utility: np.ndarray) -> npt.NDArray[np.float64]:
        """The counterfactual value of each sequence: g[ja] + V[rho(j, a)] (Lecture 8, Algorithm 1, lines 13 to 25).

        Args:
          policy: float64 (S,), a behavioral policy.
          utility: float64 (S,), the gradient g.

        Returns:
          float64 (S,); at the empty sequence the value of the whole policy.
        """
        values = self._vector(utility)
        passes.counterfactual_values(self.arrays, 0, self._vector(policy), values)
        return values

    def checked_utility(self, utility: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """A copy of a utility gradient, float64 (S,).

        Raises:
          ValueError: wrong shape, or non-finite numbers.
        """
        return finite_vector(utility, self.num_sequences, ", one for each sequence")

    def best_value(self, utility: np.ndarray) -> float:
        """The largest x . utility over the sequence-form polytope."""
        return self._best_response(utility)[1]

    def best_response(self, utility: np.ndarray) -> npt.NDArray[np.float64]:
        """A pure behavioral policy with the largest x . utility, float64 (S,); ties are broken in favor of the first action."""
        return self._best_response(utility)[0]

    def _best_response(self, utility: np.ndarray) -> tuple[np.ndarray, float]:
        values, policy = self._vector(utility), np.ones(self.num_sequences)
        passes.best_response(self.arrays, 0, values, policy)
        return policy, float(values[EMPTY_SEQUENCE])

    def uniform_policy(self) -> npt.NDArray[np.float64]:
        """The behavioral policy with equal probabilities at each decision point, float64 (S,)."""
        return self.behavioral_policy(np.zeros(self.num_sequences))

    def contains(self, vector: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether `vector` lies in the sequence-form polytope: each constraint holds within `tolerance`."""
        return not self.problem_with(self._vector(vector), tolerance)

    def problem_with(self, vector: np.ndarray, tolerance: float = 1e-9) -> str:
        """The violated constraint in words; empty if `vector` is a sequence-form strategy within `tolerance`."""
        if vector.shape != (self.num_sequences,):
            return f"expected one number for each of {self.num_sequences} sequences, got shape {vector.shape}"
        if not np.isfinite(vector).all():
            return f"contains {vector[~np.isfinite(vector)][0]}"
        if vector.min() < -tolerance:
            return f"contains {vector.min():g}"
        if not abs(vector[EMPTY_SEQUENCE] - 1) <= tolerance:
            return f"the empty sequence has {vector[EMPTY_SEQUENCE]:g} instead of 1"
        sums, reach = np.add.reduceat(vector, self.sequence_start[:-1]), vector[self.parent_sequence]
        wrong = np.flatnonzero(np.abs(sums - reach) > tolerance)
        if len(wrong) == 0:
            return ""
        point = wrong[0]
        return (
            f"the sequences at infostate {self.infostate_keys[point]!r} sum to {sums[point]:g}, but their parent sequence has "
            f"{reach[point]:g} (convert a behavioral policy with treeplex.sequence_form)"
        )

    def _vector(self, values: np.ndarray) -> npt.NDArray[np.float64]:
        vector = np.array(values, np.float64)
        if vector.shape != (self.num_sequences,):
            raise ValueError(f"expected one number for each of {self.num_sequences} sequences, got shape {vector.shape}")
        return vector


def join_treeplexes(treeplexes: Sequence[Treeplex]) -> layouts.TreeplexArrays:
    """Joins the treeplexes of several players into the arrays that kernels take, with one common numbering."""
    blocks, starts, parents, num_sequences = [0], [], [], 0
    for treeplex in treeplexes:
        # Each block starts with the root, whose only sequence is the empty one.
        starts.append(num_sequences + np.concatenate([[0], treeplex.sequence_start[:-1]]))
        parents.append(num_sequences + np.concatenate([[0], treeplex.parent_sequence]))
        blocks.append(blocks[-1] + treeplex.num_decision_points + 1)
        num_sequences += treeplex.num_sequences
    return layouts.TreeplexArrays(
        player_block=frozen(blocks, layouts.INDEX),
        sequence_start=frozen(np.concatenate([*starts, [num_sequences]]), layouts.INDEX),
        parent_sequence=frozen(np.concatenate(parents), layouts.INDEX),
    )


def _describe(treeplex: Treeplex, action_name: Callable[[int, int], str]) -> str:
    order = treeplex.breadth_first()
    names: dict[Node, str] = {DecisionPoint(point): f"j{i}" for i, point in enumerate(order, 1)}
    sequences = [EMPTY_SEQUENCE, *(sequence for point in order for sequence in treeplex.sequences(point))]
    observation_points = [node for node in map(treeplex.after, sequences) if isinstance(node, ObservationPoint)]
    names.update({node: f"k{i}" for i, node in enumerate(observation_points, 1)})
    names[END] = "end"

    def name(sequence: int) -> str:
        if sequence == EMPTY_SEQUENCE:
            return "empty"
        point = int(treeplex.decision_point_of[sequence])
        return f"({names[DecisionPoint(point)]}, {action_name(point, int(treeplex.actions[sequence]))})"

    lines = [f"root -> {names[treeplex.after(EMPTY_SEQUENCE)]}"]
    for point in order:
        steps = [f"rho{name(sequence)} = {names[treeplex.after(sequence)]}" for sequence in treeplex.sequences(point)]
        parent = name(int(treeplex.parent_sequence[point]))
        lines.append(f"{names[DecisionPoint(point)]} {treeplex.infostate_keys[point]!r}: p = {parent}, {', '.join(steps)}")
    for node in observation_points:
        *first, last = [names[successor] for successor in treeplex.signals(node)]
        lines.append(f"{names[node]} after {name(node.sequence)}: {', '.join(first)} or {last}")
    return "\n".join(lines)
