# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For tests: what a call left behind in the calling thread and in the process.

pytest finds the fixture `undisturbed`, which is the same around a whole test, and the option --cuguest-audit.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Iterator, NamedTuple

from . import _core
from ._python import Error

__all__ = ["Disturbed", "undisturbed"]

_CAPTURE_MODES = ("global", "thread-local", "relaxed")
_DESTROYED = 709


class Disturbed(AssertionError):
    """What a block left behind, a line for each."""


class _Primary(NamedTuple):
    flags: int
    id: int  # of its incarnation


class _Seen(NamedTuple):
    stack: tuple[str, ...]  # the current one first; a context that is destroyed ends it, as nothing below is seen
    primaries: dict[int, _Primary]  # by device, those that are active
    capture_mode: int


_NOTHING = _Seen((), {}, 0)


def _stack(driver: ctypes.CDLL) -> tuple[str, ...]:
    """Takes each entry off, and puts it back."""
    seen, taken = [], []
    popped = ctypes.c_void_p()
    try:
        while (ref := _core.current()) is not None:
            seen.append(f"{ref.handle:#x} (id {ref.id})")
            if driver.cuCtxPopCurrent_v2(ctypes.byref(popped)) != 0:
                break
            taken.append(ctypes.c_void_p(popped.value))
    except Error as error:
        if error.code != _DESTROYED:
            raise
        seen.append("a destroyed context")
    finally:
        for context in reversed(taken):
            driver.cuCtxPushCurrent_v2(context)
    return tuple(seen)


def _incarnation(device: int) -> int:
    """Of the primary context, which is active and is retained for the question."""
    try:
        with _core.acquire((_core.PRIMARY, 0, device, _core.REFUSE, None)) as held:
            return held.context.id
    except Error:  # somebody has released it meanwhile
        return 0


def _look() -> _Seen:
    """What there is now. It initialises nothing."""
    if not _core.is_initialized():
        return _NOTHING
    driver = ctypes.CDLL("libcuda.so.1")
    count, flags, active, mode = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int(), ctypes.c_int(2)
    driver.cuDeviceGetCount(ctypes.byref(count))
    primaries = {}
    for device in range(count.value):
        if driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)) == 0 and active.value:
            primaries[device] = _Primary(flags.value, _incarnation(device))
    driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    found = mode.value
    driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    return _Seen(_stack(driver), primaries, found)


def _changes(before: _Seen, after: _Seen, primaries: bool) -> Iterator[str]:
    if before.stack != after.stack:
        def told(stack: tuple[str, ...]) -> str:
            return " on ".join(stack) if stack else "empty"

        yield f"the context stack of the thread was {told(before.stack)}, and is {told(after.stack)}"
    for device in sorted({*before.primaries, *after.primaries}):
        was, now = before.primaries.get(device), after.primaries.get(device)
        if was is None:
            if primaries:
                yield f"the primary context of device {device} is active, and was not"
        elif now is None:
            yield f"the primary context of device {device} was active, and is not"
        elif was.id != now.id:
            yield f"the primary context of device {device} was reset or released, and created anew"
        elif was.flags != now.flags:
            yield f"the flags of the primary context of device {device} were {was.flags:#x}, and are {now.flags:#x}"
    if before.capture_mode != after.capture_mode:
        yield (f"the thread's stream-capture mode was {_CAPTURE_MODES[before.capture_mode]}, and is "
               f"{_CAPTURE_MODES[after.capture_mode]}")


@contextlib.contextmanager
def undisturbed(*, primaries: bool = True) -> Iterator[None]:
    """Raises Disturbed if the block leaves anything of this behind: another context stack in the calling thread; a
    primary context that is active and was not, unless `primaries` is false, or the other way round, or another
    incarnation of it, or with other flags; another stream-capture mode of the thread.

    Repairs nothing. An exception of the block goes on as it is. That CUDA was initialised is no finding. What it does
    not see: other threads, memory, contexts that are on no stack, the runtime's last error.
    """
    before = _look()
    yield
    changes = list(_changes(before, _look(), primaries))
    if changes:
        raise Disturbed("; ".join(changes))
