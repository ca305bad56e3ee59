// SPDX-License-Identifier: Apache-2.0
//
// cuguest/internal/incarnation.h for code that has a driver's table.

#ifndef CUGUEST_LIB_CONTEXT_IDENTITY_H_
#define CUGUEST_LIB_CONTEXT_IDENTITY_H_

#include "cuguest/driver.h"
#include "cuguest/internal/incarnation.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

inline CUresult CheckIncarnation(const Driver& driver, const Incarnation& incarnation) noexcept {
  unsigned long long id = 0;
  const CUresult code = ReadId(driver, incarnation.context, &id);
  return incarnation.Check(code, id);
}

// Whether `context`, which is current and alive, is its device's primary context. Creates none:
// asks for the state first, and retains and releases only an active one. False where the driver
// refuses.
inline CUresult AskIfPrimary(const Driver& driver, CUcontext context, bool* is_primary) noexcept {
  *is_primary = false;
  CUdevice device = 0;
  CUresult code = driver.CtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return code;
  unsigned flags = 0;
  int active = 0;
  code = driver.DevicePrimaryCtxGetState(device, &flags, &active);
  if (code != CUDA_SUCCESS || active == 0) return code;
  CUcontext primary = nullptr;
  code = driver.DevicePrimaryCtxRetain(&primary, device);
  if (code != CUDA_SUCCESS) return code;
  *is_primary = primary == context;
  // Once: a release that failed may have taken the reference all the same, and the next one
  // would take somebody else's.
  return driver.DevicePrimaryCtxRelease(device);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_IDENTITY_H_
