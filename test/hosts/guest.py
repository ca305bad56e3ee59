# SPDX-License-Identifier: Apache-2.0
"""The library of guest.h, each of its calls watched. Memory is whatever handover.py takes."""

import ctypes
import pathlib

from handover import memory_of

# Of absl::StatusCode
INVALID_ARGUMENT = 3
NOT_FOUND = 5
FAILED_PRECONDITION = 9

POINTER = ctypes.c_void_p
COUNT = ctypes.c_size_t


class GuestError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Guest:
    def __init__(self, directory, watch):
        self._library = ctypes.CDLL(str(pathlib.Path(directory).resolve() / "hosts_guest.so"))
        self._library.guest_last_error_text.restype = ctypes.c_char_p
        self._library.guest_live.restype = ctypes.c_long
        self._watch = watch

    def _call(self, name, stream, *arguments):
        with self._watch.undisturbed(stream):
            code = getattr(self._library, name)(*arguments)
        if code:
            raise GuestError(code, self._library.guest_last_error_text().decode())

    def _on_stream(self, name, stream, *arguments):
        self._call(name, stream, POINTER(stream), *arguments)

    def _sum(self, name, stream, *arguments):
        answer = ctypes.c_double()
        self._call(name, stream, *arguments, ctypes.byref(answer))
        return answer.value

    def prepare(self, stream, array):
        self._on_stream("guest_prepare", stream, POINTER(memory_of(array).pointer))

    def fill(self, stream, array, value):
        memory = memory_of(array)
        self._on_stream("guest_fill", stream, POINTER(memory.pointer), COUNT(memory.count), ctypes.c_float(value))

    def scale_add(self, stream, a, x, y):
        memory = memory_of(x)
        self._on_stream("guest_scale_add", stream, ctypes.c_float(a), POINTER(memory.pointer),
                        POINTER(memory_of(y).pointer), COUNT(memory.count))

    def sum(self, stream, array):
        memory = memory_of(array)
        return self._sum("guest_sum", stream, POINTER(stream), POINTER(memory.pointer), COUNT(memory.count))

    def work_in_own_context(self, count, device=0):
        return self._sum("guest_work_in_own_context", 0, device, COUNT(count))

    def work_in_primary_context(self, count, device=0):
        return self._sum("guest_work_in_primary_context", 0, device, COUNT(count))

    def live(self):
        return self._library.guest_live()

    def close(self):
        self._call("guest_close", 0)
