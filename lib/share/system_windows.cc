// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/system.h"

#include <windows.h>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

bool MayHaveMemoryAt(std::uintptr_t address) noexcept {
  MEMORY_BASIC_INFORMATION about = {};
  if (VirtualQuery(reinterpret_cast<void*>(address), &about, sizeof(about)) == 0) return false;
  return about.State == MEM_COMMIT && (about.Protect & (PAGE_NOACCESS | PAGE_GUARD)) == 0;
}

void* MapZeros(std::size_t size) noexcept {
  return VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void Unmap(void* place, std::size_t) noexcept {
  static_cast<void>(VirtualFree(place, 0, MEM_RELEASE));
}

bool IsForked() noexcept { return false; }

CUGUEST_END_INTERNAL_NAMESPACE
