# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the module in C++ calls: errors, incidents, and which context an object means."""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any, Callable, Literal, NamedTuple, Optional, Union

from . import _core
from ._core import ContextRef

__tracebackhide__ = True  # pytest: a failure is where the guard, or the function, was called

Held = Union[ContextRef, _core.Acquired, _core.SharedContext]
Create = Union[bool, Literal["keep"]]
# What the context is found by: STREAM, POINTER, DEVICE or PRIMARY; a stream or an address; a device; what becomes of a
# primary context that is not active; where the object was seen before, the context of its stream then.
Way = tuple[int, int, int, int, Optional[ContextRef]]

_UNREPAIRED = 2
_DESTROYED = 709  # CUDA_ERROR_CONTEXT_IS_DESTROYED
_ENDS_LATER = 600  # CUDA_ERROR_NOT_READY: the scope's own thread restores the stack
_NO_DEVICE = _core.NO_DEVICE
_NOTHING: Any = object()  # in place of an object, where None may be one by mistake
_CUDA_MEMORY = (2, 3, 13)  # kDLCUDA, kDLCUDAHost, kDLCUDAManaged


# What the core advises, in words of Python.
_ADVICE = {
    "ask with IfInactive::kCreate": "ask with create=True: cuguest.Primary(device, create=True) for a guard",
    "nobody holds it, and it was not created": "nobody holds it: create=True creates it",
}


class Error(Exception):
    """What failed, as the driver or cuguest says it. Nothing has changed then, and nothing is held."""

    code: int
    """The CUresult."""
    name: str
    """Its name: 'CUDA_ERROR_INVALID_CONTEXT'."""
    doing: str
    """What was being done, to which context, device, stream or memory."""
    advice: str
    """What the code means there, and what to do."""

    def __init__(self, code: int, doing: str, advice: str) -> None:
        for said, told in _ADVICE.items():
            advice = advice.replace(said, told)
        super().__init__(code, doing, advice)
        self.code, self.doing, self.advice = code, doing, advice
        self.name = _core.error_name(code)

    def __str__(self) -> str:
        return f"{self.doing}: {self.advice} [{self.name}, {self.code}]"


class CuguestWarning(RuntimeWarning):
    """A callee left the context stack otherwise than it found it, or a guard was ended where it could not restore.

    It is of the place where the guard was made. Or the driver has not taken back what an object held.
    """


@dataclass(frozen=True)
class Incident:
    """What a guard found when it was left, and what it did about it."""

    kind: str
    """'left a push behind', ...: what a callee did."""
    repair: str
    """'repaired', ...: what the guard did about it."""
    is_repaired: bool
    """False if the caller's stack is not, or not yet, what it was."""
    code: int
    """The CUresult that stopped a repair; 0 if none did."""
    file: str
    """Where the guard was made; of what was not taken back, what it was: 'an Acquired'."""
    line: int
    expected: int
    """The context that the guard expected on top, as a number; 0 for none, as in the two that follow."""
    found: int
    current: int
    """The one that is current now."""
    thread: int
    """The kernel's id of the thread."""

    @property
    def what(self) -> str:
        """The same without the contexts, so that it is one text for one place."""
        because = f" ({_core.error_name(self.code)})" if self.code else ""
        return f"a callee {self.kind}; {self.repair}{because}"

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected:#x}, found {self.found:#x}, now {self.current:#x}"


Callback = Callable[[Incident], object]
_callbacks: list[Callback] = []
_registries: dict[str, dict[Any, int]] = {}  # of warnings of files that are no module's


def on_incident(callback: Callback) -> Callable[[], None]:
    """Has `callback` called for every incident of this interpreter's guards, on the guard's thread, after the repair; and
    of what holds a context, where the driver does not take that back.

    It is called beside the warning, before it. What it raises goes to sys.unraisablehook. Returns a function that
    ends this.
    """
    if not callable(callback):
        raise TypeError(f"on_incident: {callback!r} is not callable")
    _callbacks.append(callback)

    def remove() -> None:
        if callback in _callbacks:
            _callbacks.remove(callback)

    return remove


