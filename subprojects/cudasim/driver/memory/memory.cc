// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/context/stack.h"
#include "driver/graph/graph_memory.h"
#include "driver/memory/pool.h"
#include "driver/memory/reach.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

// A cuMemAlloc pointer is aligned to 256 at least (CUDA programming guide).
constexpr size_t kAlignment = 512;
// It has pages of its own, which can be shared with another process.
size_t AlignmentOf(MemoryKind kind) { return kind == MemoryKind::kDevice ? kPage : kAlignment; }
// Rows of cuMemAllocPitch begin at multiples of this on a device of 9.0.
constexpr size_t kPitchAlignment = 512;
// Smaller ones come from the heap, where AddressSanitizer sees an overrun.
constexpr size_t kMapped = size_t{1} << 20;

struct MemoryTable {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> by_base;
  std::uint64_t next_buffer_id = 1;
};

// Never destroyed: there are atexit handlers that free memory.
MemoryTable& TheAllocations() {
  static auto& table = *new MemoryTable;
  return table;
}

void* TakeHostMemory(size_t bytes, size_t alignment) {
  if (bytes < kMapped) {
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void* pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pointer != MAP_FAILED ? pointer : nullptr;
}

void GiveBackHostMemory(std::uintptr_t base, size_t bytes) {
  void* pointer = reinterpret_cast<void*>(base);
  if (bytes < kMapped) {
    std::free(pointer);
  } else {
    munmap(pointer, bytes);
  }
}

// Managed memory takes room on a device only while it is there, which this
// simulation does not follow.
size_t DeviceBytes(const Allocation& allocation) {
  const bool is_there =
      allocation.kind == MemoryKind::kDevice || allocation.kind == MemoryKind::kVariable;
  return is_there ? allocation.size : 0;
}

void* TakePages(Allocation* allocation) {
  return allocation->pool_file != nullptr
             ? allocation->pool_file->MapNew(allocation->size, &allocation->offset)
             : TakeHostMemory(allocation->size, AlignmentOf(allocation->kind));
}

void GiveBackPages(const Allocation& allocation) {
  if (allocation.pool_file == nullptr) {
    GiveBackHostMemory(allocation.base, allocation.size);
    return;
  }
  PoolFile::Unmap(ToPointer(allocation.base), allocation.size);
  if (!allocation.is_imported) allocation.pool_file->Discard(allocation.offset, allocation.size);
}

void Return(const Allocation& allocation) {
  if (allocation.shared.file >= 0) {
    UnsharePages(ToPointer(allocation.base), WholePages(allocation.size), allocation.shared);
  }
  if (allocation.kind == MemoryKind::kImported) {
    UnmapShared(ToPointer(allocation.base), allocation.size);
  }
  const bool borrowed =
      allocation.kind == MemoryKind::kRegistered || allocation.kind == MemoryKind::kMapped ||
      allocation.kind == MemoryKind::kGraph || allocation.kind == MemoryKind::kImported;
  if (!borrowed) GiveBackPages(allocation);
  if (allocation.kind == MemoryKind::kPool) GiveBackToPool(allocation.pool, allocation.size);
  DeviceMemory::GiveBack(allocation.device, DeviceBytes(allocation));
}

// The allocation whose range holds the address, or end().
std::map<std::uintptr_t, Allocation>::iterator FindIn(MemoryTable& table, std::uintptr_t address) {
  auto after = table.by_base.upper_bound(address);
  if (after == table.by_base.begin()) return table.by_base.end();
  auto candidate = std::prev(after);
  return candidate->second.Contains(address, 0) ? candidate : table.by_base.end();
}

// What begins there and may be freed as one of these kinds, or end().
std::map<std::uintptr_t, Allocation>::iterator FindToFree(MemoryTable& table, std::uintptr_t base,
                                                          std::initializer_list<MemoryKind> kinds) {
  const auto found = table.by_base.find(base);
  if (found == table.by_base.end() || found->second.is_being_freed) return table.by_base.end();
  const bool is_one = std::find(kinds.begin(), kinds.end(), found->second.kind) != kinds.end();
  return is_one ? found : table.by_base.end();
}

// The end of what is being freed, unless it went with its context.
void EndAllocation(std::uintptr_t base) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.by_base.find(base);
  if (found == table.by_base.end() || !found->second.is_being_freed) return;
  Return(found->second);
  table.by_base.erase(found);
}

