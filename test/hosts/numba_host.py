# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numba."""

import os

import numpy

# numba-cuda 0.30 asks for it; NumPy 2.5 has it no more.
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack

os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")

import numba
from numba import cuda

import cases
import driver
from host import Host, Missing


@cuda.jit
def fill(values, value):
    i = cuda.grid(1)
    if i < values.size:
        values[i] = value


@cuda.jit
def square(values, squares):
    i = cuda.grid(1)
    if i < values.size:
        squares[i] = values[i] * values[i]


def blocks(count):
    return (count + 127) // 128, 128


class NumbaHost(Host):
    name = "Numba"

    def versions(self):
        return f"{numba.__version__}, CUDA {'.'.join(map(str, cuda.runtime.get_version()))}"

    def array(self, count, value):
        return cuda.to_device(numpy.full(count, value, dtype="f4"))

    def values(self, array):
        cuda.synchronize()
        return array.copy_to_host().tolist()

    def stream(self):
        return cuda.stream()

    def handle(self, stream):
        return int(stream.handle)

    def work(self, stream):
        values = cuda.to_device(numpy.arange(100, dtype="f4"), stream=stream)
        squares = cuda.device_array(100, dtype="f4", stream=stream)
        square[(*blocks(100), stream)](values, squares)
        return squares.copy_to_host(stream=stream).tolist()

    def refill(self, array, value, stream):
        fill[(*blocks(array.size), stream)](array, numpy.float32(value))

    def capture(self, stream, body):
        return driver.Graph(self.handle(stream), lambda: body(stream))


class NumbaCases(cases.Cases):
    @classmethod
    def open_host(cls):
        if not cuda.is_available():
            raise Missing("Numba finds no GPU")
        return NumbaHost()
