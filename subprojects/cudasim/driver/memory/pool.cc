// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/graph/graph_memory.h"
#include "driver/graph/memory_node.h"
#include "driver/handle_number.h"
#include "driver/memory/memory.h"
#include "driver/memory/watermark.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// A pool takes memory from the device in multiples of this (measured on an H100, driver
// 580.159.04).
constexpr size_t kUnit = size_t{32} << 20;

size_t RoundUp(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

struct Pool {
  CUdevice device = 0;
  bool lies_on_host = false;
  size_t most = 0;                 // 0: no limit of its own
  std::shared_ptr<PoolFile> file;  // of one that other processes may map, or have exported
  bool is_imported = false;
  bool destroyed = false;  // and waits for its last allocation to be freed
  int reuse[3] = {1, 1, 1};
  cuuint64_t threshold = 0;
  bool lent[kMaxDevices] = {};  // to devices other than its own; on the host it has none
  Watermark used;
  Watermark reserved;

  bool Reaches(CUdevice from) const { return (!lies_on_host && from == device) || lent[from]; }

  CUresult Take(size_t bytes) {
    if (is_imported) return CUDA_ERROR_INVALID_VALUE;
    const bool fits = bytes <= ThisGpu().memory && (most == 0 || used.current + bytes <= most);
    if (!fits) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t needed = std::max(RoundUp(used.current + bytes), reserved.current);
    if (!DeviceMemory::Take(device, needed - reserved.current)) return CUDA_ERROR_OUT_OF_MEMORY;
    reserved.Set(needed);
    used.Set(used.current + bytes);
    return CUDA_SUCCESS;
  }

  void GiveBack(size_t bytes) {
    used.current -= bytes;
    KeepAtMost(threshold);
  }

  // Keeps what is in use, and beyond it no more than `bytes` in all. The room of an imported pool
  // is the other process's.
  void KeepAtMost(size_t bytes) {
    if (is_imported) return;
    const size_t kept = RoundUp(std::min(bytes, reserved.current));
    const size_t needed = std::max(RoundUp(used.current), kept);
    DeviceMemory::GiveBack(device, reserved.current - needed);
    reserved.current = needed;
  }
};

// Pools by handle. Handles are numbers, the first ones the devices' default pools.
class Pools {
 public:
  Pools() {
    for (CUdevice device = 0; device < kMaxDevices; ++device) {
      pools_[ToHandle(device + 1)].device = device;
      current_[device] = DefaultOf(device);
    }
  }

  static CUmemoryPool DefaultOf(CUdevice device) { return ToHandle(device + 1); }
  static bool IsDefault(CUmemoryPool handle) {
    return ToNumber(handle) >= 1 && ToNumber(handle) <= kMaxDevices;
  }

  // nullptr for null; panics for what is no pool, or no longer one.
  Pool* Find(CUmemoryPool handle) {
    if (handle == nullptr) return nullptr;
    const auto found = pools_.find(handle);
    if (found == pools_.end() || found->second.destroyed) {
      PanicHandle(handle,
                  "this never was a pool, or it was destroyed; a real driver may crash here "
                  "(measured on an H100, driver 580.159.04)");
    }
    return &found->second;
  }

  CUmemoryPool Add(const Pool& pool) {
    const CUmemoryPool handle = ToHandle(next_++);
    pools_.emplace(handle, pool);
    return handle;
  }

  void Destroy(CUmemoryPool handle) {
    Pool& pool = pools_[handle];
    pool.destroyed = true;
    pool.threshold = 0;
    CUmemoryPool& current = current_[pool.device];
    if (current == handle) current = DefaultOf(pool.device);
    pool.KeepAtMost(0);
    EraseIfDone(handle);
  }

  // Also where only its allocations are left of it.
  bool Reaches(CUmemoryPool handle, CUdevice from) { return pools_[handle].Reaches(from); }

  void GiveBack(CUmemoryPool handle, size_t bytes) {
    pools_[handle].GiveBack(bytes);
    EraseIfDone(handle);
  }

  size_t CountMade() const {
    const auto made = std::count_if(pools_.begin(), pools_.end(),
                                    [](const auto& pool) { return !pool.second.destroyed; });
    return static_cast<size_t>(made) - kMaxDevices;
  }

  CUmemoryPool& CurrentOf(CUdevice device) { return current_[device]; }

 private:
  static CUmemoryPool ToHandle(std::uint64_t number) {
    return reinterpret_cast<CUmemoryPool>(kNumber.ToHandle(number));
  }
  static std::uint64_t ToNumber(CUmemoryPool handle) {
    return kNumber.ToNumber(reinterpret_cast<std::uintptr_t>(handle));
  }

  void EraseIfDone(CUmemoryPool handle) {
    const Pool& pool = pools_[handle];
    if (pool.destroyed && pool.used.current == 0) pools_.erase(handle);
  }

  static constexpr HandleNumber kNumber{100};
  std::map<CUmemoryPool, Pool> pools_;
  CUmemoryPool current_[kMaxDevices] = {};
  std::uint64_t next_ = kMaxDevices + 1;
};

std::mutex pool_mutex;
// Never destroyed: there are atexit handlers that free memory.
Pools& ThePools() {
  static auto& pools = *new Pools;
  return pools;
}

// But for its pages.
Allocation AllocationOf(CUmemoryPool handle, const Pool& pool, size_t bytes) {
  Allocation allocation;
  allocation.kind = MemoryKind::kPool;
  allocation.pool = handle;
  allocation.pool_file = pool.file;
  allocation.size = bytes;
  allocation.device = pool.device;
  allocation.lies_on_host = pool.lies_on_host;
  // What a driver says is the start is where it lies in what the pool has taken (measured on an
  // H200, driver 580.159.04).
  if (pool.lies_on_host) allocation.range_base = pool.used.current;
  return allocation;
}

CUresult TakeFromPool(CUmemoryPool handle, size_t bytes, Allocation* allocation) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  Pool* pool = ThePools().Find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *allocation = AllocationOf(handle, *pool, bytes);
  return pool->Take(bytes);
}

