// SPDX-License-Identifier: Apache-2.0

#include "driver/graph/graph_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <utility>

#include "driver/context/device.h"
#include "driver/context/gpu.h"
#include "driver/memory/memory.h"
#include "driver/panic.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

std::mutex mutex;

struct Table {
  std::map<CUdeviceptr, std::weak_ptr<GraphMemory>> all;
  std::map<CUdeviceptr, std::shared_ptr<GraphMemory>> there;
};

// Never destroyed: as the memory's own.
Table& TheTable() {
  static auto& table = *new Table;
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
  const auto made = std::make_shared<GraphMemory>(graph, base, bytes);
  Allocation allocation;
  allocation.kind = MemoryKind::kGraph;
  allocation.device = device;
  allocation.base = reinterpret_cast<std::uintptr_t>(base);
  allocation.size = bytes;
  const CUresult code = Memory::Add(allocation);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  TheTable().all[made->address()] = made;
  *memory = made;
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphMemory> GraphMemory::At(CUdeviceptr address) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = TheTable().all.find(address);
  return found != TheTable().all.end() ? found->second.lock() : nullptr;
}

GraphMemory::~GraphMemory() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    TheTable().all.erase(address());
  }
  Memory::Free(reinterpret_cast<std::uintptr_t>(base_), {MemoryKind::kGraph});
  munmap(base_, size_);
}

bool GraphMemory::is_there() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return is_there_;
}

CUresult GraphMemory::FreeInGraph() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (has_free_node_) return CUDA_ERROR_INVALID_VALUE;
  has_free_node_ = true;
  return CUDA_SUCCESS;
}

bool GraphMemory::is_owned() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return is_owned_;
}

void GraphMemory::Own(bool is_owned) {
  const std::lock_guard<std::mutex> lock(mutex);
  is_owned_ = is_owned;
}

CUresult GraphMemory::FreeOutside() {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool is_ours = !has_free_node_ && std::exchange(is_owned_, false);
  return is_ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void GraphMemory::UnmapIn(const Stream& stream) {
  Job job;
  job.incarnation = stream.incarnation;
  job.run = [self = shared_from_this()] { self->Unmap(); };
  Schedule::Submit(stream, job);
}

void GraphMemory::Map() {
  const std::lock_guard<std::mutex> lock(mutex);
  Protect(base_, size_, PROT_READ | PROT_WRITE);
  is_there_ = true;
  TheTable().there[address()] = shared_from_this();
}

// What was in it is lost.
void GraphMemory::Unmap() {
  std::shared_ptr<GraphMemory> last;  // not ended under the lock
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = TheTable().there.find(address());
  if (found == TheTable().there.end()) return;
  last = found->second;
  TheTable().there.erase(found);
  madvise(base_, size_, MADV_DONTNEED);
  Protect(base_, size_, PROT_NONE);
  is_there_ = false;
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

}  // namespace cudasim::driver
