// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and fills.
//
// Which pointers a direction is refused for is up to the driver's call of that direction:
// it looks at the device's side only, and where pageable memory stands there it is
// cudaErrorInvalidValue. Host to host takes any (measured on an H200, driver 580.159.04).

#include <cuda.h>

#include "runtime/api.h"
#include "runtime/arguments.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/entry.h"
#include "runtime/stream.h"

namespace cudasim::runtime {
namespace {

struct PeerContexts {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
};

cudaError_t FindPeers(int to_device, int from_device, PeerContexts* contexts) {
  if (!IsDevice(to_device) || !IsDevice(from_device)) return cudaErrorInvalidDevice;
  const cudaError_t code = HoldPrimary(to_device, &contexts->to);
  return code != cudaSuccess ? code : HoldPrimary(from_device, &contexts->from);
}

}  // namespace

cudaError_t Memcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const DriverApi& driver = Driver();
  const int twin = IsPerThread() ? 1 : 0;
  if (bytes == 0) return cudaSuccess;
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ToError(driver.cuMemcpyHtoD[twin](ToAddress(to), from, bytes));
    case cudaMemcpyDeviceToHost:
      return ToError(driver.cuMemcpyDtoH[twin](to, ToAddress(from), bytes));
    case cudaMemcpyDeviceToDevice:
      return ToError(driver.cuMemcpyDtoD[twin](ToAddress(to), ToAddress(from), bytes));
    default:
      return ToError(driver.cuMemcpy[twin](ToAddress(to), ToAddress(from), bytes));
  }
}

cudaError_t MemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  const DriverApi& driver = Driver();
  const CUstream on = ToDriver(stream);
  if (bytes == 0) return cudaSuccess;
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ToError(driver.cuMemcpyHtoDAsync(ToAddress(to), from, bytes, on));
    case cudaMemcpyDeviceToHost:
      return ToError(driver.cuMemcpyDtoHAsync(to, ToAddress(from), bytes, on));
    case cudaMemcpyDeviceToDevice:
      return ToError(driver.cuMemcpyDtoDAsync(ToAddress(to), ToAddress(from), bytes, on));
    default:
      return ToError(driver.cuMemcpyAsync(ToAddress(to), ToAddress(from), bytes, on));
  }
}

cudaError_t MemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  PeerContexts peers;
  const cudaError_t code = FindPeers(to_device, from_device, &peers);
  if (code != cudaSuccess) return code;
  return ToError(
      Driver().cuMemcpyPeer[0](ToAddress(to), peers.to, ToAddress(from), peers.from, bytes));
}

cudaError_t MemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                            size_t bytes, cudaStream_t stream) {
  PeerContexts peers;
  const cudaError_t code = FindPeers(to_device, from_device, &peers);
  if (code != cudaSuccess) return code;
  return ToError(Driver().cuMemcpyPeerAsync(ToAddress(to), peers.to, ToAddress(from), peers.from,
                                            bytes, ToDriver(stream)));
}

cudaError_t Memset(void* to, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  return ToError(Driver().cuMemsetD8[IsPerThread() ? 1 : 0](
      ToAddress(to), static_cast<unsigned char>(value), bytes));
}

cudaError_t MemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return ToError(Driver().cuMemsetD8Async(ToAddress(to), static_cast<unsigned char>(value), bytes,
                                          ToDriver(stream)));
}

}  // namespace cudasim::runtime
