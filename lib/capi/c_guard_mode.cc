// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUGUEST_RELAXED.

#include "lib/capi/c_guard.h"

#include "cuguest/capture.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult Relax(Guard* guard, Location where) noexcept {
  guard->mode.EnterCaptureMode(CU_STREAM_CAPTURE_MODE_RELAXED, where);
  const CUresult code = guard->mode.JustEntered();
  if (!IsRelaxed(code)) return code;
  guard->end_mode = [](Guard* ended, Reported end) {
    static_cast<void>(ended->mode.LeaveCaptureMode(end));
  };
  return CUDA_SUCCESS;
}

CUGUEST_END_INTERNAL_NAMESPACE
