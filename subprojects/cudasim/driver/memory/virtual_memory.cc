// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/handle_number.h"
#include "driver/memory/memory.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

using Handle = CUmemGenericAllocationHandle;

constexpr size_t kGranularity = size_t{2} << 20;

bool IsGranular(std::uintptr_t value) { return value % kGranularity == 0; }

// Memory without an address: a file, so that it can be mapped in two places. It goes
// with its last handle or its last mapping, whichever is later.
struct Physical {
  CUmemAllocationProp properties = {};
  size_t size = 0;
  size_t handles = 1;
  size_t mappings = 0;
  int file = -1;             // the properties are behind the memory
  bool is_imported = false;  // its room on the device is another handle's, maybe of another process

  bool is_on_host() const { return properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  CUdevice device() const { return is_on_host() ? 0 : properties.location.id; }
};

struct Mapping {
  AddressRange range;
  Handle handle = 0;
  std::array<unsigned char, kMaxDevices> access = {};  // CUmemAccess_flags
  unsigned host_access = 0;                            // of NUMA node 0, the only one

  unsigned Union() const {
    unsigned all = 0;
    for (const unsigned char one : access) all |= one;
    all |= host_access;
    return all;
  }
};

void* PointerTo(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Addresses that nothing can be read from; nullptr if there are none.
void* ReserveAnywhere(size_t size, size_t alignment) {
  const size_t wide = size + alignment;
  void* pointer =
      mmap(nullptr, wide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pointer == MAP_FAILED) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uintptr_t base = (first + alignment - 1) / alignment * alignment;
  if (base != first) munmap(pointer, base - first);
  if (first + wide != base + size) munmap(PointerTo(base + size), first + wide - base - size);
  return PointerTo(base);
}

// There, or nullptr if anything is there.
void* ReserveAt(std::uintptr_t base, size_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* pointer = mmap(PointerTo(base), size, PROT_NONE, kFlags, -1, 0);
  if (pointer == MAP_FAILED) return nullptr;
  if (pointer == PointerTo(base)) return pointer;
  munmap(pointer, size);  // a kernel that takes the address for a hint
  return nullptr;
}

// Makes reserved addresses of mapped ones.
void Blank(const AddressRange& range) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(PointerTo(range.base), range.size, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) {
    Panic("mmap of a reserved range failed");
  }
}

int ProtectionOf(unsigned access) {
  return ((access & Memory::kRead) != 0 ? PROT_READ : 0) |
         ((access & Memory::kWrite) != 0 ? PROT_WRITE : 0);
}

// What holds an address, in a map by base; end() if nothing does.
template <typename Map, typename RangeOf>
typename Map::iterator FindAround(Map& map, std::uintptr_t address, RangeOf range_of) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return map.end();
  const auto candidate = std::prev(after);
  return address < range_of(candidate->second).end() ? candidate : map.end();
}

// VirtualMemory
//
// Threads: the caller holds the mutex.
class VirtualMemory {
 public:
  std::mutex mutex;

  void AddRange(const AddressRange& range) { ranges_[range.base] = range; }

  const AddressRange* FindRange(std::uintptr_t address) {
    const auto found =
        FindAround(ranges_, address, [](const AddressRange& range) { return range; });
    return found != ranges_.end() ? &found->second : nullptr;
  }

  size_t Count() const { return ranges_.size() + physicals_.size(); }

  void RemoveRange(std::uintptr_t base) { ranges_.erase(base); }

  Handle AddPhysical(const Physical& physical) {
    physicals_.emplace(next_, physical);
    return kNumber.ToHandle(next_++);
  }

  // nullptr for one that is gone; panics for what never was one.
  Physical* FindPhysical(Handle handle) {
    const std::uint64_t number = kNumber.ToNumber(handle);
    if (number == 0 || number >= next_) {
      PanicHandle(PointerTo(handle), "this never was an allocation handle");
    }
    const auto found = physicals_.find(number);
    return found != physicals_.end() ? &found->second : nullptr;
  }

  Physical& FindPhysicalOrPanic(Handle handle) {
    Physical* physical = FindPhysical(handle);
    if (physical == nullptr) {
      PanicHandle(PointerTo(handle),
                  "the allocation was released; a real driver reads freed memory (measured on an "
                  "H100, driver 580.159.04)");
    }
    return *physical;
  }

