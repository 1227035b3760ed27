"""Built-in rules with step sizes: Hedge and gradient ascent, and mirror ascent on whole treeplexes.

Each can be *predictive*: the next strategy is chosen with the prediction that the last utility, times `prediction_weight`, is
repeated. The step size is a number, a function of the iterations, or None for adaptive steps. `kernels.step_sizes` contains the
formula and its bound on the regret, which `regret_bounds` computes from a rule's memory.

>>> hedge(step_size=0.5)
LocalRule hedge(step_size=0.5, prediction_weight=0.0)
>>> dilated_entropy(prediction_weight=1.0)
TreeplexRule dilated_entropy(prediction_weight=1.0)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfrplus.kernels import local_ascent, passes, treeplex_ascent
from spiel_cfrplus.kernels.layouts import TreeplexArrays
from spiel_cfrplus.kernels.projection import Scratch, allocate_scratch
from spiel_cfrplus.kernels.step_sizes import StepAccount
from spiel_cfrplus.regret_minimizers.compiled_rules import Parameter
from spiel_cfrplus.regret_minimizers.local_rules import LocalRule
from spiel_cfrplus.regret_minimizers.minimizer import checked_step_size, checked_weight
from spiel_cfrplus.regret_minimizers.treeplex_rules import TreeplexRule

_LARGEST_WEIGHT = 1e150  # squares of such weights still fit a float64


def _parameters(step_size: Parameter | None, prediction_weight: Parameter) -> tuple[tuple[str, Parameter], ...]:
    """The parameters of a rule; without `step_size` if steps are adaptive."""
    weight = prediction_weight if callable(prediction_weight) else checked_weight(prediction_weight)
    if step_size is None:
        return (("prediction_weight", weight),)
    return (("step_size", step_size if callable(step_size) else checked_step_size(step_size)), ("prediction_weight", weight))


# Local rules.


@dataclasses.dataclass(frozen=True, repr=False)
class LocalStepRule(LocalRule):
    """A local rule with step size and prediction."""

    reads_ties = False

    def skips_unreached(self, table: np.ndarray) -> np.ndarray:
        """Without prediction, because a utility of zero is a step of length zero."""
        names = [name for name, _ in self.parameters]
        return np.asarray(super().skips_unreached(table) & (table[:, names.index("prediction_weight")] == 0))

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, LocalRule.__name__, 1)


def _local(
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    arrays: tuple[str, ...],
    step_size: Parameter | None,
    prediction_weight: Parameter,
) -> LocalRule:
    """The rule of two functions: one for given steps, which are a parameter, and one for adaptive steps."""
    given, tuned = functions
    return LocalStepRule(
        name=given.__name__,
        function=tuned if step_size is None else given,
        parameters=_parameters(step_size, prediction_weight),
        per_action=arrays,
        per_infostate=StepAccount._fields,
        scale_free=step_size is None,
        unchanged_by_zeros=True,
    )


def hedge(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> LocalRule:
    """Multiplicative weights (Freund and Schapire 1997): the policy is the softmax of step size times summed utilities.

    Args:
      step_size: positive, in one over the unit of the utilities; by default adaptive.
      prediction_weight: the weight of the prediction that the last utility is repeated.
    """
    functions = (local_ascent.hedge, local_ascent.tuned_hedge)
    return _local(functions, ("total", "prediction"), step_size, prediction_weight)


def gradient_ascent(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> LocalRule:
    """Online projected gradient ascent (Zinkevich 2003) on the simplex of each infostate.

    Args:
      step_size, prediction_weight: as for `hedge`.
    """
    functions = (local_ascent.gradient_ascent, local_ascent.tuned_gradient_ascent)
    return _local(functions, ("base", "prediction"), step_size, prediction_weight)


# Rules for whole treeplexes.


def _whole(
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    prepare: Callable[[TreeplexArrays], dict[str, np.ndarray]],
    arrays: tuple[str, ...],
    step_size: Parameter | None,
    prediction_weight: Parameter,
    per_infostate: tuple[str, ...] = (),
    per_player: tuple[str, ...] = (),
) -> TreeplexRule:
    given, tuned = functions
    return TreeplexRule(
        name=given.__name__,
        function=tuned if step_size is None else given,
        parameters=_parameters(step_size, prediction_weight),
        per_action=(*arrays, "prediction", "scratch"),
        per_infostate=per_infostate,
        per_player=(*StepAccount._fields, "divergence_bound", *per_player),
        prepare=prepare,
    )


def treeplex_gradient_ascent(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> TreeplexRule:
    """Online projected gradient ascent on the sequence-form polytope; see `TreeplexGradientAscent`.

    Args:
      step_size, prediction_weight: as for `hedge`.
    """
    functions = (treeplex_ascent.treeplex_gradient_ascent, treeplex_ascent.tuned_treeplex_gradient_ascent)
    return _whole(functions, prepare_gradient_ascent, ("base", *Scratch._fields), step_size, prediction_weight)


def dilated_entropy(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> TreeplexRule:
    """Mirror ascent with dilated entropy; see `DilatedEntropyAscent`.

    Args:
      step_size, prediction_weight: as for `hedge`.
    """
    functions = (treeplex_ascent.dilated_entropy, treeplex_ascent.tuned_dilated_entropy)
    arrays, prepare = ("total", "prior"), prepare_dilated_entropy
    return _whole(functions, prepare, arrays, step_size, prediction_weight, ("weights",), ("modulus",))


def dilated_euclidean(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> TreeplexRule:
    """Mirror ascent with dilated squared distance; see `DilatedEuclideanAscent`.

    Args:
      step_size, prediction_weight: as for `hedge`.
    """
    functions = (treeplex_ascent.dilated_euclidean, treeplex_ascent.tuned_dilated_euclidean)
    return _whole(functions, prepare_dilated_euclidean, ("base",), step_size, prediction_weight, ("weights",), ("modulus",))


def multiplicative_weights(step_size: Parameter | None = None, prediction_weight: Parameter = 0.0) -> TreeplexRule:
    """Multiplicative weights on the reduced normal form; see `MultiplicativeWeights`.

    Args:
      step_size, prediction_weight: as for `hedge`.
    """
    functions = (treeplex_ascent.multiplicative_weights, treeplex_ascent.tuned_multiplicative_weights)
    return _whole(functions, prepare_vertices, ("total", "prior"), step_size, prediction_weight, ("weights",))


# Initial arrays.


def _players(treeplexes: TreeplexArrays) -> range:
    return range(len(treeplexes.player_block) - 1)


def _best_values(treeplexes: TreeplexArrays, utility: np.ndarray) -> np.ndarray:
    """The largest utility . x over each player's strategies x, float64 (n,)."""
    values, policy = utility.copy(), np.zeros(len(utility))
    for player in _players(treeplexes):
        passes.best_response(treeplexes, player, values, policy)
    return np.asarray(values[treeplexes.sequence_start[treeplexes.player_block[:-1]]])


