// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/internal/scope.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult Scope::MoveTo(const Incarnation& to, Location where) noexcept {
  if (serial_ != 0) return calls_->move_to(this, to, where);
  // One that could not come back is its thread's still.
  const bool is_elsewhere = thread_ != 0 && thread_ != t_this_thread.kernel_thread;
  if (result_ != CUDA_SUCCESS && is_elsewhere) return CUDA_ERROR_ILLEGAL_STATE;
  Enter(to, always_pushes_, where);
  return JustEntered();
}

CUGUEST_END_INTERNAL_NAMESPACE
