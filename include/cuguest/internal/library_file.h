// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/library_file.h                                               tier: 0
// -----------------------------------------------------------------------------
//
// Not for embedders. A CUDA library that is loaded at run time.

#ifndef CUGUEST_INTERNAL_LIBRARY_FILE_H_
#define CUGUEST_INTERNAL_LIBRARY_FILE_H_

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// LibraryFile
//
// Opened and never closed. The default one stands for whatever the program is linked with.
class CUGUEST_API LibraryFile {
 public:
  // As the compiler declares them, but hidden.
  CUGUEST_HIDE LibraryFile(const LibraryFile&) = default;
  CUGUEST_HIDE LibraryFile(LibraryFile&&) = default;
  CUGUEST_HIDE LibraryFile& operator=(const LibraryFile&) = default;
  CUGUEST_HIDE LibraryFile& operator=(LibraryFile&&) = default;
  CUGUEST_HIDE ~LibraryFile() = default;

  CUGUEST_HIDE LibraryFile() = default;
  // `name`, or "<stem>.so.<major>" if that is nullptr.
  [[nodiscard]] static absl::StatusOr<LibraryFile> Open(const char* name, const char* stem,
                                                        int major);

  // The address of `symbol`.
  [[nodiscard]] absl::StatusOr<void*> Find(const char* symbol) const;

  // A pointer to a function, and the symbol that it is to be filled with.
  struct Entry {
    template <typename Function>
    CUGUEST_HIDE Entry(const char* of, Function** pointer) : symbol(of), address(pointer) {
      static_assert(std::is_function_v<Function> && sizeof(Function*) == sizeof(void*));
    }
    const char* symbol;
    void* address;
  };
  // Stops at the first that is not there.
  [[nodiscard]] absl::Status Fill(std::initializer_list<Entry> entries) const;

  // kFailedPrecondition unless `major` is what the caller was compiled for.
  [[nodiscard]] absl::Status CheckMajor(int major, int compiled_for) const;

 private:
  CUGUEST_HIDE explicit LibraryFile(std::string name, void* handle)
      : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_ = nullptr;  // nullptr: the program and what it is linked with, to dlsym()
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_FILE_H_
