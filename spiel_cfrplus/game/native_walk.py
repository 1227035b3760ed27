"""The walk in C++, in several threads: the same record as `walk.walk_game` makes, in a fraction of the time.

`native_walk.cc` calls the games of the OpenSpiel library directly. The library is compiled when it is first needed, see
`native_library`. It must prove itself before it is used: a library that was just compiled walks two small games in a forked
process, so that a crash ends that process only, and every process compares its first walks with those in Python. If the
records differ, the native walk is not used.

If C++ finds a fault of the game, its walk ends without a record. The walk in Python then finds the same fault, and raises the
error with all details.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import threading
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cfrplus._utils.forks import status_of_fork
from spiel_cfrplus._utils.progress import Advance, no_advance
from spiel_cfrplus.game import native_library
from spiel_cfrplus.game.checks import why_copies_differ
from spiel_cfrplus.game.native_library import UnavailableError
from spiel_cfrplus.game.subgames import History
from spiel_cfrplus.game.walk import WalkRecord, walk_game
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits, memory_errors_name

# The results of `walk_run`.
_COMPLETE, _STOPPED, _TOO_LARGE, _REFUSED, _OUT_OF_MEMORY = range(5)
_SECONDS_BETWEEN_LOOKS = 0.05
# Games with which the library proves itself: chance moves at the start and between moves, one thread and two.
_PROOF_GAMES = ("kuhn_poker", "leduc_poker")
_PROOF_THREADS = (1, 2)
_PROOF_SECONDS = 60


def why_unavailable(game: pyspiel.Game) -> str | None:
    """The reason why the native walk cannot walk this game; None if it can. Compiles the library if necessary."""
    try:
        _check_game(game)
        _proven_library()
    except UnavailableError as error:
        return str(error)
    return None


def is_ready(game: pyspiel.Game) -> bool:
    """Whether the native walk can walk this game and needs no compilation."""
    try:
        _check_game(game)
        if not _library_or_reason.cache_info().currsize and native_library.stored() is None:
            return False
        _proven_library()
    except UnavailableError:
        return False
    return True


def walk_natively(
    game: pyspiel.Game,
    roots: Sequence[History] = ((),),
    root_probabilities: Sequence[float] = (1.0,),
    *,
    threads: int = 1,
    limits: WalkLimits = NO_LIMITS,
    advance: Advance = no_advance,
) -> WalkRecord | None:
    """Walks as `walk.walk_game` does.

    Args:
      game: a game for which `why_unavailable` returns None.
      roots, root_probabilities, limits, advance: as for `walk.walk_game`.
      threads: number of threads; the record does not depend on it.

    Returns:
      The record; or None if the game has a fault, which the walk in Python finds too.

    Raises:
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game`.
    """
    return _walk(_proven_library(), game, roots, root_probabilities, threads, limits, advance)


def _check_game(game: pyspiel.Game) -> None:
    """Raises `UnavailableError` unless C++ can load the game from its string."""
    reason = why_copies_differ(game)
    if reason is not None:
        raise UnavailableError(reason)


_lock = threading.Lock()


def _proven_library() -> ctypes.CDLL:
    with _lock:
        result = _library_or_reason()
    if isinstance(result, str):
        raise UnavailableError(result)
    return result


@functools.cache
def _library_or_reason() -> ctypes.CDLL | str:
    """The library, or the reason why there is none; determined once per process."""
    try:
        content = native_library.stored()
        if content is None:
            content = native_library.compiled()
            _prove_in_fork(content)
            native_library.store(content)
        library = native_library.load(content)
        _prove(library)
    except UnavailableError as error:
        return str(error)
    return library


def _prove_in_fork(content: bytes) -> None:
    def prove() -> int:
        _prove(native_library.load(content))
        return 0

    status = status_of_fork(prove, seconds=_PROOF_SECONDS)
    if status != 0:
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "a wrong record or an error"
        raise UnavailableError(f"its trial with {' and '.join(_PROOF_GAMES)} ended with {end}")


def _prove(library: ctypes.CDLL) -> None:
    """Compares the walks of small games with those in Python.

    Raises:
      UnavailableError: the records differ.
    """
    for name in _PROOF_GAMES:
        game = pyspiel.load_game(name)
        expected = walk_game(game)
        for threads in _PROOF_THREADS:
            record = _walk(library, game, ((),), (1.0,), threads, NO_LIMITS, no_advance)
            if record is None or not _are_equal(record, expected):
                raise UnavailableError(f"its record of {name} differs from the one that Python makes")


def _are_equal(record: WalkRecord, expected: WalkRecord) -> bool:
    pairs = ((getattr(record, field.name), getattr(expected, field.name)) for field in dataclasses.fields(record))
    return all(
        own == other
        if isinstance(other, tuple)
        else (own.dtype, own.shape, own.tobytes()) == (other.dtype, other.shape, other.tobytes())
        for own, other in pairs
    )


def _walk(
    library: ctypes.CDLL,
    game: pyspiel.Game,
    roots: Sequence[History],
    root_probabilities: Sequence[float],
    threads: int,
    limits: WalkLimits,
    advance: Advance,
) -> WalkRecord | None:
    lengths = np.array([len(root) for root in roots], np.int64)
    actions = np.array([action for root in roots for action in root], np.int64)
    probabilities = np.array(root_probabilities, np.float64)
    text = str(game).encode()
    handle = library.walk_new(text, len(roots), *_addresses(lengths, actions, probabilities), threads, limits.max_histories)

    def describe() -> str:
        counts = f"{library.walk_counted(handle)} histories and {library.walk_infostates(handle)} infostates"
        return f"{game}, after {counts} of the walk"

    if not handle:
        raise MemoryError(f"{game}: memory ran out before the walk")
    try:
        with memory_errors_name(describe):
            outcome = _run(library, handle, game, limits, advance)
            if outcome == _TOO_LARGE:
                limits.check_count(game, limits.max_histories + 1)
            if outcome == _OUT_OF_MEMORY:
                raise MemoryError("in C++")
            return _record(library, handle, game.num_players()) if outcome == _COMPLETE else None
    except UnicodeDecodeError:  # of a string, at which the walk in Python stops
        return None
    finally:
        library.walk_delete(handle)


def _run(library: ctypes.CDLL, handle: int, game: pyspiel.Game, limits: WalkLimits, advance: Advance) -> int:
    """Runs the walk in another thread, so that this one receives signals and reports progress; returns its outcome."""
    outcomes: list[int] = []
    # Not `Thread.join`: an interrupted join of Python 3.11 declares a running thread dead.
    has_ended = threading.Event()

    def run() -> None:
        outcomes.append(library.walk_run(handle))
        has_ended.set()

    threading.Thread(target=run).start()
    reported, is_over = 0, False
    try:
        while not is_over:
            is_over = has_ended.wait(_SECONDS_BETWEEN_LOOKS)
            counted = library.walk_counted(handle)
            advance(counted - reported)
            reported = counted
            if not is_over:
                limits.check_time(game, counted)
    finally:
        library.walk_stop(handle)
        while not has_ended.is_set():  # the memory of the walk must not be freed before, whatever signals arrive
            with contextlib.suppress(KeyboardInterrupt):
                has_ended.wait()
    return outcomes[0]


def _record(library: ctypes.CDLL, handle: int, num_players: int) -> WalkRecord:
    sizes = np.empty(7, np.int64)
    library.walk_sizes(handle, sizes.ctypes.data)
    num_histories, num_chance, num_outcomes, num_returns, num_infostates, num_actions, key_bytes = sizes.tolist()
    players, lengths = np.empty(num_infostates, np.int8), np.empty(num_infostates, np.int32)
    keys, counts = np.empty(key_bytes, np.uint8), np.empty(num_infostates, np.int32)
    actions = np.empty(num_actions, np.int64)
    library.walk_take_infostates(handle, *_addresses(players, lengths, keys, counts, actions))
    nodes, outcome_counts = np.empty(num_histories, np.int32), np.empty(num_chance, np.int32)
    outcomes, probabilities = np.empty(num_outcomes, np.int64), np.empty(num_outcomes)
    returns = np.empty((num_returns // num_players, num_players))
    library.walk_take_histories(handle, *_addresses(nodes, outcome_counts, outcomes, probabilities, returns))
    return WalkRecord(
        nodes=nodes,
        num_outcomes=outcome_counts,
        outcomes=outcomes,
        outcome_probabilities=probabilities,
        returns=returns,
        infostate_player=players,
        infostate_keys=_texts(keys.tobytes(), lengths),
        num_legal_actions=counts,
        legal_actions=actions,
    )


def _addresses(*arrays: np.ndarray) -> list[int]:
    return [array.ctypes.data for array in arrays]


def _texts(joined: bytes, lengths: np.ndarray) -> tuple[str, ...]:
    stops = np.cumsum(lengths, dtype=np.int64).tolist()
    return tuple(joined[start:stop].decode() for start, stop in zip([0, *stops], stops, strict=False))
