// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What shared contexts ask of the operating system.                                   tier: 2

#ifndef CUGUEST_LIB_SHARE_SYSTEM_H_
#define CUGUEST_LIB_SHARE_SYSTEM_H_

#include <cstddef>
#include <cstdint>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether the process may have memory at `address`, as far as that is seen without reading it.
bool MayHaveMemoryAt(std::uintptr_t address) noexcept;

// `size` bytes of zeros, in pages of their own, which belong to no copy of cuguest and no
// allocator; nullptr without memory.
void* MapZeros(std::size_t size) noexcept;
void Unmap(void* place, std::size_t size) noexcept;

// Whether this process was forked, and has not called exec since, as far as the kernel tells.
// Opens a file.
bool IsForked() noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_SHARE_SYSTEM_H_
