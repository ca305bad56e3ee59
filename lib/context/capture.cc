// SPDX-License-Identifier: Apache-2.0

#include "cuguest/capture.h"

#include "cuguest/internal/stream_kind.h"
#include "lib/context/capture_check.h"
#include "lib/context/stack_repair.h"
#include "lib/context/thread_guards.h"
#include "lib/core/driver_access.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

CUresult Exchange(const DriverTable& driver, CUstreamCaptureMode* mode) {
  if (driver.ThreadExchangeStreamCaptureMode == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return driver.ThreadExchangeStreamCaptureMode(mode);
}

// As CaptureStateOf(). `code` is the driver's where the state is kUnknown.
CaptureState AskForState(CUstream stream, CUresult* code) {
  const DriverTable* driver = internal::TryDriver(code);
  if (driver == nullptr) return CaptureState::kUnknown;
  if (driver->StreamIsCapturing == nullptr) return CaptureState::kNone;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  *code = driver->StreamIsCapturing(stream, &status);
  if (*code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CaptureState::kActive;
  if (*code == CUDA_ERROR_INVALID_CONTEXT && internal::MeansCurrent(stream)) {
    return CaptureState::kNone;
  }
  if (*code != CUDA_SUCCESS) return CaptureState::kUnknown;
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return CaptureState::kNone;
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CaptureState::kActive
                                                   : CaptureState::kInvalidated;
}

}  // namespace

CaptureModeGuard::CaptureModeGuard(CUstreamCaptureMode mode, const char* file, int line) noexcept
    : where_{file, line}, result_(CUDA_ERROR_INVALID_VALUE), mode_(mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return;
  const DriverTable* driver = internal::TryDriver(&result_);
  if (driver == nullptr) return;
  result_ = Exchange(*driver, &mode);
  inside_ = result_ == CUDA_SUCCESS;
  if (inside_) caller_ = mode;
}

CUresult CaptureModeGuard::Restore() noexcept {
  if (!inside_) return CUDA_SUCCESS;
  if (!thread_.IsThis()) return internal::ReportElsewhere(nullptr, where_);
  inside_ = false;
  CUstreamCaptureMode mode = caller_;
  const CUresult code = Exchange(internal::ResolvedDriver(), &mode);
  if (code == CUDA_SUCCESS && mode == mode_) return CUDA_SUCCESS;
  const Repair repair = code == CUDA_SUCCESS ? Repair::kRepaired : Repair::kUnrepaired;
  return internal::Report({true, IncidentKind::kCaptureMode, repair, code, nullptr}, nullptr,
                          where_);
}

const char* CaptureModeGuard::advice() const noexcept {
  if (result_ == CUDA_ERROR_INVALID_VALUE) return "it is GLOBAL, THREAD_LOCAL or RELAXED";
  if (result_ == CUDA_ERROR_NOT_SUPPORTED) return "CUDA 10.1 or newer is needed";
  return internal::Advice(result_);
}

CaptureState CaptureStateOf(CUstream stream) noexcept {
  CUresult code = CUDA_SUCCESS;
  return AskForState(stream, &code);
}

CUresult internal::CheckNotCapturing(CUstream stream, CUresult refusal) noexcept {
  CUresult code = CUDA_SUCCESS;
  const CaptureState state = AskForState(stream, &code);
  if (state == CaptureState::kNone) return CUDA_SUCCESS;
  return state == CaptureState::kUnknown ? code : refusal;
}

bool HousekeepingIsSafe(CUstream stream) noexcept {
  if (CaptureStateOf(stream) != CaptureState::kNone) return false;
  return internal::IsLegacy(stream) || CaptureStateOf(CU_STREAM_LEGACY) == CaptureState::kNone;
}

CUGUEST_END_NAMESPACE
