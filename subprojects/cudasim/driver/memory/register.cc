// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's own memory, pinned: cuMemHostRegister. It is the current context's, and is
// unregistered when that dies, also if it is portable (measured on an H100, driver
// 580.159.04).

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/memory/memory.h"

namespace cudasim::driver {

bool IsHostMemory(std::uintptr_t base, size_t bytes) {
  constexpr size_t kAtOnce = 4096;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::uintptr_t first = base / page * page;
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(base, bytes, &end)) return false;
  unsigned char resident[kAtOnce];
  for (; first < end; first += kAtOnce * page) {
    const size_t length = std::min(end - first, kAtOnce * page);
    if (mincore(reinterpret_cast<void*>(first), length, resident) != 0) return false;
  }
  return true;
}

// Two ranges may share a page, but no byte. Memory that may only be read is not told
// apart: a real driver refuses it without CU_MEMHOSTREGISTER_READ_ONLY.
CUresult MemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  // CU_MEMHOSTREGISTER_IOMEMORY is for the memory of other devices.
  constexpr unsigned kFlags =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  Allocation allocation;
  const CUresult code = CurrentReady(&allocation.incarnation);
  if (code != CUDA_SUCCESS) return code;
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || (flags & ~kFlags) != 0 ||
      !IsHostMemory(allocation.base, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  allocation.kind = MemoryKind::kRegistered;
  allocation.device = allocation.incarnation.context->device();
  allocation.size = bytes;
  allocation.flags = flags;
  return Memory::Add(allocation);
}

CUresult MemHostUnregister(void* pointer) {
  const CUresult code = ReadyOrNothingCurrent();
  if (code != CUDA_SUCCESS) return code;
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Allocation allocation;
  if (!Memory::Find(address, &allocation)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return Memory::FreeWhenIdle(address, {MemoryKind::kRegistered});
}

}  // namespace cudasim::driver
