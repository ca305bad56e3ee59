// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/capi/c_guard.h"

#include "cuguest/c.h"
#include "cuguest/capture.h"

namespace c = cuguest::internal;

int cuguest_guard_relax(cuguest_guard* guard, const char* file, int line) {
  const c::GuardStorage storage(guard);
  CUresult code = storage.HasBegun();
  if (code == CUDA_SUCCESS && !storage->scope.IsOfThisThread()) code = CUDA_ERROR_ILLEGAL_STATE;
  if (code != CUDA_SUCCESS || storage->end_mode != nullptr) return code;
  storage->mode.EnterCaptureMode(CU_STREAM_CAPTURE_MODE_RELAXED, {file, line});
  code = storage->mode.JustEntered();
  if (code == CUDA_SUCCESS) {
    storage->end_mode = [](c::Guard* ended, c::Reported end) {
      static_cast<void>(ended->mode.LeaveCaptureMode(end));
    };
  }
  return c::IsRelaxed(code) ? CUDA_SUCCESS : code;
}
