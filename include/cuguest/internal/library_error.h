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

// The same, with the library's own type, whose success is Code{}.
template <typename Code>
[[nodiscard]] CUGUEST_HIDE absl::Status ToLibraryStatus(Library library, Code code,
                                                        std::string_view doing,
                                                        std::string_view object = {}) {
  if (code == Code{}) return absl::OkStatus();
  return MakeLibraryStatus(library, static_cast<int>(code), doing, object);
}
template <typename Code>
[[nodiscard]] CUGUEST_HIDE std::optional<Code> LibraryCodeOfType(Library library,
                                                                 const absl::Status& status) {
  const std::optional<int> code = LibraryCodeOf(library, status);
  if (!code.has_value()) return std::nullopt;
  return static_cast<Code>(*code);
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_ERROR_H_