def _module_of(file: str) -> dict[str, Any]:
    """The globals of what runs `file` in this thread, or of the module that it is of; else none."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    if frame is not None:
        return frame.f_globals
    for module in tuple(sys.modules.values()):
        names: dict[str, Any] = getattr(module, "__dict__", {})  # an attribute may be one that imports
        if names.get("__file__") == file:
            return names
    return {}


def _warn(incident: Incident) -> None:
    """Once a place, unless filters say otherwise, as a warning of the module: its text is the same each time."""
    of = _module_of(incident.file)
    registry = of.setdefault("__warningregistry__", {}) if of else _registries.setdefault(incident.file, {})
    # Without a module, None, Python says nothing.
    module = of.get("__name__") or incident.file.removesuffix(".py")
    warnings.warn_explicit(CuguestWarning(incident.what), None, incident.file, incident.line, module, registry)


def report(rows: list[tuple[int, int, int, str, int, int, int, int, int]], raises: bool) -> None:
    """Of incidents of one call of a scope: raises what a warning became, or that a stack could not be restored."""
    raised: Exception | None = None
    for kind, repair, code, file, line, expected, found, current, thread in rows:
        incident = Incident(_core.incident_name(kind), _core.repair_name(repair), repair != _UNREPAIRED, code, file, line,
                            expected, found, current, thread)
        for callback in tuple(_callbacks):
            try:
                callback(incident)
            except Exception as error:
                _core.ignore(error, callback)
        try:
            _warn(incident)
        except CuguestWarning as warning:
            raised = raised or warning
        if raises and kind != _core.OWED and repair == _UNREPAIRED and code not in (0, _ENDS_LATER):
            raised = raised or Error(code, f"leave the guard of {file}:{line}",
                                     f"the caller's context stack could not be restored; {incident}")
    if raised is not None:
        raise raised


class Primary:
    """The primary context of a device, by its number: guard() holds it for the block.

    It is not created by asking for it: cuguest.Error (CUDA_ERROR_INVALID_CONTEXT) where it is not active, unless
    `create` is true.
    """

    __slots__ = ("create", "device")

    def __init__(self, device: int, *, create: Create = False) -> None:
        self.device: int = device_number(device)
        self.create: Create = create if _if_inactive(create) == _core.CREATE_AND_KEEP else bool(create)

    def __repr__(self) -> str:
        return f"cuguest.Primary({self.device}{f', create={self.create!r}' if self.create else ''})"


class Memory(NamedTuple):
    """Bytes of a device."""

    free: int
    total: int


def _told(number: int) -> str:
    """For a message: Python writes no more than 4300 digits of base 10."""
    return str(number) if number.bit_length() <= 64 else f"{number:#x}"


def device_number(number: object) -> int:
    """A device's number; what no device has, the driver refuses."""
    if isinstance(number, bool):
        raise TypeError(f"cuguest: {number!r} is no device")
    value = operator.index(number)  # type: ignore[arg-type]
    if not -1 < value < 2**31:
        raise ValueError(f"cuguest: {_told(value)} is no device")
    return value


def _if_inactive(create: object) -> int:
    """What becomes of a primary context that is not active."""
    if isinstance(create, str):
        if create != "keep":
            raise ValueError(f"cuguest: create={create!r} is neither True, nor False, nor 'keep'")
        return _core.CREATE_AND_KEEP
    return _core.CREATE if create else _core.REFUSE


def _flags(number: int) -> int:
    if not 0 <= operator.index(number) < 2**32:
        raise ValueError(f"cuguest: {_told(operator.index(number))} is no set of flags")
    return number


def _number(x: object, said: str, value: object) -> int:
    """The number that a protocol of `x` gave: a stream's or an address."""
    try:
        # cuda.bindings' handles have __int__ alone. What has __float__, too, would be cut.
        if isinstance(value, bool):
            raise TypeError
        is_handle = hasattr(value, "__int__") and not hasattr(value, "__index__") and not hasattr(value, "__float__")
        number = value.__int__() if is_handle else operator.index(value)  # type: ignore[attr-defined, arg-type]
        if not isinstance(number, int):
            raise TypeError
    except TypeError:
        raise TypeError(f"cuguest: {said} of {_kind(x)} gave {value!r}, which is no number") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"cuguest: {said} of {_kind(x)} gave {_told(number)}, which is no address")
    return number


