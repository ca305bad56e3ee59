// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's stack of contexts, as far as the driver lets it be seen: one
// entry at a time, from the top. Everything that takes entries off in order to put
// them back goes through here, because of one rule: a handle whose context is dead is
// never pushed (the driver accepts it and corrupts its heap), so whether an entry is
// dead is asked while it is still on the stack, where the driver keeps its memory.

#ifndef CUGUEST_LIB_CONTEXT_THREAD_STACK_H_
#define CUGUEST_LIB_CONTEXT_THREAD_STACK_H_

#include "cuguest/driver.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Entries taken off a stack, in the order they came: entries[0] was on top. A dead one
// is kept as nullptr.
struct Taken {
  static constexpr int kMax = 64;
  CUcontext entries[kMax];
  int count = 0;

  bool HasDead() const {
    for (int i = 0; i < count; ++i) {
      if (entries[i] == nullptr) return true;
    }
    return false;
  }
};

// No state but the table: make one where it is needed. Calls that fail are tried once
// more before they are believed, since giving up half-way through a repair is worse
// than a wasted call; the fast paths of the guards do not come here.
class ThreadStack {
 public:
  explicit ThreadStack(const Driver& driver) : driver_(driver) {}

  // nullptr if the stack is empty.
  CUresult Current(CUcontext* current) const;
  // CUDA_ERROR_INVALID_CONTEXT if, and only if, the stack is empty.
  CUresult Pop(CUcontext* popped) const;
  // CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing pushed, for a dead handle.
  CUresult Push(CUcontext context) const;
  // Replaces the top; the same for a dead handle.
  CUresult Replace(CUcontext context) const;

  // The last resort where entries cannot be taken off: whatever is on top becomes
  // `context` (nullptr: one entry goes), so that at least the right one is current.
  void MakeCurrent(CUcontext context) const;

  // The current context's life is over. Exact, since its entry keeps its memory.
  bool CurrentIsDead() const;
  // The current context is its device's primary context. Creates none: asks for the
  // state first, and retains and releases only an active one.
  bool CurrentIsPrimary() const;
  // Best effort for a foreign context that may be destroyed; see ContextRef::IsAlive.
  bool IsAlive(CUcontext context) const;
  // The id of a context that is alive; 0 below CUDA 12.0.
  unsigned long long IdOf(CUcontext context) const;

  // Takes the top off onto `taken`. False if that is full, the stack is empty, or the
  // driver refuses.
  bool Take(Taken* taken) const;
  // Puts everything back but the dead. The first failure, if any, after trying all.
  CUresult PutBack(const Taken& taken) const;

 private:
  const Driver& driver_;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_THREAD_STACK_H_
