#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""user_context.py FRAMEWORK[_WHAT]: a program that manages contexts by the driver API, and then uses FRAMEWORK.

Prints one line of JSON: what was current before and after (a cuCtxGetId, 0 for none), and whether device 0's primary
context is active. Ends with 77 where the framework is not installed.
"""

import ctypes
import importlib.util
import json
import sys

driver = ctypes.CDLL("libcuda.so.1")


def call(entry, *arguments):
    code = getattr(driver, entry)(*arguments)
    if code:
        sys.exit(f"{entry}: {code}")


def current():
    context, number = ctypes.c_void_p(), ctypes.c_ulonglong()
    call("cuCtxGetCurrent", ctypes.byref(context))
    if context.value:
        call("cuCtxGetId", context, ctypes.byref(number))
    return number.value


def primary_is_active():
    flags, active = ctypes.c_uint(), ctypes.c_int()
    call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
    return bool(active.value)


def use_torch():
    import torch
    assert torch.zeros(4, device="cuda").sum().item() == 0


def use_cupy():
    import cupy
    assert float(cupy.zeros(4).sum()) == 0


def use_jax():
    import jax
    assert float(jax.numpy.zeros(4).sum()) == 0


def use_numba():
    import numpy
    if not hasattr(numpy, "row_stack"):  # numba-cuda 0.30 asks for it; NumPy 2.5 has it no more
        numpy.row_stack = numpy.vstack
    from numba import cuda
    try:
        cuda.to_device(numpy.zeros(4))
    except RuntimeError as error:  # it refuses contexts that are not its own
        print(error, file=sys.stderr)


def use_cuda_core():
    try:
        from cuda import core
    except ImportError:
        sys.exit(77)
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    device.allocate(1024, stream=stream).close()
    stream.sync()


def pop():
    call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    return current()


# A stream of the pool that c10 has, where nothing is current: c10 asks for the range of priorities first.
def use_torch_stream():
    import torch
    before = pop()
    torch.cuda.Stream()
    return before


# What is left when cuBLAS finds nothing current.
def use_cublas():
    library = None
    for name in ("libcublas.so.13", "libcublas.so.12"):
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            pass
    if library is None:
        sys.exit(77)
    before = pop()
    handle = ctypes.c_void_p()
    assert library.cublasCreate_v2(ctypes.byref(handle)) == 0
    return before


def main(name):
    framework = name.partition("_")[0]
    if framework != "cublas" and importlib.util.find_spec(framework) is None:
        sys.exit(77)
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    before = current()
    changed = globals()[f"use_{name}"]()
    print(json.dumps({"before": before if changed is None else changed, "after": current(),
                      "primary": primary_is_active()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
