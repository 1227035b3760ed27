"""The walk in several processes, each below a part of the histories of some ply; the record is that of one walk, bit for bit.

The parts are consecutive runs of the histories of one ply, in preorder. A process walks its part with a `TreeWalk` of its own.
This one goes through what is above the ply, and where a walk would go on below it takes over what was met there: the infostates
that are new here get the next numbers, in the order in which they were met.

Processes are new ones rather than forks, so threads do not matter, nor whether the main module may be imported twice. They load
the game by its string, which must tell its rules; see `game_checks.why_string_is_not_enough`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfrplus._utils.progress import progress_bar
from spiel_cfrplus._utils.validation import at_most_cores
from spiel_cfrplus.game.checks import why_string_is_not_enough
from spiel_cfrplus.game.size_estimate import warn_if_too_large, warning_on_the_way
from spiel_cfrplus.game.subgames import History, actions_of, replay
from spiel_cfrplus.game.walk import CHANCE, TERMINAL, TreeWalk, WalkRecord, walk_game
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits, memory_errors_name

# More parts than processes, so that nobody waits long for the last one; but few, as each sends all its infostates, also those
# that it shares with others.
_PARTS_PER_PROCESS = 2
_LEAST_ROOTS_PER_PART = 6
_DEEPEST_CUT = 30
# Ctrl-C is for this process, which ends the others.
_OUTSIDE_OWN_GROUP: dict[str, Any]
if sys.platform == "win32":
    _OUTSIDE_OWN_GROUP = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _OUTSIDE_OWN_GROUP = {"process_group": 0}

# What was met below one history after another: the record, and how many histories and infostates it had after each.
_Part = tuple[WalkRecord, list[int], list[int]]


class _PartError(Exception):
    """A part cannot be walked, or does not fit to the others."""


def walk_whole_game(
    game: pyspiel.Game,
    *,
    processes: int = 1,
    limits: WalkLimits = NO_LIMITS,
    progress: bool = False,
) -> WalkRecord:
    """Walks a game from its start, in this process or shared by several.

    Raises:
      ValueError: more processes than the machine has cores.
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game`. What a part is refused for is found again by a walk in
        this process, so that it is said as there.
    """
    if at_most_cores(processes, "processes") > 1:
        _check_can_be_shared(game)
        cut, roots = _cut(game, processes * _PARTS_PER_PROCESS * _LEAST_ROOTS_PER_PART, limits)
        numbers = np.array_split(np.arange(len(roots)), processes * _PARTS_PER_PROCESS)
        parts = [[roots[number] for number in part] for part in numbers if len(part)]
        warn_if_too_large(game, limits)
        try:
            with (
                progress_bar(progress, unit="histories") as advance,
                _workers(game, parts, processes, limits) as results,
            ):
                walk = TreeWalk(game, limits, advance)
                with memory_errors_name(walk.describe):
                    return _joined(game, cut, results, walk)
        except _PartError:
            pass
    with progress_bar(progress, unit="histories") as advance:
        return walk_game(game, limits=limits, advance=warning_on_the_way(game, limits, advance))


def _check_can_be_shared(game: pyspiel.Game) -> None:
    reason = why_string_is_not_enough(game)
    if reason is not None:
        raise ValueError(
            f"{game} cannot be walked by several processes, which load it by its string: {reason}; use processes=1"
        )


def _cut(game: pyspiel.Game, least: int, limits: WalkLimits) -> tuple[int, list[History]]:
    """A ply with at least so many histories at which the game goes on, if there is one; and these, in preorder."""
    states, ply, counted = [game.new_initial_state()], 0, 1
    while len(states) < least and ply < _DEEPEST_CUT:
        below = []
        for child in (state.child(action) for state in states for action in actions_of(state)):
            counted += 1
            limits.check_count(game, counted)
            limits.check_time(game, counted)
            if not child.is_terminal():
                below.append(child)
        if not below:
            break
        states, ply = below, ply + 1
    return ply, [tuple(state.history()) for state in states]


@contextlib.contextmanager
def _workers(
    game: pyspiel.Game, parts: Sequence[Sequence[History]], processes: int, limits: WalkLimits
) -> Iterator[Iterator[_Part]]:
    """Has the parts walked, and gives what comes of them, in their order; no process outlives this."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    command = [sys.executable, "-c", f"from {__name__} import work; work()"]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(processes):
            worker = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
                **_OUTSIDE_OWN_GROUP,
            )
            workers.append(worker)
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError), worker.stdin:  # one that could not start is found out by what it sends
                own_limits = limits.max_histories, limits.seconds_left
                pickle.dump((str(game), game.get_parameters(), parts[number::processes], own_limits), worker.stdin)
        yield (_received(workers[number % processes]) for number in range(len(parts)))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()


def _received(worker: subprocess.Popen[bytes]) -> _Part:
    assert worker.stdout is not None
    try:
        result: _Part | None = pickle.load(worker.stdout)  # of a process of our own
    except (EOFError, pickle.UnpicklingError) as error:
        raise _PartError from error
    if result is None:
        raise _PartError
    return result


def work() -> None:
    """In a process of its own: walks the parts that standard input names; writes what it met, or None, to standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # games may print
    text, parameters, parts, own_limits = pickle.load(sys.stdin.buffer)
    limits = WalkLimits.starting_now(*own_limits)
    game = pyspiel.load_game(text)
    assert game.get_parameters() == parameters
    for roots in parts:
        try:
            part = _walk_part(game, roots, limits)
        except Exception:  # a walk in one process will raise it again
            part = None
        pickle.dump(part, output, protocol=5)
        output.flush()


def _walk_part(game: pyspiel.Game, roots: Sequence[History], limits: WalkLimits) -> _Part:
    walk = TreeWalk(game, limits)
    num_histories, num_infostates = [], []
    for root in roots:
        walk.visit_all_below(replay(game, root))
        num_histories.append(walk.num_histories)
        num_infostates.append(walk.num_infostates)
    return walk.record(), num_histories, num_infostates


def _joined(game: pyspiel.Game, cut: int, parts: Iterator[_Part], walk: TreeWalk) -> WalkRecord:
    """Goes through the histories above the cut, and takes over what is below."""
    pieces = (piece for part in parts for piece in _take_over(walk, *part))
    above = [(game.new_initial_state(), 0)]
    while above:
        state, ply = above.pop()
        if ply == cut and not state.is_terminal():
            next(pieces)
        else:
            above += [(state.child(action), ply + 1) for action in walk.visit(state)]
    return walk.record()


def _take_over(walk: TreeWalk, part: WalkRecord, num_histories: list[int], num_infostates: list[int]) -> Iterator[None]:
    """Adds to the walk what was met below the part's roots, one at each turn."""
    numbers = np.full(len(part.infostate_keys), -1, np.int32)  # of the part's infostates, in the walk
    players, actions = part.infostate_player.tolist(), part.legal_actions.tolist()
    action_start = np.concatenate([[0], np.cumsum(part.num_legal_actions)]).tolist()
    outcome_start = np.concatenate([[0], np.cumsum(part.num_outcomes)])
    history = infostate = chance = end = 0
    for next_history, next_infostate in zip(num_histories, num_infostates, strict=True):
        for new in range(infostate, next_infostate):
            own_actions = actions[action_start[new] : action_start[new + 1]]
            number = walk.number_of(players[new], part.infostate_keys[new], own_actions)
            if number is None:
                raise _PartError
            numbers[new] = number
        nodes = part.nodes[history:next_history].copy()
        next_chance = chance + int(np.count_nonzero(nodes == CHANCE))
        next_end = end + int(np.count_nonzero(nodes == TERMINAL))
        nodes[nodes >= 0] = numbers[nodes[nodes >= 0]]
        outcomes = slice(outcome_start[chance], outcome_start[next_chance])
        walk.extend(
            nodes,
            part.num_outcomes[chance:next_chance],
            part.outcomes[outcomes],
            part.outcome_probabilities[outcomes],
            part.returns[end:next_end],
        )
        history, infostate, chance, end = next_history, next_infostate, next_chance, next_end
        yield
