// SPDX-License-Identifier: Apache-2.0

#include "cuguest/internal/library_file.h"

#include <dlfcn.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

absl::StatusOr<LibraryFile> LibraryFile::Open(const char* given, const char* stem, int major) {
  std::string name = given != nullptr ? given : absl::StrCat(stem, ".so.", major);
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return LibraryFile(std::move(name), handle);
  const char* const why = dlerror();
  return absl::UnavailableError(
      absl::StrCat("load ", name, ": ", why == nullptr ? "no reason given" : why,
                   "; is the CUDA Toolkit's library folder on the library path?"));
}

absl::StatusOr<void*> LibraryFile::Find(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found != nullptr) return found;
  return absl::UnimplementedError(
      absl::StrCat("find ", symbol, " in ", name_.empty() ? "the program" : name_,
                   ": it is not there; use a library of the CUDA version that this was compiled "
                   "with, or newer"));
}

absl::Status LibraryFile::Fill(std::initializer_list<Entry> entries) const {
  for (const Entry& entry : entries) {
    CUGUEST_ASSIGN_OR_RETURN(void* const found, Find(entry.symbol));
    std::memcpy(entry.address, &found, sizeof(void*));
  }
  return absl::OkStatus();
}

absl::Status LibraryFile::CheckMajor(int major, int compiled_for) const {
  if (major == compiled_for) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("load ", name_, ": its major version is ", major, ", and this was compiled for ",
                   compiled_for, ", whose functions may have other parameters"));
}

}  // namespace internal
CUGUEST_END_NAMESPACE