CUresult AllocateFrom(CUmemoryPool pool, size_t bytes, CUdeviceptr* address) {
  Allocation allocation;
  CUresult code = TakeFromPool(pool, bytes, &allocation);
  if (code != CUDA_SUCCESS) return code;
  std::uintptr_t base = 0;
  code = Memory::Allocate(allocation, &base);
  if (code != CUDA_SUCCESS) {
    GiveBackToPool(pool, bytes);
  } else {
    *address = base;
  }
  return code;
}

bool IsCapturing(const Stream& stream) {
  return Captures::StatusOf(stream) != CU_STREAM_CAPTURE_STATUS_NONE;
}

// What every form of allocation asks first, and writes before it.
CUresult Prepare(CUdeviceptr* address, CUstream handle, Stream* stream) {
  if (address != nullptr) *address = 0;
  const CUresult code = FindReadyStream(handle, stream);
  if (code != CUDA_SUCCESS) return code;
  if (!DeviceFeatures::HasMemoryPools()) return CUDA_ERROR_NOT_SUPPORTED;
  return address != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceOf(CUmemoryPool handle, CUdevice* device) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  const Pool* pool = ThePools().Find(handle);
  if (pool == nullptr || pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
  *device = pool->device;
  return CUDA_SUCCESS;
}

// An allocation node in the capture of the stream. The graph, and not the pool, owns what it
// allocates.
CUresult AllocateInGraph(CUmemoryPool pool, size_t bytes, const Stream& stream,
                         CUdeviceptr* address) {
  CaptureInfo capture;
  if (!Captures::FindInfo(stream, &capture)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUdevice device = 0;
  CUresult code = DeviceOf(pool, &device);
  if (code != CUDA_SUCCESS) return code;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  params.bytesize = bytes;
  Work work;
  code = MakeAllocationWork(capture.graph, stream.incarnation, &params, &work);
  if (code != CUDA_SUCCESS) return code;
  Captures::Record(stream, work, &code);
  if (code == CUDA_SUCCESS) *address = params.dptr;
  return code;
}

CUresult FreeInGraph(CUdeviceptr address, const Stream& stream) {
  CaptureInfo capture;
  if (!Captures::FindInfo(stream, &capture)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Work work;
  CUresult code = MakeFreeWork(capture.graph, stream.incarnation, address, &work);
  if (code == CUDA_SUCCESS) Captures::Record(stream, work, &code);
  return code;
}

bool IsReuse(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

int& ReuseOf(Pool* pool, CUmemPool_attribute attribute) {
  return pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
}

bool IsSize(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD &&
         attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

cuuint64_t SizeOf(const Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return pool.reserved.current;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return pool.reserved.high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return pool.used.current;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return pool.used.high;
    default:
      return pool.threshold;
  }
}

// The high watermarks may be set to 0 only, the current values not at all.
CUresult SetSize(Pool* pool, CUmemPool_attribute attribute, cuuint64_t value) {
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->threshold = value;
    return CUDA_SUCCESS;
  }
  const bool used = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  const bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
  if (value != 0 || (!used && !reserved)) return CUDA_ERROR_INVALID_VALUE;
  auto& watermark = used ? pool->used : pool->reserved;
  watermark.Reset();
  return CUDA_SUCCESS;
}

// NUMA node 0 is the only one.
bool IsHostLocation(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id == 0);
}

bool IsDeviceLocation(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && IsDevice(location.id);
}

}  // namespace

bool PoolReaches(CUmemoryPool pool, CUdevice device) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  return ThePools().Reaches(pool, device);
}

