// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
//
// Not for embedders. What cuBLAS, cuFFT, cuSOLVER, cuSPARSE and NCCL are to us: a file that may be
// loaded at run time, and a list of codes, here as plain numbers, so that neither the library nor
// its header is needed for a status.

#ifndef CUGUEST_LIBRARIES_INTERNAL_TOOLKIT_LIBRARY_H_
#define CUGUEST_LIBRARIES_INTERNAL_TOOLKIT_LIBRARY_H_

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

enum class Library : unsigned char { kCublas, kCufft, kCusolver, kCusparse, kNccl };

// `code` is not success. Asks the driver, by two calls, whether the current context is lost.
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

// A function of a library, and the pointer that it is to be written to.
struct LibraryEntry {
  template <typename Function>
  CUGUEST_HIDE LibraryEntry(const char* name, Function** pointer) : symbol(name), address(pointer) {
    static_assert(std::is_function_v<Function> && sizeof(Function*) == sizeof(void*));
  }
  const char* symbol;
  void* address;
};

// A library that is loaded at run time, and never closed. No file: the program and what it is
// linked with.
CUGUEST_API absl::StatusOr<void*> OpenLibrary(const std::string& name);
[[nodiscard]] CUGUEST_API absl::StatusOr<void*> FindSymbol(void* file, const std::string& name,
                                                           const char* symbol);
// Stops at the first that is not there.
CUGUEST_API absl::Status FindEntries(void* file, const std::string& name,
                                     const std::vector<LibraryEntry>& entries);
// kFailedPrecondition unless `major` is what the caller was compiled for.
CUGUEST_API absl::Status CheckMajor(const std::string& name, int major, int compiled_for);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIBRARIES_INTERNAL_TOOLKIT_LIBRARY_H_