def _kind(x: object) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _device_of(x: object) -> int:
    """The device that an object says it is on: PyTorch, CuPy and cuda.core have a name each for it."""
    for name in ("device_index", "device_id", "device"):
        value = getattr(x, name, None)
        for inner in ("index", "device_id", "id"):
            if isinstance(value, int):
                break
            value = getattr(value, inner, value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            return value
    return _NO_DEVICE


_streams: dict[int, tuple[weakref.ref[object], int, ContextRef]] = {}


def note_stream(x: object, stream: int, context: ContextRef) -> None:
    """That `stream`, which `x` has, is one of `context`."""
    key = id(x)
    try:
        _streams[key] = weakref.ref(x, lambda _: _streams.pop(key, None)), stream, context
    except TypeError:  # it has no weak references
        pass


def _of_stream(x: object, said: str, value: object, create: int) -> Way:
    """Of a stream. The driver crashes on the handle of one that went with its context: it is not asked where the
    object, still of the same stream, was seen in a context that is destroyed."""
    stream = _number(x, said, value)
    if stream <= 2:
        return _core.STREAM, stream, _device_of(x), create, None
    known = _streams.get(id(x))
    if known is None or known[0]() is not x or known[1] != stream:
        return _core.STREAM, stream, _NO_DEVICE, create, None
    if not known[2].is_alive():
        raise Error(_DESTROYED, f"find the context of stream {stream:#x} of {_kind(x)}",
                    "its context was destroyed or reset, and the stream with it: make another stream")
    return _core.STREAM, stream, _NO_DEVICE, create, known[2]


def _of_pointer(x: object, said: str, value: object, create: int, device: int = _NO_DEVICE) -> Way:
    """Of memory. An empty array has no address, and means its device."""
    pointer = _number(x, said, value)
    if pointer == 0:
        device = _device_of(x) if device == _NO_DEVICE else device
        if device != _NO_DEVICE:
            return _core.DEVICE, 0, device, create, None
    return _core.POINTER, pointer, _NO_DEVICE, create, None


def _of_cuda_stream(x: object, create: int) -> Way:
    given: Any = getattr(x, "__cuda_stream__")
    given = given() if callable(given) else given
    if not isinstance(given, tuple) or len(given) != 2 or given[0] != 0:
        raise TypeError(f"cuguest: __cuda_stream__ of {_kind(x)} gave {given!r}, not the pair of 0 and a stream")
    return _of_stream(x, "__cuda_stream__", given[1], create)


def _of_array_interface(x: object, interface: Any, create: int) -> Way:
    data = interface.get("data") if isinstance(interface, dict) else None
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"cuguest: __cuda_array_interface__ of {_kind(x)} has no pair as 'data': {data!r}")
    return _of_pointer(x, "__cuda_array_interface__", data[0], create)


def _of_dlpack(x: Any, create: int) -> Way:
    device: Any = x.__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        raise TypeError(f"cuguest: __dlpack_device__() of {_kind(x)} gave {device!r}, not a pair of numbers")
    if device[0] not in _CUDA_MEMORY:
        raise TypeError(f"cuguest: {_kind(x)} is not in CUDA's memory: its device is of DLPack's type {device[0]}")
    # -1: nobody waits for the array's work, as nothing is read.
    pointer = _core.dlpack_pointer(x.__dlpack__(stream=-1))
    return _of_pointer(x, "__dlpack__", pointer, create, device_number(device[1]))


def find(x: Any, create: int = _core.REFUSE) -> Held | Way:
    """The context that `x` means, or the way to it. The first of these that `x` has:

    - what cuguest gave: a ContextRef, an Acquired, a SharedContext; a Primary;
    - a CUcontext or a CUstream of cuda.bindings;
    - `__cuda_stream__`; `cuda_stream` of PyTorch's streams; `device_id` and `ptr` of CuPy's;
    - `is_cuda` and `data_ptr()`, of PyTorch's tensors; `__cuda_array_interface__`; DLPack;
    - `handle`, of contexts and streams as those of cuda.core, Numba and PyCUDA: a CUcontext or a CUstream, or a number
      in a class of such a name.

    A special stream (0, 1 or 2) means the current context, if it is on the object's device, else the device's primary
    one. TypeError if `x` has none of them, and if one gives something else than its protocol says.
    """
    if isinstance(x, (ContextRef, _core.Acquired, _core.SharedContext)):
        return x
    if isinstance(x, Primary):
        return _core.PRIMARY, 0, x.device, max(_if_inactive(x.create), create), None
    name = type(x).__name__
    if name == "CUcontext":
        return ContextRef(_number(x, "int()", x))
    if name in ("CUstream", "cudaStream_t"):
        return _of_stream(x, "int()", x, create)
    if isinstance(x, type):
        raise TypeError(f"cuguest: a class, {x!r}, means no context")
    if hasattr(x, "__cuda_stream__"):
        return _of_cuda_stream(x, create)
    if hasattr(x, "cuda_stream"):
        return _of_stream(x, "cuda_stream", x.cuda_stream, create)
    if hasattr(x, "device_id") and hasattr(x, "ptr") and hasattr(x, "synchronize"):
        return _of_stream(x, "ptr", x.ptr, create)
    if getattr(x, "is_cuda", False) is True and hasattr(x, "data_ptr"):
        return _of_pointer(x, "data_ptr()", x.data_ptr(), create)
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_array_interface(x, interface, create)
    if hasattr(x, "__dlpack_device__") and hasattr(x, "__dlpack__"):
        return _of_dlpack(x, create)
    handle = getattr(x, "handle", None)
    if handle is not None:
        number = (handle.value or 0) if type(handle).__name__ == "c_void_p" else handle
        if type(handle).__name__ == "CUstream" or "stream" in name.lower():
            return _of_stream(x, "handle", number, create)
        if type(handle).__name__ == "CUcontext" or "context" in name.lower():
            return ContextRef(_number(x, "handle", number))
    if type(x).__module__ == "ctypes" and isinstance(getattr(x, "value", None), int):
        raise TypeError(f"cuguest: {_kind(x)} does not say what it is a number of: give its .value if that is a CUcontext, or "
                        "an object with a stream or memory")
    raise TypeError(f"cuguest: {_kind(x)} means no context: it has neither a stream, nor memory of CUDA's, nor a "
                    "context's handle; for the primary context of a device take cuguest.Primary(device)")


