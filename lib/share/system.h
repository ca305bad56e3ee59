// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What shared contexts ask of the operating system.                                   tier: 2

#ifndef CUGUEST_LIB_SHARE_SYSTEM_H_
#define CUGUEST_LIB_SHARE_SYSTEM_H_

#ifdef _WIN32
#include <malloc.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether the process may have memory at `address`, as far as that is seen without reading it.
bool MayHaveMemoryAt(std::uintptr_t address) noexcept;

// Memory for `size` bytes, a multiple of `alignment`, that is never freed; nullptr without.
inline void* AllocateAligned(std::size_t alignment, std::size_t size) noexcept {
#ifdef _WIN32
  return _aligned_malloc(size, alignment);
#else
  return std::aligned_alloc(alignment, size);
#endif
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_SYSTEM_H_
