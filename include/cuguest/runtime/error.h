// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Between the runtime's `cudaError_t`, the driver's `CUresult` and `absl::Status`. A status made
/// here says what was being done, to what, the runtime's error and what to do, and has both codes.
///
///   absl::Status s = cuguest::runtime::ToStatus(cudaMalloc(&p, n), "allocate the picture");
///   // RESOURCE_EXHAUSTED: allocate the picture: cudaErrorMemoryAllocation (2): ...
///   cuguest::CodeOf(s) == CUDA_ERROR_OUT_OF_MEMORY;
///   cuguest::runtime::RuntimeCodeOf(s) == cudaErrorMemoryAllocation;
///
/// Nothing here calls the runtime or the driver, so no thread's last error changes: what a failed
/// cudaMalloc has set stays set until the caller takes it with cudaGetLastError.
/// Threads: any.

#ifndef CUGUEST_RUNTIME_ERROR_H_
#define CUGUEST_RUNTIME_ERROR_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/internal/runtime_error.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// With both APIs' functions in scope, the argument's type chooses.
using ::cuguest::CodeOf;
using ::cuguest::ErrorName;
using ::cuguest::ErrorText;
using ::cuguest::IsSticky;
using ::cuguest::ToStatus;

/// The other API's code; see Note [Two APIs, one list of numbers].
[[nodiscard]] inline CUresult ToDriver(cudaError_t code) noexcept {
  return internal::RuntimeToDriver(static_cast<int>(code));
}
[[nodiscard]] inline cudaError_t ToRuntime(CUresult code) noexcept {
  return static_cast<cudaError_t>(internal::DriverToRuntime(code));
}

/// As the one of status.h, with the runtime's name in the text and the canonical code of
/// ToDriver(code): equal errors of both APIs are equal in a switch on it.
/// Cost: one comparison on success, nothing allocated; text is built on failure only.
[[nodiscard]] inline absl::Status ToStatus(cudaError_t code, std::string_view doing,
                                           std::string_view object = {}) {
  if (code == cudaSuccess) return absl::OkStatus();
  return internal::MakeRuntimeStatus(static_cast<int>(code), doing, object);
}

/// The runtime's code that `status` was made from, or ToRuntime() of the driver's code; cudaSuccess
/// for OK, nothing for one made from neither. cuguest::CodeOf() has the driver's code of either.
[[nodiscard]] inline std::optional<cudaError_t> RuntimeCodeOf(const absl::Status& status) {
  const std::optional<int> code = internal::RuntimeCodeOf(status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<cudaError_t>(*code);
}

/// ErrorName() is the name ("cudaErrorMemoryAllocation"), ErrorText() one sentence that says what
/// it means and what to do. Never null; a code newer than cuguest gives "cudaErrorUnrecognized".
/// Not cudaGetErrorName, which knows only its own runtime's codes.
[[nodiscard]] inline const char* ErrorName(cudaError_t code) noexcept {
  return internal::RuntimeErrorName(static_cast<int>(code));
}
[[nodiscard]] inline const char* ErrorText(cudaError_t code) noexcept {
  return internal::RuntimeErrorText(static_cast<int>(code));
}

/// As the one of error.h.
[[nodiscard]] inline bool IsSticky(cudaError_t code) noexcept { return IsSticky(ToDriver(code)); }

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_ERROR_H_
