// SPDX-License-Identifier: Apache-2.0
//
// Leaves a function with a status that is not OK.                                      tier: 0

#ifndef CUGUEST_LIB_CORE_STATUS_MACROS_H_
#define CUGUEST_LIB_CORE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/error.h"

// Returns the status that `...` is, unless it is OK.
#define CUGUEST_RETURN_IF_ERROR(...)                                         \
  do {                                                                       \
    if (absl::Status status_ = (__VA_ARGS__); !status_.ok()) return status_; \
  } while (false)

// CUGUEST_RETURN_IF_CUDA_ERROR(code, doing, object): returns ToStatus(code, doing, object) unless
// the CUresult `code` is CUDA_SUCCESS. The texts are made on failure only.
#define CUGUEST_RETURN_IF_CUDA_ERROR(code, ...)                               \
  do {                                                                        \
    if (const CUresult failed_with_ = (code); failed_with_ != CUDA_SUCCESS) { \
      return ::cuguest::ToStatus(failed_with_, __VA_ARGS__);                  \
    }                                                                         \
  } while (false)

// declaration = the value of the StatusOr that `...` is; returns its status unless it is OK.
#define CUGUEST_ASSIGN_OR_RETURN(declaration, ...) \
  CUGUEST_INTERNAL_ASSIGN(CUGUEST_INTERNAL_NAME(__LINE__), declaration, (__VA_ARGS__))

#define CUGUEST_INTERNAL_PASTE(a, b) a##b
#define CUGUEST_INTERNAL_NAME(line) CUGUEST_INTERNAL_PASTE(status_or_, line)
#define CUGUEST_INTERNAL_ASSIGN(result, declaration, expression) \
  auto result = expression;                                      \
  if (!result.ok()) return std::move(result).status();           \
  declaration = *std::move(result)

#endif  // CUGUEST_LIB_CORE_STATUS_MACROS_H_
