// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory: whatever a pointer may point into. All of it is host memory, and a
// CUdeviceptr is its address; a page costs nothing until somebody writes it.

#ifndef CUDASIM_DRIVER_MEMORY_MEMORY_H_
#define CUDASIM_DRIVER_MEMORY_MEMORY_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "driver/context/context.h"
#include "driver/context/device.h"
#include "driver/memory/pool_file.h"
#include "driver/memory/shared_file.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {

enum class MemoryKind {
  kDevice,
  kHost,        // pinned: cuMemHostAlloc
  kRegistered,  // pinned: the user's own
  kManaged,
  kPool,             // stream-ordered
  kMapped,           // part of a reserved range
  kVariable,         // of a module
  kManagedVariable,  // the same; of a library, it is in no context
  kGraph,            // of an allocation node (graph_memory.h)
  kImported,         // of another process (ipc.cc)
};

struct Allocation {
  // Where it was allocated, and with which it goes. Memory of a pool, of a graph and mapped memory
  // have none, and outlive every context.
  Incarnation incarnation;
  CUdevice device = 0;
  MemoryKind kind = MemoryKind::kDevice;
  std::uintptr_t base = 0;
  size_t size = 0;
  unsigned flags = 0;
  std::uint64_t buffer_id = 0;
  CUmemoryPool pool = nullptr;
  std::shared_ptr<PoolFile> pool_file;  // nullptr but for memory of a pool that others may map
  std::uint64_t offset = 0;             // in it
  bool is_imported = false;             // it is another process's
  // Of a mapping: of any device, or the host; and what each device has.
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  std::array<unsigned char, kMaxDevices> device_access = {};
  SharedFile shared;          // its file is -1 but for device memory that was exported
  bool synchronizes = false;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  // Of a pool or a mapping whose pages are the host's.
  bool lies_on_host = false;
  bool host_access = false;     // of a mapping
  bool is_being_freed = false;  // a stream will free it
  // The reserved range around mapped memory.
  std::uintptr_t range_base = 0;
  size_t range_size = 0;

  bool IsManaged() const {
    return kind == MemoryKind::kManaged || kind == MemoryKind::kManagedVariable;
  }
  bool IsVariable() const {
    return kind == MemoryKind::kVariable || kind == MemoryKind::kManagedVariable;
  }
  bool IsOnHost() const { return kind == MemoryKind::kHost || kind == MemoryKind::kRegistered; }
  unsigned AccessFrom(CUdevice from) const {
    return kind == MemoryKind::kMapped ? device_access[static_cast<size_t>(from)] : access;
  }
  bool Contains(std::uintptr_t address, size_t bytes) const {
    return address - base < size && bytes <= size - (address - base);
  }
};

// Memory
//
// Threads: any; one mutex.
class Memory {
 public:
  // Takes host memory for an allocation that is complete but for its base.
  static CUresult Allocate(Allocation allocation, std::uintptr_t* base);
  static CUresult AllocateZeros(const Allocation& allocation, std::uintptr_t* base);

  // Adds what has its host memory already. HOST_MEMORY_ALREADY_REGISTERED or
  // INVALID_VALUE if it overlaps registered or other memory.
  static CUresult Add(const Allocation& allocation);

  // INVALID_VALUE unless an allocation of one of these kinds begins there.
  static CUresult Free(std::uintptr_t base, std::initializer_list<MemoryKind> kinds);
  // The same, behind the stream's work.
  static CUresult FreeIn(const Stream& stream, std::uintptr_t base,
                         std::initializer_list<MemoryKind> kinds);
  // The same, once the work of the allocation's context is done. Memory of a pool has none:
  // cudaFree's documentation says that nothing waits for its use. (Not measured.)
  static CUresult FreeWhenIdle(std::uintptr_t base, std::initializer_list<MemoryKind> kinds);

  // The allocation around an address. The copy stays right until somebody frees it.
  static bool Find(std::uintptr_t address, Allocation* allocation);

  // Whether the range lies in one allocation, or in mappings side by side, and some device, or
  // the host, may do with it what `access` (a bit of CUmemAccess_flags) says. Which one: reach.h.
  static constexpr unsigned kRead = 1;
  static constexpr unsigned kWrite = 2;
  static bool Reaches(std::uintptr_t address, size_t bytes, unsigned access);

  // Of the mapping that begins there, as in Allocation.
  static void SetAccess(std::uintptr_t base, unsigned access,
                        const std::array<unsigned char, kMaxDevices>& device_access,
                        bool host_access);

  // For other processes: all of the device memory around the address. INVALID_VALUE if that is no
  // memory of cuMemAlloc, or OUT_OF_MEMORY.
  static CUresult Share(std::uintptr_t address, SharedFile* shared, size_t* size);

  // False if there is no allocation around the address.
  static bool SetSynchronizes(std::uintptr_t address, bool synchronizes);

  static void DropIncarnation(std::uint64_t context_id);

  // But for variables, which go with their modules.
  static size_t Count();
};

// Whether every page of the range is there.
bool IsHostMemory(std::uintptr_t base, size_t bytes);

inline void* ToPointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_MEMORY_H_
