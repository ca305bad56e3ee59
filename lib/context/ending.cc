// SPDX-License-Identifier: Apache-2.0

#include "lib/context/ending.h"

#include <pthread.h>

#include "lib/context/identity.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

struct Destruction {
  const Driver* driver;
  CUcontext context;
  CUresult code;
};

void* Destroy(void* data) {
  auto* destruction = static_cast<Destruction*>(data);
  destruction->code = destruction->driver->CtxDestroy(destruction->context);
  return nullptr;
}

// cuCtxDestroy takes the entry of a context that is current off the calling thread's
// stack, which would make something else current behind the caller's back. A thread of
// its own has an empty stack, and an entry that stays behind may be popped safely
// (cudasim/test/destroyed_facts_test.cc).
void DestroyElsewhere(Destruction* destruction) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Destroy, destruction) == 0) {
    pthread_join(thread, nullptr);
  } else {
    Destroy(destruction);  // no thread to be had: better a popped entry than a leak
  }
}

}  // namespace

CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = TryDriver(&code);
  if (driver == nullptr) return code;
  code = CheckIncarnation(*driver, {context, id});
  if (code == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  CUcontext current = nullptr;
  static_cast<void>(driver->CtxGetCurrent(&current));
  Destruction destruction{driver, context, CUDA_SUCCESS};
  if (current == context) {
    DestroyElsewhere(&destruction);
  } else {
    Destroy(&destruction);
  }
  return destruction.code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : destruction.code;
}

CUresult ReleasePrimary(CUdevice device) noexcept {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = TryDriver(&code);
  if (driver == nullptr) return code;
  code = driver->DevicePrimaryCtxRelease(device);
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
