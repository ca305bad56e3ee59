// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/capture.h"

#include "cuguest/internal/stream_kind.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/relaxed_scope.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

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

CaptureState CaptureStateOf(CUstream stream) noexcept {
  CUresult code = CUDA_SUCCESS;
  if (internal::MeansCurrent(stream) && IsNothingCurrent()) return CaptureState::kNone;
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
