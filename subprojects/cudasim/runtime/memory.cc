// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory, and what is known about a pointer.

#include <cuda.h>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/context.h"
#include "runtime/driver.h"

namespace cudasim::runtime {
namespace {

// cuMemAllocPitch wants to know the widest access.
constexpr unsigned kWidestAccess = 4;

cudaError_t AllocatePitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t rows) {
  *address = 0;
  *pitch = 0;
  if (width == 0 || rows == 0) return cudaSuccess;
  return ToError(Driver().cuMemAllocPitch(address, pitch, width, rows, kWidestAccess));
}

}  // namespace

// Both may be null.
cudaError_t MemGetInfo(size_t* free, size_t* total) {
  size_t bytes[2] = {};
  const CUresult code = Driver().cuMemGetInfo(&bytes[0], &bytes[1]);
  if (code != CUDA_SUCCESS) return ToError(code);
  if (free != nullptr) *free = bytes[0];
  if (total != nullptr) *total = bytes[1];
  return cudaSuccess;
}

// Nothing is a null pointer, here and in the other calls; so is what the driver refused.
cudaError_t Malloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  const cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  CUdeviceptr address = 0;
  const CUresult allocated = bytes == 0 ? CUDA_SUCCESS : Driver().cuMemAlloc(&address, bytes);
  *pointer = ToPointer(address);
  return ToError(allocated);
}

cudaError_t MallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  CUdeviceptr address = 0;
  code = AllocatePitch(&address, pitch, width, height);
  if (code == cudaSuccess) *pointer = ToPointer(address);
  return code;
}

cudaError_t Malloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  size_t pitch = 0;
  const cudaError_t code =
      AllocatePitch(&address, &pitch, extent.width, extent.height * extent.depth);
  if (code == cudaSuccess) *pointer = {ToPointer(address), pitch, extent.width, extent.height};
  return code;
}

// The flags have the driver's numbers.
cudaError_t MallocManaged(void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  const cudaError_t code = BindContext();
  if (code != cudaSuccess) return code;
  CUdeviceptr address = 0;
  const CUresult allocated =
      bytes == 0 ? CUDA_SUCCESS : Driver().cuMemAllocManaged(&address, bytes, flags);
  *pointer = ToPointer(address);
  return ToError(allocated);
}

cudaError_t Free(void* pointer) { return ToError(Driver().cuMemFree(ToAddress(pointer))); }

cudaError_t MallocHost(void** pointer, size_t bytes) { return HostAlloc(pointer, bytes, 0); }

// The flags have the driver's numbers.
cudaError_t HostAlloc(void** pointer, size_t bytes, unsigned flags) {
  if (bytes != 0) return ToError(Driver().cuMemHostAlloc(pointer, bytes, flags));
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  return cudaSuccess;
}

cudaError_t FreeHost(void* pointer) {
  return pointer == nullptr ? Free(nullptr) : ToError(Driver().cuMemFreeHost(pointer));
}

cudaError_t HostRegister(void* pointer, size_t bytes, unsigned flags) {
  return ToError(Driver().cuMemHostRegister(pointer, bytes, flags));
}

cudaError_t HostUnregister(void* pointer) { return ToError(Driver().cuMemHostUnregister(pointer)); }

cudaError_t HostGetDevicePointer(void** address, void* pointer, unsigned flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  const cudaError_t bound = BindContext();
  if (bound != cudaSuccess) return bound;
  if (address == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr found = 0;
  const CUresult code = Driver().cuMemHostGetDevicePointer(&found, pointer, flags);
  *address = ToPointer(found);
  return ToError(code);
}

cudaError_t HostGetFlags(unsigned* flags, void* pointer) {
  return ToError(Driver().cuMemHostGetFlags(flags, pointer));
}

cudaError_t PointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  unsigned type = 0;
  unsigned managed = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  *attributes = {};
  void* answers[] = {&type, &managed, &attributes->device, &attributes->devicePointer,
                     &attributes->hostPointer};
  const CUresult code = Driver().cuPointerGetAttributes(5, asked, answers, ToAddress(pointer));
  // The numbers of the two enumerations agree.
  attributes->type = managed != 0 ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(type);
  return ToError(code);
}

}  // namespace cudasim::runtime
