// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The faults, each a function, so that a tool can name it: `cuguest-audit -- hostile_callee`
// reports all six.

#include "examples/guest/hostile_callee/callee.h"

#define FAULT(name)                                            \
  extern "C" __attribute__((visibility("default"))) bool name( \
      [[maybe_unused]] const cuguest::Driver& driver,          \
      [[maybe_unused]] const CalleeContexts& contexts)

FAULT(ReplaceTop) { return driver.CtxSetCurrent(contexts.p) == CUDA_SUCCESS; }

FAULT(LeakPush) { return driver.CtxPushCurrent(contexts.c) == CUDA_SUCCESS; }

FAULT(LeakLibrarysPush) { return driver.CtxPushCurrent(contexts.library) == CUDA_SUCCESS; }

FAULT(PopOnce) {
  CUcontext popped = nullptr;
  return driver.CtxPopCurrent(&popped) == CUDA_SUCCESS;
}

FAULT(PopTwice) {
  CUcontext popped = nullptr;
  if (driver.CtxPopCurrent(&popped) != CUDA_SUCCESS) return false;
  return driver.CtxPopCurrent(&popped) == CUDA_SUCCESS;
}

FAULT(DestroyContext) { return driver.CtxDestroy(contexts.library) == CUDA_SUCCESS; }
