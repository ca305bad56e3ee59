// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/library.h"

#include <windows.h>

#include <cstdio>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Never given back, so it stays.
void* LoadForGood(const char* path, char* why, std::size_t size) noexcept {
  HMODULE const library = LoadLibraryExA(path, nullptr, LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (library == nullptr) {
    std::snprintf(why, size, "%s: error %lu of LoadLibraryEx", path, GetLastError());
  }
  return reinterpret_cast<void*>(library);
}

bool MayPass(const char* /*why*/) noexcept { return false; }

// Windows counts no loads; that the driver is there is told in no time.
std::uint64_t LoaderMoment() noexcept {
  constexpr unsigned kMilliseconds = 125;
  const bool is_loaded = GetModuleHandleA(kDriverFile) != nullptr;
  return (GetTickCount64() / kMilliseconds + 1) << 1 | static_cast<std::uint64_t>(is_loaded);
}

void* BorrowLoaded(const char* path) noexcept {
  HMODULE library = nullptr;
  return GetModuleHandleExA(0, path, &library) != 0 ? reinterpret_cast<void*>(library) : nullptr;
}

void GiveBack(void* library) noexcept { FreeLibrary(static_cast<HMODULE>(library)); }

void* FindSymbol(void* library, const char* name) noexcept {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

CUGUEST_END_INTERNAL_NAMESPACE
