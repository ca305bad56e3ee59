# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For tests: what a call left behind in the calling thread and in the process.

pytest finds the fixture `undisturbed`, which is the same around a whole test, and the option --cuguest-audit.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
from types import TracebackType
from typing import Any, Callable, Iterator, NamedTuple, Sequence, TypeVar, cast

from . import _core
from ._core import ContextRef
from ._python import Error

__all__ = ["Disturbed", "undisturbed"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

__tracebackhide__ = True  # pytest: a failure is where the test's block ends

_CAPTURE_MODES = ("global", "thread-local", "relaxed")
_RELAXED = 2
_DESTROYED = 709


class Disturbed(AssertionError):
    """What a block left behind, a line for each."""


class _Primary(NamedTuple):
    flags: int  # also of one that is not active: those that it will be created with
    incarnation: int | None  # None: it is not active


class _Seen(NamedTuple):
    stack: tuple[ContextRef | None, ...]  # the current one first; None, one that is destroyed, ends it: nothing below is seen
    primaries: dict[int, _Primary]  # by device
    capture_mode: int


_NEW = _Primary(0, None)  # before CUDA was initialised
_NOTHING = _Seen((), {}, 0)


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _put_on(stack: Sequence[ContextRef | None]) -> None:
    for ref in reversed(stack):
        if ref is not None:
            _driver().cuCtxPushCurrent_v2(ctypes.c_void_p(ref.handle))


def _stack() -> tuple[ContextRef | None, ...]:
    """Takes each entry off, down to one that is destroyed, and puts it back."""
    taken: list[ContextRef | None] = []
    popped = ctypes.c_void_p()
    try:
        while (ref := _core.current()) is not None:
            if _driver().cuCtxPopCurrent_v2(ctypes.byref(popped)) != 0:
                break
            taken.append(ref)
    except Error as error:
        if error.code != _DESTROYED:
            raise
        taken.append(None)
    finally:
        _put_on(taken)
    return tuple(taken)


def _exchange_capture_mode(mode: int) -> int:
    exchanged = ctypes.c_int(mode)
    _driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(exchanged))
    return exchanged.value


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
    driver = _driver()
    count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    primaries = {}
    for device in range(count.value):
        if driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)) == 0:
            primaries[device] = _Primary(flags.value, _incarnation(device) if active.value else None)
    capture_mode = _exchange_capture_mode(_RELAXED)
    _exchange_capture_mode(capture_mode)
    return _Seen(_stack(), primaries, capture_mode)


def _changes(before: _Seen, after: _Seen, primaries: bool) -> Iterator[str]:
    if before.stack != after.stack:
        def told(stack: tuple[ContextRef | None, ...]) -> str:
            entries = [f"{ref.handle:#x} (id {ref.id})" if ref is not None else "a destroyed context" for ref in stack]
            return " on ".join(entries) if entries else "empty"

        yield f"the context stack of the thread was {told(before.stack)}, and is {told(after.stack)}"
    for device, now in after.primaries.items():
        was = before.primaries.get(device, _NEW)
        if was.incarnation is None and now.incarnation is not None:
            if primaries:
                yield f"the primary context of device {device} is active, and was not"
        elif now.incarnation is None and was.incarnation is not None:
            yield f"the primary context of device {device} was active, and is not"
        elif was.incarnation != now.incarnation:
            yield f"the primary context of device {device} was reset or released, and created anew"
        if was.flags != now.flags and was.incarnation == now.incarnation:
            yield f"the flags of the primary context of device {device} were {was.flags:#x}, and are {now.flags:#x}"
    if before.capture_mode != after.capture_mode:
        yield (f"the thread's stream-capture mode was {_CAPTURE_MODES[before.capture_mode]}, and is "
               f"{_CAPTURE_MODES[after.capture_mode]}")


def _clear() -> None:
    """Takes off the entries that are destroyed, too."""
    entry = ctypes.c_void_p()
    while _driver().cuCtxGetCurrent(ctypes.byref(entry)) == 0 and entry.value is not None:
        if _driver().cuCtxPopCurrent_v2(ctypes.byref(entry)) != 0:
            return


def _restore(before: _Seen, after: _Seen) -> None:
    """What is the thread's own. What was below a context that had been destroyed is not known: such a stack stays."""
    if before.capture_mode != after.capture_mode:
        _exchange_capture_mode(before.capture_mode)
    if before.stack != after.stack and None not in before.stack:
        _clear()
        _put_on([ref for ref in before.stack if ref is not None and ref.is_alive()])


class undisturbed(contextlib.ContextDecorator):
    """Raises Disturbed if the block leaves anything of this behind: another context stack in the calling thread; a
    primary context that is active and was not, unless `primaries` is false, or the other way round, or another
    incarnation of it, or with other flags, which one that is not active has, too; another stream-capture mode of the
    thread.

    The thread has its stack, but for contexts that were destroyed, and its mode again afterwards, so that the next test
    begins as this one did. Primary contexts stay as they are: somebody may work in them. An exception of the block goes
    on as it is. That CUDA was initialised is no finding. What it does not see: other threads, memory, contexts that are
    on no stack, the runtime's last error.

    As a decorator it is around each call; of a coroutine function around the call and its awaiting, with what other
    tasks of the thread do meanwhile. A generator function is a TypeError: a block in it says what belongs together.
    """

    def __init__(self, *, primaries: bool = True) -> None:
        self._primaries = primaries
        self._before = _NOTHING

    def _recreate_cm(self) -> undisturbed:  # as a decorator: one for each call
        return undisturbed(primaries=self._primaries)

    def __call__(self, func: _Function) -> _Function:
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError(f"undisturbed() as the decorator of a generator function, {func.__qualname__}, would look before it "
                            "runs: write the block in it")
        if not inspect.iscoroutinefunction(func):
            return super().__call__(func)

        @functools.wraps(func)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with self._recreate_cm():
                return await func(*args, **kwargs)

        return cast(_Function, awaited)

    def __enter__(self) -> None:
        self._before = _look()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            with contextlib.suppress(Error):
                _restore(self._before, _look())
            return
        after = _look()
        _restore(self._before, after)
        changes = list(_changes(self._before, after, self._primaries))
        if changes:
            raise Disturbed("; ".join(changes))
