# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries of guest.h and gemm_guest.h, each call watched. Memory is whatever handover.py takes."""

import ctypes
import pathlib

from handover import memory_of

# Of absl::StatusCode
INVALID_ARGUMENT = 3
NOT_FOUND = 5
FAILED_PRECONDITION = 9
UNAVAILABLE = 14

POINTER = ctypes.c_void_p
COUNT = ctypes.c_size_t


class GuestError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class _Library:
    file = ""
    prefix = ""  # of its functions

    def __init__(self, directory, watch):
        self._library = ctypes.CDLL(str(pathlib.Path(directory).resolve() / self.file))
        self._error_text = getattr(self._library, self.prefix + "last_error_text")
        self._error_text.restype = ctypes.c_char_p
        self._watch = watch

    def _call(self, name, stream, *arguments):
        with self._watch.undisturbed(stream):
            code = getattr(self._library, self.prefix + name)(*arguments)
        if code:
            raise GuestError(code, self._error_text().decode())

    def _on_stream(self, name, stream, *arguments):
        self._call(name, stream, POINTER(stream), *arguments)

    def close(self):
        self._call("close", 0)


class GemmGuest(_Library):
    file = "hosts_gemm_guest.so"
    prefix = "gemm_"

    def prepare(self, stream, array, threads=1):
        self._on_stream("prepare", stream, POINTER(memory_of(array).pointer), COUNT(threads))

    def multiply(self, stream, a, b, c, rows, workspace):
        memory = memory_of(workspace)
        self._on_stream("multiply", stream, *(POINTER(memory_of(matrix).pointer) for matrix in (a, b, c)),
                        COUNT(rows), POINTER(memory.pointer), COUNT(memory.count * ctypes.sizeof(ctypes.c_float)))


class Guest(_Library):
    file = "hosts_guest.so"
    prefix = "guest_"

    def __init__(self, directory, watch):
        super().__init__(directory, watch)
        self._library.guest_live.restype = ctypes.c_long

    def _sum(self, name, stream, *arguments):
        answer = ctypes.c_double()
        self._call(name, stream, *arguments, ctypes.byref(answer))
        return answer.value

    def prepare(self, stream, array):
        self._on_stream("prepare", stream, POINTER(memory_of(array).pointer))

    def fill(self, stream, array, value):
        memory = memory_of(array)
        self._on_stream("fill", stream, POINTER(memory.pointer), COUNT(memory.count), ctypes.c_float(value))

    def scale_add(self, stream, a, x, y):
        memory = memory_of(x)
        self._on_stream("scale_add", stream, ctypes.c_float(a), POINTER(memory.pointer),
                        POINTER(memory_of(y).pointer), COUNT(memory.count))

    def sum(self, stream, array):
        memory = memory_of(array)
        return self._sum("sum", stream, POINTER(stream), POINTER(memory.pointer), COUNT(memory.count))

    def work_in_own_context(self, count, device=0):
        return self._sum("work_in_own_context", 0, device, COUNT(count))

    def work_in_primary_context(self, count, device=0):
        return self._sum("work_in_primary_context", 0, device, COUNT(count))

    def live(self):
        return self._library.guest_live()
