// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calling thread's stack of contexts, and what an entry that works "in the
// current context" asks first.

#ifndef CUDASIM_DRIVER_CONTEXT_STACK_H_
#define CUDASIM_DRIVER_CONTEXT_STACK_H_

#include <cuda.h>

#include "driver/context/context.h"

namespace cudasim::driver {

// Stack
//
// Each entry is a hold on its context. The stack of a thread ends with the thread,
// and its holds with it; the main thread's lives until the process does, because
// atexit handlers and static destructors still use it.
//
// Threads: each has its own; no locks.
class Stack {
 public:
  // The current context; nullptr when there is none.
  static Context* Top();

  // Takes over one hold on `context`, which the caller has made.
  static void Push(Context* context);

  // Removes the top, if there is one, and lets go of it.
  static void Pop();
};

// Of a node of a graph: the context that it names, or the green one that is current.
Incarnation NamedOrGreen(const Incarnation& named);

// The current context, dead or alive. INVALID_CONTEXT when there is none.
CUresult Current(Context** context);

// The current context's own incarnation. CONTEXT_IS_DESTROYED when it is dead; and what captures in
// progress answer to this call (capture.h).
CUresult CurrentPlace(Incarnation* incarnation);

// The same, but the incarnation that owns what is made in the current context.
CUresult CurrentAlive(Incarnation* incarnation);

// The same, for work on the device: also the sticky error.
CUresult CurrentReady(Incarnation* incarnation);

// For calls that need no current context, but refuse a dead one.
CUresult ReadyOrNothingCurrent();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_STACK_H_
