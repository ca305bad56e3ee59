// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/library_error.h                                              tier: 0
// -----------------------------------------------------------------------------
//
// Not for embedders. The codes of cuBLAS, cuFFT, cuSOLVER and cuSPARSE as plain numbers, so that
// neither their headers nor the libraries are needed, and a status of one library's can be made
// in a program that loads it at run time.

#ifndef CUGUEST_INTERNAL_LIBRARY_ERROR_H_
#define CUGUEST_INTERNAL_LIBRARY_ERROR_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

enum class Library : unsigned char { kCublas, kCufft, kCusolver, kCusparse };

// `code` is not success. Asks the driver once whether the current context is lost.
CUGUEST_API absl::Status MakeLibraryStatus(Library library, int code, std::string_view doing,
                                           std::string_view object);
// The code of `library` that `status` was made from; 0 for an OK status.
[[nodiscard]] CUGUEST_API std::optional<int> LibraryCodeOf(Library library,
                                                           const absl::Status& status);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_ERROR_H_