  Mapping* FindMapping(std::uintptr_t address) {
    const auto found = FindAround(mappings_, address, [](const Mapping& m) { return m.range; });
    return found != mappings_.end() ? &found->second : nullptr;
  }

  // The first mapping that ends behind `address`, or nullptr.
  Mapping* FindMappingFrom(std::uintptr_t address) {
    Mapping* around = FindMapping(address);
    if (around != nullptr) return around;
    const auto next = mappings_.lower_bound(address);
    return next != mappings_.end() ? &next->second : nullptr;
  }

  bool HasMappings(const AddressRange& range) {
    const Mapping* mapping = FindMappingFrom(range.base);
    return mapping != nullptr && mapping->range.base < range.end();
  }

  void AddMapping(const Mapping& mapping) {
    mappings_[mapping.range.base] = mapping;
    ++FindPhysical(mapping.handle)->mappings;
  }

  void RemoveMapping(Mapping mapping) {
    Memory::Free(mapping.range.base, {MemoryKind::kMapped});
    Blank(mapping.range);
    mappings_.erase(mapping.range.base);
    --FindPhysical(mapping.handle)->mappings;
    EraseIfDone(mapping.handle);
  }

  void Release(Handle handle) {
    --FindPhysical(handle)->handles;
    EraseIfDone(handle);
  }

 private:
  static constexpr HandleNumber kNumber{101};

  void EraseIfDone(Handle handle) {
    const Physical& physical = *FindPhysical(handle);
    if (physical.handles != 0 || physical.mappings != 0) return;
    close(physical.file);
    if (!physical.is_on_host() && !physical.is_imported) {
      DeviceMemory::GiveBack(physical.device(), physical.size);
    }
    physicals_.erase(kNumber.ToNumber(handle));
  }

  std::map<std::uintptr_t, AddressRange> ranges_;
  std::map<std::uintptr_t, Mapping> mappings_;
  std::map<std::uint64_t, Physical> physicals_;
  std::uint64_t next_ = 1;
};

// Never destroyed: there are atexit handlers that free memory.
VirtualMemory& TheMemory() {
  static auto& memory = *new VirtualMemory;
  return memory;
}

using Lock = std::lock_guard<std::mutex>;

// What another process reads of an allocation, behind its memory.
struct Trailer {
  char magic[8] = "simphys";
  CUmemAllocationProp properties = {};
};

int OpenFile(size_t size, const CUmemAllocationProp& properties) {
  const int file = memfd_create("cudasim-memory", MFD_CLOEXEC);
  Trailer trailer;
  trailer.properties = properties;
  const ssize_t written =
      file >= 0 ? pwrite(file, &trailer, sizeof(trailer), static_cast<off_t>(size)) : 0;
  if (file >= 0 && written != sizeof(trailer)) {
    close(file);
    return -1;
  }
  return file;
}

// False for a file that no allocation is in.
bool ReadFile(int file, Physical* physical) {
  struct stat status = {};
  Trailer trailer;
  char magic[sizeof(trailer.magic)];
  std::memcpy(magic, trailer.magic, sizeof(magic));
  const off_t at = fstat(file, &status) == 0 ? status.st_size - off_t{sizeof(trailer)} : -1;
  if (at <= 0 || pread(file, &trailer, sizeof(trailer), at) != sizeof(trailer) ||
      std::memcmp(trailer.magic, magic, sizeof(magic)) != 0) {
    return false;
  }
  physical->size = static_cast<size_t>(at);
  physical->properties = trailer.properties;
  return true;
}

bool IsDescriptor(CUmemAllocationHandleType type) {
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

bool MapFile(const Mapping& mapping, int file) {
  return mmap(PointerTo(mapping.range.base), mapping.range.size, PROT_NONE, MAP_SHARED | MAP_FIXED,
              file, 0) != MAP_FAILED;
}

CUresult Map(VirtualMemory& memory, const Mapping& mapping, const AddressRange& reserved) {
  const Physical& physical = *memory.FindPhysical(mapping.handle);
  if (!MapFile(mapping, physical.file)) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.kind = MemoryKind::kMapped;
  allocation.device = physical.device();
  allocation.lies_on_host = physical.is_on_host();
  allocation.base = mapping.range.base;
  allocation.size = mapping.range.size;
  allocation.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  allocation.range_base = reserved.base;
  allocation.range_size = reserved.size;
  memory.AddMapping(mapping);
  return Memory::Add(allocation);
}

// NUMA node 0 is the only one.
bool IsHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id == 0);
}

