// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools of another process of the machine, and what was allocated from them there.
//
// Source: test/pool_ipc_facts_test.cc.

#include <cstring>
#include <memory>

#include "driver/api.h"
#include "driver/memory/memory.h"
#include "driver/memory/pool.h"
#include "driver/memory/pool_file.h"

namespace cudasim::driver {
namespace {

constexpr char kPoolMagic[8] = "simpptr";

// The contents of a CUmemPoolPtrExportData.
struct ExportedPool {
  char magic[sizeof(kPoolMagic)] = {};
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(ExportedPool) <= sizeof(CUmemPoolPtrExportData));

bool IsSupported(CUmemAllocationHandleType type, unsigned long long flags) {
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0;
}

}  // namespace

// Writes a descriptor, which the caller closes.
CUresult MemPoolExportToShareableHandle(void* handle, CUmemoryPool pool,
                                        CUmemAllocationHandleType type, unsigned long long flags) {
  if (handle == nullptr || !IsSupported(type, flags)) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<PoolFile> file = FileOfPool(pool);
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = file->Duplicate();
  if (descriptor < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(handle, &descriptor, sizeof(descriptor));
  return CUDA_SUCCESS;
}

CUresult MemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  if (pool == nullptr || !IsSupported(type, flags)) return CUDA_ERROR_INVALID_VALUE;
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  std::shared_ptr<PoolFile> file = PoolFile::Open(descriptor);
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = ImportPool(std::move(file));
  return CUDA_SUCCESS;
}

CUresult MemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  Allocation allocation;
  if (data == nullptr || !Memory::Find(address, &allocation) || allocation.base != address ||
      allocation.pool_file == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ExportedPool exported;
  std::memcpy(exported.magic, kPoolMagic, sizeof(kPoolMagic));
  exported.file = allocation.pool_file->id();
  exported.offset = allocation.offset;
  exported.size = allocation.size;
  std::memset(data, 0, sizeof(*data));
  std::memcpy(data, &exported, sizeof(exported));
  return CUDA_SUCCESS;
}

// At an address of its own each time.
CUresult MemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool,
                              CUmemPoolPtrExportData* data) {
  if (address == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ExportedPool exported;
  std::memcpy(static_cast<void*>(&exported), data, sizeof(exported));
  const std::shared_ptr<PoolFile> file = FileOfPool(pool);
  if (file == nullptr || std::memcmp(exported.magic, kPoolMagic, sizeof(kPoolMagic)) != 0 ||
      exported.file != file->id()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return ImportAllocation(pool, exported.offset, exported.size, address);
}

}  // namespace cudasim::driver
