# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuPy. Its CUDA runtime is inside of it, so that its last error cannot be read."""

import cupy

import cases
from host import Host, Missing


class Graph:
    def __init__(self, graph, stream):
        self._graph, self._stream = graph, stream

    def replay(self):
        self._graph.launch(self._stream)
        self._stream.synchronize()

    def close(self):
        self._graph = None


class CupyHost(Host):
    name = "CuPy"

    def versions(self):
        version = cupy.cuda.runtime.runtimeGetVersion()
        return f"{cupy.__version__}, CUDA {version // 1000}.{version % 1000 // 10}"

    def array(self, count, value):
        array = cupy.full(count, value, dtype="f4")
        cupy.cuda.Device().synchronize()
        return array

    def values(self, array):
        cupy.cuda.Device().synchronize()
        return array.tolist()

    def stream(self):
        return cupy.cuda.Stream(non_blocking=True)

    def handle(self, stream):
        return stream.ptr

    def work(self, stream):
        with stream:
            small = (cupy.arange(64 * 64) % 7).astype("f4").reshape(64, 64)
            product = small @ small
            numbers = [product.sum(), cupy.sort(product, axis=None)[100], cupy.fft.fft(cupy.ones(64, "c8"))[0].real]
            return [float(number) for number in numbers]

    def refill(self, array, value, stream):
        with stream:
            array.fill(value)

    def capture(self, stream, body):
        with stream:
            stream.begin_capture()
            body(stream)
            return Graph(stream.end_capture(), stream)


class CupyCases(cases.Cases):
    @classmethod
    def open_host(cls):
        if not cupy.cuda.is_available():
            raise Missing("CuPy finds no GPU")
        return CupyHost()
