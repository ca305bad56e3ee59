// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// runtime/error.h                                                       tier: 4
// -----------------------------------------------------------------------------
/// \file
/// Between the runtime's `cudaError_t`, the driver's `CUresult` and `absl::Status`. A
/// status made here says what was being done, to what, what the runtime said, and what to
/// do about it; either API's code can be taken out of it again.
///
///   absl::Status s = cuguest::runtime::ToStatus(cudaMalloc(&p, n), "allocate the picture");
///   // RESOURCE_EXHAUSTED: allocate the picture: cudaErrorMemoryAllocation (2): ...
///   cuguest::CodeOf(s) == CUDA_ERROR_OUT_OF_MEMORY;
///   cuguest::runtime::RuntimeCodeOf(s) == cudaErrorMemoryAllocation;
///
/// Nothing here calls the runtime or the driver, so that the last error of neither this
/// thread nor another changes: a failed cudaMalloc has set it, and it stays set until the
/// caller takes it with cudaGetLastError.
///
/// Threads: any.
///
/// Note [Two APIs, one list of numbers]
/// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/// Since CUDA 10.1 an error that both APIs have carries one number, whatever its names:
/// CUDA_ERROR_INVALID_CONTEXT and cudaErrorDeviceUninitialized are 201. No number means
/// two things. What only one of them has, and what it becomes on the other side:
///
///   only the runtime                                     | becomes the driver's
///   -----------------------------------------------------+------------------------------
///   InvalidConfiguration 9, InvalidPitchValue 12,        | INVALID_VALUE 1
///   InvalidHostPointer 16, InvalidDevicePointer 17,      |
///   InvalidTextureBinding 19, InvalidChannelDescriptor   |
///   20, InvalidMemcpyDirection 21, AddressOfConstant 22, |
///   InvalidFilterSetting 26, InvalidNormSetting 27       |
///   InsufficientDriver 35                                | CALL_REQUIRES_NEWER_DRIVER 36
///   DuplicateVariableName 43, ...Texture 44, ...Surface  | INVALID_IMAGE 200
///   45                                                   |
///   IncompatibleDriverContext 49                         | INVALID_CONTEXT 201
///   InvalidTexture 18, InvalidSurface 37                 | INVALID_HANDLE 400
///   MissingConfiguration 52                              | ILLEGAL_STATE 401
///   InvalidSymbol 13, InvalidDeviceFunction 98           | NOT_FOUND 500
///   LaunchMaxDepthExceeded 65, SyncDepthExceeded 68,     | LAUNCH_OUT_OF_RESOURCES 701
///   LaunchPendingCountExceeded 69                        |
///   VersionTranslation 10, NotYetImplemented 31,         | NOT_SUPPORTED 801
///   LaunchFileScopedTex 66, ...Surf 67                   |
///   SoftwareValidityNotEstablished 103                   | SYSTEM_NOT_READY 802
///   TextureFetchFailed 23, TextureNotBound 24,           | UNKNOWN 999
///   SynchronizationError 25, MixedDeviceExecution 28,    |
///   MemoryValueTooLarge 32, PriorLaunchFailure 53 (all   |
///   of device emulation, gone since CUDA 3.1),           |
///   StartupFailure 127, ApiFailureBase 10000             |
///
///   only the driver                                      | becomes the runtime's
///   -----------------------------------------------------+------------------------------
///   CONTEXT_ALREADY_CURRENT 202, KEY_ROTATION 916        | Unknown 999
///
/// Every other code goes there and back unchanged, also one that is newer than this
/// library. Numbers above 10000 are the driver's plus 10000, as the runtime's header says.
///
/// Source: test/runtime/error_test.cc asks both APIs for the name of every number.

#ifndef CUGUEST_RUNTIME_ERROR_H_
#define CUGUEST_RUNTIME_ERROR_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/error.h"
#include "cuguest/internal/runtime_error.h"
#include "cuguest/runtime/binding.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// Where both are in scope the argument's type chooses, so that code of either API reads
/// the same.
using ::cuguest::CodeOf;
using ::cuguest::ErrorName;
using ::cuguest::ErrorText;
using ::cuguest::IsSticky;
using ::cuguest::ToStatus;

/// The other API's code; see Note [Two APIs, one list of numbers].
[[nodiscard]] CUGUEST_HIDE inline CUresult ToDriver(cudaError_t code) noexcept {
  return internal::RuntimeToDriver(static_cast<int>(code));
}
[[nodiscard]] CUGUEST_HIDE inline cudaError_t ToRuntime(CUresult code) noexcept {
  return static_cast<cudaError_t>(internal::DriverToRuntime(code));
}

/// ToStatus()
///
/// As the one of error.h, with the runtime's name in the text. The canonical code is that of
/// ToDriver(code): equal errors of both APIs are equal in a switch on it.
///
/// Cost: one comparison on success, nothing allocated; text is built on failure only.
[[nodiscard]] CUGUEST_HIDE inline absl::Status ToStatus(cudaError_t code, std::string_view doing,
                                                        std::string_view object = {}) {
  if (code == cudaSuccess) return absl::OkStatus();
  return internal::MakeRuntimeStatus(static_cast<int>(code), doing, object);
}

/// RuntimeCodeOf()
///
/// The runtime's code that `status` was made from, or ToRuntime() of the driver's code;
/// nothing for a status that was made from neither. cudaSuccess for an OK status.
/// cuguest::CodeOf() takes the driver's code out of either.
[[nodiscard]] CUGUEST_HIDE inline std::optional<cudaError_t> RuntimeCodeOf(
    const absl::Status& status) {
  const std::optional<int> code = internal::RuntimeCodeOf(status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<cudaError_t>(*code);
}

/// The name ("cudaErrorMemoryAllocation") and one sentence that says what it means and
/// what to do. Never null; a code newer than cuguest gives "cudaErrorUnrecognized".
/// Not cudaGetErrorName, which knows only its own runtime's codes.
[[nodiscard]] CUGUEST_HIDE inline const char* ErrorName(cudaError_t code) noexcept {
  return internal::RuntimeErrorName(static_cast<int>(code));
}
[[nodiscard]] CUGUEST_HIDE inline const char* ErrorText(cudaError_t code) noexcept {
  return internal::RuntimeErrorText(static_cast<int>(code));
}

/// As the one of error.h.
[[nodiscard]] CUGUEST_HIDE inline bool IsSticky(cudaError_t code) noexcept {
  return IsSticky(ToDriver(code));
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_ERROR_H_
