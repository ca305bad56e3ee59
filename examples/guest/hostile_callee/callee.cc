// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The faults, each a function, so that a tool can name it: `cuguest-audit -- hostile_callee`
// reports all six.

#include "examples/guest/hostile_callee/callee.h"

namespace callee {

namespace {

using cuguest::Driver;

bool ReplaceTop(const Driver& driver, const Contexts& contexts) {
  return driver.CtxSetCurrent(contexts.p) == CUDA_SUCCESS;
}

bool LeakPush(const Driver& driver, const Contexts& contexts) {
  return driver.CtxPushCurrent(contexts.c) == CUDA_SUCCESS;
}

bool LeakLibrarysPush(const Driver& driver, const Contexts& contexts) {
  return driver.CtxPushCurrent(contexts.library) == CUDA_SUCCESS;
}

bool PopOnce(const Driver& driver) {
  CUcontext popped = nullptr;
  return driver.CtxPopCurrent(&popped) == CUDA_SUCCESS;
}

bool PopTwice(const Driver& driver) {
  CUcontext popped = nullptr;
  if (driver.CtxPopCurrent(&popped) != CUDA_SUCCESS) return false;
  return driver.CtxPopCurrent(&popped) == CUDA_SUCCESS;
}

bool DestroyContext(const Driver& driver, const Contexts& contexts) {
  return driver.CtxDestroy(contexts.library) == CUDA_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool CalleeMisbehave(const Driver& driver,
                                                                       Fault fault,
                                                                       const Contexts& contexts) {
  switch (fault) {
    case Fault::kReplacesTop:
      return ReplaceTop(driver, contexts);
    case Fault::kLeaksPush:
      return LeakPush(driver, contexts);
    case Fault::kLeaksLibrarysPush:
      return LeakLibrarysPush(driver, contexts);
    case Fault::kPopsOnce:
      return PopOnce(driver);
    case Fault::kPopsTwice:
      return PopTwice(driver);
    case Fault::kDestroysContext:
      return DestroyContext(driver, contexts);
  }
  return false;
}

}  // namespace callee
