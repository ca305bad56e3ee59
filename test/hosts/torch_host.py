# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch."""

import ctypes
import os

import torch

import cases
import driver
from host import Host, Missing


class Graph:
    def __init__(self, graph, stream):
        self._graph, self._stream = graph, stream

    def replay(self):
        with torch.cuda.stream(self._stream):
            self._graph.replay()
        torch.cuda.synchronize()

    def close(self):
        self._graph.reset()


class TorchHost(Host):
    name = "PyTorch"

    def versions(self):
        settings = os.environ.get("PYTORCH_ALLOC_CONF", "as it comes")
        return f"{torch.__version__}, CUDA {torch.version.cuda}, allocator {settings}"

    def array(self, count, value):
        array = torch.full((count,), float(value), device="cuda")
        torch.cuda.synchronize()
        return array

    def values(self, array):
        torch.cuda.synchronize()
        return array.tolist()

    def stream(self):
        return torch.cuda.Stream()

    def handle(self, stream):
        return stream.cuda_stream

    def work(self, stream):
        """Kernels, cuBLAS, and a backward pass, which PyTorch does on a thread of its own."""
        with torch.cuda.stream(stream):
            small = torch.arange(64 * 64, device="cuda").remainder(7).float().reshape(64, 64).requires_grad_()
            product = small @ small
            product.relu().sum().backward()
            numbers = [product.sum(), small.grad.sum(), torch.sort(product.flatten())[0][100]]
            return [number.item() for number in numbers]

    def refill(self, array, value, stream):
        with torch.cuda.stream(stream):
            array.fill_(value)

    def capture(self, stream, body):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            body(torch.cuda.current_stream())
        return Graph(graph, stream)


class TorchCases(cases.Cases):
    @classmethod
    def open_host(cls):
        if not torch.cuda.is_available():
            raise Missing("PyTorch has no CUDA here")
        return TorchHost()

    def test_memory_of_the_caching_allocator_is_not_touched(self):
        stream = self.host.stream()
        self.work_between(stream)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        arrays = self.arrays()
        for _ in range(cases.ROUNDS):
            self.guest.scale_add(self.host.handle(stream), 1, *arrays)
        self.guest.sum(self.host.handle(stream), arrays[1])
        del arrays
        self.assertEqual((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()), before)

    def test_its_own_work_under_a_users_context(self):
        """One that is never destroyed: PyTorch allocates in it, and keeps that memory for other uses."""
        context = driver.ask("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
        driver.pop()
        with driver.stack_of([context]):
            self.work_between(self.host.stream())
        self.work_between(self.host.stream())

    def test_inside_a_backward_pass(self):
        """The guest is called on the thread that PyTorch runs a backward pass on."""
        guest, host = self.guest, self.host

        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 2

            @staticmethod
            def backward(context, gradient):
                gradient = gradient.contiguous()
                out = torch.empty_like(gradient)
                handle = host.handle(torch.cuda.current_stream())
                guest.fill(handle, out, 0)
                guest.scale_add(handle, 2, gradient, out)
                return out

        x = torch.full((cases.COUNT,), 3.0, device="cuda", requires_grad=True)
        for stream in (torch.cuda.current_stream(), self.host.stream()):
            x.grad = None
            with torch.cuda.stream(stream):
                (Doubled.apply(x) * 5).sum().backward()
            self.assertEqual(self.host.values(x.grad), [10.0] * cases.COUNT)

    def test_default_stream_while_another_one_captures(self):
        stream = self.host.stream()
        x, y = self.arrays()
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream, capture_error_mode="thread_local"):
            x.mul_(1)
            self.guest.fill(0, y, 1)
        self.assertEqual(self.host.values(y), [1.0] * cases.COUNT)
