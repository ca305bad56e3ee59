// SPDX-License-Identifier: Apache-2.0

#include "lib/context/thread_stack.h"

#include "lib/context/identity.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {
namespace {

template <typename Call>
CUresult Twice(Call call) {
  const CUresult code = call();
  return code == CUDA_SUCCESS ? code : call();
}

}  // namespace

CUresult ThreadStack::Current(CUcontext* current) const {
  return Twice([&] {
    *current = nullptr;
    return driver_.CtxGetCurrent(current);
  });
}

CUresult ThreadStack::Pop(CUcontext* popped) const {
  *popped = nullptr;
  const CUresult code = driver_.CtxPopCurrent(popped);
  if (code == CUDA_SUCCESS) return code;
  CUcontext current = nullptr;
  if (Current(&current) == CUDA_SUCCESS && current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult again = driver_.CtxPopCurrent(popped);
  return again == CUDA_ERROR_INVALID_CONTEXT ? CUDA_ERROR_UNKNOWN : again;
}

CUresult ThreadStack::Push(CUcontext context) const {
  if (!IsAlive(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Twice([&] { return driver_.CtxPushCurrent(context); });
}

CUresult ThreadStack::Replace(CUcontext context) const {
  if (!IsAlive(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Twice([&] { return driver_.CtxSetCurrent(context); });
}

void ThreadStack::MakeCurrent(CUcontext context) const {
  CUcontext current = nullptr;
  if (Current(&current) == CUDA_SUCCESS && current == context) return;
  if (context != nullptr && !IsAlive(context)) return;
  static_cast<void>(Twice([&] { return driver_.CtxSetCurrent(context); }));
}

bool ThreadStack::IsAlive(CUcontext context) const {
  return Twice([&] {
           unsigned long long id = 0;
           return ReadId(driver_, context, &id);
         }) != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool ThreadStack::CurrentIsDead() const { return !IsAlive(nullptr); }

unsigned long long ThreadStack::IdOf(CUcontext context) const {
  unsigned long long id = 0;
  return ReadId(driver_, context, &id) == CUDA_SUCCESS ? id : 0;
}

bool ThreadStack::CurrentIsPrimary() const {
  CUcontext current = nullptr;
  CUcontext primary = nullptr;
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0;
  if (Current(&current) != CUDA_SUCCESS || current == nullptr) return false;
  if (driver_.CtxGetDevice(&device) != CUDA_SUCCESS) return false;
  if (driver_.DevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS) return false;
  if (active == 0 || driver_.DevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  // Once: a release that failed may have taken the reference all the same, and the next one
  // would take somebody else's.
  static_cast<void>(driver_.DevicePrimaryCtxRelease(device));
  return primary == current;
}

bool ThreadStack::Take(Taken* taken) const {
  if (taken->count == Taken::kMax) return false;
  const bool dead = CurrentIsDead();
  CUcontext popped = nullptr;
  if (Pop(&popped) != CUDA_SUCCESS) return false;
  taken->entries[taken->count++] = dead ? nullptr : popped;
  return true;
}

CUresult ThreadStack::PutBack(const Taken& taken) const {
  CUresult first_failure = CUDA_SUCCESS;
  for (int i = taken.count - 1; i >= 0; --i) {
    if (taken.entries[i] == nullptr) continue;
    const CUresult code = Push(taken.entries[i]);
    if (first_failure == CUDA_SUCCESS) first_failure = code;
  }
  return first_failure;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
