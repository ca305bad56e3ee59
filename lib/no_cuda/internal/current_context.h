// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No context is current. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INTERNAL_CURRENT_CONTEXT_H_
#define CUGUEST_LIB_NO_CUDA_INTERNAL_CURRENT_CONTEXT_H_

#include "cuguest/export.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/internal/this_thread.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

struct CurrentContext {
  CUGUEST_HIDE CurrentContext() noexcept {}
  [[nodiscard]] CUGUEST_HIDE bool IsSeenOn(CUdevice /*device*/) const noexcept { return false; }
  [[nodiscard]] CUGUEST_HIDE Incarnation Seen() const noexcept { return {nullptr, 0}; }
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INTERNAL_CURRENT_CONTEXT_H_
