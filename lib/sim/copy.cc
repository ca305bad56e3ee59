// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills. They are done by the calling thread, at once; an asynchronous
// form differs in whose context it works in.

#include <cstring>

#include "lib/sim/api.h"
#include "lib/sim/device.h"
#include "lib/sim/memory.h"
#include "lib/sim/stack.h"
#include "lib/sim/stream.h"

namespace cuguest_sim {
namespace {

// What must lie at one end of a copy.
enum class End {
  kDevice,  // an allocation of this driver
  kHost,    // anything but null
  kEither,  // an allocation, or memory that the driver does not know
};

// The whole of a range in one allocation, or INVALID_VALUE: a byte more is refused,
// however far the device's page goes (measured on an H100, driver 580.159.04).
bool IsRange(CUdeviceptr address, size_t bytes, End end) {
  Allocation allocation;
  if (address == 0) return false;
  if (Memory::Find(address, &allocation)) return allocation.Contains(address, bytes);
  return end != End::kDevice;
}

CUresult Copy(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsRange(to, bytes, to_end) || !IsRange(from, bytes, from_end)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memmove(ToPointer(to), ToPointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult CopyInCurrent(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes) {
  Life life;
  const CUresult code = CurrentReady(&life);
  return code != CUDA_SUCCESS ? code : Copy(to, to_end, from, from_end, bytes);
}

CUresult CopyInStream(CUdeviceptr to, End to_end, CUdeviceptr from, End from_end, size_t bytes,
                      CUstream handle) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : Copy(to, to_end, from, from_end, bytes);
}

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A peer copy names the contexts; they need not be current.
CUresult CheckPeer(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Context::FindOrPanic(handle)->IsAlive() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult CheckPeers(CUcontext to, CUcontext from) {
  const CUresult code = CheckPeer(to);
  return code != CUDA_SUCCESS ? code : CheckPeer(from);
}

// Device memory of another device than the one that works is INVALID_VALUE
// (measured on two H200, driver 580.159.04).
bool CanFill(CUdeviceptr address, size_t bytes, CUdevice device) {
  Allocation allocation;
  if (!Memory::Find(address, &allocation) || !allocation.Contains(address, bytes)) return false;
  return allocation.kind != MemoryKind::kDevice || allocation.life.context->device() == device;
}

template <typename Element>
CUresult Fill(const Life& life, CUdeviceptr to, Element value, size_t count) {
  if (count == 0) return CUDA_SUCCESS;
  if (to % sizeof(Element) != 0 || count > kDeviceMemory / sizeof(Element) ||
      !CanFill(to, count * sizeof(Element), life.context->device())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* elements = static_cast<Element*>(ToPointer(to));
  for (size_t i = 0; i < count; ++i) elements[i] = value;
  return CUDA_SUCCESS;
}

template <typename Element>
CUresult FillInCurrent(CUdeviceptr to, Element value, size_t count) {
  Life life;
  const CUresult code = CurrentReady(&life);
  return code != CUDA_SUCCESS ? code : Fill(life, to, value, count);
}

template <typename Element>
CUresult FillInStream(CUdeviceptr to, Element value, size_t count, CUstream handle) {
  Stream stream;
  const CUresult code = FindReadyStream(handle, &stream);
  return code != CUDA_SUCCESS ? code : Fill(stream.life, to, value, count);
}

}  // namespace

CUresult Memcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(to, End::kEither, from, End::kEither, bytes);
}

CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kEither, from, End::kEither, bytes, stream);
}

CUresult MemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return CopyInCurrent(to, End::kDevice, Address(from), End::kHost, bytes);
}

CUresult MemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kDevice, Address(from), End::kHost, bytes, stream);
}

CUresult MemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(Address(to), End::kHost, from, End::kDevice, bytes);
}

CUresult MemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(Address(to), End::kHost, from, End::kDevice, bytes, stream);
}

CUresult MemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyInCurrent(to, End::kDevice, from, End::kDevice, bytes);
}

CUresult MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyInStream(to, End::kDevice, from, End::kDevice, bytes, stream);
}

CUresult MemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes) {
  const CUresult code = CheckPeers(to_context, from_context);
  return code != CUDA_SUCCESS ? code : MemcpyDtoD(to, from, bytes);
}

CUresult MemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes, CUstream stream) {
  const CUresult code = CheckPeers(to_context, from_context);
  return code != CUDA_SUCCESS ? code : MemcpyDtoDAsync(to, from, bytes, stream);
}

CUresult MemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return FillInCurrent(to, value, count);
}

CUresult MemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

CUresult MemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

CUresult MemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return FillInStream(to, value, count, stream);
}

}  // namespace cuguest_sim
