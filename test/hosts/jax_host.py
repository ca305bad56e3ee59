# SPDX-License-Identifier: Apache-2.0
"""JAX. The guest works on the stream that it gives to others."""

import os
import unittest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy
import numpy

import cases
import driver
from cases import COUNT, ROUNDS
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

    def versions(self):
        return jax.__version__

    def array(self, count, value):
        return jax.device_put(numpy.full(count, value, dtype="f4"), self._device).block_until_ready()

    def values(self, array):
        """Of a copy: JAX takes it that its arrays do not change, and remembers what it has copied."""
        driver.call("cuStreamSynchronize", driver.handle(self.stream()))
        return numpy.asarray(array + 0).tolist()

    def stream(self):
        return self._device.get_stream_for_external_ready_events()

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

    @unittest.skip("JAX captures only what it has compiled: see test_inside_a_capture")
    def test_cublas_inside_a_capture(self):
        pass

    def test_inside_a_capture(self):
        """JAX captures by itself what it has compiled: long enough chains of calls that allow it."""
        x, y = self.arrays()
        self.guest.prepare(self.host.handle(self.host.stream()), y)
        captured = []

        def twice_and_one(stream, x, y):
            captured.append(driver.capture_status(stream) == driver.CAPTURING)
            self.guest.fill(stream, y, 1)
            self.guest.scale_add(stream, 2, x, y)

        call = XlaCall("guest_twice_and_one", twice_and_one)

        @jax.jit
        def chain(x):
            for _ in range(10):
                x = call(x)
            return x

        for _ in range(ROUNDS):
            self.assertEqual(self.host.values(chain(x)), [4.0 * 2**10 - 1] * COUNT)
            self.expect_own_work(self.host.stream())
        self.assertEqual(call.raised, [])
        print(f"XLA made {len(captured)} calls of {10 * ROUNDS}, {sum(captured)} of them in a capture")
        self.assertIn(True, captured)
