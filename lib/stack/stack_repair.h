// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a guard does when its scope ends and the stack is not what it left: the slow
// half of context_guard.h, and the code behind its Notes [How a guard restores] and [What is
// inferred].

#ifndef CUGUEST_LIB_STACK_STACK_REPAIR_H_
#define CUGUEST_LIB_STACK_STACK_REPAIR_H_

#include <atomic>

#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/internal/concurrency.h"
#include "cuguest/location.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What was found and what was done about it. `happened` false: on a second look all
// was well.
struct Finding {
  bool happened;
  Incident::Kind kind;
  Incident::Repair repair;
  CUresult result;  // CUDA_ERROR_CONTEXT_IS_DESTROYED is said by Concluded() alone
  CUcontext found;

  // What a guard's end returns for it: CUDA_SUCCESS where the stack is what it was, or was
  // repaired, and where the process is ending.
  CUresult Code() const {
    const bool is_over = !happened || result == CUDA_ERROR_DEINITIALIZED;
    if (is_over || repair != Incident::Repair::kUnrepaired) return CUDA_SUCCESS;
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_CONTEXT;
  }

  static Finding Of(Incident::Kind kind, Incident::Repair repair, CUcontext found) {
    return {true, kind, repair, CUDA_SUCCESS, found};
  }
  static Finding Failed(CUresult code, CUcontext found) {
    return {true, Incident::Kind::kFailed, Incident::Repair::kUnrepaired, code, found};
  }
  // An entry of the caller's could not be put on the stack.
  static Finding NotPut(CUresult code, Incident::Kind kind, CUcontext found) {
    const bool died = code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return {true, died ? Incident::Kind::kDestroyed : kind, Incident::Repair::kUnrepaired,
            died ? CUDA_SUCCESS : code, found};
  }
};

// Ends every repair, whatever it found and whatever failed: makes the caller's context current.
// That the caller's context is over is known here and nowhere else, so that no other entry's end
// can be read as it.
Finding Concluded(Finding finding, const Incarnation& caller);

// Our entry is no longer where it was: by what a callee did to the stack, or because our
// context was destroyed?
Incident::Kind GoneBy(const Incarnation& ours, Incident::Kind kind);

// What lies beneath the top of a stack, the topmost first, as far as it is known.
struct Beneath {
  static constexpr unsigned kMost = 6;

  void Add(CUcontext context) {
    if (count < kMost) entries[count] = context;
    is_all = is_all && count < kMost;
    if (count < kMost) ++count;
  }

  CUcontext entries[kMost];
  unsigned count;
  bool is_all;  // nothing lies below them
};

// The guard did not push: `ours` was the caller's own context, on top of what is `known`. Current
// now: whatever is on top.
Finding RepairElided(const Incarnation& ours, const Beneath& known);

// The guard pushed `ours` on `caller` (a null context: on an empty stack), and `popped`
// (nullptr: nothing was left to pop) has just been taken off.
Finding RepairPushed(const Incarnation& ours, const Incarnation& caller, CUcontext popped);

// Counts the finding and hands it to the listeners, unless nothing happened or the process is
// ending, where there is no stack left to restore. The result is finding.Code().
CUresult Report(const Finding& finding, CUcontext expected, Location where);

// How many there were of each kind.
extern std::atomic<unsigned long long> g_incidents[Incident::kKinds];
// Calls the listeners of this copy of cuguest, with no lock held; nullptr while there are none. So
// who has no listener does not link what they need.
extern Atomic<void (*)(const Incident&)> g_call_listeners;
// Of one that somebody else removes, or has removed: waits until it is called on no other thread,
// unless it is called on this one. `listener` may be gone.
void AwaitListener(const IncidentListener* listener) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STACK_STACK_REPAIR_H_