def prepare_gradient_ascent(treeplexes: TreeplexArrays) -> dict[str, np.ndarray]:
    """Initial arrays; the largest sum of a strategy without the empty sequence bounds half the squared diameter."""
    size = int(treeplexes.sequence_start[-1])
    return {"divergence_bound": _best_values(treeplexes, np.ones(size)) - 1, **allocate_scratch(size)._asdict()}


def convex_weights(treeplexes: TreeplexArrays, players: Sequence[int] | None = None) -> np.ndarray:
    """Weights that make dilated regularizers 1-strongly convex, float64 (J,), see `strongly_convex_weights`; 1 for roots.

    Args:
      treeplexes: of one or several players.
      players: their numbers, 0, 1, ... by default.

    Raises:
      ValueError: so many decisions in a row that the weights, at least 2 ** depth, exceed the range of a float64.
    """
    weights, after = np.ones(len(treeplexes.parent_sequence)), np.zeros(int(treeplexes.sequence_start[-1]))
    for player in _players(treeplexes):
        treeplex_ascent.find_convex_weights(treeplexes, player, weights, after)
        start, stop = treeplexes.sequence_start[treeplexes.player_block[player : player + 2]]
        if not np.all(after[start:stop] <= _LARGEST_WEIGHT):
            number = player if players is None else players[player]
            raise ValueError(f"player {number} has too many decisions in a row for weights of at least 2 ** depth")
    return weights


