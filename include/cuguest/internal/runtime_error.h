// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// The part of runtime/error.h that is the same for every copy of the runtime: its codes
// as plain numbers, so that no header of the runtime is needed. For runtime/error.h.

#ifndef CUGUEST_INTERNAL_RUNTIME_ERROR_H_
#define CUGUEST_INTERNAL_RUNTIME_ERROR_H_

#include <cuda.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

[[nodiscard]] CUGUEST_API CUresult RuntimeToDriver(int code) noexcept;
[[nodiscard]] CUGUEST_API int DriverToRuntime(CUresult code) noexcept;
[[nodiscard]] CUGUEST_API const char* RuntimeErrorName(int code) noexcept;
[[nodiscard]] CUGUEST_API const char* RuntimeErrorText(int code) noexcept;
CUGUEST_API absl::Status MakeRuntimeStatus(int code, std::string_view doing,
                                           std::string_view object);
[[nodiscard]] CUGUEST_API std::optional<int> RuntimeCodeOf(const absl::Status& status);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_RUNTIME_ERROR_H_
