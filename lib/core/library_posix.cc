// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/library.h"

#include <dlfcn.h>
#include <link.h>
#include <time.h>

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

std::uint64_t LoaderMoment() noexcept {
  constexpr std::uint64_t kTimesASecond = 8;
  constexpr int kBitsOfTime = 40;
  std::uint64_t loads = 0;
  const auto count = [](dl_phdr_info* object, std::size_t, void* data) {
    *static_cast<std::uint64_t*>(data) = object->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(count, &loads);
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::uint64_t time = static_cast<std::uint64_t>(now.tv_sec) * kTimesASecond +
                             static_cast<std::uint64_t>(now.tv_nsec) * kTimesASecond / 1000000000;
  return (loads << kBitsOfTime) ^ time;
}

void* BorrowLoaded(const char* path) noexcept { return dlopen(path, RTLD_LAZY | RTLD_NOLOAD); }

void GiveBack(void* library) noexcept { dlclose(library); }

void* FindSymbol(void* library, const char* name) noexcept { return dlsym(library, name); }

CUGUEST_END_INTERNAL_NAMESPACE
