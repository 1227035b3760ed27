"""A trial of a user's local rule before its first use.

Compiled code does not check indices. A rule that writes to other positions than its own changes other infostates without an
error, or ends the process. The trial therefore updates the second of three equal players, whose arrays lie between unused
numbers, and finds every write outside the player's own positions that does not miss these numbers as well.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from spiel_cfrplus.kernels import self_play
from spiel_cfrplus.kernels.layouts import INDEX, TreeplexArrays
from spiel_cfrplus.regret_minimizers.compiled_rules import compile_errors_name, start_state

if TYPE_CHECKING:
    from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule

_NUM_PLAYERS, _TRIED = 3, 1
# A root and three infostates with 2, 3 and 1 actions; the last one follows the first action of the first one.
_NUM_ACTIONS = (1, 2, 3, 1)
_PARENTS = (0, 0, 0, 1)
_PADDING = 4096
_UNUSED = -7.25
# Policies of floating-point numbers sum to 1 within this.
TOLERANCE = 1e-9


@functools.cache
def try_rule(rule: CompiledRule) -> None:
    """Three updates: with random values, with large ones, and with zeros.

    Raises:
      TypeError: the rule cannot be compiled.
      ValueError: it writes outside its decision point, or leaves a policy that is no distribution.
    """
    treeplexes = _treeplexes()
    state = start_state(treeplexes)
    padded = {name: _padded(getattr(state, name)) for name in ("policy", "values")}
    state = state._replace(**{name: own for name, (_, own) in padded.items()})
    memory = rule.memory(treeplexes)
    padded |= {name: _padded(getattr(memory, name)) for name in (*rule.per_action, *rule.per_infostate)}
    memory = memory._replace(**{name: padded[name][1] for name in (*rule.per_action, *rule.per_infostate)})
    random = np.random.default_rng(0)
    for scale in (1.0, 1e6, 0.0):
        state.values[:] = scale * random.normal(size=len(state.values))
        before = {name: whole.copy() for name, (whole, _) in padded.items()}
        table = rule.parameter_table(state.iteration[_TRIED : _TRIED + 1] + 1)
        parameters = type(rule.empty_parameters())(*table[0])
        with compile_errors_name(rule):
            self_play.update_player(treeplexes, _TRIED, state, rule.functions, memory, parameters, False)
        for name, (whole, own) in padded.items():
            _check_writes(rule, name, before[name], whole, _positions(treeplexes, len(own)))
        check_policy(rule, treeplexes, state.policy)


def check_policy(rule: CompiledRule, treeplexes: TreeplexArrays, policy: np.ndarray) -> None:
    """Does nothing if the policy is a distribution at every infostate.

    Raises:
      ValueError: it is not.
    """
    starts = treeplexes.sequence_start[:-1]
    with np.errstate(invalid="ignore"):
        least, total = np.minimum.reduceat(policy, starts), np.add.reduceat(policy, starts)
    wrong = ~((least >= 0) & (np.abs(total - 1) <= TOLERANCE))
    if wrong.any():
        first = int(np.argmax(wrong))
        found = policy[treeplexes.sequence_start[first] : treeplexes.sequence_start[first + 1]]
        raise ValueError(f"{rule.name} left the policy {found} at a decision point with {len(found)} actions, no distribution")


def _treeplexes() -> TreeplexArrays:
    starts = np.concatenate([[0], np.cumsum(_NUM_ACTIONS * _NUM_PLAYERS)])
    first = np.arange(_NUM_PLAYERS) * sum(_NUM_ACTIONS)
    return TreeplexArrays(
        player_block=(np.arange(_NUM_PLAYERS + 1) * len(_NUM_ACTIONS)).astype(INDEX),
        sequence_start=starts.astype(INDEX),
        parent_sequence=np.add.outer(first, _PARENTS).ravel().astype(INDEX),
    )


def _padded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A longer array, and the part of it that has the numbers."""
    whole = np.full(len(array) + 2 * _PADDING, _UNUSED)
    own = whole[_PADDING:-_PADDING]
    own[:] = array
    return whole, own


def _positions(treeplexes: TreeplexArrays, size: int) -> slice:
    """Where the player that is tried has its numbers in an array per action or per infostate."""
    each = size // _NUM_PLAYERS
    return slice(_TRIED * each, (_TRIED + 1) * each)


def _check_writes(rule: CompiledRule, name: str, before: np.ndarray, after: np.ndarray, own: slice) -> None:
    changed = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    changed[_PADDING + own.start : _PADDING + own.stop] = False
    if changed.any():
        array: Any = name if name in ("policy", "values") else f"memory.{name}"
        raise ValueError(
            f"{rule.name} writes to {array} outside its decision point; the positions are those in point.actions, and "
            "point.infostate for one number per infostate"
        )