void GiveBackToPool(CUmemoryPool pool, size_t bytes) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  ThePools().GiveBack(pool, bytes);
}

std::shared_ptr<PoolFile> FileOfPool(CUmemoryPool handle) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  const Pool* pool = ThePools().Find(handle);
  return pool != nullptr ? pool->file : nullptr;
}

CUmemoryPool ImportPool(std::shared_ptr<PoolFile> file) {
  Pool pool;
  pool.device = file->device();
  pool.lies_on_host = file->lies_on_host();
  pool.file = std::move(file);
  pool.is_imported = true;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  return ThePools().Add(pool);
}

CUresult ImportAllocation(CUmemoryPool handle, std::uint64_t offset, size_t bytes,
                          CUdeviceptr* address) {
  Allocation allocation;
  {
    const std::lock_guard<std::mutex> lock(pool_mutex);
    Pool* pool = ThePools().Find(handle);
    if (pool == nullptr || !pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
    allocation = AllocationOf(handle, *pool, bytes);
    pool->used.Set(pool->used.current + bytes);
  }
  allocation.is_imported = true;
  allocation.offset = offset;
  void* pages = allocation.pool_file->Map(offset, bytes);
  allocation.base = reinterpret_cast<std::uintptr_t>(pages);
  const CUresult code = pages != nullptr ? Memory::Add(allocation) : CUDA_ERROR_INVALID_VALUE;
  if (code == CUDA_SUCCESS) {
    *address = allocation.base;
  } else {
    GiveBackToPool(handle, bytes);
  }
  return code;
}

size_t CountPools() {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  return ThePools().CountMade();
}

CUresult MemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream handle) {
  Stream stream;
  const CUresult code = Prepare(address, handle, &stream);
  if (code != CUDA_SUCCESS || bytes == 0) return code;  // no bytes: a null pointer
  CUmemoryPool pool = nullptr;
  DeviceGetMemPool(&pool, stream.incarnation.context->device());
  return IsCapturing(stream) ? AllocateInGraph(pool, bytes, stream, address)
                             : AllocateFrom(pool, bytes, address);
}

