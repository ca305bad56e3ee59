// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

bool EndsWith(const char* text, const char* end) {
  const std::size_t length = std::strlen(text);
  const std::size_t of_end = std::strlen(end);
  return length >= of_end && std::strcmp(text + length - of_end, end) == 0;
}

}  // namespace

void* LoadForGood(const char* path, char* why, std::size_t size) noexcept {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  std::snprintf(why, size, "%s", reason != nullptr ? reason : path);
  return nullptr;
}

// The loader's words end with the system's, which are in the same language.
bool MayPass(const char* why) noexcept {
  return EndsWith(why, std::strerror(EMFILE)) || EndsWith(why, std::strerror(ENFILE)) ||
         EndsWith(why, std::strerror(ENOMEM));
}

void* BorrowLoaded(const char* path) noexcept { return dlopen(path, RTLD_LAZY | RTLD_NOLOAD); }

void GiveBack(void* library) noexcept { dlclose(library); }

void* FindSymbol(void* library, const char* name) noexcept { return dlsym(library, name); }

CUGUEST_END_INTERNAL_NAMESPACE
