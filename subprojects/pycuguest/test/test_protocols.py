# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects with a stream, memory or a context, as frameworks have them, and such as lie."""

import collections
import ctypes
import decimal
import fractions
import types

import pytest

import cuguest


class CUcontext:
    """As cuda.bindings' handles: a number by int() alone."""

    def __init__(self, number):
        self.number = number

    def __int__(self):
        return self.number


class CUstream(CUcontext):
    pass


class Capsule:
    """DLPack's capsule of one array, unversioned or as of version 1."""

    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("rest", ctypes.c_uint64 * 6)]

    class Versioned(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                    ("flags", ctypes.c_uint64)]

    def __init__(self, pointer, major=None, name=None):
        tensor = self.Tensor(pointer, 2, 0)
        raw = bytes(tensor)
        if major is not None:
            raw = bytes(self.Versioned((major, 0))) + raw
        self.memory = ctypes.create_string_buffer(raw)
        self.name = name or (b"dltensor" if major is None else b"dltensor_versioned")

    def __call__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.memory), self.name, None)


class Array:
    """What speaks DLPack alone, as cuda.core's Buffer."""

    def __init__(self, capsule, device=(2, 0)):
        self.capsule, self.device_given = capsule, device

    def __dlpack_device__(self):
        return self.device_given

    def __dlpack__(self, stream=None):
        assert stream == -1
        return self.capsule()


def interface(pointer, **others):
    return types.SimpleNamespace(__cuda_array_interface__={"data": (pointer, False), "shape": (4,), "typestr": "<f4",
                                                           "version": 3, **others})


class Streamed:
    def __init__(self, given):
        self.given = given

    def __cuda_stream__(self):
        return self.given


