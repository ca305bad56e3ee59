// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. What is current, and on which device, in two driver calls: its id says both
// where this thread has seen it before.

#ifndef CUGUEST_INTERNAL_CURRENT_CONTEXT_H_
#define CUGUEST_INTERNAL_CURRENT_CONTEXT_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/stack_calls.h"
#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What the calling thread has current, and its id. Good until something changes what is current;
// not kept. The id is not asked for where nothing is: that call would fail.
struct CurrentContext {
  // Costs two driver calls, or one where nothing is current. The driver need not be resolved:
  // `code` is kNotResolved then.
  CUGUEST_HIDE CurrentContext() noexcept : code(GetCurrent(&context)) {
    if (code == CUDA_SUCCESS && context != nullptr) code = GetId(context, &id);
  }

  // As where there was no driver to ask.
  [[nodiscard]] CUGUEST_HIDE static CurrentContext NotAsked() noexcept {
    return CurrentContext(kNotResolved);
  }

  // Whether what is current was asked, and told: `context`.
  [[nodiscard]] CUGUEST_HIDE bool IsKnown() const noexcept {
    return code == CUDA_SUCCESS || context != nullptr;
  }
  // Whether it is the one that this thread saw last, and alive. Never below CUDA 12.0, where every
  // id is 0.
  [[nodiscard]] CUGUEST_HIDE bool IsSeen() const noexcept {
    return code == CUDA_SUCCESS && id == t_this_thread.seen.id && id != 0;
  }
  [[nodiscard]] CUGUEST_HIDE bool IsSeenOn(CUdevice device) const noexcept {
    return IsSeen() && t_this_thread.seen.device == device;
  }
  // Needs IsSeen().
  [[nodiscard]] CUGUEST_HIDE Incarnation Seen() const noexcept { return {context, id}; }

  CUcontext context = nullptr;
  unsigned long long id = 0;
  CUresult code;

 private:
  CUGUEST_HIDE explicit CurrentContext(CUresult why_not) noexcept : code(why_not) {}
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_CURRENT_CONTEXT_H_
