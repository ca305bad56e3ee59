// SPDX-License-Identifier: Apache-2.0
//
// Memory: device, pinned host and managed. All of it is host memory, and a
// CUdeviceptr is its address; a page costs nothing until somebody writes it.

#ifndef CUGUEST_LIB_SIM_MEMORY_H_
#define CUGUEST_LIB_SIM_MEMORY_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "lib/sim/context.h"

namespace cuguest_sim {

enum class MemoryKind { kDevice, kHost, kManaged };

struct Allocation {
  Life life;  // where it was allocated, and with which it goes
  MemoryKind kind = MemoryKind::kDevice;
  std::uintptr_t base = 0;
  size_t size = 0;
  unsigned flags = 0;
  std::uint64_t buffer_id = 0;

  bool Contains(std::uintptr_t address, size_t bytes) const {
    return address - base < size && bytes <= size - (address - base);
  }
};

// Memory
//
// Threads: any; one mutex.
class Memory {
 public:
  static CUresult Allocate(const Life& life, MemoryKind kind, size_t bytes, unsigned flags,
                           std::uintptr_t* base);

  // INVALID_VALUE unless an allocation of host (or not host) memory begins there.
  static CUresult Free(std::uintptr_t base, bool host);

  // The allocation around an address. The copy stays right until somebody frees it.
  static bool Find(std::uintptr_t address, Allocation* allocation);

  static void DropLife(std::uint64_t context_id);
  static size_t Count();
};

inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_MEMORY_H_