OBJECTS = {
    "cuda.bindings' context": lambda d, c: CUcontext(c),
    "cuda.bindings' stream": lambda d, c: CUstream(d.stream(c)),
    "cuda.core's context": lambda d, c: types.SimpleNamespace(handle=CUcontext(c)),
    "Numba's context": lambda d, c: type("Context", (), {"handle": ctypes.c_void_p(c)})(),
    "PyCUDA's context": lambda d, c: type("Context", (), {"handle": c})(),
    "stream protocol": lambda d, c: Streamed((0, d.stream(c))),
    "stream protocol, an attribute": lambda d, c: types.SimpleNamespace(__cuda_stream__=(0, d.stream(c))),
    "stream protocol, a handle": lambda d, c: Streamed((0, CUstream(d.stream(c)))),
    "PyTorch's stream": lambda d, c: types.SimpleNamespace(cuda_stream=d.stream(c), device_index=0),
    "CuPy's stream": lambda d, c: types.SimpleNamespace(ptr=d.stream(c), device_id=0, synchronize=None),
    "Numba's stream": lambda d, c: type("Stream", (), {"handle": ctypes.c_void_p(d.stream(c))})(),
    "PyTorch's tensor": lambda d, c: types.SimpleNamespace(is_cuda=True, data_ptr=lambda p=d.memory(c): p + 64,
                                                          device=types.SimpleNamespace(index=0)),
    "CUDA array interface": lambda d, c: interface(d.memory(c)),
    "DLPack": lambda d, c: Array(Capsule(d.memory(c))),
    "DLPack, version 1": lambda d, c: Array(Capsule(d.memory(c), major=1)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_guard_of_an_object(driver, two, name):
    host, guest = two
    x = OBJECTS[name](driver, guest)
    with cuguest.guard(x):
        assert driver.stack() == [guest, host]
    assert driver.stack() == [host]
    if "context" not in name:
        with cuguest.acquire(x) as held:
            assert held.context.handle == guest and held.source in ("stream", "pointer")
        with cuguest.shared(x) as shared:
            assert shared.context.handle == guest


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("device", [None, 0])
def test_special_stream_means_the_current(driver, two, stream, device):
    host, guest = two
    x = type("Stream", (), {"handle": ctypes.c_void_p(stream)} if device is None else {"__cuda_stream__": (0, stream)})()
    if device is not None:
        x.device = types.SimpleNamespace(index=device)
    with cuguest.guard(x):
        assert driver.stack() == [host]
    driver.pop()
    if not driver.is_active():
        with pytest.raises(cuguest.Error) as raised:
            cuguest.guard(x).__enter__()
        assert raised.value.name == "CUDA_ERROR_INVALID_CONTEXT" and not driver.is_active()


def test_empty_array_means_its_device(driver, two):
    host, _ = two
    for x in (types.SimpleNamespace(is_cuda=True, data_ptr=lambda: 0, device=types.SimpleNamespace(index=0)),
              types.SimpleNamespace(__cuda_array_interface__={"data": (0, False)}, device=types.SimpleNamespace(id=0)),
              Array(Capsule(None))):
        with cuguest.guard(x):
            assert driver.stack() == [host]
    with pytest.raises(cuguest.Error):  # of no device that it says
        cuguest.guard(interface(0)).__enter__()


class Angry:
    @property
    def __cuda_stream__(self):
        raise OSError("mine")


LIES = {
    "no pair": (Streamed(7), TypeError),
    "a list": (Streamed([0, 1]), TypeError),
    "another version": (Streamed((1, 1)), TypeError),
    "no number": (Streamed((0, "1")), TypeError),
    "none": (Streamed((0, None)), TypeError),
    "a bool": (Streamed((0, True)), TypeError),
    "a float": (Streamed((0, 1.0)), TypeError),
    "a decimal": (Streamed((0, decimal.Decimal("1.9"))), TypeError),
    "a fraction": (Streamed((0, fractions.Fraction(3, 2))), TypeError),
    "a tuple": ((1, 2, 3), TypeError),
    "a tuple of what may be created": ((cuguest.Primary(0), True), TypeError),
    "an empty tuple": ((), TypeError),
    "negative": (Streamed((0, -1)), ValueError),
    "huge": (Streamed((0, 2**64)), ValueError),
    "no address": (Streamed((0, 4099)), ValueError),
    "int() that lies": (Streamed((0, type("X", (), {"__int__": lambda self: "4096"})())), TypeError),
    "raises": (Angry(), OSError),
    "no dictionary": (types.SimpleNamespace(__cuda_array_interface__=3), TypeError),
    "no data": (types.SimpleNamespace(__cuda_array_interface__={}), TypeError),
    "data of one": (types.SimpleNamespace(__cuda_array_interface__={"data": (1,)}), TypeError),
    "data of None": (interface(None), TypeError),
    "a huge pointer": (interface(2**65), ValueError),
    "a pointer of more digits than Python writes": (interface(2**20000), ValueError),
    "a negative pointer": (interface(-4096), ValueError),
    "unknown memory": (interface(4096), cuguest.Error),
    "the last address": (interface(2**64 - 1), cuguest.Error),
    "null": (interface(0), cuguest.Error),
    "the host's memory": (Array(Capsule(4096), device=(1, 0)), TypeError),
    "no device of DLPack": (Array(Capsule(4096), device=2), TypeError),
    "DLPack's device -1": (Array(Capsule(4096), device=(2, -1)), ValueError),
    "no capsule": (Array(lambda: 4096), TypeError),
    "a used capsule": (Array(Capsule(4096, name=b"used_dltensor")), TypeError),
    "a capsule of version 9": (Array(Capsule(4096, major=9)), TypeError),
    "unknown memory by DLPack": (Array(Capsule(4096)), cuguest.Error),
    "a tensor of text": (types.SimpleNamespace(is_cuda=True, data_ptr=lambda: "p"), TypeError),
    "a stream of None": (types.SimpleNamespace(cuda_stream=None), TypeError),
    "a context without handle": (type("Context", (), {"handle": None})(), TypeError),
    "a context of text": (type("Context", (), {"handle": "x"})(), TypeError),
    "a context at 8": (type("Context", (), {"handle": 8})(), ValueError),
    "a class": (Streamed, TypeError),
}


class StreamWithAName(collections.namedtuple("StreamWithAName", "name stream")):
    def __cuda_stream__(self):
        return 0, self.stream


def test_tuple_that_has_a_stream(driver, two):
    """It is one object, and no arguments."""
    _, guest = two
    x = StreamWithAName("mine", driver.stream(guest))
    assert cuguest.acquire(x).context.handle == guest
    with cuguest.guard(x):
        assert driver.current() == guest


@pytest.mark.parametrize("name", LIES)
def test_protocol_that_lies(driver, two, name):
    host, _ = two
    x, kind = LIES[name]
    for _ in range(2):
        with pytest.raises(kind) as raised:
            cuguest.guard(x).__enter__()
        assert "mine" in str(raised.value) or "cuguest: " in str(raised.value) or kind is cuguest.Error
        assert driver.stack() == [host]


def test_stream_that_went_with_its_context(driver, two):
    """The driver crashes on its handle, so it is not asked again for an object that was seen before."""
    host, guest = two
    stream = Streamed((0, driver.stream(guest)))
    with cuguest.guard(stream):
        assert driver.current() == guest
    driver.destroy(guest)
    with pytest.raises(cuguest.Error, match="make another stream") as raised:
        cuguest.guard(stream).__enter__()
    assert raised.value.code == 709 and driver.stack() == [host]
    stream.given = (0, driver.stream(host))  # the object has another one by now
    with cuguest.guard(stream):
        assert driver.stack() == [host]


def test_memory_that_went_with_its_context(driver, two):
    host, guest = two
    array = interface(driver.memory(guest))
    driver.destroy(guest)
    with pytest.raises(cuguest.Error):
        cuguest.guard(array).__enter__()
    assert driver.stack() == [host]


def test_cuda_core(driver, two):
    """The real one, where it is installed."""
    core = pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    host, _ = two
    driver.set(None)
    device = core.Device(0)
    device.set_current()
    mine = driver.current()
    stream = device.create_stream()
    buffer = device.allocate(4096, stream=stream)
    driver.set(host)
    for x in (device.context, stream):
        with cuguest.guard(x):
            assert driver.stack() == [mine, host], x
    with cuguest.guard(buffer):  # a pool's memory belongs to no context: any on its device will do
        assert driver.stack() == [host]
    with cuguest.acquire(buffer) as held:
        assert held.source == "current"
    assert driver.stack() == [host]
    buffer.close()


def test_number_of_ctypes(driver, two):
    """Says neither a context nor a stream; where it is one of them, its value does."""
    _, guest = two
    for ask in (cuguest.shared, cuguest.acquire, lambda x: cuguest.guard(x).__enter__()):
        with pytest.raises(TypeError, match=r"give its \.value"):
            ask(ctypes.c_void_p(guest))
    with cuguest.guard(ctypes.c_void_p(guest).value):
        assert driver.current() == guest
