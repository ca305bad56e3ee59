# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""host.py before|after [--calls]: a host whose current context a probe replaces, or does not.

The host is PyTorch where that is installed, and otherwise, or with --calls, a few calls of the driver, so that this
runs on the simulated one, too.
"""

import ctypes
import importlib
import importlib.util
import sys

import cuguest
import probe

driver = ctypes.CDLL("libcuda.so.1")


class Torch:
    """Work of PyTorch, in the primary context."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.x = self.torch.ones(1024, device="cuda")

    def work(self):
        return float((self.x + 1).sum()) == 2048


class Calls:
    """The same without it: the memory that it allocates has to be in the context that it chose."""

    def __init__(self):
        driver.cuInit(0)
        self.context = ctypes.c_void_p()
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0)
        driver.cuCtxSetCurrent(self.context)

    def work(self):
        memory, owner = ctypes.c_uint64(), ctypes.c_void_p()
        driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1024))
        driver.cuPointerGetAttribute(ctypes.byref(owner), 1, memory)  # CU_POINTER_ATTRIBUTE_CONTEXT
        driver.cuMemFree_v2(memory)
        return owner.value == self.context.value


def main():
    host = Torch() if importlib.util.find_spec("torch") and "--calls" not in sys.argv else Calls()
    assert host.work()
    before = cuguest.current()
    {"before": probe.free_before, "after": probe.free_after}[sys.argv[1]](0)
    is_kept = cuguest.current() == before
    try:
        works = host.work()
    except RuntimeError as error:
        works = str(error).splitlines()[0]
    print(f"{type(host).__name__}: its context is {'still' if is_kept else 'no longer'} current; its work: {works}")


main()
