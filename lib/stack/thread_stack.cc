// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

template <typename Call>
CUresult Twice(Call call) {
  const CUresult first = call();
  if (first == CUDA_SUCCESS) return first;
  const CUresult second = call();
  // That a context is over is an answer, which another failure does not take back.
  const bool is_over = second != CUDA_SUCCESS && first == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return is_over ? first : second;
}

}  // namespace

CUcontext g_primaries[kDevicesWithPrimary];

CUresult AskIfPrimary(const DriverTable& driver, CUcontext context, bool* is_primary) noexcept {
  *is_primary = false;
  CUdevice device = 0;
  CUresult code = driver.CtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return code;
  if (CUcontext const learnt = LearntPrimary(device); learnt != nullptr) {
    *is_primary = learnt == context;
    return CUDA_SUCCESS;
  }
  unsigned flags = 0;
  int active = 0;
  code = driver.DevicePrimaryCtxGetState(device, &flags, &active);
  if (code != CUDA_SUCCESS || active == 0) return code;
  CUcontext primary = nullptr;
  code = driver.DevicePrimaryCtxRetain(&primary, device);
  if (code != CUDA_SUCCESS) return code;
  LearnPrimary(device, primary);
  *is_primary = primary == context;
  // Once: a release that failed may have taken the reference all the same, and the next one
  // would take somebody else's.
  return driver.DevicePrimaryCtxRelease(device);
}

namespace stack {

CUresult Current(CUcontext* current) {
  return Twice([&] {
    *current = nullptr;
    return ResolvedDriver().CtxGetCurrent(current);
  });
}

CUresult Pop(CUcontext* popped) {
  *popped = nullptr;
  const CUresult code = ResolvedDriver().CtxPopCurrent(popped);
  if (code == CUDA_SUCCESS) return code;
  CUcontext current = nullptr;
  if (Current(&current) == CUDA_SUCCESS && current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult again = ResolvedDriver().CtxPopCurrent(popped);
  return again == CUDA_ERROR_INVALID_CONTEXT ? CUDA_ERROR_UNKNOWN : again;
}

namespace {

bool CurrentIsPrimary() {
  CUcontext current = nullptr;
  if (Current(&current) != CUDA_SUCCESS || current == nullptr) return false;
  bool is_primary = false;
  static_cast<void>(AskIfPrimary(ResolvedDriver(), current, &is_primary));
  return is_primary;
}

// Whether `entry`, which is over, is a primary context that has come back as another incarnation.
bool HasSuccessor(const Incarnation& entry) {
  const DriverTable& driver = ResolvedDriver();
  unsigned long long id = 0;
  if (!entry.IsKnown() || ReadId(driver, entry.context, &id) != CUDA_SUCCESS) return false;
  if (EnterIncarnation({entry.context, id}) != CUDA_SUCCESS) return false;
  const bool is_primary = CurrentIsPrimary();
  CUcontext popped = nullptr;
  static_cast<void>(Pop(&popped));
  return is_primary;
}

}  // namespace

bool CanBePut(const Incarnation& entry) { return IsAlive(entry) || HasSuccessor(entry); }

namespace {

// The one way onto a stack, by pushing or replacing.
CUresult Enter(CUresult(CUDAAPI* enter)(CUcontext), const Incarnation& entry) {
  if (!CanBePut(entry)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Twice([&] { return enter(entry.context); });
}

}  // namespace

CUresult Push(const Incarnation& entry) { return Enter(ResolvedDriver().CtxPushCurrent, entry); }

CUresult Replace(const Incarnation& entry) { return Enter(ResolvedDriver().CtxSetCurrent, entry); }

CUresult MakeCurrent(const Incarnation& entry) {
  CUcontext current = nullptr;
  if (Current(&current) == CUDA_SUCCESS && current == entry.context) return CUDA_SUCCESS;
  if (entry.context != nullptr) return Replace(entry);
  return Twice([&] { return ResolvedDriver().CtxSetCurrent(nullptr); });
}

CUresult Look(StackEntry* top) {
  CUcontext current = nullptr;
  CUresult code = Current(&current);
  if (code != CUDA_SUCCESS) return code;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  unsigned long long id = 0;
  code = Twice([&] { return ReadId(ResolvedDriver(), current, &id); });
  *top = {{current, code == CUDA_SUCCESS ? id : Incarnation::kUnknownId},
          code == CUDA_ERROR_CONTEXT_IS_DESTROYED};
  return CUDA_SUCCESS;
}

bool IsAlive(const Incarnation& incarnation) {
  return Twice([&] { return CheckIncarnation(ResolvedDriver(), incarnation); }) !=
         CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool IsSame(const Incarnation& entry, const Incarnation& found) {
  if (entry.context != found.context) return false;
  return !entry.IsKnown() || !found.IsKnown() || entry.id == found.id || HasSuccessor(entry);
}

CUresult Remove(RemovedEntries* taken) {
  StackEntry top;
  CUcontext popped = nullptr;
  CUresult code = Look(&top);
  if (code == CUDA_SUCCESS) code = Pop(&popped);
  if (code == CUDA_SUCCESS) taken->Add(top);
  return code;
}

CUresult PutBack(const RemovedEntries& taken, long count) {
  CUresult first_failure = CUDA_SUCCESS;
  for (long i = 0; i < std::min({taken.count(), RemovedEntries::kMax, count}); ++i) {
    const StackEntry& entry = taken.FromBottom(i);
    const CUresult code = entry.is_dead ? CUDA_SUCCESS : Push(entry.incarnation);
    const bool has_died = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (first_failure == CUDA_SUCCESS && !has_died) first_failure = code;
  }
  return first_failure;
}

}  // namespace stack
CUGUEST_END_INTERNAL_NAMESPACE
