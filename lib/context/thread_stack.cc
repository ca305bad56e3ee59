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

// The one way onto a stack, by pushing or replacing.
CUresult ThreadStack::Enter(CUresult(CUDAAPI* enter)(CUcontext), const Incarnation& entry) const {
  if (!IsAlive(entry) && !Successor(entry).IsKnown()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Twice([&] { return enter(entry.context); });
}

CUresult ThreadStack::Push(const Incarnation& entry) const {
  return Enter(driver_.CtxPushCurrent, entry);
}

CUresult ThreadStack::Replace(const Incarnation& entry) const {
  return Enter(driver_.CtxSetCurrent, entry);
}

void ThreadStack::MakeCurrent(const Incarnation& entry) const {
  CUcontext current = nullptr;
  if (Current(&current) == CUDA_SUCCESS && current == entry.context) return;
  if (entry.context != nullptr) {
    static_cast<void>(Replace(entry));
  } else {
    static_cast<void>(Twice([&] { return driver_.CtxSetCurrent(nullptr); }));
  }
}

Incarnation ThreadStack::Look(CUcontext held) const {
  unsigned long long id = 0;
  const CUresult code = Twice([&] { return ReadId(driver_, held, &id); });
  if (code == CUDA_SUCCESS) return {held, id};
  return Incarnation::Unknown(code == CUDA_ERROR_CONTEXT_IS_DESTROYED ? nullptr : held);
}

bool ThreadStack::CurrentIsDead() const { return !IsAlive(Incarnation::Unknown(nullptr)); }

bool ThreadStack::IsAlive(const Incarnation& incarnation) const {
  return Twice([&] { return CheckIncarnation(driver_, incarnation); }) !=
         CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// The incarnation that `entry`, which is over, has come back as: of a primary context; an
// unknown one otherwise.
Incarnation ThreadStack::Successor(const Incarnation& entry) const {
  const Incarnation none = Incarnation::Unknown(nullptr);
  unsigned long long id = 0;
  if (!entry.IsKnown() || ReadId(driver_, entry.context, &id) != CUDA_SUCCESS) return none;
  if (EnterIncarnation({entry.context, id}) != CUDA_SUCCESS) return none;
  const bool is_primary = CurrentIsPrimary();
  CUcontext popped = nullptr;
  static_cast<void>(Pop(&popped));
  return is_primary ? Incarnation{entry.context, id} : none;
}

bool ThreadStack::IsSame(const Incarnation& entry, const Incarnation& found) const {
  if (entry.context != found.context) return false;
  return !entry.IsKnown() || !found.IsKnown() || entry.id == found.id || Successor(entry).IsKnown();
}

unsigned long long ThreadStack::IdOf(CUcontext context) const {
  unsigned long long id = 0;
  return ReadId(driver_, context, &id) == CUDA_SUCCESS ? id : 0;
}

bool ThreadStack::CurrentIsPrimary() const {
  CUcontext current = nullptr;
  if (Current(&current) != CUDA_SUCCESS || current == nullptr) return false;
  bool is_primary = false;
  static_cast<void>(AskIfPrimary(driver_, current, &is_primary));
  return is_primary;
}

bool ThreadStack::Take(Taken* taken) const {
  if (taken->count == Taken::kMax) return false;
  CUcontext current = nullptr;
  if (Current(&current) != CUDA_SUCCESS || current == nullptr) return false;
  const Incarnation entry = Look(current);
  CUcontext popped = nullptr;
  if (Pop(&popped) != CUDA_SUCCESS) return false;
  taken->entries[taken->count++] = entry;
  return true;
}

CUresult ThreadStack::PutBack(const Taken& taken) const {
  CUresult first_failure = CUDA_SUCCESS;
  for (int i = taken.count - 1; i >= 0; --i) {
    if (taken.entries[i].context == nullptr) continue;
    const CUresult code = Push(taken.entries[i]);
    if (first_failure == CUDA_SUCCESS) first_failure = code;
  }
  return first_failure;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