bool IsAccess(const CUmemAccessDesc& access) {
  const bool flags = access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                     access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return flags && IsHost(access.location);
  return flags && IsDevice(access.location.id);
}

void SetAccess(Mapping* mapping, const CUmemAccessDesc* access, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const auto flags = static_cast<unsigned char>(access[i].flags);
    const CUmemLocation& location = access[i].location;
    if (IsHost(location)) {
      mapping->host_access = flags;
    } else {
      mapping->access[static_cast<size_t>(location.id)] = flags;
    }
  }
  const unsigned all = mapping->Union();
  mprotect(PointerTo(mapping->range.base), mapping->range.size, ProtectionOf(all));
  Memory::SetAccess(mapping->range.base, all, mapping->access, mapping->host_access != 0);
}

// Mappings begin and end where the range does; there may be holes between.
bool IsFramed(VirtualMemory& memory, const AddressRange& range) {
  const Mapping* first = memory.FindMapping(range.base);
  const Mapping* last = memory.FindMapping(range.end() - 1);
  return first != nullptr && last != nullptr && first->range.base == range.base &&
         last->range.end() == range.end();
}

}  // namespace

bool FindReserved(std::uintptr_t address, AddressRange* range) {
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const AddressRange* found = memory.FindRange(address);
  if (found != nullptr) *range = *found;
  return found != nullptr;
}

size_t CountVirtualMemory() {
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  return memory.Count();
}

CUresult MemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                     CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || properties == nullptr ||
      (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
       option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kGranularity;  // whatever the properties say
  return CUDA_SUCCESS;
}

