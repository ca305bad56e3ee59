// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/library_file.h                                               tier: 0
// -----------------------------------------------------------------------------
//
// Not for embedders. A CUDA library that is loaded at run time.

#ifndef CUGUEST_INTERNAL_LIBRARY_FILE_H_
#define CUGUEST_INTERNAL_LIBRARY_FILE_H_

#include <string>
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
  LibraryFile() = default;
  // `name`, or "<stem>.so.<major>" if that is nullptr.
  [[nodiscard]] static absl::StatusOr<LibraryFile> Open(const char* name, const char* stem,
                                                        int major);

  // The address of `symbol`.
  [[nodiscard]] absl::StatusOr<void*> Find(const char* symbol) const;

  template <typename Function>
  [[nodiscard]] absl::StatusOr<Function> FindAs(const char* symbol) const {
    const absl::StatusOr<void*> found = Find(symbol);
    if (!found.ok()) return found.status();
    return reinterpret_cast<Function>(*found);
  }

  // Fills `entry` with the address of `symbol`, or says why not; does nothing after a failure.
  template <typename Function>
  void Fill(const char* symbol, Function* entry, absl::Status* status) const {
    if (!status->ok()) return;
    const absl::StatusOr<Function> found = FindAs<Function>(symbol);
    if (found.ok()) {
      *entry = *found;
    } else {
      *status = found.status();
    }
  }

  // kFailedPrecondition unless `major` is what the caller was compiled for.
  [[nodiscard]] absl::Status CheckMajor(int major, int compiled_for) const;

 private:
  explicit LibraryFile(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_ = nullptr;  // nullptr: the program and what it is linked with, to dlsym()
};

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_LIBRARY_FILE_H_
