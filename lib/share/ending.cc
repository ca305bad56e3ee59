// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/ending.h"

#include "lib/core/driver_access.h"
#include "lib/share/system.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

struct Destruction {
  const DriverTable* driver;
  CUcontext context;
  CUresult code;
};

void Destroy(void* data) {
  auto* const destruction = static_cast<Destruction*>(data);
  destruction->code = destruction->driver->CtxDestroy(destruction->context);
}

}  // namespace

CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  Destruction destruction{nullptr, context, CUDA_SUCCESS};
  CUresult& code = destruction.code;
  destruction.driver = TryDriver(&code);
  if (destruction.driver != nullptr) code = CheckIncarnation(*destruction.driver, {context, id});
  if (code == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  CUcontext current = nullptr;
  static_cast<void>(destruction.driver->CtxGetCurrent(&current));
  // cuCtxDestroy takes the entry of a context that is current off the calling thread's
  // stack, which would make something else current behind the caller's back. A thread of
  // its own has an empty stack, and an entry that stays behind may be popped safely
  // (cudasim/test/destroyed_facts_test.cc).
  if (current != context || !RunOnNewThread(&Destroy, &destruction)) {
    Destroy(&destruction);  // of what is current: better a popped entry than a leak
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
