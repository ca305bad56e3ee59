// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain memory of the host, of which the driver knows nothing.                         tier: 3

#ifndef CUGUEST_LIB_OBJECTS_MEMORY_HOST_PAGES_H_
#define CUGUEST_LIB_OBJECTS_MEMORY_HOST_PAGES_H_

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Whether every page of the range is mapped in this process, whatever may be done with it.
inline bool IsMapped(CUdeviceptr pointer, std::size_t bytes) noexcept {
  constexpr std::size_t kAtOnce = 1024;
  const CUdeviceptr page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  CUdeviceptr end = 0;
  if (__builtin_add_overflow(pointer, bytes, &end)) return false;
  unsigned char resident[kAtOnce];
  for (CUdeviceptr first = pointer / page * page; first < end; first += kAtOnce * page) {
    const std::size_t length = std::min(end - first, kAtOnce * page);
    if (mincore(reinterpret_cast<void*>(first), length, resident) != 0) return false;
  }
  return true;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_MEMORY_HOST_PAGES_H_
