"""A barrier for threads inside compiled code.

The threads that share an iteration meet several times in a fraction of a millisecond. A barrier of the operating system would
take a large part of that, so a thread that waits first *spins*: it reads a number in a loop until the last thread of the team
changes it. If the others do not come in time, because another program uses their core, it sleeps until it is woken, and its
core is free for others. How long a thread spins adapts: a wait that ends in sleep halves the time, a wait that does not
restores it, and every `_PROBE`-th wait tries the full time again. So on a machine with idle cores threads hardly ever sleep,
and on a busy one they hardly ever spin.

Sleeping is done by the interpreter's own locks (`PyThread_acquire_lock`), which need neither the interpreter nor a particular
operating system.

The threads of a team call `arrive`; it is true for the last of them, which then does what only one thread may do, and calls
`let_go`. The others call `wait`. What one thread wrote before it arrived, all see after the meeting.
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

# Places in a barrier, an int64 array of `barrier_size(num_members)` numbers. Those that several threads write are 128 bytes
# apart, two cache lines of most processors, so that they do not slow each other down.
_LINE = 16
_ARRIVALS, ROUND = 0, _LINE
_FIRST_MEMBER = 2 * _LINE
# Places relative to those of a member: whether it sleeps or is about to, and the address of the lock that it sleeps at.
_ASLEEP, LOCK = 0, 1

# Looks at the barrier while spinning; one takes some 10 to 50 ns.
_FEWEST_SPINS, MOST_SPINS = 64, 4096
_PROBE = 32

_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686", "x86")


def _external(name: str, signature: Any) -> Any:
    """A function of the interpreter for compiled code, under a name of its own, as LLVM may not know that of the function."""
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
    """An intrinsic that changes an element of an int64 array at once and returns what it was before."""

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
    """An element of an int64 array, as other threads left it."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "seq_cst", 8, typ=llvmlite.ir.IntType(64))

    return types.int64(array, types.intp), generate


atomic_load: Any = intrinsic(_load)


def _pause(typing_context):
    """Tells the processor that the thread spins, where there is an instruction for that."""

    def generate(context, builder, signature, arguments):
        if _HAS_PAUSE:
            function_type = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


pause: Any = intrinsic(_pause)


def barrier_size(num_members: int) -> int:
    """The numbers in a barrier for so many threads; zeros, but for the locks, are a barrier that is not yet used."""
    return _FIRST_MEMBER + _LINE * num_members


def place_of_lock(member: int) -> int:
    """Where the address of a member's lock, which is held from the start, stands in a barrier."""
    return _FIRST_MEMBER + _LINE * member + LOCK


@jit
def arrive(barrier, num_members):
    """Whether all others of the team have arrived; always so in a team of one, for which the barrier may be empty."""
    return num_members == 1 or atomic_add(barrier, _ARRIVALS, 1) % num_members == num_members - 1


@jit
def let_go(barrier, num_members):
    """Ends the round; the last one to arrive calls this."""
    if num_members == 1:
        return
    atomic_add(barrier, ROUND, 1)
    for member in range(num_members):
        place = _FIRST_MEMBER + _LINE * member
        if atomic_load(barrier, place + _ASLEEP) == 1 and atomic_exchange(barrier, place + _ASLEEP, 0) == 1:
            _release_lock(barrier[place + LOCK])


@jit
def wait(barrier, member, this_round, spins):
    """Waits for the end of the round; returns how long to spin the next time.

    Args:
      barrier: int64, see above.
      member: the number of this thread in its team.
      this_round: how many rounds have ended before.
      spins: how long to spin, `MOST_SPINS` at first.
    """
    if this_round % _PROBE == 0:
        spins = MOST_SPINS
    for _ in range(spins):
        if atomic_load(barrier, ROUND) != this_round:
            return MOST_SPINS
        pause()
    place = _FIRST_MEMBER + _LINE * member
    # The end of the round before may still be waking threads, this one too, hence the loop.
    while atomic_load(barrier, ROUND) == this_round:
        atomic_exchange(barrier, place + _ASLEEP, 1)
        # If the round ended meanwhile, either this thread takes the mark back or `let_go` has seen it and releases the lock.
        if atomic_load(barrier, ROUND) == this_round or atomic_exchange(barrier, place + _ASLEEP, 0) == 0:
            _acquire_lock(barrier[place + LOCK], 1)
    return max(spins // 2, _FEWEST_SPINS)
