// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory of another process of the machine.
//
// Measured on an H100, driver 580.159.04, but for handles of freed memory, which are as cuda.h
// says: see ipc_facts_test.

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "driver/api.h"
#include "driver/context/stack.h"
#include "driver/memory/memory.h"
#include "driver/memory/shared_file.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

constexpr char kMemoryMagic[8] = "cudasim";

// The contents of a CUipcMemHandle.
struct ExportedMemory {
  char magic[sizeof(kMemoryMagic)];
  SharedFile file;
  std::uint64_t size;
};
static_assert(sizeof(ExportedMemory) <= sizeof(CUipcMemHandle));

// By the context that opened it and the file's number.
struct Import {
  CUdeviceptr address = 0;
  unsigned opens = 0;
};
using ImportKey = std::pair<std::uint64_t, std::uint64_t>;

std::mutex ipc_mutex;

std::map<ImportKey, Import>& Imports() {
  static auto& imports = *new std::map<ImportKey, Import>;
  return imports;
}

CUresult MapImport(const ExportedMemory& exported, const Incarnation& incarnation,
                   CUdeviceptr* address) {
  void* pages = MapShared(exported.file, exported.size);
  if (pages == nullptr) return CUDA_ERROR_MAP_FAILED;
  Allocation allocation;
  allocation.incarnation = incarnation;
  allocation.device = incarnation.context->device();
  allocation.kind = MemoryKind::kImported;
  allocation.base = reinterpret_cast<std::uintptr_t>(pages);
  allocation.size = exported.size;
  const CUresult code = Memory::Add(allocation);
  if (code == CUDA_SUCCESS) {
    *address = allocation.base;
  } else {
    UnmapShared(pages, exported.size);
  }
  return code;
}

}  // namespace

// Of all of the memory that `address` is in.
CUresult IpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ExportedMemory exported = {};
  size_t size = 0;
  Allocation allocation;
  // What works in its context may write into the pages that are replaced.
  if (Memory::Find(address, &allocation) && allocation.shared.file < 0) {
    Schedule::WaitForContext(allocation.incarnation.id);
  }
  code = Memory::Share(address, &exported.file, &size);
  if (code != CUDA_SUCCESS) return code;
  std::memcpy(exported.magic, kMemoryMagic, sizeof(kMemoryMagic));
  exported.size = size;
  std::memset(handle, 0, sizeof(*handle));
  std::memcpy(handle, &exported, sizeof(exported));
  return CUDA_SUCCESS;
}

CUresult IpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  ExportedMemory exported;
  std::memcpy(static_cast<void*>(&exported), &handle, sizeof(exported));
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      std::memcmp(exported.magic, kMemoryMagic, sizeof(kMemoryMagic)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (exported.file.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard<std::mutex> lock(ipc_mutex);
  Import& import = Imports()[{incarnation.id, exported.file.inode}];
  if (import.opens == 0) code = MapImport(exported, incarnation, &import.address);
  if (code != CUDA_SUCCESS) return code;
  ++import.opens;
  *address = import.address;
  return CUDA_SUCCESS;
}

CUresult IpcCloseMemHandle(CUdeviceptr address) {
  Incarnation incarnation;
  const CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(ipc_mutex);
  for (auto& [key, import] : Imports()) {
    if (key.first != incarnation.id || import.opens == 0 || import.address != address) continue;
    return --import.opens > 0 ? CUDA_SUCCESS
                              : Memory::FreeWhenIdle(address, {MemoryKind::kImported});
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cudasim::driver
