// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What captures forbid: a CaptureModeGuard for it, and whether a call may be made.     tier: 2

#ifndef CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_
#define CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_

#include "cuguest/capture.h"
#include "cuguest/driver_table.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// CUDA_SUCCESS if `stream` does not capture, `refusal` if it does, as CaptureStatusOf() sees it,
// and the driver's code where it does not say.
CUresult CheckNotCapturing(CUstream stream, CUresult refusal) noexcept;

// Sets the thread's mode from `ours` to `callers`; an incident if it was another, or cannot be set.
CUresult RestoreCaptureMode(CUstreamCaptureMode ours, CUstreamCaptureMode callers,
                            Location where) noexcept;

// What `call` returns, with captures relaxed, or why they cannot be. For calls of the driver alone,
// in which no scope begins: unlike CallInRelaxedScope() it has no record that a HostScope could
// take out.
template <typename Call>
CUresult CallRelaxed(const DriverTable& driver, const Call& call) noexcept {
  if (driver.ThreadExchangeStreamCaptureMode == nullptr) return call();
  CUstreamCaptureMode callers = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult code = driver.ThreadExchangeStreamCaptureMode(&callers);
  if (code != CUDA_SUCCESS) return code;
  code = call();
  static_cast<void>(RestoreCaptureMode(CU_STREAM_CAPTURE_MODE_RELAXED, callers, Location::Here()));
  return code;
}

class RelaxedScope {
 public:
  [[nodiscard]] bool ok() const noexcept { return IsRelaxed(guard_); }
  [[nodiscard]] CUresult result() const noexcept { return ok() ? CUDA_SUCCESS : guard_.result(); }

 private:
  CaptureModeGuard guard_;
};

// What `call` returns, with captures relaxed, or why they cannot be.
template <typename Call>
CUresult CallInRelaxedScope(const Call& call) noexcept {
  const RelaxedScope relaxed;
  return relaxed.ok() ? call() : relaxed.result();
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_RELAXED_SCOPE_H_
