// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/ending.h"

#include "lib/core/driver_access.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* const driver = TryDriver(&code);
  if (driver != nullptr) code = CheckIncarnation(*driver, {context, id});
  CUcontext current = nullptr;
  if (code == CUDA_SUCCESS) code = stack::Current(&current);
  // cuCtxDestroy takes one entry of a context that is current off the calling thread's stack
  // (cudasim/test/destroyed_facts_test.cc). So it is given one: the caller's stays where it is,
  // dead, and may be popped safely.
  const bool is_current = current == context;
  if (code == CUDA_SUCCESS && is_current) code = driver->CtxPushCurrent(context);
  if (code == CUDA_SUCCESS) {
    code = driver->CtxDestroy(context);
    if (code != CUDA_SUCCESS && is_current) static_cast<void>(stack::Pop(&current));
  }
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

CUresult ReleasePrimary(CUdevice device) noexcept {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* driver = TryDriver(&code);
  if (driver != nullptr) code = driver->DevicePrimaryCtxRelease(device);
  // The process is ending, and the driver has taken everything back.
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

CUGUEST_END_INTERNAL_NAMESPACE
