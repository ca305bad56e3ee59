// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's own memory, pinned: cuMemHostRegister. It is the current context's, and is
// unregistered when that dies, also if it is portable (measured on an H100, driver
// 580.159.04).

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

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

namespace {

// A line of /proc/self/maps.
struct Mapped {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string access;  // "rw-p"
  std::string path;    // of a file, or its name in brackets; or nothing

  explicit Mapped(const std::string& line) {
    std::istringstream words(line);
    std::string offset, device, inode;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end >> access >> offset >> device >> inode >> std::ws;
    std::getline(words, path);
  }
  bool Has(char what) const { return access.find(what) != std::string::npos; }

  // Whether the kernel writes changed pages of it to a file one day: not those of memory, also of
  // the file systems that are.
  bool IsWrittenBack() const {
    if (!Has('s') || path.empty() || path[0] != '/') return false;
    for (const char* memory : {"/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage"}) {
      if (path.compare(0, std::string(memory).size(), memory) == 0) return false;
    }
    struct statfs of = {};
    const std::string folder = path.substr(0, path.rfind('/') + 1);  // the file may be deleted
    return statfs(folder.c_str(), &of) != 0 ||
           (of.f_type != TMPFS_MAGIC && of.f_type != RAMFS_MAGIC && of.f_type != HUGETLBFS_MAGIC);
  }
};

// Whether the kernel keeps these pages in place for a device that reads, and unless `read_only`
// also writes, them.
bool CanBePinned(std::uintptr_t base, size_t bytes, bool read_only) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const Mapped mapped(line);
    if (mapped.end <= base || mapped.begin >= base + bytes) continue;
    if (!mapped.Has('r')) return false;
    if (!read_only && (!mapped.Has('w') || mapped.IsWrittenBack())) return false;
  }
  return true;
}

}  // namespace

// Two ranges may share a page, but no byte.
CUresult MemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  // CU_MEMHOSTREGISTER_IOMEMORY is for the memory of other devices.
  constexpr unsigned kFlags =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  Allocation allocation;
  const CUresult code = CurrentReady(&allocation.incarnation);
  if (code != CUDA_SUCCESS) return code;
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || (flags & ~kFlags) != 0 ||
      !IsHostMemory(allocation.base, bytes) ||
      !CanBePinned(allocation.base, bytes, (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0)) {
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
