// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's stack of contexts, as far as the driver lets it be seen: one
// entry at a time, from the top. Everything that takes entries off in order to put
// them back goes through here, because of one rule: a handle whose context is dead is
// never pushed (the driver accepts it and corrupts its heap), so which incarnation an entry
// is, and whether it is dead, is asked while it is still on the stack, where the driver keeps
// its memory.

#ifndef CUGUEST_LIB_CONTEXT_THREAD_STACK_H_
#define CUGUEST_LIB_CONTEXT_THREAD_STACK_H_

#include "cuguest/driver.h"
#include "cuguest/internal/incarnation.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// Entries taken off a stack, in the order they came: entries[0] was on top. A dead one
// is kept with a null context.
struct Taken {
  static constexpr int kMax = 64;
  Incarnation entries[kMax];
  int count = 0;

  bool HasDead() const {
    for (int i = 0; i < count; ++i) {
      if (entries[i].context == nullptr) return true;
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
  // Pushes `entry`, or replaces the top by it. CUDA_ERROR_CONTEXT_IS_DESTROYED, and nothing
  // done, if the incarnation is over; also where another has its handle, unless that is a
  // primary context that was reset and retained again: the caller's entry would have become
  // valid again with it.
  CUresult Push(const Incarnation& entry) const;
  CUresult Replace(const Incarnation& entry) const;

  // The last resort where entries cannot be taken off: whatever is on top becomes
  // `entry` (a null context: one entry goes), so that at least the right one is current.
  void MakeCurrent(const Incarnation& entry) const;

  // `held`, an entry of this stack, with its id; without where the driver does not tell it,
  // and null if it was destroyed. Exact, since the entry keeps its context's memory.
  Incarnation Look(CUcontext held) const;
  // The current context was destroyed or reset. Exact for the same reason.
  bool CurrentIsDead() const;
  // As AskIfPrimary() in identity.h, of the current context.
  bool CurrentIsPrimary() const;
  // Whether the incarnation goes on; of an unknown one, whether its handle is alive. Best
  // effort for a foreign context that may be destroyed; see ContextRef::IsAlive.
  bool IsAlive(const Incarnation& incarnation) const;
  // Whether `found`, an entry that was on the stack, is what `entry` was: the same handle, of
  // the same incarnation or of a primary context that was reset and retained again.
  bool IsSame(const Incarnation& entry, const Incarnation& found) const;
  // The id of a context that is alive; 0 below CUDA 12.0.
  unsigned long long IdOf(CUcontext context) const;

  // Takes the top off onto `taken`. False if that is full, the stack is empty, or the
  // driver refuses.
  bool Take(Taken* taken) const;
  // Puts everything back but the dead. The first failure, if any, after trying all.
  CUresult PutBack(const Taken& taken) const;

 private:
  CUresult Enter(CUresult(CUDAAPI* enter)(CUcontext), const Incarnation& entry) const;
  Incarnation Successor(const Incarnation& entry) const;

  const Driver& driver_;
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_THREAD_STACK_H_