// What the range overlaps, or nullptr.
const Allocation* FindOverlap(MemoryTable& table, std::uintptr_t base, size_t size) {
  auto found = FindIn(table, base);
  if (found == table.by_base.end()) found = table.by_base.lower_bound(base);
  const bool overlaps = found != table.by_base.end() && found->first < base + size;
  return overlaps ? &found->second : nullptr;
}

CUresult AllocateInCurrent(MemoryKind kind, size_t bytes, unsigned flags, std::uintptr_t* base) {
  Incarnation incarnation;
  const CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;  // the context comes first
  Allocation allocation;
  allocation.incarnation = incarnation;
  allocation.device = incarnation.context->device();
  allocation.kind = kind;
  allocation.size = bytes;
  allocation.flags = flags;
  return Memory::Allocate(allocation, base);
}

CUresult AllocateDevice(CUdeviceptr* address, MemoryKind kind, size_t bytes, unsigned flags) {
  std::uintptr_t base = 0;
  const CUresult code = AllocateInCurrent(kind, address != nullptr ? bytes : 0, flags, &base);
  if (address != nullptr) *address = base;  // 0 on failure
  return code;
}

CUresult FindPinned(void* pointer, Allocation* allocation) {
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  const bool found = Memory::Find(reinterpret_cast<std::uintptr_t>(pointer), allocation);
  return found && allocation->IsOnHost() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Everything is mapped. (A real driver puts small allocations into one block and may
// say for each what was asked for the first.)
unsigned ShownFlags(const Allocation& allocation) {
  constexpr unsigned kKept = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED;
  return (allocation.flags & kKept) | unsigned{CU_MEMHOSTALLOC_DEVICEMAP};
}

}  // namespace

CUresult Memory::Allocate(Allocation allocation, std::uintptr_t* base) {
  if (!DeviceMemory::Take(allocation.device, DeviceBytes(allocation))) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* pointer = TakePages(&allocation);
  if (pointer == nullptr) {
    DeviceMemory::GiveBack(allocation.device, DeviceBytes(allocation));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  allocation.base = reinterpret_cast<std::uintptr_t>(pointer);
  const CUresult code = Add(allocation);
  if (code == CUDA_SUCCESS) {
    *base = allocation.base;
    return code;
  }
  GiveBackPages(allocation);
  DeviceMemory::GiveBack(allocation.device, DeviceBytes(allocation));
  return code;
}

CUresult Memory::Add(const Allocation& allocation) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const bool bound = allocation.incarnation.context != nullptr;
  if (bound && !allocation.incarnation.IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const Allocation* overlap = FindOverlap(table, allocation.base, allocation.size);
  if (overlap != nullptr) {
    return overlap->kind == MemoryKind::kRegistered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                    : CUDA_ERROR_INVALID_VALUE;
  }
  Allocation& added = table.by_base.emplace(allocation.base, allocation).first->second;
  added.buffer_id = table.next_buffer_id++;
  added.synchronizes = allocation.IsManaged();
  return CUDA_SUCCESS;
}

CUresult Memory::Free(std::uintptr_t base, std::initializer_list<MemoryKind> kinds) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = FindToFree(table, base, kinds);
  if (found == table.by_base.end()) return CUDA_ERROR_INVALID_VALUE;
  Return(found->second);
  table.by_base.erase(found);
  return CUDA_SUCCESS;
}

CUresult Memory::FreeIn(const Stream& stream, std::uintptr_t base,
                        std::initializer_list<MemoryKind> kinds) {
  if (Schedule::IsIdle()) return Free(base, kinds);
  MemoryTable& table = TheAllocations();
  {
    const std::lock_guard<std::mutex> lock(table.mutex);
    const auto found = FindToFree(table, base, kinds);
    if (found == table.by_base.end()) return CUDA_ERROR_INVALID_VALUE;
    found->second.is_being_freed = true;
  }
  Job job;
  job.incarnation = stream.incarnation;
  job.run = [base] { EndAllocation(base); };
  Schedule::Submit(stream, job);
  return CUDA_SUCCESS;
}

CUresult Memory::FreeWhenIdle(std::uintptr_t base, std::initializer_list<MemoryKind> kinds) {
  Allocation allocation;
  if (!Find(base, &allocation)) return CUDA_ERROR_INVALID_VALUE;
  if (allocation.incarnation.context != nullptr) {
    Schedule::WaitForContext(allocation.incarnation.id);
  }
  return Free(base, kinds);
}

bool Memory::Find(std::uintptr_t address, Allocation* allocation) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = FindIn(table, address);
  if (found == table.by_base.end()) return false;
  *allocation = found->second;
  return true;
}

