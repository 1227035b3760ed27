"""The base class of rules for a decision point and rules for a whole treeplex: compiled functions, parameters, memory."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import re
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
from spiel_cfrplus.kernels.rule_sources import UnknownFunctionError, function_digest
from spiel_cfrplus.kernels.self_play import RuleFunctions
from spiel_cfrplus.regret_minimizers.minimizer import checked_weight

# A number, or a function of iterations (1, 2, ...), int64 (T,), that returns a number for each, float64 (T,).
Parameter = float | Callable[[np.ndarray], np.ndarray]
# Why statements about CFR do not hold for other learners.
NOT_REGRET_MATCHING = "not all players are CFR with regret matching"
# Numba's message about a name in `memory` or `parameters` that the rule does not declare.
_UNKNOWN_FIELD = re.compile(r"Unknown attribute '(\w+)' of type (Memory|Parameters)")
# The arrays that the solver adds to those that a rule declares.
_GIVEN = ("tie_tolerance", "uniform_policy")


def compiled_function(function: Callable[..., Any], kind: str, arguments: str) -> Callable[..., Any]:
    """Returns the function in compiled form; it is compiled at its first use.

    Raises:
      TypeError: it is not a function, or does not take these arguments.
    """
    plain = getattr(function, "py_func", function)
    if not inspect.isfunction(plain):
        raise TypeError(f"a {kind} must be a function of ({arguments}), got {function!r}")
    if len(inspect.signature(plain).parameters) != arguments.count(",") + 1:
        raise TypeError(f"the {kind} {plain.__name__} must take ({arguments}), it takes {inspect.signature(plain)}")
    return function if hasattr(function, "py_func") else jit(function)


class RuleCompilationError(TypeError):
    """A rule cannot be compiled; the message names the rule and the reason."""


def source_digest(rule: CompiledRule) -> str:
    """Identifies the code of a user's rule by 32 hexadecimal digits; empty if it depends on something unknown."""
    try:
        return function_digest(rule.function)[:32]
    except UnknownFunctionError:
        return ""


@contextlib.contextmanager
def compile_errors_name(rule: CompiledRule) -> Iterator[None]:
    """Converts errors of Numba to errors that name the rule.

    Raises:
      RuleCompilationError: the rule cannot be compiled.
    """
    try:
        yield
    except NumbaError as error:
        raise RuleCompilationError(f"{rule.name} cannot be compiled: {_reason(error)}") from error


def _reason(error: NumbaError) -> str:
    """The first message of a Numba error, without compiler passes and calls, in the terms of a rule."""
    if "NRT required" in str(error) or "numba/np/arrayobj.py" in str(error):
        return "it allocates an array or another object; a rule must use the arrays in `memory`, and loops over numbers"
    if unknown := _UNKNOWN_FIELD.search(str(error)):
        name, kind = unknown.groups()
        return f"`{kind.lower()}` contains no {name!r}; a rule must declare its arrays and parameters"
    lines = [line for line in str(error).splitlines() if not line.startswith(("Failed in", "During:"))]
    return "\n".join(lines).strip().partition("\n\n")[0]


@dataclasses.dataclass(frozen=True)
class _Named:
    """The module and name of a compiled function, by which pickle refers to it, as to plain functions.

    Numba would pickle its source; another process would then compile a second function of this name.
    """

    module: str
    name: str

    @classmethod
    def of(cls, value: Any) -> Any:
        """The name of a compiled function, if its module has it under this name; otherwise the value itself."""
        plain = getattr(value, "py_func", None)
        if plain is None:
            return value
        named = cls(plain.__module__, plain.__qualname__)
        return named if named.found() is value else value

    def value(self) -> Any:
        """The value of the name in the module; None if it does not exist."""
        value: Any = sys.modules.get(self.module) or importlib.import_module(self.module)
        for part in self.name.split("."):
            value = getattr(value, part, None)
        return value

    def found(self) -> Any:
        """The compiled function, or that of the rule that the decorator has bound to its name; None if it does not exist."""
        value = self.value()
        return value.function if isinstance(value, CompiledRule) else value


def _rebuilt(rule_type: type[CompiledRule], values: list[Any]) -> CompiledRule:
    return rule_type(*(value.found() if isinstance(value, _Named) else value for value in values))


