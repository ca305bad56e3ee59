// SPDX-License-Identifier: Apache-2.0
//
// A CaptureModeGuard for what is forbidden only by captures.                           tier: 2

#ifndef CUGUEST_LIB_CONTEXT_RELAXED_SCOPE_H_
#define CUGUEST_LIB_CONTEXT_RELAXED_SCOPE_H_

#include "cuguest/capture.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether captures are relaxed. A driver that has no modes has no captures that could be seen from
// here.
inline bool IsRelaxed(const CaptureModeGuard& guard) noexcept {
  return guard.ok() || guard.result() == CUDA_ERROR_NOT_SUPPORTED;
}

class RelaxedScope {
 public:
  [[nodiscard]] bool ok() const noexcept { return IsRelaxed(guard_); }
  [[nodiscard]] CUresult result() const noexcept { return ok() ? CUDA_SUCCESS : guard_.result(); }

 private:
  CaptureModeGuard guard_;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_RELAXED_SCOPE_H_
