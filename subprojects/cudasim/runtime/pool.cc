// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stream-ordered memory and its pools. The structures and enumerations are the driver's
// under other names.

#include <cuda.h>

#include <cstring>
#include <vector>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/driver.h"
#include "runtime/stream.h"

namespace cudasim::runtime {
namespace {

static_assert(sizeof(CUmemPoolProps) == sizeof(cudaMemPoolProps));
static_assert(sizeof(CUmemAccessDesc) == sizeof(cudaMemAccessDesc));
static_assert(sizeof(CUmemLocation) == sizeof(cudaMemLocation));
static_assert(sizeof(CUmemPoolPtrExportData) == sizeof(cudaMemPoolPtrExportData));

CUmemLocation ToDriver(const cudaMemLocation& location) {
  CUmemLocation result = {};
  result.type = static_cast<CUmemLocationType>(location.type);
  result.id = location.id;
  return result;
}

CUmemPoolProps ToDriver(const cudaMemPoolProps& properties) {
  CUmemPoolProps result = {};
  result.allocType = static_cast<CUmemAllocationType>(properties.allocType);
  result.handleTypes = static_cast<CUmemAllocationHandleType>(properties.handleTypes);
  result.location = ToDriver(properties.location);
  result.maxSize = properties.maxSize;
  result.usage = properties.usage;
  return result;
}

}  // namespace

cudaError_t MallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  const cudaError_t code = BindForStream(stream);
  if (code != cudaSuccess) return code;
  CUdeviceptr address = 0;
  const CUresult allocated = Driver().cuMemAllocAsync(&address, bytes, ToDriver(stream));
  *pointer = ToPointer(address);
  return ToError(allocated);
}

cudaError_t MallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                cudaStream_t stream) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  const cudaError_t code = BindForStream(stream);
  if (code != cudaSuccess) return code;
  CUdeviceptr address = 0;
  const CUresult allocated =
      Driver().cuMemAllocFromPoolAsync(&address, bytes, pool, ToDriver(stream));
  *pointer = ToPointer(address);
  return ToError(allocated);
}

cudaError_t FreeAsync(void* pointer, cudaStream_t stream) {
  const cudaError_t code = BindForStream(stream);
  if (code != cudaSuccess) return code;
  return ToError(Driver().cuMemFreeAsync(ToAddress(pointer), ToDriver(stream)));
}

cudaError_t MemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (pool == nullptr || properties == nullptr) return cudaErrorInvalidValue;
  const CUmemPoolProps wanted = ToDriver(*properties);
  return ToError(Driver().cuMemPoolCreate(pool, &wanted));
}

cudaError_t MemPoolDestroy(cudaMemPool_t pool) { return ToError(Driver().cuMemPoolDestroy(pool)); }

cudaError_t MemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return ToError(
      Driver().cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

cudaError_t MemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return ToError(
      Driver().cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

cudaError_t MemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return ToError(Driver().cuMemPoolTrimTo(pool, bytes));
}

cudaError_t MemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                             cudaMemLocation* location) {
  if (flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
  CUmemLocation where = ToDriver(*location);
  CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const CUresult code = Driver().cuMemPoolGetAccess(&found, pool, &where);
  if (code == CUDA_SUCCESS) *flags = static_cast<cudaMemAccessFlags>(found);
  return ToError(code);
}

cudaError_t MemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t count) {
  std::vector<CUmemAccessDesc> wanted;
  for (size_t i = 0; access != nullptr && i < count; ++i) {
    CUmemAccessDesc one = {};
    one.location = ToDriver(access[i].location);
    one.flags = static_cast<CUmemAccess_flags>(access[i].flags);
    wanted.push_back(one);
  }
  return ToError(
      Driver().cuMemPoolSetAccess(pool, access != nullptr ? wanted.data() : nullptr, count));
}

cudaError_t MemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                           cudaMemAllocationHandleType type, unsigned flags) {
  return ToError(Driver().cuMemPoolExportToShareableHandle(
      handle, pool, static_cast<CUmemAllocationHandleType>(type), flags));
}

cudaError_t MemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                             cudaMemAllocationHandleType type, unsigned flags) {
  return ToError(Driver().cuMemPoolImportFromShareableHandle(
      pool, handle, static_cast<CUmemAllocationHandleType>(type), flags));
}

cudaError_t MemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  CUmemPoolPtrExportData found = {};
  const CUresult code =
      Driver().cuMemPoolExportPointer(data != nullptr ? &found : nullptr, ToAddress(pointer));
  if (code == CUDA_SUCCESS) std::memcpy(data, &found, sizeof(found));
  return ToError(code);
}

cudaError_t MemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                 cudaMemPoolPtrExportData* data) {
  CUdeviceptr address = 0;
  CUmemPoolPtrExportData given = {};
  if (data != nullptr) std::memcpy(&given, data, sizeof(given));
  const CUresult code = Driver().cuMemPoolImportPointer(pointer != nullptr ? &address : nullptr,
                                                        pool, data != nullptr ? &given : nullptr);
  if (code == CUDA_SUCCESS) *pointer = ToPointer(address);
  return ToError(code);
}

cudaError_t DeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return ToError(Driver().cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t DeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return ToError(Driver().cuDeviceGetMemPool(pool, device));
}

cudaError_t DeviceSetMemPool(int device, cudaMemPool_t pool) {
  return ToError(Driver().cuDeviceSetMemPool(device, pool));
}

}  // namespace cudasim::runtime
