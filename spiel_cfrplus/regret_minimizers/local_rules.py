"""Local rules: compiled functions that update memory and policy at a decision point from counterfactual values.

Built-in rules and users' rules use the same interface. `kernels.regret_matching` documents the arguments of the function. It is
compiled into the loop of self-play, so an iteration takes as long as one of the built-in CFR.

>>> import pyspiel
>>> from spiel_cfrplus.regret_minimizers import CFR
>>> @local_rule(per_action=("regrets",), scale_free=True)
... def regret_matching_plus(point, values, policy, memory, parameters, t):
...     total = 0.0
...     for a in point.actions:
...         memory.regrets[a] = max(memory.regrets[a] + values[a] - point.value, 0.0)
...         total += memory.regrets[a]
...     for a in point.actions:
...         policy[a] = memory.regrets[a] / total if total > 0.0 else 1.0 / len(point.actions)
>>> regret_matching_plus
LocalRule regret_matching_plus
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from spiel_cfrplus.kernels.cfr import update_by_local_rule
from spiel_cfrplus.kernels.self_play import RuleFunctions
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule, Parameter, compiled_function


@dataclasses.dataclass(frozen=True, repr=False)
class LocalRule(CompiledRule):
    """A rule for one decision point; made from a function by `local_rule`.

    Attributes:
      scale_free: the policies do not change if all values at an infostate are multiplied by a positive number. Otherwise, in a
        reduced game, values are divided by the number of infostates that were merged into one.
      weighs_actions: the function uses `memory.uniform_policy`, so that an action may represent several symmetric ones.
        Otherwise symmetric actions of one infostate are not merged.
      unchanged_by_zeros: if all values are zero and the parameters do not change, neither memory nor policy changes.
    """

    scale_free: bool = False
    weighs_actions: bool = False
    unchanged_by_zeros: bool = False

    reads_ties = True

    @property
    def functions(self) -> RuleFunctions:
        return RuleFunctions(update_by_local_rule, self.function, self.schedule)

    @property
    def merges_infostates(self) -> bool:
        """Not with a schedule, which would read sums over merged infostates."""
        return self.schedule is None

    @property
    def merges_actions(self) -> bool:
        return self.weighs_actions and self.scale_free and self.schedule is None

    @property
    def works_in_parts(self) -> bool:
        """Not with a schedule or arrays (n,), which depend on all infostates of a player."""
        return self.schedule is None and not self.per_player

    def statement_refusal(self, statement: str, iteration: int) -> str:
        return "" if statement in self.statements else f"the rule {self.name} does not declare it"

    def skips_unreached(self, table: np.ndarray) -> np.ndarray:
        skips = np.zeros(len(table), bool)
        if self.unchanged_by_zeros and self.schedule is None:
            skips[1:] = (table[1:] == table[:-1]).all(axis=1)
        return skips


@overload
def local_rule(
    function: Callable[..., None],
    *,
    name: str | None = ...,
    parameters: Mapping[str, Parameter] | None = ...,
    per_action: Sequence[str] = ...,
    per_infostate: Sequence[str] = ...,
    per_player: Sequence[str] = ...,
    schedule: Callable[..., Any] | None = ...,
    scale_free: bool = ...,
    weighs_actions: bool = ...,
    unchanged_by_zeros: bool = ...,
    statements: Sequence[str] = ...,
) -> LocalRule: ...


@overload
def local_rule(
    function: None = None,
    *,
    name: str | None = ...,
    parameters: Mapping[str, Parameter] | None = ...,
    per_action: Sequence[str] = ...,
    per_infostate: Sequence[str] = ...,
    per_player: Sequence[str] = ...,
    schedule: Callable[..., Any] | None = ...,
    scale_free: bool = ...,
    weighs_actions: bool = ...,
    unchanged_by_zeros: bool = ...,
    statements: Sequence[str] = ...,
) -> Callable[[Callable[..., None]], LocalRule]: ...


def local_rule(
    function: Callable[..., None] | None = None,
    *,
    name: str | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    per_action: Sequence[str] = (),
    per_infostate: Sequence[str] = (),
    per_player: Sequence[str] = (),
    schedule: Callable[..., Any] | None = None,
    scale_free: bool = False,
    weighs_actions: bool = False,
    unchanged_by_zeros: bool = False,
    statements: Sequence[str] = (),
) -> LocalRule | Callable[[Callable[..., None]], LocalRule]:
    """Decorator that makes a rule of a function, for solvers, `CFR` and `SimplexMinimizer`. It is compiled at its first use.

    Args:
      function: called at each decision point, see `kernels.regret_matching`. It may call other functions with the decorator
        `numba.njit`, and those of `kernels.regret_matching`.
      name: the name of the rule; by default that of the function.
      parameters: names and default values; a value may be a function of the iterations, which is called before the loop.
      per_action, per_infostate, per_player: names of the arrays in `memory`, initially zeros, float64 (S,), (J,), (n,).
      schedule, statements: see `CompiledRule`.
      scale_free, weighs_actions, unchanged_by_zeros: see `LocalRule`.

    Returns:
      The `LocalRule`.

    Raises:
      TypeError: it is not a function, or has another number of arguments; or an option of another type.
      ValueError: invalid names, or `weighs_actions` without `scale_free`.
    """
    if function is None:
        return lambda decorated: local_rule(
            decorated,
            name=name,
            parameters=parameters,
            per_action=per_action,
            per_infostate=per_infostate,
            per_player=per_player,
            schedule=schedule,
            scale_free=scale_free,
            weighs_actions=weighs_actions,
            unchanged_by_zeros=unchanged_by_zeros,
            statements=statements,
        )
    compiled = compiled_function(function, "rule", "point, values, policy, memory, parameters, t")
    for names in (per_action, per_infostate, per_player, statements):
        if isinstance(names, str):
            raise TypeError(f"expected a tuple of names, such as ({names!r},), got {names!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must be a dictionary of names and values, got {parameters!r}")
    for declared in (scale_free, weighs_actions, unchanged_by_zeros):
        if not isinstance(declared, bool):
            raise TypeError(f"scale_free, weighs_actions and unchanged_by_zeros must be True or False, got {declared!r}")
    if weighs_actions and not scale_free:
        raise ValueError("weighs_actions=True requires scale_free=True: the values of merged actions are sums")
    return LocalRule(
        name=compiled.__name__ if name is None else name,
        function=compiled,
        parameters=tuple((parameters or {}).items()),
        per_action=tuple(per_action),
        per_infostate=tuple(per_infostate),
        per_player=tuple(per_player),
        schedule=None
        if schedule is None
        else compiled_function(schedule, "schedule", "actions, values, memory, parameters, t"),
        statements=frozenset(statements),
        scale_free=scale_free,
        weighs_actions=weighs_actions,
        unchanged_by_zeros=unchanged_by_zeros,
    )