bool Memory::Reaches(std::uintptr_t address, size_t bytes, unsigned access) {
  Allocation part;
  while (Find(address, &part)) {
    if ((part.access & access) == 0) return false;
    if (part.Contains(address, bytes)) return true;
    if (part.kind != MemoryKind::kMapped) return false;
    bytes -= part.base + part.size - address;
    address = part.base + part.size;
  }
  return false;
}

void Memory::SetAccess(std::uintptr_t base, unsigned access,
                       const std::array<unsigned char, kMaxDevices>& device_access,
                       bool host_access) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.by_base.find(base);
  if (found == table.by_base.end()) return;
  found->second.access = access;
  found->second.device_access = device_access;
  found->second.host_access = host_access;
}

CUresult Memory::Share(std::uintptr_t address, SharedFile* shared, size_t* size) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = FindIn(table, address);
  if (found == table.by_base.end() || found->second.kind != MemoryKind::kDevice) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation& allocation = found->second;
  if (allocation.shared.file < 0 &&
      !SharePages(ToPointer(allocation.base), WholePages(allocation.size), &allocation.shared)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *shared = allocation.shared;
  *size = allocation.size;
  return CUDA_SUCCESS;
}

bool Memory::SetSynchronizes(std::uintptr_t address, bool synchronizes) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = FindIn(table, address);
  if (found == table.by_base.end()) return false;
  found->second.synchronizes = synchronizes;
  return true;
}

void Memory::DropIncarnation(std::uint64_t context_id) {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (auto it = table.by_base.begin(); it != table.by_base.end();) {
    if (it->second.incarnation.id != context_id) {
      ++it;
      continue;
    }
    Return(it->second);
    it = table.by_base.erase(it);
  }
}

// What was mapped is zeros without being written, and takes no room until it is.
CUresult Memory::AllocateZeros(const Allocation& allocation, std::uintptr_t* base) {
  const CUresult code = Allocate(allocation, base);
  if (code == CUDA_SUCCESS && allocation.size < kMapped) {
    std::memset(reinterpret_cast<void*>(*base), 0, allocation.size);
  }
  return code;
}

size_t Memory::Count() {
  MemoryTable& table = TheAllocations();
  const std::lock_guard<std::mutex> lock(table.mutex);
  return static_cast<size_t>(
      std::count_if(table.by_base.begin(), table.by_base.end(),
                    [](const auto& entry) { return !entry.second.IsVariable(); }));
}

CUresult MemGetInfo(size_t* free, size_t* total) {
  if (free != nullptr) *free = 0;
  if (total != nullptr) *total = 0;
  Incarnation incarnation;
  const CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (free != nullptr) *free = DeviceMemory::Free(incarnation.context->device());
  if (total != nullptr) *total = ThisGpu().memory;
  return CUDA_SUCCESS;
}

