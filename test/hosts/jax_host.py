# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX. The guest works on the stream that it gives to others."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy
import numpy

import cases
import driver
from cases import COUNT, ROUNDS, ROWS, WORKSPACE
from host import Host, Missing
from xla_call import XlaCall


@jax.jit
def numbers(small):
    product = small @ small
    gradient = jax.grad(lambda x: jax.nn.relu(x @ x).sum())(small)
    return product.sum(), gradient.sum(), jax.numpy.sort(product.ravel())[100]


class JaxHost(Host):
    name = "JAX"

    def __init__(self, device):
        self._device = device
        self._streams = set()

    def versions(self):
        return jax.__version__

    def array(self, count, value):
        return jax.device_put(numpy.full(count, value, dtype="f4"), self._device).block_until_ready()

    def values(self, array):
        """Of a copy: JAX takes it that its arrays do not change, and remembers what it has copied."""
        for stream in self._streams:
            driver.call("cuStreamSynchronize", driver.handle(stream))
        return numpy.asarray(array + 0).tolist()

    def stream(self):
        stream = self._device.get_stream_for_external_ready_events()  # one of several, in turn
        self._streams.add(stream)
        return stream

    def handle(self, stream):
        return stream

    def work(self, stream):
        small = (jax.numpy.arange(64 * 64) % 7).astype("f4").reshape(64, 64)
        return [float(number) for number in numbers(small)]


class JaxCases(cases.Cases):
    @classmethod
    def open_host(cls):
        try:
            return JaxHost(jax.devices("gpu")[0])
        except RuntimeError as error:
            raise Missing(f"JAX finds no GPU: {error}") from error

    def expect_in_captures(self, function, array, values):
        """Ten calls of function(stream, x, y) in a row are captured: JAX does so by itself with what it compiles."""
        captured = []

        def called(stream, x, y):
            captured.append(driver.capture_status(stream) == driver.CAPTURING)
            function(stream, x, y)

        call = XlaCall(function.__name__, called)

        @jax.jit
        def chain(x):
            for _ in range(10):
                x = call(x)
            return x

        for _ in range(ROUNDS):
            self.assertEqual(self.host.values(chain(array)), values)
            self.expect_own_work(self.host.stream())
        self.assertEqual(call.raised, [])
        self.assertIn(True, captured)

    def test_inside_a_capture(self):
        x, y = self.arrays()
        self.guest.prepare(self.host.handle(self.host.stream()), y)

        def twice_and_one(stream, x, y):
            self.guest.fill(stream, y, 1)
            self.guest.scale_add(stream, 2, x, y)

        self.expect_in_captures(twice_and_one, x, [4.0 * 2**10 - 1] * COUNT)

    def test_cublas_inside_a_capture(self):
        a = self.host.array(ROWS**2, 1)
        twice = self.host.array(ROWS**2, 2 / ROWS)
        workspace = self.host.array(WORKSPACE, 0)
        guest = self.gemm_guest(self.host.handle(self.host.stream()), a)

        def times_two(stream, x, y):
            guest.multiply(stream, x, twice, y, ROWS, workspace)

        self.expect_in_captures(times_two, a, [2.0**10] * ROWS**2)