CUresult MemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                               CUstream handle) {
  Stream stream;
  const CUresult code = Prepare(address, handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_SUCCESS;
  return IsCapturing(stream) ? AllocateInGraph(pool, bytes, stream, address)
                             : AllocateFrom(pool, bytes, address);
}

// Any stream will do, of whatever context, and memory of cuMemAlloc too.
CUresult MemFreeAsync(CUdeviceptr address, CUstream handle) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  if (IsCapturing(stream)) return FreeInGraph(address, stream);
  if (address == 0) return CUDA_SUCCESS;
  const std::shared_ptr<GraphMemory> of_graph = GraphMemory::At(address);
  if (of_graph != nullptr) {
    const CUresult freed = of_graph->FreeOutside();
    if (freed == CUDA_SUCCESS) of_graph->UnmapIn(stream);
    return freed;
  }
  Allocation allocation;
  const bool managed =
      Memory::Find(address, &allocation) && allocation.kind == MemoryKind::kManaged;
  if (managed) return CUDA_ERROR_NOT_SUPPORTED;
  return Memory::FreeIn(stream, address, {MemoryKind::kDevice, MemoryKind::kPool});
}

CUresult MemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || properties == nullptr ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      (!IsDeviceLocation(properties->location) && !IsHostLocation(properties->location))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Pool pool;
  pool.lies_on_host = IsHostLocation(properties->location);
  pool.device = pool.lies_on_host ? 0 : properties->location.id;
  pool.most = properties->maxSize;
  if ((properties->handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    pool.file = PoolFile::Create(pool.device, pool.lies_on_host);
    if (pool.file == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const std::lock_guard<std::mutex> lock(pool_mutex);
  *handle = ThePools().Add(pool);
  return CUDA_SUCCESS;
}

CUresult MemPoolDestroy(CUmemoryPool handle) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  const bool known = ThePools().Find(handle) != nullptr;
  if (!known || Pools::IsDefault(handle)) return CUDA_ERROR_INVALID_VALUE;
  ThePools().Destroy(handle);
  return CUDA_SUCCESS;
}

CUresult MemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  Pool* pool = ThePools().Find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsReuse(attribute)) {
    std::memcpy(value, &ReuseOf(pool, attribute), sizeof(int));
    return CUDA_SUCCESS;
  }
  if (!IsSize(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const cuuint64_t size = SizeOf(*pool, attribute);
  std::memcpy(value, &size, sizeof(size));
  return CUDA_SUCCESS;
}

CUresult MemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  Pool* pool = ThePools().Find(handle);
  if (pool == nullptr || (!IsReuse(attribute) && !IsSize(attribute))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (value == nullptr) PanicNull();
  if (IsReuse(attribute)) {
    ReuseOf(pool, attribute) = *static_cast<int*>(value) != 0 ? 1 : 0;
    return CUDA_SUCCESS;
  }
  return SetSize(pool, attribute, *static_cast<cuuint64_t*>(value));
}

CUresult MemPoolTrimTo(CUmemoryPool handle, size_t bytes) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  Pool* pool = ThePools().Find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  pool->KeepAtMost(bytes);
  return CUDA_SUCCESS;
}

CUresult MemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  const Pool* pool = ThePools().Find(handle);
  if (flags == nullptr || pool == nullptr || location == nullptr || !IsDeviceLocation(*location)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool reaches = pool->Reaches(location->id);
  *flags = reaches ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// The pool's own device cannot lose its access.
CUresult MemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, size_t count) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  Pool* pool = ThePools().Find(handle);
  if (pool == nullptr || access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& one = access[i];
    if (!IsDeviceLocation(one.location)) return CUDA_ERROR_INVALID_DEVICE;
    if (one.flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
    const bool none = one.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (none && !pool->lies_on_host && one.location.id == pool->device) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    pool->lent[one.location.id] = !none;
  }
  return CUDA_SUCCESS;
}

CUresult DeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = Pools::DefaultOf(device);
  return CUDA_SUCCESS;
}

CUresult DeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  if (pool == nullptr || !IsDevice(device)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  *pool = ThePools().CurrentOf(device);
  return CUDA_SUCCESS;
}

CUresult DeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  const CUresult code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(pool_mutex);
  const Pool* pool = ThePools().Find(handle);
  if (pool == nullptr || pool->is_imported || pool->device != device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ThePools().CurrentOf(device) = handle;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