CUresult MemAlloc(CUdeviceptr* address, size_t bytes) {
  return AllocateDevice(address, MemoryKind::kDevice, bytes, 0);
}

CUresult MemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                       unsigned element) {
  if (pitch != nullptr) *pitch = 0;
  if (address != nullptr) *address = 0;
  Context* context = nullptr;
  const CUresult code = Current(&context);
  if (code != CUDA_SUCCESS) return code;
  if (!context->IsAlive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const bool is_element = element == 4 || element == 8 || element == 16;
  if (address == nullptr || pitch == nullptr || !is_element || width == 0 || height == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return AllocateDevice(address, MemoryKind::kDevice, *pitch * height, 0);
}

CUresult MemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  if (address != nullptr) *address = 0;
  if (address == nullptr || bytes == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return AllocateDevice(address, MemoryKind::kManaged, bytes, flags);
}

// Works with another context current and with none, but not with a dead one.
CUresult MemFree(CUdeviceptr address) {
  CUresult code = ReadyOrNothingCurrent();
  if (code == CUDA_SUCCESS && address == 0) code = StickyError();
  if (code != CUDA_SUCCESS || address == 0) return code;
  const std::shared_ptr<GraphMemory> of_graph = GraphMemory::At(address);
  if (of_graph != nullptr) {
    Schedule::WaitForAll();
    const CUresult freed = of_graph->FreeOutside();
    if (freed == CUDA_SUCCESS) of_graph->Unmap();
    return freed;
  }
  return Memory::FreeWhenIdle(address,
                              {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kPool});
}

CUresult MemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  if (base != nullptr) *base = 0;
  if (size != nullptr) *size = 0;
  if (base == nullptr && size == nullptr) return CUDA_SUCCESS;
  Incarnation incarnation;
  const CUresult code = CurrentAlive(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  Allocation allocation;
  const bool is_found = Memory::Find(address, &allocation) && !IsIdleMemory(allocation) &&
                        allocation.access != 0 &&
                        IsWithinReach(Touch::kCopy, address, 1, Memory::kRead, incarnation);
  if (!is_found) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation.base;
  if (size != nullptr) *size = allocation.size;
  return CUDA_SUCCESS;
}

CUresult MemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kFlags =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  const bool valid = pointer != nullptr && (flags & ~kFlags) == 0;
  std::uintptr_t base = 0;
  const CUresult code = AllocateInCurrent(MemoryKind::kHost, valid ? bytes : 0, flags, &base);
  if (pointer != nullptr) *pointer = ToPointer(base);
  const bool is_nothing = valid && bytes == 0 && code == CUDA_ERROR_INVALID_VALUE;
  return is_nothing ? CUDA_SUCCESS : code;
}

CUresult MemAllocHost(void** pointer, size_t bytes) { return MemHostAlloc(pointer, bytes, 0); }

CUresult MemFreeHost(void* pointer) {
  const CUresult code = ReadyOrNothingCurrent();
  if (code != CUDA_SUCCESS || pointer == nullptr) return code;
  return Memory::FreeWhenIdle(reinterpret_cast<std::uintptr_t>(pointer), {MemoryKind::kHost});
}

CUresult MemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  if (address != nullptr) *address = 0;
  Allocation allocation;
  const CUresult code = FindPinned(pointer, &allocation);
  if (code == CUDA_SUCCESS && (address == nullptr || flags != 0)) return CUDA_ERROR_INVALID_VALUE;
  // Unified addressing: the same on both sides.
  if (code == CUDA_SUCCESS) *address = reinterpret_cast<CUdeviceptr>(pointer);
  return code;
}

CUresult MemHostGetFlags(unsigned* flags, void* pointer) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  const CUresult code = FindPinned(pointer, &allocation);
  if (code == CUDA_SUCCESS) *flags = ShownFlags(allocation);
  return code;
}

}  // namespace cudasim::driver