def _prepare_dilated(
    treeplexes: TreeplexArrays, ranges: np.ndarray, weights: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Initial arrays of the dilated rules. The bound on divergence is the largest sum of weight_j x[p_j] range_j.

    Args:
      treeplexes: of one or several players.
      ranges: float64 (J,), the range of the regularizer of each simplex.
      weights: float64 (J,), see `convex_weights`, which are the default.
    """
    convex = convex_weights(treeplexes)
    weights = convex if weights is None else weights
    at_parents = np.zeros(int(treeplexes.sequence_start[-1]))
    modulus = np.full(len(treeplexes.player_block) - 1, np.inf)
    for player in _players(treeplexes):
        first, last = treeplexes.player_block[player : player + 2]
        points = slice(int(first) + 1, int(last))  # without the root
        np.add.at(at_parents, treeplexes.parent_sequence[points], weights[points] * ranges[points])
        modulus[player] = np.min(weights[points] / convex[points], initial=np.inf)
    return {"weights": weights, "modulus": modulus, "divergence_bound": _best_values(treeplexes, at_parents)}


def prepare_dilated_entropy(treeplexes: TreeplexArrays, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Initial arrays; the range of entropy relative to the uniform policy is log |A_j|."""
    num_actions = np.diff(treeplexes.sequence_start).astype(np.int64)
    prior = np.repeat(-np.log(num_actions), num_actions)
    return {"prior": prior, **_prepare_dilated(treeplexes, np.log(num_actions), weights)}


def prepare_dilated_euclidean(treeplexes: TreeplexArrays, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Initial arrays; the range of half the squared distance on a simplex is 1."""
    return _prepare_dilated(treeplexes, np.ones(len(treeplexes.parent_sequence)), weights)


def prepare_vertices(treeplexes: TreeplexArrays) -> dict[str, np.ndarray]:
    """Initial arrays; from the uniform distribution over vertices the divergence is at most the logarithm of their number."""
    size = int(treeplexes.sequence_start[-1])
    weights, prior = np.ones(len(treeplexes.parent_sequence)), np.zeros(size)
    values, policy = np.zeros(size), np.ones(size)
    for player in _players(treeplexes):
        treeplex_ascent.entropic_response(treeplexes, player, weights, prior, values, policy)
    log_numbers = values[treeplexes.sequence_start[treeplexes.player_block[:-1]]]
    return {"weights": weights, "prior": prior, "divergence_bound": log_numbers, "policy": policy}


# Bounds on regret.


def regret_bounds(memory: Any) -> np.ndarray:
    """The bounds on the regret from the memory of a rule of this module, see `kernels.step_sizes`, float64 (P,).

    There is one for each player; or one for each infostate, and the sum over a player's infostates bounds the player's regret.
    A bound is infinite if a step is too small for a float64, and 0 before the first update.
    """
    at_zero = np.where(memory.radius > 0, np.inf, 0.0)
    first = np.divide(memory.radius, memory.last_step, out=at_zero, where=memory.last_step > 0)
    return np.asarray(first + memory.paid)


class Stepping:
    """The step sizes and the regret bound of a minimizer with a rule of this module.

    Attributes:
      rule: the rule.
      iteration: utilities observed.
    """

    rule: Any  # a local rule or a treeplex rule, depending on the other base class
    iteration: int
    _memory: Any

    @property
    def step_sizes(self) -> npt.NDArray[np.float64]:
        """The current step sizes, one for each simplex or one for the treeplex, in one over the unit of the utilities."""
        if self.iteration:
            return np.array(self._memory.step)
        # The first strategy does not depend on the step.
        first = dict(zip(dict(self.rule.parameters), *self.rule.parameter_table(np.array([1])), strict=True))
        return np.full(len(self._memory.step), first.get("step_size", 1.0))

    @property
    def regret_bound(self) -> float:
        """An upper bound on the regret for the observed utilities, in their unit, if step sizes never increase."""
        return float(regret_bounds(self._memory).sum())
