// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from PrimaryContext, so that who uses that alone does not have the registry in it.

#include "cuguest/internal/primary.h"

#include "lib/core/driver_access.h"
#include "lib/share/registry.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

CUresult AskIfPrimary(const ContextRef& context, bool* is_primary) noexcept {
  *is_primary = false;
  if (Registry::IsMadeInProcess(context)) return CUDA_SUCCESS;
  return AskIfPrimary(ResolvedDriver(), context.get(), is_primary);
}

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
