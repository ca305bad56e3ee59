# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""frameworks.py NAME [pool]: guards around and inside the work of a framework, and of its objects. Run in a process of its own,
also under the auditor. With `pool`: pools of processes beside that work, as a program that loads its data so has them.
Exit status 77 if it is not installed."""

import ctypes
import importlib
import multiprocessing
import sys
import warnings

import cuguest
from pools import WORK

driver = ctypes.CDLL("libcuda.so.1")


class Torch:
    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.x = self.torch.ones(1024, device="cuda")

    def work(self):
        return float((self.x * 2).sum()) == 2048

    def own(self):
        """Objects of the framework's context, and such as mean a device, where any context of it will do."""
        torch = self.torch
        return {"tensor": self.x, "view": self.x[10:], "parameter": torch.nn.Parameter(self.x),
                "stream": torch.cuda.Stream()}

    def of_the_device(self):
        return {"empty tensor": self.torch.empty(0, device="cuda"), "default stream": self.torch.cuda.default_stream()}


class Cupy:
    def __init__(self):
        self.cupy = importlib.import_module("cupy")
        self.x = self.cupy.ones(1024, dtype="float32")

    def work(self):
        return float((self.x * 2).sum()) == 2048

    def own(self):
        return {"array": self.x, "slice": self.x[10:], "stream": self.cupy.cuda.Stream(non_blocking=True)}

    def of_the_device(self):
        return {"empty array": self.cupy.empty(0), "null stream": self.cupy.cuda.Stream.null}


class Numba:
    def __init__(self):
        import numpy
        if not hasattr(numpy, "row_stack"):  # numba-cuda 0.30 asks for it; NumPy 2.5 has it no more
            numpy.row_stack = numpy.vstack
        self.cuda = cuda = importlib.import_module("numba.cuda")

        @cuda.jit
        def double(x):
            at = cuda.grid(1)
            if at < x.size:
                x[at] *= 2

        self.ones, self.double = numpy.ones(1024, dtype="float32"), double
        self.x = self.cuda.to_device(self.ones)

    def work(self):
        x = self.cuda.to_device(self.ones)
        self.double[4, 256](x)
        return float(x.copy_to_host().sum()) == 2048

    def own(self):
        return {"array": self.x, "stream": self.cuda.stream(), "context": self.cuda.current_context()}

    def of_the_device(self):
        return {"default stream": self.cuda.default_stream()}


class CudaCore:
    def __init__(self):
        core = importlib.import_module("cuda.core")
        self.device = core.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()

    def work(self):
        self.device.allocate(1024, stream=self.stream).close()
        self.stream.sync()
        return True

    def own(self):
        return {"stream": self.stream, "context": self.device.context}

    def of_the_device(self):
        return {"buffer": self.device.allocate(1024, stream=self.stream)}


HOSTS = {"torch": Torch, "cupy": Cupy, "numba": Numba, "cuda.core": CudaCore}


def main(name, *more):
    try:
        importlib.import_module("numba.cuda" if name == "numba" else name)
    except ImportError as error:
        print(f"{name} is not installed: {error}")
        return 77
    warnings.simplefilter("error", cuguest.CuguestWarning)  # no incident either
    driver.cuInit(0)
    # A program that works in the primary context itself, so that the framework changes nothing.
    primary = cuguest.retain_primary(0)
    driver.cuCtxSetCurrent(ctypes.c_void_p(primary.context.handle))
    host = HOSTS[name]()
    assert host.work()
    if "pool" in more:
        for method, work in WORK.items():
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(work, range(3)) == [0, 1, 2] and host.work()
        return 0
    framework, guest = cuguest.current(), cuguest.shared(device=0)
    assert framework == primary.context

    with cuguest.guard(guest):  # inside the framework's work
        memory = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1024)) == 0
        assert driver.cuMemFree_v2(memory) == 0
    assert cuguest.current() == framework and host.work()

    objects, others = host.own(), host.of_the_device()
    with cuguest.guard(guest):  # around it, in a thread with another context
        for kind, x in objects.items():
            with cuguest.guard(x):
                assert cuguest.current() == framework, kind
            with cuguest.acquire(x) if kind != "context" else cuguest.guard(x) as held:
                assert kind == "context" or held.context == framework, kind
        for kind, x in others.items():
            with cuguest.guard(x):
                assert cuguest.current() in (framework, guest.context), kind
        with cuguest.guard(framework):
            assert host.work()
            assert cuguest.current() == framework
        assert cuguest.current() == guest.context
    assert cuguest.current() == framework and host.work()
    print(f"{name}: {', '.join([*objects, *others])}")
    guest.release()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
