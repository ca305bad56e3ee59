// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from what the core asks, which has no stream.

#include "cuguest/internal/primary.h"

#include "lib/core/driver_access.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult AskIfGreen(bool* is_green) noexcept {
  *is_green = false;
  const DriverTable& driver = ResolvedDriver();
  if (driver.StreamGetGreenCtx == nullptr) return CUDA_SUCCESS;  // as there are none
  CUstream probe = nullptr;
  CUgreenCtx green = nullptr;
  CUresult code = driver.StreamCreate(&probe, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return code;
  code = driver.StreamGetGreenCtx(probe, &green);
  *is_green = green != nullptr;
  const CUresult destroyed = driver.StreamDestroy(probe);
  return code != CUDA_SUCCESS ? code : destroyed;
}

CUGUEST_END_INTERNAL_NAMESPACE
