# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program written with the driver API, in a context of its own, its primary inactive."""

import contextlib
import ctypes
import pathlib
import struct

import cases
import driver
from host import Host

NON_BLOCKING = 1
FLOAT = 4


class Array:
    def __init__(self, count):
        self.count = count
        self.pointer = driver.ask("cuMemAlloc_v2", ctypes.c_void_p, ctypes.c_size_t(count * FLOAT))

    def __del__(self):
        driver.call("cuMemFree_v2", driver.handle(self.pointer))

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.pointer, False), "shape": (self.count,), "typestr": "<f4", "version": 3}


class DriverHost(Host):
    name = "driver"
    works_in_any_context = True

    def __init__(self, context):
        self._context = context

    def versions(self):
        version = driver.ask("cuDriverGetVersion", ctypes.c_int)
        which = "simulated driver" if driver.is_simulated() else "driver"
        return f"{which} of CUDA {version // 1000}.{version % 1000 // 10}"

    @contextlib.contextmanager
    def _entered(self):
        driver.push(self._context)
        try:
            yield
        finally:
            driver.pop()

    def array(self, count, value):
        with self._entered():
            array = Array(count)
            self.refill(array, value, 0)
            driver.call("cuCtxSynchronize")
            return array

    def values(self, array):
        raw = ctypes.create_string_buffer(array.count * FLOAT)
        with self._entered():
            driver.call("cuCtxSynchronize")
            driver.call("cuMemcpyDtoH_v2", raw, driver.handle(array.pointer), ctypes.c_size_t(len(raw)))
        return list(struct.unpack(f"{array.count}f", raw))

    def stream(self):
        with self._entered():
            return driver.ask("cuStreamCreate", ctypes.c_void_p, NON_BLOCKING)

    def handle(self, stream):
        return stream

    def work(self, stream):
        first, second = self.array(100, 1), self.array(100, 2)
        self.refill(first, 3, stream)
        with self._entered():
            driver.call("cuMemcpyDtoDAsync_v2", driver.handle(second.pointer), driver.handle(first.pointer),
                        ctypes.c_size_t(50 * FLOAT), driver.handle(stream))
        return [sum(self.values(first)), sum(self.values(second))]

    def refill(self, array, value, stream):
        bits, = struct.unpack("I", struct.pack("f", value))
        with self._entered():
            driver.call("cuMemsetD32Async", driver.handle(array.pointer), bits, ctypes.c_size_t(array.count),
                        driver.handle(stream))

    def capture(self, stream, body):
        return driver.Graph(stream, lambda: body(stream))

    def close(self):
        driver.call("cuCtxDestroy_v2", driver.handle(self._context))


class DriverCases(cases.Cases):
    @classmethod
    def open_host(cls):
        driver.call("cuInit", 0)
        with contextlib.suppress(OSError):  # a program may have a runtime loaded
            ctypes.CDLL("libcudart.so.13")
        if driver.is_simulated():
            ctypes.CDLL(str(pathlib.Path(cls.directory).resolve() / "hosts_host_kernels.so")).RegisterHostKernels()
        return DriverHost(driver.ask("cuCtxCreate_v2", ctypes.c_void_p, 0, 0))

    def test_no_primary_is_created(self):
        self.assertEqual(driver.primary_state(0), (0, 0))
        self.guest_works(self.host.stream(), self.arrays())
        self.assertEqual(driver.primary_state(0), (0, 0))
