# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package that asks how much memory a GPU has free: as such are found, and with cuguest."""

import ctypes

import cuguest

driver = ctypes.CDLL("libcuda.so.1")


# [before]
def free_before(device):
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuInit(0)
    driver.cuCtxCreate_v2(ctypes.byref(context), 0, device)  # current from here on
    driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value


# [after]
def free_after(device):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuInit(0)
    with cuguest.shared(device=device) as mine, cuguest.guard(mine):
        driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value
