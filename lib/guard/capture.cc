// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/capture.h"

#include "cuguest/internal/stream_kind.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/relaxed_scope.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

// What CaptureStatusOf() says, to `status`; the driver's code where it says nothing.
CUresult AskForStatus(CUstream stream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult code = CUDA_SUCCESS;
  const DriverTable* driver = internal::TryDriver(&code);
  if (driver == nullptr) return code;
  if (driver->StreamIsCapturing == nullptr) return CUDA_SUCCESS;
  code = driver->StreamIsCapturing(stream, status);
  if (code != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return code;
  *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

// What stream 0 means is not asked for where nothing is current: that call would fail.
bool IsNothingCurrent() {
  CUresult code = CUDA_SUCCESS;
  CUcontext current = nullptr;
  const DriverTable* driver = internal::TryDriver(&code);
  return driver != nullptr && driver->CtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr;
}

}  // namespace

CaptureModeGuard::CaptureModeGuard(CUstreamCaptureMode mode, Location where) noexcept
    : scope_(internal::Scope::kNotSet) {
  scope_.EnterCaptureMode(mode, where);
}

const char* CaptureModeGuard::advice() const noexcept {
  if (result() == CUDA_ERROR_INVALID_VALUE) return "it is GLOBAL, THREAD_LOCAL or RELAXED";
  if (result() == CUDA_ERROR_NOT_SUPPORTED) return "CUDA 10.1 or newer is needed";
  return scope_.advice();
}

std::optional<CUstreamCaptureStatus> CaptureStatusOf(CUstream stream) noexcept {
  if (internal::MeansCurrent(stream) && IsNothingCurrent()) return CU_STREAM_CAPTURE_STATUS_NONE;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (AskForStatus(stream, &status) != CUDA_SUCCESS) return std::nullopt;
  return status;
}

// Without an optional, which GCC returns by two stores and one load, which waits for both.
CUresult internal::CheckNotCapturing(CUstream stream, CUresult refusal) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = AskForStatus(stream, &status);
  if (code != CUDA_SUCCESS) return code;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_SUCCESS : refusal;
}

bool HousekeepingIsSafe(CUstream stream) noexcept {
  if (CaptureStatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE) return false;
  return internal::IsLegacy(stream) ||
         CaptureStatusOf(CU_STREAM_LEGACY) == CU_STREAM_CAPTURE_STATUS_NONE;
}

CUGUEST_END_NAMESPACE
