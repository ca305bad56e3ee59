// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/current_context.h                                            tier: 2
// -----------------------------------------------------------------------------
//
// Not for embedders. What is current, and on which device, in one driver call: its id says both
// where this thread has seen it before.

#ifndef CUGUEST_INTERNAL_CURRENT_CONTEXT_H_
#define CUGUEST_INTERNAL_CURRENT_CONTEXT_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/stack_calls.h"
#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What the driver says when asked for the id of the calling thread's current context. Good until
// something changes what is current; not kept.
struct CurrentContext {
  // Costs one driver call. The driver need not be resolved: `code` is kNotResolved then.
  CUGUEST_HIDE CurrentContext() noexcept : code(GetId(nullptr, &id)) {}

  // Whether it is the one that this thread saw last, and alive. Never below CUDA 12.0, where every
  // id is 0.
  [[nodiscard]] CUGUEST_HIDE bool IsSeen() const noexcept {
    return code == CUDA_SUCCESS && id == t_this_thread.seen.id && id != 0;
  }
  [[nodiscard]] CUGUEST_HIDE bool IsSeenOn(CUdevice device) const noexcept {
    return IsSeen() && t_this_thread.seen.device == device;
  }
  // Needs IsSeen().
  [[nodiscard]] CUGUEST_HIDE Incarnation Seen() const noexcept {
    return {t_this_thread.seen.context, id};
  }

  unsigned long long id = 0;
  CUresult code;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_CURRENT_CONTEXT_H_
