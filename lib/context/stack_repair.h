// SPDX-License-Identifier: Apache-2.0
//
// What a guard does when its scope ends and the stack is not what it left: the slow
// half of context_guard.h, and the code behind its two Notes.

#ifndef CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_
#define CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_

#include "cuguest/incident.h"
#include "lib/context/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// What was found and what was done about it. `happened` false: on a second look all
// was well.
struct Finding {
  bool happened;
  IncidentKind kind;
  Repair repair;
  CUresult result;
  CUcontext found;
};

// The guard did not push: `ours` was the caller's own context. Current now: whatever
// is on top.
Finding RepairElided(const ThreadStack& stack, const Incarnation& ours);

// The guard pushed `ours` on `caller` (a null context: on an empty stack), and `popped`
// (nullptr: nothing was left to pop) has just been taken off.
Finding RepairPushed(const ThreadStack& stack, const Incarnation& ours, const Incarnation& caller,
                     CUcontext popped);

// The guard knows the whole stack, `entries[0..depth)` bottom first, and pushed `ours`
// on it. Takes everything off, compares, and puts the caller's back.
Finding RestoreExactly(const ThreadStack& stack, const Incarnation* entries, int depth,
                       const Incarnation& ours);

// The same where the guard took the caller's entries off and left the stack empty.
Finding RestoreAfterNone(const ThreadStack& stack, const Incarnation* entries, int depth);

// Takes the whole stack down into `entries` (bottom first, at most `max`) and puts it
// back.
//
// Errors: CUDA_ERROR_NOT_SUPPORTED  deeper than `max`, or an entry is dead: it could
//         not be put back. The stack is then as it was.
CUresult Snapshot(const ThreadStack& stack, Incarnation* entries, int max, int* depth);

// Counts the finding and hands it to the handler.
void Report(const Finding& finding, const ThreadStack& stack, CUcontext expected, const char* file,
            int line);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_
