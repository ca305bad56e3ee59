// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Virtual memory: ranges of addresses, memory without an address, and the mappings
// between them. None of it belongs to a context or needs one: it outlives them all
// (measured on an H100, driver 580.159.04).

#ifndef CUDASIM_DRIVER_MEMORY_VIRTUAL_MEMORY_H_
#define CUDASIM_DRIVER_MEMORY_VIRTUAL_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace cudasim::driver {

struct AddressRange {
  std::uintptr_t base = 0;
  size_t size = 0;

  std::uintptr_t end() const { return base + size; }
};

// The reserved range around an address; false if there is none.
bool FindReserved(std::uintptr_t address, AddressRange* range);

// Memory without an address, and reserved ranges.
size_t CountVirtualMemory();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_VIRTUAL_MEMORY_H_
