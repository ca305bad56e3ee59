// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

void* LoadForGood(const char* path, char* why, std::size_t size) noexcept {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  std::snprintf(why, size, "%s", reason != nullptr ? reason : path);
  return nullptr;
}

// The loader's words end with the system's, which are in the same language.
bool MayPass(const char* why) noexcept {
  for (const int error : {EMFILE, ENFILE, ENOMEM}) {
    const char* const reason = std::strerror(error);
    const std::size_t length = std::strlen(why);
    const std::size_t of_reason = std::strlen(reason);
    if (length >= of_reason && std::strcmp(why + length - of_reason, reason) == 0) return true;
  }
  return false;
}

void* BorrowLoaded(const char* path) noexcept { return dlopen(path, RTLD_LAZY | RTLD_NOLOAD); }

void GiveBack(void* library) noexcept { dlclose(library); }

void* FindSymbol(void* library, const char* name) noexcept { return dlsym(library, name); }

CUGUEST_END_INTERNAL_NAMESPACE