def _acquire(x: object, way: Way) -> _core.Acquired:
    acquired = _core.acquire(way)
    if acquired.source == "stream" and acquired.context != way[4]:
        note_stream(x, way[1], acquired.context)
    return acquired


def acquire(x: object = _NOTHING, *, device: int | None = None, create: Create = False) -> _core.Acquired:
    """The context that `x` means, as guard() finds it, or one on `device`: the current one if it is on the device, else
    the device's primary one. With neither, for a caller to whom any context will do: the current one, else the primary
    context of the first device that has an active one. Held until release(), or the end of a `with`.

    `create` says that a primary context that is not active may be created: with True it lasts as long as somebody holds
    it, with "keep" until release_kept(). Without it: cuguest.Error (CUDA_ERROR_INVALID_CONTEXT).
    """
    if_inactive = _if_inactive(create)
    if device is not None:
        if x is not _NOTHING:
            raise TypeError("acquire() takes an object or a device")
        return _core.acquire((_core.DEVICE, 0, device_number(device), if_inactive, None))
    if x is _NOTHING:
        if if_inactive != _core.REFUSE:
            raise TypeError("acquire() creates a context of an object or a device, not any")
        return _core.acquire_any()
    if isinstance(x, int):
        raise TypeError(f"acquire: {_told(x)} is a handle: nothing can hold its context; take guard(), or shared()")
    found = find(x, if_inactive)
    if isinstance(found, tuple):
        return _acquire(x, found)
    if isinstance(found, _core.Acquired):
        return found
    raise TypeError(f"acquire: {_kind(x)} is a context already: take guard(), or shared() to hold it")


def release_kept(device: int | None = None) -> None:
    """Gives back what create="keep" has kept, of `device` or of all. The context goes on until the last of the others
    that hold it releases it. Nothing to do where none is kept."""
    _core.release_kept(_NO_DEVICE if device is None else device_number(device))


def retain_primary(device: int) -> _core.Acquired:
    """One reference to the primary context of `device`, which is created if nobody holds one. Until release(), or the
    end of a `with`."""
    return _core.acquire((_core.PRIMARY, 0, device_number(device), _core.CREATE, None))


def shared(context: object = None, *, device: int | None = None, flags: int = 0) -> _core.SharedContext:
    """One reference, counted for the whole process, to `context`, which guard() would take; or to a new context on
    `device`, with the flags of cuCtxCreate, which is current nowhere and is destroyed with its last reference.
    """
    if (context is None) == (device is None):
        raise TypeError("shared() takes a context or a device")
    if device is not None:
        return _core.create_shared(device_number(device), _flags(flags))
    if isinstance(context, int) and not isinstance(context, bool):
        return _core.attach_shared(context)
    found = find(context)
    if isinstance(found, tuple):
        found = _acquire(context, found)
    ref = found if isinstance(found, ContextRef) else found.context
    if not ref.is_alive():
        raise Error(_DESTROYED, f"share context {ref.handle:#x}",
                    "it was destroyed or reset: find the context that is there now")
    return _core.attach_shared(ref.handle)


def free_memory(device: int, *, create: bool = False) -> Memory:
    """How many bytes `device` has free and in all. Leaves no context behind. cuguest.Error
    (CUDA_ERROR_INVALID_CONTEXT) where no context on the device is current and its primary one is not active, unless
    `create` says that it may be created for the question."""
    return Memory(*_core.free_memory(device_number(device), create))