@dataclasses.dataclass(frozen=True)
class CompiledRule:
    """The base class of rules for a decision point and rules for a whole treeplex.

    Attributes:
      name: its name in solvers and files.
      function: the compiled function.
      parameters: names and values, in order.
      per_action: names of the rule's arrays (S,).
      per_infostate: names of the rule's arrays (J,).
      per_player: names of the rule's arrays (n,).
      schedule: a compiled function `schedule(actions, values, memory, parameters, t)` that returns a tuple of all parameters.
        It is called once before every update of a player; `actions` is the range of the player's sequences, `values` contains
        their payoff gradient. None if the parameters depend on t only.
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
    # Whether policies are those of regret matching on each of the rule's arrays (S,), so that a policy determines these.
    matches_regrets = False

    @property
    def merges_infostates(self) -> bool:
        """Whether symmetric infostates may be merged in a reduced game."""
        return False

    @property
    def merges_actions(self) -> bool:
        """Whether symmetric actions of one infostate may be merged in a reduced game."""
        return False

    @property
    def works_in_parts(self) -> bool:
        """Whether the updates of a player's subtrees may be divided among threads."""
        return False

    @property
    def prediction_weight(self) -> float:
        """The weight of the prediction that the last values are repeated; 0 without prediction."""
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
        return f"{type(self).__name__} {self.name}({numbers})" if numbers else f"{type(self).__name__} {self.name}"

    @property
    def is_built_in(self) -> bool:
        """Whether the function is one of this package."""
        return str(getattr(self.function, "py_func", self.function).__module__).startswith("spiel_cfrplus.")

    @property
    def functions(self) -> RuleFunctions:
        """The functions that are passed to the loop."""
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
          ValueError: a function does not return one finite number for each iteration.
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
        """In which iterations with these parameters infostates with only zero values may be skipped, bool (T,).

        Not in the first one, because the rule has not updated them with these parameters before.
        """
        return np.zeros(len(table), bool)

    def statement_refusal(self, statement: str, iteration: int) -> str:
        """Why a statement of `analysis.theory` does not hold for updates by this rule; empty if it does.

        Args:
          statement: its name.
          iteration: the last iteration; statements about updates concern this one, statements about runs all up to it.
        """
        return "" if statement in self.statements else NOT_REGRET_MATCHING

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The fields of `parameters`, in order; there is always one, because Numba cannot fill a tuple without elements."""
        return tuple(name for name, _ in self.parameters) or ("unused",)

    def empty_parameters(self) -> Any:
        """A NamedTuple of the parameters for kernels to fill."""
        return record_class("Parameters", self.parameter_names)(*[0.0] * len(self.parameter_names))

    def memory(self, treeplexes: TreeplexArrays, tie_tolerance: np.ndarray | None = None) -> Any:
        """The argument `memory` before the first update: the rule's arrays and those that the solver adds.

        Args:
          treeplexes: the treeplexes of one or several players.
          tie_tolerance: float64 (S,) or None, passed to the rule.
        """
        sizes = {name: int(treeplexes.sequence_start[-1]) for name in self.per_action}
        sizes |= {name: len(treeplexes.parent_sequence) for name in self.per_infostate}
        sizes |= {name: len(treeplexes.player_block) - 1 for name in self.per_player}
        start = self.initial_arrays(treeplexes)
        kept = [start[name] if name in start else np.zeros(size) for name, size in sizes.items()]
        return record_class("Memory", (*sizes, *_GIVEN))(*kept, tie_tolerance, treeplexes.uniform_policy)

    @property
    def array_names(self) -> tuple[str, ...]:
        """The names of all of the rule's arrays."""
        return (*self.per_action, *self.per_infostate, *self.per_player)

    def initial_arrays(self, treeplexes: TreeplexArrays) -> dict[str, np.ndarray]:
        """The initial values of the rule's arrays that do not start at zero."""
        return {}


def start_state(treeplexes: TreeplexArrays, first_policy: np.ndarray | None = None, account: bool = False) -> PlayState:
    """The arrays of self-play before the first iteration.

    Args:
      treeplexes: the treeplexes of one or several players.
      first_policy: behavioral, float64 (S,); uniform by default.
      account: whether the utilities are summed, to compute regrets.
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
