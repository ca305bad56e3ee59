# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver API, as far as the tests use it. Handles are ints, 0 is none."""

import contextlib
import ctypes
import pathlib
import re

RELAXED = 2
CAPTURING = 1
INVALID_CONTEXT = 201

_cuda = ctypes.CDLL("libcuda.so.1")


class DriverError(Exception):
    pass


def is_simulated():
    return hasattr(_cuda, "cudasimControl")


def simulates(library):
    """Whether the simulation has another library, which lies beside it."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    return pathlib.Path(re.search(r"(/\S+)/libcuda\.so", maps)[1], library).exists()


def call(entry, *arguments):
    code = getattr(_cuda, entry)(*arguments)
    if code:
        raise DriverError(f"{entry}: {code}")


def ask(entry, kind, *arguments):
    """What `entry` writes to its first parameter, a pointer to `kind`."""
    answer = kind()
    call(entry, ctypes.byref(answer), *arguments)
    return answer.value or 0


def handle(value):
    return ctypes.c_void_p(value)


def device_count():
    return ask("cuDeviceGetCount", ctypes.c_int)


def current():
    return ask("cuCtxGetCurrent", ctypes.c_void_p)


def push(context):
    call("cuCtxPushCurrent_v2", handle(context))


def pop():
    return ask("cuCtxPopCurrent_v2", ctypes.c_void_p)


def _take_stack():
    entries = []
    popped = ctypes.c_void_p()
    while (code := _cuda.cuCtxPopCurrent_v2(ctypes.byref(popped))) == 0:
        entries.insert(0, popped.value)
    if code != INVALID_CONTEXT:
        raise DriverError(f"cuCtxPopCurrent: {code}")
    return entries


@contextlib.contextmanager
def stack_of(contexts):
    """The thread's stack is these, the last one current; at the end as it was before."""
    callers = _take_stack()
    for context in contexts:
        push(context)
    try:
        yield
    finally:
        _take_stack()
        for context in callers:
            push(context)


def stack():
    """The thread's, bottom first; as it was afterwards."""
    entries = _take_stack()
    for context in entries:
        push(context)
    return entries


def context_id(context):
    answer = ctypes.c_ulonglong()
    call("cuCtxGetId", handle(context), ctypes.byref(answer))
    return answer.value


def primary_state(device):
    """(flags, active)"""
    flags, active = ctypes.c_uint(), ctypes.c_int()
    call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
    return flags.value, active.value


@contextlib.contextmanager
def primary_held(device):
    primary = ask("cuDevicePrimaryCtxRetain", ctypes.c_void_p, device)
    try:
        yield primary
    finally:
        call("cuDevicePrimaryCtxRelease_v2", device)


def exchange_capture_mode(mode):
    """The thread's mode before."""
    exchanged = ctypes.c_int(mode)
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(exchanged))
    return exchanged.value


def capture_mode():
    mode = exchange_capture_mode(RELAXED)
    exchange_capture_mode(mode)
    return mode


def capture_status(stream):
    status = ctypes.c_int()
    call("cuStreamIsCapturing", handle(stream), ctypes.byref(status))
    return status.value


@contextlib.contextmanager
def own_context(device=0):
    """Floating: current on no thread."""
    context = ask("cuCtxCreate_v2", ctypes.c_void_p, 0, device)
    pop()
    try:
        yield context
    finally:
        call("cuCtxDestroy_v2", handle(context))


@contextlib.contextmanager
def own_stream():
    """Of the current context, non-blocking."""
    stream = ask("cuStreamCreate", ctypes.c_void_p, 1)
    try:
        yield stream
    finally:
        call("cuStreamDestroy_v2", handle(stream))


@contextlib.contextmanager
def capture(stream):
    """Of mode thread-local. What it gives is the graph afterwards, or none if the capture was invalidated."""
    graph = ctypes.c_void_p()
    call("cuStreamBeginCapture_v2", handle(stream), 1)
    try:
        yield graph
    finally:
        _cuda.cuStreamEndCapture(handle(stream), ctypes.byref(graph))


class Graph:
    """What `body()` submits to `stream`, to be replayed there."""

    def __init__(self, stream, body):
        self._stream = stream
        with capture(stream) as graph:
            body()
        self._exec = ask("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, ctypes.c_ulonglong(0))
        call("cuGraphDestroy", graph)

    def replay(self):
        call("cuGraphLaunch", handle(self._exec), handle(self._stream))
        call("cuStreamSynchronize", handle(self._stream))

    def close(self):
        call("cuGraphExecDestroy", handle(self._exec))
