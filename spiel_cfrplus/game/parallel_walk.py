"""The walk in several processes. The record is identical, bit for bit, to that of a walk in one process.

The histories of one ply are divided into consecutive parts, in preorder. A worker process walks the subtrees of a part with its
own `TreeWalk`. The main process visits the histories above that ply and inserts the records of the parts in preorder;
infostates that are new receive the next numbers in the order of the visits.

Workers are new processes rather than forks, so they are independent of the threads of this process and do not import its main
module. They load the game from its string, which must determine its rules; see `checks.why_copies_differ`.
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
from spiel_cfrplus.game.checks import why_copies_differ
from spiel_cfrplus.game.size_estimate import warn_if_too_large, warning_on_the_way
from spiel_cfrplus.game.subgames import History, actions_of, replay
from spiel_cfrplus.game.walk import CHANCE, TERMINAL, TreeWalk, WalkRecord
from spiel_cfrplus.game.walk_choice import checked_walk, prefers_native, walk_in_one_process
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits, memory_errors_name

# More parts than processes balance the load. Few parts limit the data sent, because each part sends all its infostates,
# including those that other parts contain.
_PARTS_PER_PROCESS = 2
_MIN_ROOTS_PER_PART = 6
_MAX_CUT_PLY = 30
# The main process receives Ctrl-C and ends the workers.
_IN_NEW_GROUP: dict[str, Any]
if sys.platform == "win32":
    _IN_NEW_GROUP = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _IN_NEW_GROUP = {"process_group": 0}

# The record of the subtrees of several roots, and the numbers of histories and of infostates in it after each subtree.
_Part = tuple[WalkRecord, list[int], list[int]]


class _PartError(Exception):
    """A part cannot be walked, or is inconsistent with the others."""


def walk_whole_game(
    game: pyspiel.Game,
    *,
    processes: int = 1,
    walk: str = "auto",
    limits: WalkLimits = NO_LIMITS,
    progress: bool = False,
) -> WalkRecord:
    """Walks a whole game, in this process or in several worker processes, or natively in several threads.

    Raises:
      ValueError: more processes than the machine has cores, or `walk` is not one of `walk_choice.WALKS`.
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game`. If a worker fails, this process repeats the walk, so that
        the error is the same as with one process.
    """
    at_most_cores(processes, "processes")
    walk = checked_walk(walk)
    if processes > 1 and walk != "native":
        _check_loads_from_string(game)
        if walk == "auto":
            walk = "native" if prefers_native(game, limits) else "python"
    if processes > 1 and walk == "python":
        cut, roots = _cut(game, processes * _PARTS_PER_PROCESS * _MIN_ROOTS_PER_PART, limits)
        numbers = np.array_split(np.arange(len(roots)), processes * _PARTS_PER_PROCESS)
        parts = [[roots[number] for number in part] for part in numbers if len(part)]
        warn_if_too_large(game, limits)
        try:
            with (
                progress_bar(progress, unit="histories") as advance,
                _workers(game, parts, processes, limits) as results,
            ):
                joined = TreeWalk(game, limits, advance)
                with memory_errors_name(joined.describe):
                    return _joined(game, cut, results, joined)
        except _PartError:
            pass
    with progress_bar(progress, unit="histories") as advance:
        advance = warning_on_the_way(game, limits, advance)
        return walk_in_one_process(game, walk=walk, threads=processes, limits=limits, advance=advance)


def _check_loads_from_string(game: pyspiel.Game) -> None:
    reason = why_copies_differ(game)
    if reason is not None:
        raise ValueError(
            f"{game} cannot be walked by several processes, which load it from its string: {reason}; use processes=1"
        )


def _cut(game: pyspiel.Game, min_histories: int, limits: WalkLimits) -> tuple[int, list[History]]:
    """The first ply with at least `min_histories` non-terminal histories, or the deepest one tried; and these histories."""
    states, ply, counted = [game.new_initial_state()], 0, 1
    while len(states) < min_histories and ply < _MAX_CUT_PLY:
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
    """Starts the workers and yields an iterator over the walked parts, in order; all workers are ended on exit."""
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
                **_IN_NEW_GROUP,
            )
            workers.append(worker)
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError), worker.stdin:  # `_received` detects a worker that did not start
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
        result: _Part | None = pickle.load(worker.stdout)  # trusted: the sender is our worker
    except (EOFError, pickle.UnpicklingError) as error:
        raise _PartError from error
    if result is None:
        raise _PartError
    return result


def work() -> None:
    """Runs in a worker: walks the parts read from standard input and writes each `_Part`, or None, to standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a game may print to standard output
    text, parameters, parts, own_limits = pickle.load(sys.stdin.buffer)
    limits = WalkLimits.starting_now(*own_limits)
    game = pyspiel.load_game(text)
    assert game.get_parameters() == parameters
    for roots in parts:
        try:
            part = _walk_part(game, roots, limits)
        except Exception:  # the walk in the main process raises it again
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
    """Visits the histories above the cut and inserts the subtrees below it."""
    subtrees = (subtree for part in parts for subtree in _insert_subtrees(walk, *part))
    above = [(game.new_initial_state(), 0)]
    while above:
        state, ply = above.pop()
        if ply == cut and not state.is_terminal():
            next(subtrees)
        else:
            above += [(state.child(action), ply + 1) for action in walk.visit(state)]
    return walk.record()


def _insert_subtrees(walk: TreeWalk, part: WalkRecord, num_histories: list[int], num_infostates: list[int]) -> Iterator[None]:
    """Adds the subtrees of the part's roots to the walk, one per iteration."""
    numbers = np.full(len(part.infostate_keys), -1, np.int32)  # the number in `walk` of each infostate of the part
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
