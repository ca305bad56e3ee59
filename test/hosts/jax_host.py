# SPDX-License-Identifier: Apache-2.0
"""JAX. The guest works on the stream that it gives to others."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import unittest

import jax
import jax.numpy
import numpy

import cases
import driver
from host import Host, Missing


@jax.jit
def numbers(small):
    product = small @ small
    return product.sum(), jax.grad(lambda x: jax.nn.relu(x @ x).sum())(small).sum(), jax.numpy.sort(product.ravel())[100]


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

    @unittest.skip("it captures by itself, and lets nobody take part")
    def test_inside_a_capture(self):
        pass
