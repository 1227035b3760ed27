"""What rules for a decision point and rules for a whole treeplex have in common: compiled functions, parameters, memory."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numba.core.errors import NumbaError

from spiel_cfrplus._utils.validation import checked_number
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.kernels.compilation import jit
from spiel_cfrplus.kernels.layouts import PlayState, TreeplexArrays
from spiel_cfrplus.kernels.records import SEPARATOR, record_class
from spiel_cfrplus.kernels.self_play import RuleFunctions
from spiel_cfrplus.regret_minimizers.minimizer import checked_weight

# A number, or a function of iterations (1, 2, ...), int64 (T,), that gives one for each, float64 (T,).
Parameter = float | Callable[[np.ndarray], np.ndarray]
# Why statements about CFR do not hold for other learners.
NOT_REGRET_MATCHING = "not all players are CFR with regret matching"
# What the solver adds to the arrays that a rule asks for.
_GIVEN = ("tie_tolerance", "uniform_policy")


def compiled_function(function: Callable[..., Any], kind: str, arguments: str) -> Callable[..., Any]:
    """The function, compiled at its first use; itself if it is compiled already.

    Raises:
      TypeError: it is no function, or does not take these arguments.
    """
    plain = getattr(function, "py_func", function)
    if not inspect.isfunction(plain):
        raise TypeError(f"a {kind} must be a function of ({arguments}), got {function!r}")
    if len(inspect.signature(plain).parameters) != arguments.count(",") + 1:
        raise TypeError(f"the {kind} {plain.__name__} must take ({arguments}), it takes {inspect.signature(plain)}")
    return function if hasattr(function, "py_func") else jit(function)


@contextlib.contextmanager
def compile_errors_name(rule: CompiledRule) -> Iterator[None]:
    """Errors of Numba name the rule that cannot be compiled.

    Raises:
      TypeError: instead of Numba's own errors.
    """
    try:
        yield
    except NumbaError as error:
        makes_arrays = "NRT required" in str(error) or "numba/np/arrayobj.py" in str(error)
        reason = (
            "it makes an array; a rule keeps its arrays in `memory`, and works in loops" if makes_arrays else _reason(error)
        )
        raise TypeError(f"{rule.name} cannot be compiled: {reason}") from error


def _reason(error: NumbaError) -> str:
    """What Numba says is wrong, without the passes and calls in which it was found."""
    lines = [line for line in str(error).splitlines() if not line.startswith(("Failed in", "During:"))]
    return "\n".join(lines).strip().partition("\n\n")[0]


@dataclasses.dataclass(frozen=True)
class _Named:
    """A compiled function that can be found by its name, as pickle does with plain functions.

    Numba would pickle its source, and another process would have a second function of that name, compiled apart.
    """

    module: str
    name: str

    @classmethod
    def of(cls, value: Any) -> Any:
        """The name of a compiled function that its module has under that name; anything else as it is."""
        plain = getattr(value, "py_func", None)
        if plain is None:
            return value
        named = cls(plain.__module__, plain.__qualname__)
        return named if named.found() is value else value

    def value(self) -> Any:
        """What the module has under the name; None if there is nothing."""
        value: Any = sys.modules.get(self.module) or importlib.import_module(self.module)
        for part in self.name.split("."):
            value = getattr(value, part, None)
        return value

    def found(self) -> Any:
        """The compiled function, or that of the rule that has taken its name; None if there is none."""
        value = self.value()
        return value.function if isinstance(value, CompiledRule) else value


def _rebuilt(rule_type: type[CompiledRule], values: list[Any]) -> CompiledRule:
    return rule_type(*(value.found() if isinstance(value, _Named) else value for value in values))


@dataclasses.dataclass(frozen=True)
class CompiledRule:
    """What a rule for a decision point and a rule for a whole treeplex have in common.

    Attributes:
      name: as solvers and files name it.
      function: the compiled function.
      parameters: names and values, in order.
      per_action: names of arrays (S,) that the rule keeps.
      per_infostate: names of arrays (J,) that the rule keeps.
      per_player: names of arrays (n,) that the rule keeps.
      schedule: a compiled function `schedule(actions, values, memory, parameters, t)` that gives a tuple of as many numbers as
        there are parameters, computed once for every update of a player from what happened before; `actions` is the range of
        the player's sequences, `values` holds their payoff gradient. None if the parameters follow from t alone.
      statements: names of statements of `analysis.theory` that are proved for the rule.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[tuple[str, Parameter], ...] = ()
    per_action: tuple[str, ...] = ()
    per_infostate: tuple[str, ...] = ()
    per_player: tuple[str, ...] = ()
    schedule: Callable[..., Any] | None = None
    statements: frozenset[str] = frozenset()

    # Whether the function reads `memory.tie_tolerance`, or may do so.
    reads_ties = False
    # Whether policies are those of regret matching on each array (S,) that the rule keeps, so that these follow from a policy.
    matches_regrets = False

    @property
    def merges_infostates(self) -> bool:
        """Whether equal infostates may be merged for a reduced game."""
        return False

    @property
    def merges_actions(self) -> bool:
        """Whether equal actions of one infostate may be merged for a reduced game."""
        return False

    @property
    def works_in_parts(self) -> bool:
        """Whether the updates of a player's subtrees may be divided among threads."""
        return False

    @property
    def prediction_weight(self) -> float:
        """How much the prediction that the last values come again counts; 0 if nothing is predicted."""
        weight = dict(self.parameters).get("prediction_weight", 0.0)
        return 0.0 if callable(weight) else float(weight)

    def __post_init__(self) -> None:
        names = [*self.per_action, *self.per_infostate, *self.per_player, *_GIVEN]
        for name in [*names, *(name for name, _ in self.parameters)]:
            if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or SEPARATOR in name:
                raise ValueError(f"{self.name}: {name!r} cannot be the name of an array or a parameter")
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: the names of arrays must differ from each other and from {', '.join(_GIVEN)}")

    def __reduce__(self) -> tuple[Any, ...]:
        named = _Named(getattr(self.function, "py_func", self.function).__module__, self.name)
        if self.name.isidentifier() and named.value() is self:
            return named.value, ()
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return _rebuilt, (type(self), [_Named.of(value) for value in values])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in self.parameters)
        return f"{type(self).__name__} {self.name}{numbers and f'({numbers})'}"

    @property
    def functions(self) -> RuleFunctions:
        """The rule as the loop takes it."""
        raise NotImplementedError

    def with_parameters(self, **values: Parameter) -> Self:
        """The same rule with other values of some parameters.

        Raises:
          TypeError: the rule has no such parameter.
        """
        known = dict(self.parameters)
        for name in values:
            if name not in known:
                has = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
                raise TypeError(f"{self.name} has no parameter {name!r}; {has}")
        return dataclasses.replace(self, parameters=tuple((known | values).items()))

    def with_prediction_weight(self, weight: float) -> Self:
        """The same rule with another value of its parameter `prediction_weight`.

        Raises:
          TypeError: it has no such parameter, or the weight is not a number.
          ValueError: the weight is not between 0 and 1.
        """
        return self.with_parameters(prediction_weight=checked_weight(weight))

    def parameter_table(self, iterations: np.ndarray) -> np.ndarray:
        """The parameters of each of `iterations` (1, 2, ...), float64 (T, K).

        Raises:
          TypeError: a parameter is neither a number nor a function.
          ValueError: a function does not give a number for each iteration, or one that is not finite.
        """
        columns = [self._column(name, value, iterations) for name, value in self.parameters]
        return np.stack(columns or [np.zeros(len(iterations))], axis=1)

    def _column(self, name: str, value: Parameter, iterations: np.ndarray) -> np.ndarray:
        if not callable(value):
            value = checked_number(value, f"the parameter {name} of {self.name}")
        column = np.asarray(value(iterations) if callable(value) else np.full(len(iterations), value), np.float64)
        if column.shape != iterations.shape or not np.isfinite(column).all():
            raise ValueError(f"the parameter {name} of {self.name} is not one finite number for each iteration: {column!r}")
        return column

    def skips_unreached(self, table: np.ndarray) -> np.ndarray:
        """In which of the iterations with these parameters infostates whose values are all zero may be passed over, bool (T,).

        Not in the first one, since the rule has not seen them with these parameters.
        """
        return np.zeros(len(table), bool)

    def statement_refusal(self, statement: str, iteration: int) -> str:
        """Why a statement of `analysis.theory` does not hold for updates by this rule; empty if it does.

        Args:
          statement: its name.
          iteration: the last one; statements about updates are about that one, statements about runs about all up to it.
        """
        return "" if statement in self.statements else NOT_REGRET_MATCHING

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """What the function finds in `parameters`, in order; Numba cannot fill a tuple without elements, so there is always
        one."""
        return tuple(name for name, _ in self.parameters) or ("unused",)

    def empty_parameters(self) -> Any:
        """A NamedTuple of the parameters for kernels to fill."""
        return record_class("Parameters", self.parameter_names)(*[0.0] * len(self.parameter_names))

    def memory(self, treeplexes: TreeplexArrays, tie_tolerance: np.ndarray | None = None) -> Any:
        """The arrays that the rule keeps, as they are before the first update, and what it is given.

        Args:
          treeplexes: of one or several players.
          tie_tolerance: float64 (S,) or None, given to the rule.
        """
        sizes = {name: int(treeplexes.sequence_start[-1]) for name in self.per_action}
        sizes |= {name: len(treeplexes.parent_sequence) for name in self.per_infostate}
        sizes |= {name: len(treeplexes.player_block) - 1 for name in self.per_player}
        start = self.initial_arrays(treeplexes)
        kept = [start[name] if name in start else np.zeros(size) for name, size in sizes.items()]
        return record_class("Memory", (*sizes, *_GIVEN))(*kept, tie_tolerance, treeplexes.uniform_policy)

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of all arrays that the rule keeps."""
        return (*self.per_action, *self.per_infostate, *self.per_player)

    def initial_arrays(self, treeplexes: TreeplexArrays) -> dict[str, np.ndarray]:
        """Those of the rule's arrays that do not start as zeros."""
        return {}


def start_state(treeplexes: TreeplexArrays, first_policy: np.ndarray | None = None, account: bool = False) -> PlayState:
    """The arrays of self-play before the first iteration.

    Args:
      treeplexes: of one or several players.
      first_policy: behavioral, float64 (S,); uniform by default.
      account: whether the utilities are summed, from which regrets are computed.
    """
    size, num_players = int(treeplexes.sequence_start[-1]), len(treeplexes.player_block) - 1
    policy, reach, cumulative_policy, values = (np.zeros(size) for _ in range(4))
    if first_policy is None:
        for player in range(num_players):
            passes.match_all_regrets(treeplexes, player, values, policy)
    else:
        policy[:] = first_policy
    passes.strategies_of_policy(treeplexes, policy, reach)
    cumulative_utility, cumulative_value = (np.zeros(size), np.zeros(num_players)) if account else (None, None)
    iteration = np.zeros(num_players, np.int64)
    return PlayState(policy, reach, cumulative_policy, values, cumulative_utility, cumulative_value, iteration)