CUresult MemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint,
                           unsigned long long flags) {
  if (address == nullptr || size == 0 || !IsGranular(size) || !IsGranular(hint) ||
      (alignment & (alignment - 1)) != 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* pointer = hint != 0 ? ReserveAt(hint, size) : nullptr;
  if (pointer == nullptr) pointer = ReserveAnywhere(size, std::max(alignment, kGranularity));
  if (pointer == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  memory.AddRange({*address, size});
  return CUDA_SUCCESS;
}

CUresult MemAddressFree(CUdeviceptr address, size_t size) {
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const AddressRange* range = memory.FindRange(address);
  if (range == nullptr || range->base != address || range->size != size ||
      memory.HasMappings(*range)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  memory.RemoveRange(address);
  munmap(PointerTo(address), size);
  return CUDA_SUCCESS;
}

CUresult MemCreate(Handle* handle, size_t size, const CUmemAllocationProp* properties,
                   unsigned long long flags) {
  if (handle == nullptr || size == 0 || !IsGranular(size) || properties == nullptr || flags != 0 ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE && !IsHost(properties->location))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Physical physical;
  physical.properties = *properties;
  physical.size = size;
  const bool is_devices = !physical.is_on_host();
  if (is_devices && !IsDevice(physical.device())) return CUDA_ERROR_INVALID_DEVICE;
  if (is_devices && !DeviceMemory::Take(physical.device(), size)) return CUDA_ERROR_OUT_OF_MEMORY;
  physical.file = OpenFile(size, *properties);
  if (physical.file < 0) {
    if (is_devices) DeviceMemory::GiveBack(physical.device(), size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  *handle = memory.AddPhysical(physical);
  return CUDA_SUCCESS;
}

CUresult MemRelease(Handle handle) {
  if (handle == 0) return CUDA_ERROR_INVALID_VALUE;
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Physical* physical = memory.FindPhysical(handle);
  if (physical == nullptr || physical->handles == 0) return CUDA_ERROR_INVALID_VALUE;
  memory.Release(handle);
  return CUDA_SUCCESS;
}

// The whole allocation, or nothing.
CUresult MemMap(CUdeviceptr address, size_t size, size_t offset, Handle handle,
                unsigned long long flags) {
  if (handle == 0 || !IsGranular(address) || size == 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Physical& physical = memory.FindPhysicalOrPanic(handle);
  if (offset != 0 || size != physical.size) return CUDA_ERROR_NOT_SUPPORTED;
  Mapping mapping;
  mapping.range = {address, size};
  mapping.handle = handle;
  const AddressRange* reserved = memory.FindRange(address);
  if (reserved == nullptr || reserved->end() < mapping.range.end() ||
      memory.HasMappings(mapping.range)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Map(memory, mapping, *reserved);
}

// Any number of whole mappings, or none.
CUresult MemUnmap(CUdeviceptr address, size_t size) {
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const AddressRange range = {address, size};
  if (size == 0 || memory.FindRange(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Mapping* first = memory.FindMapping(address);
  const Mapping* last = memory.FindMapping(range.end() - 1);
  if ((first != nullptr && first->range.base != address) ||
      (last != nullptr && last->range.end() != range.end())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  while (memory.HasMappings(range)) memory.RemoveMapping(*memory.FindMappingFrom(address));
  return CUDA_SUCCESS;
}

CUresult MemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access,
                      size_t count) {
  const AddressRange range = {address, size};
  if (size == 0 || access == nullptr || count == 0 ||
      !std::all_of(access, access + count, IsAccess)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  if (!IsFramed(memory, range)) return CUDA_ERROR_INVALID_VALUE;
  // A hole is the end, without an error (measured on an H100, driver 580.159.04).
  Mapping* mapping = memory.FindMapping(address);
  while (mapping != nullptr && mapping->range.base < range.end()) {
    SetAccess(mapping, access, count);
    mapping = memory.FindMapping(mapping->range.end());
  }
  return CUDA_SUCCESS;
}

CUresult MemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                      CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool is_node = location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location->id == 0;
  // The host as a whole is treated as device 0 (measured on an H100, driver 580.159.04).
  const CUdevice device = location->type == CU_MEM_LOCATION_TYPE_HOST ? 0 : location->id;
  if (!is_node && ((location->type != CU_MEM_LOCATION_TYPE_DEVICE &&
                    location->type != CU_MEM_LOCATION_TYPE_HOST) ||
                   !IsDevice(device))) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Mapping* mapping = memory.FindMapping(address);
  *flags = 0;  // also on failure
  if (mapping != nullptr)
    *flags = is_node ? mapping->host_access : mapping->access[static_cast<size_t>(device)];
  return mapping != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult MemRetainAllocationHandle(Handle* handle, void* pointer) {
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Mapping* mapping = memory.FindMapping(reinterpret_cast<std::uintptr_t>(pointer));
  if (handle == nullptr || mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++memory.FindPhysical(mapping->handle)->handles;
  *handle = mapping->handle;
  return CUDA_SUCCESS;
}

CUresult MemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, Handle handle) {
  if (properties == nullptr || handle == 0) return CUDA_ERROR_INVALID_VALUE;
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Physical& physical = memory.FindPhysicalOrPanic(handle);
  *properties = physical.properties;
  // Measured on an H100, driver 580.159.04.
  if (physical.is_imported) properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  return CUDA_SUCCESS;
}

// Writes a descriptor, which the caller closes. Source: test/virtual_memory_ipc_facts_test.cc.
CUresult MemExportToShareableHandle(void* exported, Handle handle, CUmemAllocationHandleType type,
                                    unsigned long long flags) {
  if (exported == nullptr || handle == 0 || !IsDescriptor(type) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  const Physical& physical = memory.FindPhysicalOrPanic(handle);
  if ((physical.properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = fcntl(physical.file, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(exported, &descriptor, sizeof(descriptor));
  return CUDA_SUCCESS;
}

// Another handle of the same memory, in whichever process.
CUresult MemImportFromShareableHandle(Handle* handle, void* exported,
                                      CUmemAllocationHandleType type) {
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(exported));
  Physical physical;
  if (handle == nullptr || !IsDescriptor(type) || !ReadFile(descriptor, &physical)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  physical.is_imported = true;
  physical.file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (physical.file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  VirtualMemory& memory = TheMemory();
  const Lock lock(memory.mutex);
  *handle = memory.AddPhysical(physical);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
