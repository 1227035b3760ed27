"""A barrier for threads in compiled code.

The threads that share an iteration synchronize several times within a fraction of a millisecond. A barrier of the operating
system would take a large part of that time. So a waiting thread first *spins*: it reads a number in a loop until the last
thread of the team changes it. If the others do not arrive in time, because another program uses their core, the thread sleeps
until it is woken, which frees its core. The number of spins is adaptive: a wait that ends in sleep halves it, any other wait
restores it, and every `_PROBE`-th wait uses the full number. So threads rarely sleep on a machine with idle cores, and rarely
spin on a busy machine.

Sleeping uses the locks of the interpreter (`PyThread_acquire_lock`), which work without the GIL and on every operating system.

The threads of a team call `arrive`, which returns true for the last thread. The last thread may execute sequential code and
then calls `release_team`; the others call `wait`. Whatever a thread wrote before it arrived is visible to all threads after
the barrier.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import llvmlite.binding
import llvmlite.ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spiel_cfrplus.kernels.compilation import jit

# Positions in a barrier, an int64 array of `barrier_size(num_members)` numbers. Positions that different threads write are 128
# bytes apart, two cache lines of most processors, to avoid false sharing.
_LINE = 16
_ARRIVALS, ROUND = 0, _LINE
_FIRST_MEMBER = 2 * _LINE
# Positions relative to the block of a member: whether it sleeps or is about to, and the address of its lock.
_ASLEEP, LOCK = 0, 1

# Reads of the barrier while spinning; a read takes about 10 to 50 ns.
_MIN_SPINS, MAX_SPINS = 64, 4096
_PROBE = 32

_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686", "x86")


def _external(name: str, signature: Any) -> Any:
    """Makes a C function of the interpreter callable from compiled code.

    The symbol is registered under a new name, because LLVM may not find the original one.
    """
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    llvmlite.binding.add_symbol(f"spiel_cfrplus_{name}", address)
    return types.ExternalFunction(f"spiel_cfrplus_{name}", signature)


_acquire_lock = _external("PyThread_acquire_lock", types.intc(types.intp, types.intc))
_release_lock = _external("PyThread_release_lock", types.void(types.intp))


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of an element of a one-dimensional array."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]], wraparound=False)


def _atomic_update(operation: str) -> Any:
    """An intrinsic that updates an element of an int64 array atomically and returns the previous value."""

    @intrinsic
    def update(typing_context, array, index, value):
        def generate(context, builder, signature, arguments):
            pointer = _pointer(context, builder, signature, arguments)
            return builder.atomic_rmw(operation, pointer, arguments[2], "seq_cst")

        return types.int64(array, types.intp, types.int64), generate

    return update


atomic_add = _atomic_update("add")
atomic_exchange = _atomic_update("xchg")


def _load(typing_context, array, index):
    """Atomically reads an element of an int64 array that other threads write."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "seq_cst", 8, typ=llvmlite.ir.IntType(64))

    return types.int64(array, types.intp), generate


atomic_load: Any = intrinsic(_load)


def _pause(typing_context):
    """Executes the processor's spin-wait hint instruction, if there is one."""

    def generate(context, builder, signature, arguments):
        if _HAS_PAUSE:
            function_type = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


pause: Any = intrinsic(_pause)


def barrier_size(num_members: int) -> int:
    """The size of a barrier for `num_members` threads; a new barrier contains zeros and the addresses of the locks."""
    return _FIRST_MEMBER + _LINE * num_members


def lock_position(member: int) -> int:
    """The position of the address of a member's lock in a barrier; the lock is acquired before the barrier is used."""
    return _FIRST_MEMBER + _LINE * member + LOCK


@jit
def arrive(barrier, num_members):
    """Returns whether this thread is the last of the team to arrive; always true in a team of one (empty barrier allowed)."""
    return num_members == 1 or atomic_add(barrier, _ARRIVALS, 1) % num_members == num_members - 1


@jit
def release_team(barrier, num_members):
    """Ends the round and wakes sleeping threads; called by the last thread to arrive."""
    if num_members == 1:
        return
    atomic_add(barrier, ROUND, 1)
    for member in range(num_members):
        place = _FIRST_MEMBER + _LINE * member
        if atomic_load(barrier, place + _ASLEEP) == 1 and atomic_exchange(barrier, place + _ASLEEP, 0) == 1:
            _release_lock(barrier[place + LOCK])


@jit
def wait(barrier, member, this_round, spins):
    """Waits for the end of the round; returns the number of spins for the next wait.

    Args:
      barrier: int64, see above.
      member: the number of this thread in its team.
      this_round: the number of rounds that have ended before.
      spins: the number of spins; `MAX_SPINS` for the first wait.
    """
    if this_round % _PROBE == 0:
        spins = MAX_SPINS
    for _ in range(spins):
        if atomic_load(barrier, ROUND) != this_round:
            return MAX_SPINS
        pause()
    place = _FIRST_MEMBER + _LINE * member
    # A loop, because `release_team` of the previous round may still wake this thread.
    while atomic_load(barrier, ROUND) == this_round:
        atomic_exchange(barrier, place + _ASLEEP, 1)
        # If the round has ended in the meantime, either this thread resets its mark, or `release_team` has seen the mark and
        # releases the lock.
        if atomic_load(barrier, ROUND) == this_round or atomic_exchange(barrier, place + _ASLEEP, 0) == 0:
            _acquire_lock(barrier[place + LOCK], 1)
    return max(spins // 2, _MIN_SPINS)
