// SPDX-License-Identifier: Apache-2.0
//
// What a guard does when its scope ends and the stack is not what it left: the slow
// half of context_guard.h, and the code behind its Notes [How a guard restores] and [What is
// inferred].

#ifndef CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_
#define CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_

#include "cuguest/incident.h"
#include "cuguest/location.h"
#include "lib/context/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

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
Finding RepairElided(const Incarnation& ours);

// The guard pushed `ours` on `caller` (a null context: on an empty stack), and `popped`
// (nullptr: nothing was left to pop) has just been taken off.
Finding RepairPushed(const Incarnation& ours, const Incarnation& caller, CUcontext popped);

// The guard knows the caller's stack, `entries[0..depth)` bottom first. It pushed `ours` on it, or
// left an empty stack inside (nullptr). Takes everything off, compares, and puts the caller's back.
Finding RestoreExactly(const Incarnation* entries, int depth, const Incarnation* ours);

// Takes the whole stack down into `entries` (bottom first, at most `max`), and with kPutBack puts
// it back.
//
// Errors: CUDA_ERROR_NOT_SUPPORTED  deeper than `max`, or an entry is dead: it could
//         not be put back. The stack is then as it was.
enum class AndThen { kPutBack, kLeaveEmpty };
CUresult TakeDown(Incarnation* entries, int max, int* depth, AndThen and_then);

// What a guard's end returns for `finding`: CUDA_SUCCESS where the stack is what it was, or was
// repaired. Counts the finding and hands it to the handler, unless nothing happened or the process
// is ending, where there is no stack left to restore.
CUresult Report(const Finding& finding, CUcontext expected, Location where);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_STACK_REPAIR_H_
