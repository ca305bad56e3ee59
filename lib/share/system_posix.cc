// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/system.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

CUGUEST_BEGIN_INTERNAL_NAMESPACE

bool MayHaveMemoryAt(std::uintptr_t address) noexcept {
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = address & ~(page_size - 1);
  if (page == 0) return false;
  unsigned char resident = 0;
  // ENOMEM: the page is not mapped, or no page can be there. Any other error, such as a system
  // call filter's EPERM, says nothing of the address.
  return mincore(reinterpret_cast<void*>(page), 1, &resident) == 0 || errno != ENOMEM;
}

CUGUEST_END_INTERNAL_NAMESPACE
