// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What captures forbid: a CaptureModeGuard for it, and whether a call may be made.     tier: 2

#ifndef CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_
#define CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_

#include "cuguest/capture.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// CUDA_SUCCESS if `stream` does not capture, `refusal` if it does, as CaptureStatusOf() sees it,
// and the driver's code where it does not say.
CUresult CheckNotCapturing(CUstream stream, CUresult refusal) noexcept;

class RelaxedScope {
 public:
  [[nodiscard]] bool ok() const noexcept { return IsRelaxed(guard_); }
  [[nodiscard]] CUresult result() const noexcept { return ok() ? CUDA_SUCCESS : guard_.result(); }

 private:
  CaptureModeGuard guard_;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_
