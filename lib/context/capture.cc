// SPDX-License-Identifier: Apache-2.0

#include "cuguest/capture.h"

#include "lib/context/advice.h"
#include "lib/context/special_stream.h"
#include "lib/context/stack_repair.h"
#include "lib/context/thread_guards.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

bool IsMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult Exchange(const Driver& driver, CUstreamCaptureMode* mode) {
  if (driver.ThreadExchangeStreamCaptureMode == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return driver.ThreadExchangeStreamCaptureMode(mode);
}

}  // namespace

CaptureModeGuard::CaptureModeGuard(CUstreamCaptureMode mode, const char* file, int line) noexcept
    : file_(file), line_(line), result_(CUDA_ERROR_INVALID_VALUE), mode_(mode) {
  if (!IsMode(mode)) return;
  const Driver* driver = internal::TryDriver(&result_);
  if (driver == nullptr) return;
  result_ = Exchange(*driver, &mode);
  inside_ = result_ == CUDA_SUCCESS;
  if (inside_) caller_ = mode;
}

CUresult CaptureModeGuard::Restore() noexcept {
  if (!inside_) return CUDA_SUCCESS;
  if (!thread_.IsThis()) return internal::ReportElsewhere(nullptr, file_, line_);
  inside_ = false;
  const Driver& driver = internal::ResolvedDriver();
  CUstreamCaptureMode mode = caller_;
  const CUresult code = Exchange(driver, &mode);
  if (code == CUDA_ERROR_DEINITIALIZED || (code == CUDA_SUCCESS && mode == mode_)) {
    return CUDA_SUCCESS;
  }
  const bool failed = code != CUDA_SUCCESS;
  internal::Report({true, IncidentKind::kCaptureMode,
                    failed ? Repair::kUnrepaired : Repair::kRepaired, code, nullptr},
                   internal::ThreadStack(driver), nullptr, file_, line_);
  return code;
}

const char* CaptureModeGuard::advice() const noexcept {
  switch (result_) {
    case CUDA_ERROR_INVALID_VALUE:
      return "it is GLOBAL, THREAD_LOCAL or RELAXED";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "CUDA 10.1 or newer is needed";
    default:
      return internal::Advice(result_);
  }
}

CaptureState CaptureStateOf(CUstream stream) noexcept {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = internal::TryDriver(&code);
  if (driver == nullptr) return CaptureState::kUnknown;
  if (driver->StreamIsCapturing == nullptr) return CaptureState::kNone;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  code = driver->StreamIsCapturing(stream, &status);
  if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CaptureState::kActive;
  if (code == CUDA_ERROR_INVALID_CONTEXT && internal::MeansCurrent(stream)) {
    return CaptureState::kNone;
  }
  if (code != CUDA_SUCCESS) return CaptureState::kUnknown;
  switch (status) {
    case CU_STREAM_CAPTURE_STATUS_NONE:
      return CaptureState::kNone;
    case CU_STREAM_CAPTURE_STATUS_ACTIVE:
      return CaptureState::kActive;
    case CU_STREAM_CAPTURE_STATUS_INVALIDATED:
      return CaptureState::kInvalidated;
  }
  return CaptureState::kUnknown;
}

bool HousekeepingIsSafe(CUstream stream) noexcept {
  if (CaptureStateOf(stream) != CaptureState::kNone) return false;
  return internal::IsLegacy(stream) || CaptureStateOf(CU_STREAM_LEGACY) == CaptureState::kNone;
}

CUGUEST_END_NAMESPACE
