// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/graph/graph_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <utility>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/graph/footprint.h"
#include "driver/memory/memory.h"
#include "driver/panic.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

std::mutex graph_memory_mutex;

struct GraphMemoryTable {
  std::map<CUdeviceptr, std::weak_ptr<GraphMemory>> all;
  std::map<CUdeviceptr, std::shared_ptr<GraphMemory>> there;
  Footprint footprints[kMaxDevices];
};

// Never destroyed: as the memory's own.
GraphMemoryTable& TheGraphMemory() {
  static auto& table = *new GraphMemoryTable;
  return table;
}

void Protect(void* base, size_t size, int protection) {
  if (mprotect(base, size, protection) != 0) Panic("mprotect of graph memory failed");
}

}  // namespace

CUresult GraphMemory::Reserve(CUgraph graph, CUdevice device, size_t bytes,
                              std::shared_ptr<GraphMemory>* memory) {
  if (bytes > ThisGpu().memory) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const base =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto made = std::make_shared<GraphMemory>(graph, device, base, bytes);
  Allocation allocation;
  allocation.kind = MemoryKind::kGraph;
  allocation.device = device;
  allocation.base = reinterpret_cast<std::uintptr_t>(base);
  allocation.size = bytes;
  const CUresult code = Memory::Add(allocation);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  TheGraphMemory().all[made->address()] = made;
  *memory = made;
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphMemory> GraphMemory::At(CUdeviceptr address) {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  const auto found = TheGraphMemory().all.find(address);
  return found != TheGraphMemory().all.end() ? found->second.lock() : nullptr;
}

GraphMemory::~GraphMemory() {
  {
    const std::lock_guard<std::mutex> lock(graph_memory_mutex);
    TheGraphMemory().all.erase(address());
  }
  Memory::Free(reinterpret_cast<std::uintptr_t>(base_), {MemoryKind::kGraph});
  munmap(base_, size_);
}

bool GraphMemory::is_there() const {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  return is_there_;
}

CUresult GraphMemory::FreeIn(CUgraph graph) {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  const bool is_taken = graph == graph_ ? !freed_by_.empty() : freed_by_.count(graph_) != 0;
  if (is_taken) return CUDA_ERROR_INVALID_VALUE;
  return freed_by_.insert(graph).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool GraphMemory::is_owned() const {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  return is_owned_;
}

void GraphMemory::Own(bool is_owned) {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  is_owned_ = is_owned;
}

CUresult GraphMemory::FreeOutside() {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  return std::exchange(is_owned_, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void GraphMemory::UnmapIn(const Stream& stream) {
  Job job;
  job.incarnation = stream.incarnation;
  job.run = [self = shared_from_this()] { self->Unmap(); };
  Schedule::Submit(stream, job);
}

void GraphMemory::Prepare() {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  if (is_there_) return;
  TheGraphMemory().footprints[device_].Take(size_);
  TheGraphMemory().footprints[device_].Leave(size_);
}

void GraphMemory::Map() {
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  Protect(base_, size_, PROT_READ | PROT_WRITE);
  if (!std::exchange(is_there_, true)) TheGraphMemory().footprints[device_].Take(size_);
  TheGraphMemory().there[address()] = shared_from_this();
}

// What was in it is lost.
void GraphMemory::Unmap() {
  std::shared_ptr<GraphMemory> last;  // not ended under the lock
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  const auto found = TheGraphMemory().there.find(address());
  if (found == TheGraphMemory().there.end()) return;
  last = found->second;
  TheGraphMemory().there.erase(found);
  madvise(base_, size_, MADV_DONTNEED);
  Protect(base_, size_, PROT_NONE);
  if (std::exchange(is_there_, false)) TheGraphMemory().footprints[device_].Leave(size_);
}

bool IsIdleMemory(const Allocation& allocation) {
  if (allocation.kind != MemoryKind::kGraph) return false;
  const std::shared_ptr<GraphMemory> memory = GraphMemory::At(allocation.base);
  return memory == nullptr || !memory->is_owned();
}

void PanicUnlessMapped(CUdeviceptr address) {
  Allocation allocation;
  if (!Memory::Find(address, &allocation) || allocation.kind != MemoryKind::kGraph) return;
  const std::shared_ptr<GraphMemory> memory = GraphMemory::At(allocation.base);
  if (memory != nullptr && memory->is_there()) return;
  Panic(
      "memory of a graph is used where no execution of the graph has it: before its allocation "
      "node, or after it was freed; a real driver's device would fail or corrupt what is there "
      "now");
}

// Where nothing else is said, as <cuda.h> describes them. What graphs have does not count as taken
// from the device.

CUresult DeviceGraphMemTrim(CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  TheGraphMemory().footprints[device].Trim();
  return CUDA_SUCCESS;
}

CUresult DeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  Footprint& footprint = TheGraphMemory().footprints[device];
  auto* const amount = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *amount = footprint.used().current;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *amount = footprint.used().high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *amount = footprint.reserved().current;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *amount = footprint.reserved().high;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult DeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  const bool is_used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0 ||
      (!is_used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard<std::mutex> lock(graph_memory_mutex);
  Footprint& footprint = TheGraphMemory().footprints[device];
  (is_used ? footprint.used() : footprint.reserved()).Reset();
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
